//! Options, parsed as by getopt_long(3) and Perl's Getopt::Long.

/// An option that a command knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    long: &'static str,
    short: char,
    value: bool,
}

/// An option alone; `'\0'` where it has no letter.
pub(super) const fn flag(long: &'static str, short: char) -> Known {
    Known { long, short, value: false }
}

/// An option with a value.
pub(super) const fn value(long: &'static str, short: char) -> Known {
    Known { long, short, value: true }
}

/// The options and operands of a call.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    options: Vec<(&'static str, String)>,
    pub(super) operands: Vec<String>,
}

impl Parsed {
    /// Words of which the options are not known: those without a dash.
    pub(super) fn of_operands(words: &[String]) -> Self {
        let operands = words.iter().filter(|word| !word.starts_with('-')).cloned().collect();
        Self { options: Vec::new(), operands }
    }

    pub(super) fn has(&self, long: &str) -> bool {
        self.options.iter().any(|(name, _)| *name == long)
    }

    /// The last value of an option.
    pub(super) fn value(&self, long: &str) -> Option<&str> {
        self.options.iter().rev().find(|(name, _)| *name == long).map(|(_, value)| value.as_str())
    }

    /// Every value of an option.
    pub(super) fn values<'a>(&'a self, long: &'a str) -> impl Iterator<Item = &'a str> {
        self.options.iter().filter(move |(name, _)| *name == long).map(|(_, value)| value.as_str())
    }

    fn push(&mut self, known: &Known, value: String) {
        self.options.push((known.long, value));
    }
}

/// Reads the words of a call; `None` where something in it is not known.
pub(super) fn parse(words: &[String], known: &[Known]) -> Option<Parsed> {
    let mut parsed = Parsed::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            parsed.operands.extend(words.cloned());
            break;
        }
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let option = find(name, known)?;
            let value = match (option.value, value) {
                (false, Some(_)) => return None,
                (false, None) => String::new(),
                (true, Some(value)) => value.to_owned(),
                (true, None) => words.next()?.clone(),
            };
            parsed.push(option, value);
        } else if let Some(cluster) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            letters(&mut parsed, cluster, &mut words, known)?;
        } else {
            parsed.operands.push(word.clone());
        }
    }
    Some(parsed)
}

/// An option by its name, or by the beginning of its name that no other has.
fn find<'a>(name: &str, known: &'a [Known]) -> Option<&'a Known> {
    if let Some(exact) = known.iter().find(|option| option.long == name) {
        return Some(exact);
    }
    let mut found = known.iter().filter(|option| option.long.starts_with(name));
    found.next().filter(|_| found.next().is_none())
}

/// `-aG GROUP`, `-u1`
fn letters(
    parsed: &mut Parsed,
    cluster: &str,
    words: &mut std::slice::Iter<'_, String>,
    known: &[Known],
) -> Option<()> {
    for (at, letter) in cluster.char_indices() {
        let option = known.iter().find(|option| option.short == letter)?;
        if !option.value {
            parsed.push(option, String::new());
            continue;
        }
        let rest = cluster.get(at + letter.len_utf8()..).unwrap_or_default();
        let value = if rest.is_empty() { words.next()?.clone() } else { rest.to_owned() };
        parsed.push(option, value);
        break;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::{Known, flag, parse, value};

    const KNOWN: &[Known] = &[flag("append", 'a'), value("groups", 'G'), flag("system", '\0'), flag("disabled", '\0')];

    #[test]
    fn options_are_read_as_getopt_reads_them() {
        let read = |words: &[&str]| parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), KNOWN);
        for words in [
            &["-aG", "x,y", "u"][..],
            &["u", "--groups=x,y", "--app"],
            &["-a", "-Gx,y", "u"],
            &["-a", "-G", "x,y", "--", "u"],
        ] {
            let parsed = read(words).unwrap();
            assert!(parsed.has("append") && !parsed.has("system"), "{words:?}");
            assert_eq!(parsed.value("groups"), Some("x,y"), "{words:?}");
            assert_eq!(parsed.operands, ["u"], "{words:?}");
        }
        for words in [&["--nix"][..], &["-x"], &["--groups"], &["-G"], &["--append=1"], &["--"], &["-"]] {
            let refused = read(words).is_none();
            assert_eq!(refused, !matches!(words, ["--" | "-"]), "{words:?}");
        }
        assert!(parse(&["--s".to_owned()], &[flag("system", 's'), flag("shell", 'h')]).is_none(), "two begin so");
    }
}
