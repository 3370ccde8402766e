//! Progress output on stderr: events as text or JSON, and progress bars on a terminal.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use clap::ValueEnum;
use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::escape;
use crate::parallel::locked;

pub use event::{Event, PackageVersion, ProofCount};

mod event;
mod text;

/// The format of stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Style {
    /// Lines, and bars on a terminal
    #[default]
    Auto,
    /// Lines only
    Plain,
    /// One JSON object a line
    Json,
}

/// Process-wide, since there is one stderr. Set before the first output.
static STYLE: OnceLock<Style> = OnceLock::new();

/// Sets the format of stderr; later calls have no effect.
pub fn choose(style: Style) {
    let _first = STYLE.set(style).is_ok();
}

fn style() -> Style {
    STYLE.get().copied().unwrap_or_default()
}

/// Reports the steps of an operation.
#[derive(Debug, Default)]
pub struct Progress {
    quiet: bool,
    /// Events held back while something else is reported.
    held: Mutex<Option<Vec<Event>>>,
    /// The directory that files are written to, and the one to report instead on release.
    staged: Option<(PathBuf, PathBuf)>,
}

impl Progress {
    /// Reports to stderr. If `quiet`, text output is limited to warnings; JSON output is always complete.
    pub fn new(quiet: bool) -> Self {
        Self { quiet, held: Mutex::default(), staged: None }
    }

    /// Holds back all events until the release, and shows no bars before.
    pub fn held(quiet: bool) -> Self {
        Self { quiet, held: Mutex::new(Some(Vec::new())), staged: None }
    }

    /// Reports immediately, except for files written below the directory `from`: they are reported on release, as files
    /// below `to`.
    pub fn staged(from: PathBuf, to: PathBuf) -> Self {
        Self { staged: Some((from, to)), ..Self::held(false) }
    }

    /// Reports the events held back; later events are reported immediately.
    pub fn release(&self) {
        let mut held = locked(&self.held);
        held.take().into_iter().flatten().for_each(|event| emit(&event));
    }

    /// Reports an event.
    pub fn emit(&self, event: Event) {
        if self.quiet && style() != Style::Json && !event.is_warning() {
            return;
        }
        let event = match (&self.staged, event) {
            (None, event) => (event, true),
            (Some((from, to)), Event::Wrote { path, bytes }) => {
                let path = path.strip_prefix(from).map_or_else(|_| path.clone(), |name| to.join(name));
                (Event::Wrote { path, bytes }, true)
            }
            (Some(_), event) => (event, false),
        };
        match (&mut *locked(&self.held), event) {
            (Some(held), (event, true)) => held.push(event),
            (_, (event, _)) => emit(&event),
        }
    }

    /// A counter for bytes of unknown total; invisible unless stderr is a terminal.
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
        let hidden = self.quiet || style() != Style::Auto || (self.staged.is_none() && locked(&self.held).is_some());
        if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() }
    }
}

/// Reports an event immediately. If stderr has been closed, the work continues.
pub fn emit(event: &Event) {
    let text = match style() {
        Style::Auto | Style::Plain => text::lines(event) + "\n",
        // An event consists of text and numbers only.
        Style::Json => escape::json_line(event).unwrap_or_default(),
    };
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Prints a line next to a human-readable result. Untrusted text in it must be escaped.
pub fn emit_message(text: &str) {
    emit(&Event::Remark { text: text.to_owned() });
}

/// `1 file`, `2 files`.
pub fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Formats a number of bytes in binary units.
pub fn human_bytes(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}
