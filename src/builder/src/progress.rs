//! What the user sees while a bake runs: one line a step, and a bar while bytes are written if a terminal looks on.
//!
//! Everything goes to stderr; stdout is for data.

use std::fmt::Display;
use std::io::Write as _;
use std::sync::Mutex;

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::escape;
use crate::parallel::locked;

/// Reports the steps of a bake.
#[derive(Debug, Default)]
pub struct Progress {
    quiet: bool,
    /// What is not said yet, while something else is reported.
    held: Mutex<Option<Vec<String>>>,
}

impl Progress {
    /// Reports to stderr, or not at all when `quiet`.
    pub fn new(quiet: bool) -> Self {
        Self { quiet, held: Mutex::default() }
    }

    /// Reports only when it is released; there are no bars before.
    pub fn held(quiet: bool) -> Self {
        Self { quiet, held: Mutex::new(Some(Vec::new())) }
    }

    /// Says what was held back, and goes on at once from now on.
    pub fn release(&self) {
        let mut held = locked(&self.held);
        held.take().into_iter().flatten().for_each(say);
    }

    /// Says what a finished step did.
    pub fn step(&self, name: &str, detail: &str) {
        if !self.quiet {
            self.warning(name, detail);
        }
    }

    /// Says what must be said even when nothing else is.
    pub fn warning(&self, name: &str, detail: &str) {
        let line = format!("{name:>9}  {}", escape::line(detail));
        match &mut *locked(&self.held) {
            Some(held) => held.push(line),
            None => say(line),
        }
    }

    /// Says what failed, with the chain of causes, while other things go on.
    pub fn failure(&self, name: &str, error: &(dyn std::error::Error + 'static)) {
        say(format_args!("{:>9}  {}: {}", "failed", escape::line(name), escape::chain(error)));
    }

    /// A count of bytes whose total nobody knows; invisible unless stderr is a terminal.
    pub fn counter(&self, name: &'static str) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(None, self.target()).with_prefix(name);
        match ProgressStyle::with_template("{prefix:>9}  {binary_bytes} {binary_bytes_per_sec}") {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }

    /// A bar over `total` bytes; invisible unless stderr is a terminal.
    pub fn bar(&self, name: &'static str, total: u64) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(Some(total), self.target()).with_prefix(name);
        match ProgressStyle::with_template("{prefix:>9}  {wide_bar} {binary_bytes}/{binary_total_bytes} {eta}") {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }

    fn target(&self) -> ProgressDrawTarget {
        let hidden = self.quiet || locked(&self.held).is_some();
        if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() }
    }
}

/// Writes a line to stderr, as it is. If whoever read it has gone, the work goes on.
pub fn say(line: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// `1 file`, `2 files`.
pub fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A number of bytes for people, in binary units.
pub fn human_bytes(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}
