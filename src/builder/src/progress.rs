//! What the user sees while a bake runs: one line a step, and a bar while bytes are written if a terminal looks on.
//!
//! Everything goes to stderr; stdout is for data.

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Reports the steps of a bake.
#[derive(Debug, Default)]
pub struct Progress {
    quiet: bool,
}

impl Progress {
    /// Reports to stderr, or not at all when `quiet`.
    pub fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// Says what a finished step did.
    pub fn step(&self, name: &str, detail: &str) {
        if !self.quiet {
            eprintln!("{name:>9}  {detail}");
        }
    }

    /// Says what failed, with the chain of causes, while other things go on.
    pub fn failure(&self, name: &str, error: &dyn std::error::Error) {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        eprintln!("{:>9}  {name}: {text}", "failed");
    }

    /// A count of bytes whose total nobody knows; invisible unless stderr is a terminal.
    pub fn counter(&self, name: &'static str) -> ProgressBar {
        let target = if self.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(None, target).with_prefix(name);
        match ProgressStyle::with_template("{prefix:>9}  {binary_bytes} {binary_bytes_per_sec}") {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }

    /// A bar over `total` bytes; invisible unless stderr is a terminal.
    pub fn bar(&self, name: &'static str, total: u64) -> ProgressBar {
        let target = if self.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(total), target).with_prefix(name);
        match ProgressStyle::with_template("{prefix:>9}  {wide_bar} {binary_bytes}/{binary_total_bytes} {eta}") {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }
}

/// A number of bytes for people, in binary units.
pub fn human_bytes(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}
