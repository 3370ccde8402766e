//! Options, parsed as by dpkg's programs: before the operands, with the value after `=` or in the next word.

use vmbake_shell::Call;

/// An option: its long name, its letter, and whether it has a value.
pub(super) type Spec = (&'static str, Option<u8>, bool);

/// What a program was called with.
#[derive(Debug, Default)]
pub(super) struct Options {
    given: Vec<(&'static str, String)>,
    pub(super) operands: Vec<String>,
}

impl Options {
    pub(super) fn has(&self, name: &str) -> bool {
        self.given.iter().any(|(found, _)| *found == name)
    }

    /// The value of the last such option.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.given.iter().rev().find(|(found, _)| *found == name).map(|(_, value)| value.as_str())
    }

    /// Which of these options are given, in their order here.
    pub(super) fn among(&self, names: &[&'static str]) -> Vec<&'static str> {
        names.iter().copied().filter(|name| self.has(name)).collect()
    }
}

/// Divides the words of a call; `None` where one is not an option of `specs`, lacks its value, or is not UTF-8.
pub(super) fn parse(call: &Call<'_>, specs: &[Spec]) -> Option<Options> {
    let words = super::words(call)?;
    let mut options = Options::default();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if word == "--" {
            options.operands = words.map(str::to_owned).collect();
            break;
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let (name, _, takes) = specs.iter().find(|(own, ..)| *own == name)?;
            let value = match takes {
                true => value.or_else(|| words.next())?,
                false if value.is_some() => return None,
                false => "",
            };
            options.given.push((name, value.to_owned()));
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            short(letters, &mut words, specs, &mut options)?;
        } else {
            options.operands = std::iter::once(word).chain(words).map(str::to_owned).collect();
            break;
        }
    }
    Some(options)
}

/// Letters of one word; the first with a value takes what is left of it.
fn short<'a>(
    letters: &'a str,
    words: &mut impl Iterator<Item = &'a str>,
    specs: &[Spec],
    options: &mut Options,
) -> Option<()> {
    for (at, letter) in letters.bytes().enumerate() {
        let (name, _, takes) = specs.iter().find(|(_, own, _)| *own == Some(letter))?;
        if !takes {
            options.given.push((name, String::new()));
            continue;
        }
        let rest = letters.get(at + 1..)?;
        let rest = rest.strip_prefix('=').unwrap_or(rest);
        let value = if rest.is_empty() { words.next()? } else { rest };
        options.given.push((name, value.to_owned()));
        break;
    }
    Some(())
}
