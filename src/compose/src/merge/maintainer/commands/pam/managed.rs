//! What an administrator has changed in the part of the configuration that pam-auth-update(8) manages: its state and the files in, options
//! that were added or removed out.

use std::collections::{BTreeMap, BTreeSet};

use vmbake_shell::Files;

use super::stack::{ADDITIONAL, END, FALLBACK, Kind, PRIMARY, parts, without_jump};
use super::{CONFIGURATION, STATE, read};

/// Options by the module line that they belong to.
pub(super) type Words = BTreeMap<String, BTreeSet<String>>;

/// Options that differ from those of the profiles.
#[derive(Debug, Default)]
pub(super) struct OfKind {
    pub(super) added: Words,
    pub(super) removed: Words,
}

#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The profiles that are in use, in the order of their lines.
    pub(super) profiles: Vec<String>,
    kinds: BTreeMap<&'static str, OfKind>,
}

impl Changes {
    pub(super) fn of(&mut self, kind: &'static str) -> &mut OfKind {
        self.kinds.entry(kind).or_default()
    }
}

/// Compares the files with the state. `None` where the files are not those that the program has written.
pub(super) fn changes(files: &dyn Files) -> Result<Option<Changes>, String> {
    let mut changes = Changes::default();
    for kind in Kind::ALL {
        let Some(state) = read(files, &format!("{STATE}/{}", kind.name()))? else { return Ok(None) };
        let Some(current) = read(files, &format!("{CONFIGURATION}/common-{}", kind.name()))? else { return Ok(None) };
        let (mut saved, mut profile) = (Vec::new(), String::new());
        for line in state.lines() {
            match line.strip_prefix("Module: ") {
                Some(name) => name.clone_into(&mut profile),
                None => saved.push((profile.clone(), without_end(&without_jump(line)))),
            }
        }
        if !compare(kind, &current, saved, &mut changes)? {
            return Ok(None);
        }
    }
    Ok(Some(changes))
}

fn compare(kind: Kind, current: &str, saved: Vec<(String, String)>, changes: &mut Changes) -> Result<bool, String> {
    let mut saved = saved.into_iter();
    let mut markers = [PRIMARY, FALLBACK, ADDITIONAL, END].iter();
    let (mut next, mut passed) = (markers.next(), 0);
    for line in current.lines() {
        if next.is_some_and(|marker| line.starts_with(marker)) {
            (next, passed) = (markers.next(), passed + 1);
            if next.is_none() {
                break;
            }
            continue;
        }
        // Behind the first and the third marker are the lines of modules.
        if passed % 2 == 0 {
            continue;
        }
        let rest = line.strip_prefix(kind.word()).filter(|rest| rest.starts_with([' ', '\t']));
        let mut line = rest.map_or(line, str::trim_start).to_owned();
        let found = loop {
            let Some((profile, saved)) = saved.next() else { return Ok(false) };
            let Some((module, options)) = parts(&saved) else {
                return Err(format!("the line {saved:?} of {STATE}/{}", kind.name()));
            };
            line = without_jump(&line);
            if let Some(rest) = line.strip_prefix(module) {
                break (profile, module.to_owned(), words(options), words(rest));
            }
        };
        let (profile, module, mut before, now) = found;
        changes.profiles.push(profile);
        let of_kind = changes.of(kind.name());
        for option in now {
            if !take(&mut before, &option) {
                of_kind.added.entry(module.clone()).or_default().insert(option);
            }
        }
        of_kind.removed.entry(module).or_default().extend(before);
    }
    Ok(passed >= 3)
}

/// Takes an option out, and tells whether it was there. Of several in a row, the program leaves every second one.
fn take(options: &mut Vec<String>, option: &str) -> bool {
    let (count, mut at) = (options.len(), 0);
    while at < options.len() {
        if options[at] == option {
            options.remove(at);
        }
        at += 1;
    }
    options.len() < count
}

fn words(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

/// Takes out the last `end` in brackets, which is where a line jumps to.
fn without_end(line: &str) -> String {
    let found = line.find('[').and_then(|open| {
        let close = line.rfind(']')?;
        let at = line.get(open + 1..close)?.rfind("end")?;
        Some(open + 1 + at)
    });
    found.map_or_else(|| line.to_owned(), |at| [&line[..at], &line[at + 3..]].concat())
}
