//! Configuration of depmod: depmod.d(5).
//!
//! Stricter than depmod: of version patterns, which are POSIX extended regular expressions, only `*` and literal text with `.`, `^` and `$` are
//! supported.

use std::collections::BTreeMap;

use crate::conf;
use crate::error::{KmodError, unsupported};
use crate::files::{Files, read};

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
        let mut paths = BTreeMap::new();
        conf::find(files, "depmod.d", &mut paths)?;
        for path in paths.into_values() {
            let content = read(files, &path)?.unwrap_or_default();
            for command in conf::commands(&content, &path)? {
                config.add(&command.words(), version, &command.place, warnings)?;
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

    /// Adds a command; `place` is its path and line.
    fn add(&mut self, words: &[&str], version: &str, place: &str, out: &mut Vec<String>) -> Result<(), KmodError> {
        match *words {
            ["search", ref words @ ..] => self.searches.extend(words.iter().map(|word| match *word {
                "built-in" => Search::BuiltIn,
                "external" => Search::External,
                directory => Search::Directory(directory.to_owned()),
            })),
            ["override", module, pattern, directory, ..] => {
                if matches(pattern, version, place)? {
                    self.overrides.push(format!("{directory}/{module}"));
                }
            }
            // depmod silently ignores further directories.
            ["external", pattern, directory, ref more @ ..] => {
                if !directory.starts_with('/') || directory.ends_with('/') || !more.is_empty() {
                    let what = "external directories other than one absolute path without a trailing slash";
                    return Err(unsupported(place, what));
                }
                if matches(pattern, version, place)? {
                    self.externals.push(directory.to_owned());
                }
            }
            ["exclude", ref words @ ..] => self.excludes.extend(words.iter().map(|word| (*word).to_owned())),
            // depmod does not implement these, and reports that only with -v.
            ["include" | "make_map_files", ..] => {}
            [command, ..] => out.push(format!("ERROR: {place}: ignoring bad line starting with '{command}'")),
            [] => {}
        }
        Ok(())
    }
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
        return Err(unsupported(place, format!("regular expression {pattern}")));
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
