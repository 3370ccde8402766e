//! Options of pam-auth-update(8).

use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(super) struct Options {
    pub(super) force: bool,
    pub(super) is_package: bool,
    pub(super) removed: BTreeSet<String>,
    pub(super) enabled: BTreeSet<String>,
    pub(super) disabled: BTreeSet<String>,
}

impl Options {
    /// Reads the words of a call. `None` for files below another root. As in the program, other words mean nothing.
    pub(super) fn parse(words: &[String]) -> Option<Self> {
        let mut options = Self::default();
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            let names = match word.as_str() {
                "--force" => {
                    options.force = true;
                    continue;
                }
                "--package" => {
                    options.is_package = true;
                    continue;
                }
                "--root" => match words.next().map_or("", String::as_str) {
                    "" => continue,
                    _ => return None,
                },
                "--remove" => &mut options.removed,
                "--enable" => &mut options.enabled,
                "--disable" => &mut options.disabled,
                _ => continue,
            };
            while let Some(name) = words.next_if(|word| !word.starts_with("--")) {
                names.insert(name.clone());
            }
            options.is_package |= !names.is_empty();
        }
        Some(options)
    }
}
