//! Configuration of depmod: depmod.d(5).
//!
//! Stricter than depmod: patterns of versions are regular expressions, of which only `*`, and characters with `.`, `^` and `$` are supported.

use std::collections::BTreeMap;

use crate::error::{KmodError, shown, unsupported};
use crate::files::{EntryKind, Files, list, read};

/// Directories of configuration files. Of files with the same name, the first one counts.
const DIRECTORIES: [&str; 5] =
    ["/etc/depmod.d", "/run/depmod.d", "/usr/local/lib/depmod.d", "/usr/lib/depmod.d", "/lib/depmod.d"];

/// Characters of a pattern that stand for themselves in a POSIX extended regular expression, except `.`.
const PLAIN: &str = "_-~:,/@%=";

/// What the files say. Lists start with the last entry, as depmod reads them.
#[derive(Debug, Default)]
pub struct Config {
    /// Paths of modules, without extension, relative to the directory of the kernel.
    pub overrides: Vec<String>,
    pub searches: Vec<Search>,
    /// Absolute directories.
    pub externals: Vec<String>,
    /// Names of directories and files.
    pub excludes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Search {
    BuiltIn,
    External,
    Directory(String),
}

impl Config {
    pub fn read(files: &impl Files, version: &str, warnings: &mut Vec<String>) -> Result<Self, KmodError> {
        let mut config = Self::default();
        for path in paths(files)?.into_values() {
            let Some(content) = read(files, &path)? else { continue };
            if content.contains(&0) {
                return Err(unsupported(&path, "NUL in a configuration file"));
            }
            for (number, line) in lines(&content) {
                config.line(&line, version, &format!("{path}:{number}"), warnings)?;
            }
        }
        for list in [&mut config.overrides, &mut config.externals, &mut config.excludes] {
            list.reverse();
        }
        config.searches.reverse();
        if config.searches.is_empty() {
            config.searches.push(Search::Directory("updates".to_owned()));
        }
        Ok(config)
    }

    /// Reads a line; `place` is its path and number.
    fn line(&mut self, line: &[u8], version: &str, place: &str, out: &mut Vec<String>) -> Result<(), KmodError> {
        if line.is_empty() || line[0] == b'#' {
            return Ok(());
        }
        let line = std::str::from_utf8(line).map_err(|_| unsupported(place, "a line that is not UTF-8"))?;
        let mut words = line.split(['\t', ' ']).filter(|word| !word.is_empty());
        let Some(command) = words.next() else { return Ok(()) };
        let words: Vec<&str> = words.collect();
        match (command, &words[..]) {
            ("search", words) => self.searches.extend(words.iter().map(|word| match *word {
                "built-in" => Search::BuiltIn,
                "external" => Search::External,
                directory => Search::Directory(directory.to_owned()),
            })),
            ("override", [module, pattern, directory, ..]) => {
                if matches(pattern, version, place)? {
                    self.overrides.push(format!("{directory}/{module}"));
                }
            }
            // depmod ignores further directories.
            ("external", [pattern, directory, ..]) => {
                if !directory.starts_with('/') || directory.ends_with('/') || words.len() > 2 {
                    let what = "external directories other than one absolute path without a slash at its end";
                    return Err(unsupported(place, what));
                }
                if matches(pattern, version, place)? {
                    self.externals.push((*directory).to_owned());
                }
            }
            ("exclude", words) => self.excludes.extend(words.iter().map(|word| (*word).to_owned())),
            // depmod has not implemented these and says so only with -v.
            ("include" | "make_map_files", _) => {}
            _ => out.push(format!("ERROR: {place}: ignoring bad line starting with '{command}'")),
        }
        Ok(())
    }
}

/// Paths of the configuration files by name.
fn paths(files: &impl Files) -> Result<BTreeMap<String, String>, KmodError> {
    let mut paths = BTreeMap::new();
    for directory in DIRECTORIES {
        for entry in list(files, directory)?.unwrap_or_default() {
            let is_other = entry.name.starts_with(b".") || !entry.name.ends_with(b".conf") || entry.name.len() < 6;
            if is_other || entry.kind != EntryKind::File {
                continue;
            }
            let name = String::from_utf8(entry.name)
                .map_err(|error| unsupported(directory, format!("the file name {}", shown(error.as_bytes()))))?;
            let path = format!("{directory}/{name}");
            paths.entry(name).or_insert(path);
        }
    }
    Ok(paths)
}

/// Lines with their last number. A backslash continues a line, and is removed elsewhere.
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

/// Whether a version matches a pattern, anywhere in it.
fn matches(pattern: &str, version: &str, place: &str) -> Result<bool, KmodError> {
    if pattern == "*" {
        return Ok(true);
    }
    let (is_start, rest) = pattern.strip_prefix('^').map_or((false, pattern), |rest| (true, rest));
    let (is_end, rest) = rest.strip_suffix('$').map_or((false, rest), |rest| (true, rest));
    let known = |character: char| character.is_ascii_alphanumeric() || character == '.' || PLAIN.contains(character);
    if rest.is_empty() || !rest.chars().all(known) {
        return Err(unsupported(place, format!("the regular expression {pattern}")));
    }
    let mut starts = 0..=version.len().saturating_sub(rest.len());
    let version = version.as_bytes();
    Ok(starts.any(|start| {
        let Some(part) = version.get(start..start + rest.len()) else { return false };
        let is_equal = part.iter().zip(rest.bytes()).all(|(found, wanted)| wanted == b'.' || *found == wanted);
        is_equal && (!is_start || start == 0) && (!is_end || start + rest.len() == version.len())
    }))
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
            let found: Vec<_> = lines(given.as_bytes());
            let expected: Vec<_> = expected.iter().map(|(at, line)| (*at, line.as_bytes().to_vec())).collect();
            assert_eq!(found, expected, "{given:?}");
        }
    }

    #[test]
    fn versions_match_patterns() {
        let cases = [
            ("*", Some(true)),
            ("6.1.0-9-amd64", Some(true)),
            ("6.1", Some(true)),
            ("6x1", Some(false)),
            ("^6.1.0", Some(true)),
            ("^1.0", Some(false)),
            ("amd64$", Some(true)),
            ("^6.1$", Some(false)),
            ("6.1.0-9-amd64-and-more", Some(false)),
            ("6.1+", None),
            ("[0-9]", None),
            ("^", None),
        ];
        for (pattern, expected) in cases {
            assert_eq!(matches(pattern, "6.1.0-9-amd64", "p").ok(), expected, "{pattern}");
        }
    }
}
