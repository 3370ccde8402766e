//! What the user sees while vmbake works: events as lines or as JSON, and a bar while bytes come or go if a terminal looks on.
//!
//! Everything goes to stderr; stdout is for data.

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

/// What stderr looks like.
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

/// That of this process, which has one stderr: set before anything is said.
static STYLE: OnceLock<Style> = OnceLock::new();

/// Chooses what stderr looks like, once; later choices do not count.
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
    /// What is not said yet, while something else is reported.
    held: Mutex<Option<Vec<Event>>>,
    /// The folder that files are written to, and the one that they are reported in, on release.
    staged: Option<(PathBuf, PathBuf)>,
}

impl Progress {
    /// Reports to stderr. When `quiet`, it says only warnings, but whoever reads JSON gets everything.
    pub fn new(quiet: bool) -> Self {
        Self { quiet, held: Mutex::default(), staged: None }
    }

    /// Reports only when it is released; there are no bars before.
    pub fn held(quiet: bool) -> Self {
        Self { quiet, held: Mutex::new(Some(Vec::new())), staged: None }
    }

    /// Reports immediately, except files written below the folder `from`: they are reported on release, as files below `to`.
    pub fn staged(from: PathBuf, to: PathBuf) -> Self {
        Self { staged: Some((from, to)), ..Self::held(false) }
    }

    /// Says what was held back, and goes on at once from now on.
    pub fn release(&self) {
        let mut held = locked(&self.held);
        held.take().into_iter().flatten().for_each(|event| tell(&event));
    }

    /// Says what happened.
    pub fn tell(&self, event: Event) {
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
            (_, (event, _)) => tell(&event),
        }
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
        let hidden = self.quiet || style() != Style::Auto || (self.staged.is_none() && locked(&self.held).is_some());
        if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() }
    }
}

/// Says at once what happened. If whoever read stderr has gone, the work goes on.
pub fn tell(event: &Event) {
    let text = match style() {
        Style::Auto | Style::Plain => text::lines(event) + "\n",
        // All of it is text and numbers.
        Style::Json => escape::json_line(event).unwrap_or_default(),
    };
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Says something beside an answer that people read, which has no control characters from outside.
pub fn remark(text: &str) {
    tell(&Event::Remark { text: text.to_owned() });
}

/// `1 file`, `2 files`.
pub fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A number of bytes for people, in binary units.
pub fn human_bytes(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}
