//! Finds the files of sysusers.d(5) and tmpfiles.d(5), and splits their lines into fields.

use std::collections::BTreeSet;

use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_disk::tree::Kind;

use super::place::Target;
use super::{ContentFault, MergeError};

/// Where they are; the first that has a name wins. `/run` is empty in an image.
const DIRECTORIES: [&str; 3] = ["/etc", "/usr/local/lib", "/usr/lib"];

/// What `%` and a letter mean in an image; what depends on the machine is not among them.
const SPECIFIERS: [(char, &str); 7] = [
    ('%', "%"),
    ('C', "/var/cache"),
    ('L', "/var/log"),
    ('S', "/var/lib"),
    ('T', "/tmp"),
    ('V', "/var/tmp"),
    ('t', "/run"),
];

/// A configuration file: the path of the tree, or the option that gave it, and its text.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) path: String,
    pub(super) text: String,
}

impl Config {
    /// The file of that name, or with that path.
    pub(super) fn named(target: &Target, folder: &str, name: &str) -> Result<Self, MergeError> {
        let path = find(target, folder, name)?;
        let text = target.text(&path)?;
        Ok(Self { path, text })
    }

    /// All files, by their names.
    pub(super) fn all(target: &Target, folder: &str) -> Result<Vec<Self>, MergeError> {
        let mut names = BTreeSet::new();
        for dir in DIRECTORIES {
            let found = target.tree.resolve(format!("{dir}/{folder}").as_bytes()).ok();
            if let Some(Kind::Directory(entries)) = found.map(|id| &target.tree.inode(id).kind) {
                names.extend(entries.keys().filter(|name| name.ends_with(b".conf")).cloned());
            }
        }
        let names = names.iter().filter_map(|name| std::str::from_utf8(name).ok());
        names.map(|name| Self::named(target, folder, name)).collect()
    }

    /// The lines that say something, each with its words.
    pub(super) fn lines(&self) -> impl Iterator<Item = Result<(&str, Vec<String>), MergeError>> {
        let lines = self.text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(|line| words(line).map(|words| (line, words)).ok_or_else(|| self.fault(line)))
    }

    /// The same with their numbers, counted from 1, without those whose words are not understood.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (usize, Vec<String>)> {
        let lines = (1..).zip(self.text.lines().map(str::trim));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        lines.filter_map(|(number, line)| Some((number, words(line)?)))
    }

    /// The error about a line that means something that is not known.
    pub(super) fn fault(&self, line: &str) -> MergeError {
        MergeError::content(&self.path, ContentFault::Message(message!("line {line:?} is invalid")))
    }
}

fn find(target: &Target, folder: &str, name: &str) -> Result<String, MergeError> {
    let paths = if name.starts_with('/') {
        vec![name.to_owned()]
    } else {
        DIRECTORIES.iter().map(|dir| format!("{dir}/{folder}/{name}")).collect()
    };
    let found = paths.into_iter().find(|path| target.tree.resolve(path.as_bytes()).is_ok());
    let missing = || {
        MergeError::content(
            format!("/usr/lib/{folder}/{name}"),
            ContentFault::Message(Message::new("is used by a script, but not contained in any package")),
        )
    };
    found.ok_or_else(missing)
}

/// The words of a line, of which quotes keep spaces; `None` where a quote does not end.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match (quote, char) {
            (Some(open), _) if char == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (Some('"') | None, '\\') => {
                // tmpfiles.d(5) reads escapes in its last field again.
                word.get_or_insert_default().extend(['\\', chars.next()?]);
            }
            (None, _) if char.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// Replaces specifiers; `None` where one depends on the machine.
pub(super) fn expand(word: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = word.chars();
    while let Some(char) = chars.next() {
        if char != '%' {
            out.push(char);
            continue;
        }
        let letter = chars.next()?;
        out.push_str(SPECIFIERS.iter().find(|(known, _)| *known == letter)?.1);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{expand, words};

    #[test]
    fn words_and_specifiers() {
        assert_eq!(words("u  a - \"A b\" 'c d'").unwrap(), ["u", "a", "-", "A b", "c d"]);
        assert_eq!(words("f /x - - - - a\\n \"\"").unwrap(), ["f", "/x", "-", "-", "-", "-", "a\\n", ""]);
        assert_eq!([words("u \"a"), words("u 'a"), words("a\\")], [None, None, None]);
        assert_eq!(expand("%S/a%%b").as_deref(), Some("/var/lib/a%b"));
        assert_eq!([expand("%H"), expand("%b"), expand("a%")], [None, None, None]);
    }
}
