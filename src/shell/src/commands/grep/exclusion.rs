//! `--include`, `--exclude` and `--exclude-dir`: which files are not searched.

use super::Options;
use crate::commands::paths::bare;
use crate::expand::literal_pattern;

/// A pattern of an option.
struct Glob {
    includes: bool,
    text: Vec<u8>,
}

/// The patterns for files and for directories, in the order of their options.
pub(super) struct Exclusion {
    files: Vec<Glob>,
    directories: Vec<Glob>,
}

impl Exclusion {
    pub(super) fn new(options: &Options) -> Self {
        let (mut files, mut directories) = (Vec::new(), Vec::new());
        for (letter, text) in options.iter() {
            match letter {
                b'1' | b'2' => files.push(Glob { includes: letter == b'1', text: text.to_vec() }),
                b'3' => directories.push(Glob { includes: false, text: bare(text).to_vec() }),
                _ => {}
            }
        }
        Self { files, directories }
    }

    /// Whether an operand is left out: a pattern may fit all of it, or what is behind a slash.
    pub(super) fn has_operand(&self, path: &[u8], is_dir: bool) -> bool {
        excludes(if is_dir { &self.directories } else { &self.files }, path, true)
    }

    /// Whether a file below an operand is left out, itself or a directory above it, by its path from there. Patterns see names only.
    pub(super) fn has_below(&self, path: &[u8]) -> bool {
        let mut names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        let Some(last) = names.next_back() else { return false };
        names.any(|name| excludes(&self.directories, name, false)) || excludes(&self.files, last, false)
    }
}

/// The last option with a matching pattern decides. If none matches, the opposite of the first option applies.
fn excludes(globs: &[Glob], name: &[u8], behind_slashes: bool) -> bool {
    match globs.iter().rev().find(|glob| fits(&glob.text, name, behind_slashes)) {
        Some(glob) => !glob.includes,
        None => globs.first().is_some_and(|glob| glob.includes),
    }
}

fn fits(text: &[u8], name: &[u8], behind_slashes: bool) -> bool {
    let pattern = literal_pattern(text);
    let slashes = name.iter().enumerate().filter(|(_, byte)| behind_slashes && **byte == b'/').map(|(at, _)| at + 1);
    std::iter::once(0).chain(slashes).any(|start| pattern.matches(&name[start..]))
}
