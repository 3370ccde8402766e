//! `systemd-hwdb update`: compiles `hwdb.d` (hwdb(7)) into hwdb.bin.
//!
//! A record has patterns, one a line, and below them properties in lines that begin with a space; an empty line ends it.

use vmbake_shell::Files;

use super::conf_files::conf_files;
use super::lines::lines;
use super::strings::TooLarge;
use super::trie::{Property, Trie};
use super::{Source, replace};

/// The directory of packages; systemd 252 names it without `/usr`.
fn of_packages(version: u16) -> &'static str {
    if version < 255 { "/lib/udev" } else { "/usr/lib/udev" }
}

/// Why the database is not compiled here.
#[derive(Debug)]
pub(super) struct NotHere;

/// Compiles the database, or removes it if there is nothing to compile.
pub(super) fn update(files: &mut dyn Files, version: u16, is_of_packages: bool) -> Result<(), NotHere> {
    let packages = of_packages(version);
    let sources =
        conf_files(files, ["/etc/udev/hwdb.d", &format!("{packages}/hwdb.d")], b".hwdb").map_err(|_| NotHere)?;
    let path = format!("{}/hwdb.bin", if is_of_packages { packages } else { "/etc/udev" });
    let done = match sources.is_empty() {
        true => files.make_way(path.as_bytes()),
        false => {
            let content = compile(&sources, version).map_err(|_| NotHere)?;
            replace(files, path.as_bytes(), content, 0o444)
        }
    };
    done.map_err(|_| NotHere)
}

/// The database of files, which are sorted by name.
fn compile(sources: &[Source], version: u16) -> Result<Vec<u8>, TooLarge> {
    let mut trie = Trie::new();
    let mut priority = 1_u16;
    for (path, content) in sources {
        let mut record = Record::None;
        // Nothing behind a line that is too long is read, and nothing is said about it.
        let numbered = (1_u32..).zip(lines(content.as_deref().unwrap_or_default()).map_while(Result::ok));
        for (number, line) in numbered.filter(|(_, line)| !line.starts_with(b"#")) {
            let line = trimmed(line);
            record = match (record, line.first()) {
                (_, None) | (Record::None, Some(b' ')) => Record::None,
                (Record::None, Some(_)) => Record::Patterns(vec![line]),
                (Record::Patterns(mut patterns), Some(byte)) if *byte != b' ' => {
                    patterns.push(line);
                    Record::Patterns(patterns)
                }
                (Record::Patterns(patterns) | Record::Properties(patterns), Some(b' ')) => {
                    if let Some((key, value)) = property(line) {
                        let property = Property { key, value, file: path, priority, line: number };
                        patterns.iter().try_for_each(|pattern| trie.insert(pattern, &property))?;
                    }
                    Record::Properties(patterns)
                }
                (Record::Patterns(_) | Record::Properties(_), Some(_)) => Record::None,
            };
        }
        priority = priority.wrapping_add(1);
    }
    Ok(trie.store(version))
}

/// What has been read of a record: its patterns, and whether properties follow.
enum Record<'a> {
    None,
    Patterns(Vec<&'a [u8]>),
    Properties(Vec<&'a [u8]>),
}

/// A line without comment, and without blanks at its end.
fn trimmed(line: &[u8]) -> &[u8] {
    let len = line.iter().position(|byte| *byte == b'#').unwrap_or(line.len());
    let is_text = |byte: &u8| !byte.is_ascii_whitespace() && *byte != 0x0b;
    let len = line[..len].iter().rposition(is_text).map_or(0, |at| at + 1);
    &line[..len]
}

/// Key and value of a property. The key keeps the last of the blanks before it.
fn property(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = line.iter().position(|byte| *byte == b'=')?;
    let blanks = line[..at].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let key = line.get(blanks.saturating_sub(1)..at)?;
    (key.len() > 1).then_some((key, line.get(at + 1..)?))
}

#[cfg(test)]
mod tests;
