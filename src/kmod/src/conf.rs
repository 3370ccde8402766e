//! Configuration files of kmod: their order and their lines.

use std::collections::BTreeMap;

use crate::error::{KmodError, shown, unsupported};
use crate::files::{EntryKind, Files, list};

/// Directories of configuration files, by precedence: of files with the same name, only the first is read.
const DIRECTORIES: [&str; 5] = ["/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"];

const BLANKS: [char; 2] = ['\t', ' '];

/// Adds the configuration files in directories `name`, such as `depmod.d`, to those by file name.
pub fn find(files: &impl Files, name: &str, found: &mut BTreeMap<String, String>) -> Result<(), KmodError> {
    for parent in DIRECTORIES {
        let directory = format!("{parent}/{name}");
        for entry in list(files, &directory)?.unwrap_or_default() {
            let is_other = entry.name.starts_with(b".") || !entry.name.ends_with(b".conf") || entry.name.len() < 6;
            if is_other || !matches!(entry.kind, EntryKind::File | EntryKind::Null) {
                continue;
            }
            let name = String::from_utf8(entry.name)
                .map_err(|error| unsupported(&directory, format!("file name {}", shown(error.as_bytes()))))?;
            let path = if entry.kind == EntryKind::Null { String::new() } else { format!("{directory}/{name}") };
            found.entry(name).or_insert(path);
        }
    }
    found.retain(|_, path| !path.is_empty());
    Ok(())
}

/// A command of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Path and number of its last line.
    pub place: String,
    text: String,
}

impl Command {
    pub fn words(&self) -> Vec<&str> {
        self.text.split(BLANKS).filter(|word| !word.is_empty()).collect()
    }

    /// The text after the first `count` words and one blank.
    pub fn after(&self, count: usize) -> &str {
        (0..count)
            .fold(&self.text[..], |rest, _| rest.trim_start_matches(BLANKS).split_once(BLANKS).unwrap_or_default().1)
    }
}

/// The commands of a file. A backslash continues a line, and is removed elsewhere.
pub fn commands(content: &[u8], path: &str) -> Result<Vec<Command>, KmodError> {
    let mut commands = Vec::new();
    for (number, line) in lines(content) {
        let place = format!("{path}:{number}");
        // Only some parsers of kmod end words at other white space.
        let text = String::from_utf8(line).ok().filter(|text| text.chars().all(|it| it == '\t' || !it.is_control()));
        let text = text.ok_or_else(|| unsupported(&place, "control characters, or text that is not UTF-8"))?;
        let command = Command { place, text };
        if !command.text.starts_with('#') && !command.words().is_empty() {
            commands.push(command);
        }
    }
    Ok(commands)
}

fn lines(content: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let (mut lines, mut line, mut number) = (Vec::new(), Vec::new(), 1);
    let mut bytes = content.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\n' => {
                lines.push((number, std::mem::take(&mut line)));
                number += 1;
            }
            b'\\' => match bytes.next() {
                Some(b'\n') => number += 1,
                Some(&next) => line.push(next),
                None => {}
            },
            _ => line.push(byte),
        }
    }
    lines.push((number, line));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backslashes_continue_lines() {
        let cases: [(&str, &[(usize, &str)]); 4] = [
            ("a\nb", &[(1, "a"), (2, "b")]),
            ("a\\\nb\nc\n", &[(2, "ab"), (3, "c"), (4, "")]),
            ("a\\bc\\", &[(1, "abc")]),
            ("", &[(1, "")]),
        ];
        for (given, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|(at, line)| (*at, line.as_bytes().to_vec())).collect();
            assert_eq!(lines(given.as_bytes()), expected, "{given:?}");
        }
    }
}
