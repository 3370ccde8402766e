//! Lines of tmpfiles.d(5) that systemd-tmpfiles ignores, because an earlier line for the same path has other settings. Earlier means in the
//! same file, or in a file whose name sorts before.

use std::collections::BTreeMap;

use super::super::accounts::is_id;
use super::accounts::simplified;
use super::{field, files, lines, words};

/// Types whose paths are patterns. Their lines do not conflict with those of other types.
const PATTERNS: &str = "wetThHaAxXrRzZm";

/// Types of patterns of which only one line may have the same path.
const EXCLUSIVE_PATTERNS: &str = "wexXrR";

/// Types of directories, whose default mode differs from that of other files.
const DIRECTORIES: &str = "dDvqQ";

/// A line that is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TmpfilesConflict {
    /// The index of the text, and the line, counted from 1.
    pub place: (usize, usize),
    /// The same for the earlier line.
    pub first: (usize, usize),
    pub path: String,
    /// Whether that depends on the machine, because one of the lines needs a source or a credential.
    pub is_conditional: bool,
}

struct Line {
    place: (usize, usize),
    /// Mode, owner, group, age and argument, which are equal if the lines do the same.
    settings: [String; 5],
    is_conditional: bool,
    is_appended: bool,
}

/// The lines that are ignored because of earlier ones, in texts in the order in which they are read.
pub fn tmpfiles_conflicts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<TmpfilesConflict> {
    let (mut earlier, mut found) = (BTreeMap::<(bool, String), Vec<Line>>::new(), Vec::new());
    for (index, text) in texts.into_iter().enumerate() {
        for (number, text) in lines(text, &['#']) {
            let Some(words) = words(text, 6, true).ok().filter(|words| files::check(words).is_ok()) else { continue };
            let Some((key, line)) = line((index, number), &words) else { continue };
            let others = earlier.entry(key).or_default();
            let differs = |other: &&Line| !(are_equal(other, &line) || other.is_appended && line.is_appended);
            match others.iter().find(differs) {
                Some(other) => found.push(TmpfilesConflict {
                    place: line.place,
                    first: other.place,
                    path: words[1].clone(),
                    is_conditional: other.is_conditional || line.is_conditional,
                }),
                // One is enough of those that are equal.
                None if others.is_empty() || line.is_appended => others.push(line),
                None => {}
            }
        }
    }
    found
}

/// Whether two lines do the same. A numeric id may belong to a named account, so it counts as equal to a name.
fn are_equal(one: &Line, other: &Line) -> bool {
    let is_number = |text: &str| !text.is_empty() && is_id(text);
    let pairs = one.settings.iter().zip(&other.settings).enumerate();
    pairs.into_iter().all(|(at, (one, other))| {
        let may_be_equal = [1, 2].contains(&at) && is_number(one) != is_number(other);
        one == other || may_be_equal && !one.is_empty() && !other.is_empty()
    })
}

/// A line with whether its path is a pattern, and its path; `None` for one that never conflicts.
fn line(place: (usize, usize), words: &[String]) -> Option<((bool, String), Line)> {
    let (kind, modifiers) = words.first()?.split_at_checked(1)?;
    let (is_pattern, path) = (PATTERNS.contains(kind), words.get(1)?);
    if is_pattern && !EXCLUSIVE_PATTERNS.contains(kind) {
        return None;
    }
    // Data in base64 is not compared with text.
    let encoding = if modifiers.contains('~') { "~" } else { "" };
    let argument = match field(words, 6) {
        None if "LC".contains(kind) => format!("/usr/share/factory{path}"),
        argument => argument.map(|argument| format!("{encoding}{argument}")).unwrap_or_default(),
    };
    let default = if DIRECTORIES.contains(kind) { "default of directories" } else { "default" };
    let mode = field(words, 2).map_or(default, |mode| mode.trim_start_matches('0'));
    let account = |at: usize| field(words, at).map_or("", |name| if name == "0" { "root" } else { name }).to_owned();
    let age = field(words, 5).unwrap_or_default();
    let settings = [mode.to_owned(), account(3), account(4), age.to_owned(), argument];
    let is_conditional = kind == "C" || modifiers.contains('^');
    let is_appended = kind == "w" && modifiers.contains('+');
    let path = simplified(path.strip_prefix("/var/run/").map(|rest| format!("/run/{rest}")).as_ref().unwrap_or(path));
    Some(((is_pattern, path), Line { place, settings, is_conditional, is_appended }))
}
