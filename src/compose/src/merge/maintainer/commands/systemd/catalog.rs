//! `journalctl --update-catalog`: compiles the catalogs of messages of the journal into a database. Integers are little-endian; the file has
//! a header, the items, sorted by id and language, and the table of strings, in which their offsets are.

use std::collections::BTreeMap;

use vmbake_shell::Files;

use super::conf_files::conf_files;
use super::lines::lines;
use super::strings::Strings;
use super::{Source, replace};

const DATABASE: &[u8] = b"/var/lib/systemd/catalog/database";
const DIRECTORIES: [&str; 2] = ["/usr/local/lib/systemd/catalog", "/usr/lib/systemd/catalog"];
const END: &[u8] = b".catalog";
const SIGNATURE: &[u8; 8] = b"RHHHKSLP";
/// Sizes of the header, of an item, and of the name of a language with its NUL, in bytes.
const HEADER: u64 = 40;
const ITEM: u64 = 56;
const LANGUAGE: usize = 32;
/// Length of `-- `, and of the id behind it.
const MARK: usize = 3;
const ID: usize = 32;

/// An item: the id of the message, and the language; the text is for all languages if it is empty.
type Key = ([u8; 16], Vec<u8>);

/// Items with their texts, in the order in which they were found.
#[derive(Default)]
struct Items {
    places: BTreeMap<Key, usize>,
    texts: Vec<Vec<u8>>,
}

/// Compiles the database, unless there is nothing to compile. An error leaves it as it is.
pub(super) fn update(files: &mut dyn Files) -> Result<(), String> {
    // The machine compiles what is too large.
    let Ok(sources) = conf_files(files, DIRECTORIES, END) else { return Ok(()) };
    match compile(&sources)? {
        Some(content) => replace(files, DATABASE, content, 0o644).map_err(|error| error.to_string()),
        None => Ok(()),
    }
}

/// The database of files, which are sorted by name.
fn compile(sources: &[Source]) -> Result<Option<Vec<u8>>, String> {
    let mut items = Items::default();
    for (path, content) in sources {
        let fault = |what: String| format!("{}{what}", String::from_utf8_lossy(path));
        let content = content.as_ref().ok_or_else(|| fault(" cannot be read".to_owned()))?;
        read(&mut items, language(path), content).map_err(fault)?;
    }
    if items.places.is_empty() {
        return Ok(None);
    }
    let mut strings = Strings::new();
    let offsets: Result<Vec<_>, _> = items.texts.iter().map(|text| strings.add(text)).collect();
    let offsets = offsets.map_err(|_| "the texts are too long".to_owned())?;
    let mut file = [&SIGNATURE[..], &[0; 8]].concat();
    for field in [HEADER, items.places.len() as u64, ITEM] {
        file.extend_from_slice(&field.to_le_bytes());
    }
    for ((id, language), place) in &items.places {
        let mut padded = [0; LANGUAGE];
        padded.iter_mut().zip(language).for_each(|(to, from)| *to = *from);
        file.extend_from_slice(id);
        file.extend_from_slice(&padded);
        file.extend_from_slice(&u64::from(offsets.get(*place).copied().unwrap_or_default()).to_le_bytes());
    }
    file.extend_from_slice(strings.table());
    Ok(Some(file))
}

/// The language in the name of a file: `NAME.LANGUAGE.catalog`.
fn language(path: &[u8]) -> &[u8] {
    let name = path.strip_suffix(END).unwrap_or_default();
    let start = name.len().saturating_sub(LANGUAGE);
    let tail = name.get(start..).unwrap_or_default();
    let at = tail.iter().rposition(|byte| matches!(byte, b'.' | b'/')).filter(|at| tail[*at] == b'.');
    at.and_then(|at| tail.get(at + 1..)).unwrap_or_default()
}

/// Reads the items of a file. Fails as the program, with the line and the reason.
fn read(items: &mut Items, default: &[u8], content: &[u8]) -> Result<(), String> {
    let (mut item, mut text): (Option<Key>, Vec<u8>) = (None, Vec::new());
    let mut is_after_empty = true;
    let mut number = 0;
    for line in lines(content) {
        let mut line = line.map_err(|_| ": a line is too long".to_owned())?;
        number += 1;
        match line.first() {
            None => {
                is_after_empty = true;
                continue;
            }
            Some(b'#' | b';') => continue,
            Some(_) => {}
        }
        if is_after_empty && let Some(Heading { id, rest }) = Heading::of(line) {
            if let Some(id) = id {
                items.finish(item.take(), &mut text).map_err(|what| format!(":{number}: {what}"))?;
                let language = named(rest, default).map_err(|what| format!(":{number}: {what}"))?;
                item = Some((id, language));
                is_after_empty = false;
                continue;
            }
            // The program has cut the line here.
            line = line.get(..MARK + ID).unwrap_or(line);
        }
        if item.is_none() {
            return Err(format!(":{number}: Got payload before ID."));
        }
        if is_after_empty {
            text.push(b'\n');
        }
        text.extend_from_slice(line);
        text.push(b'\n');
        is_after_empty = false;
    }
    items.finish(item, &mut text).map_err(|what| format!(":{number}: {what}"))
}

/// A line that begins like the first of an item: `-- ID`, perhaps with more behind a space.
struct Heading<'a> {
    /// Unless it has other characters than digits.
    id: Option<[u8; 16]>,
    rest: Option<&'a [u8]>,
}

impl<'a> Heading<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        let (id, rest) = line.strip_prefix(b"-- ")?.split_at_checked(ID)?;
        match rest.split_first() {
            None => Some(Self { id: number(id), rest: None }),
            Some((b' ', rest)) => Some(Self { id: number(id), rest: Some(rest) }),
            Some(_) => None,
        }
    }
}

/// The bytes of hexadecimal digits.
fn number(digits: &[u8]) -> Option<[u8; 16]> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair.iter().try_fold(0, |value, byte| Some(value << 4 | digit(byte)?))?;
    }
    Some(bytes)
}

/// The language of an item: that of its heading, or that of the file.
fn named(rest: Option<&[u8]>, default: &[u8]) -> Result<Vec<u8>, String> {
    let Some(rest) = rest else { return Ok(default.to_vec()) };
    let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let start = rest.iter().position(is_text).unwrap_or(rest.len());
    let end = rest.iter().rposition(is_text).map_or(start, |at| at + 1);
    match &rest[start..end] {
        language if language.len() < 2 => Err("Language too short.".to_owned()),
        language if language.len() >= LANGUAGE => Err("language too long.".to_owned()),
        language => Ok(language.to_vec()),
    }
}

impl Items {
    /// Adds an item with its text, which is empty then. Of several texts for the same item, the last has precedence, with the headers of all.
    fn finish(&mut self, item: Option<Key>, text: &mut Vec<u8>) -> Result<(), String> {
        let Some(item) = item else { return Ok(()) };
        let text = std::mem::take(text);
        if text.is_empty() {
            return Err("No payload text.".to_owned());
        }
        // The program ends with an assertion.
        if item.1.len() == 1 {
            return Err("Language too short.".to_owned());
        }
        match self.places.get(&item).and_then(|place| self.texts.get_mut(*place)) {
            Some(found) => *found = combined(&text, found),
            None => {
                self.places.insert(item, self.texts.len());
                self.texts.push(text);
            }
        }
        Ok(())
    }
}

/// The headers of both texts, and the body of the first that has one.
fn combined(one: &[u8], two: &[u8]) -> Vec<u8> {
    let (headers, body) = one.split_at(headers(one));
    let (others, other) = two.split_at(self::headers(two));
    [headers, others, if body.is_empty() { other } else { body }].concat()
}

/// Length of the lines up to an empty one.
fn headers(text: &[u8]) -> usize {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    lines.take_while(|line| line.len() > 1 && line.ends_with(b"\n")).map(<[u8]>::len).sum()
}

#[cfg(test)]
mod tests;
