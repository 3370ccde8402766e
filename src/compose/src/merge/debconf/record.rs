//! The file format of debconf's database (debconf.conf(5), driver `File`): records sorted by name, each followed by an empty line. Fields,
//! owners, flags and variables are sorted by their bytes; a newline in a value is written as `\n`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) use super::text::Text;
use super::text::replace;

/// Records by their names.
pub(super) type Records = BTreeMap<Text, Arc<Record>>;

/// A question or a template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// Of a question the packages that use it, of a template the questions.
    pub(super) owners: BTreeSet<Text>,
    /// `template` and `value`; of a template what its package says, by names in lower case.
    pub(super) fields: BTreeMap<Text, Text>,
    /// Those that were set; only `true` ones are written.
    pub(super) flags: BTreeMap<Text, Text>,
    /// What db_subst sets.
    pub(super) variables: BTreeMap<Text, Text>,
}

impl Record {
    pub(super) fn field(&self, name: &[u8]) -> Option<&Text> {
        self.fields.get(name)
    }

    pub(super) fn flag(&self, name: &[u8]) -> &[u8] {
        self.flags.get(name).map_or(b"false", Vec::as_slice)
    }

    /// The record as another run of debconf finds it.
    pub(super) fn reread(&self, name: &[u8]) -> Self {
        let mut text = Vec::new();
        self.write(name, &mut text);
        parse(&text).pop_first().map(|(_, record)| Arc::unwrap_or_clone(record)).unwrap_or_default()
    }

    fn write(&self, name: &[u8], out: &mut Text) {
        line(out, b"Name", name);
        for (field, value) in &self.fields {
            let mut shown = field.clone();
            if let Some(first) = shown.first_mut() {
                first.make_ascii_uppercase();
            }
            line(out, &shown, &replace(value, b"\n", b"\\n"));
        }
        let list = |names: Vec<&[u8]>| names.join(&b", "[..]);
        if !self.owners.is_empty() {
            line(out, b"Owners", &list(self.owners.iter().map(Vec::as_slice).collect()));
        }
        let flags: Vec<&[u8]> =
            self.flags.iter().filter(|(_, value)| *value == b"true").map(|(name, _)| name.as_slice()).collect();
        if !flags.is_empty() {
            line(out, b"Flags", &list(flags));
        }
        if !self.variables.is_empty() {
            out.extend_from_slice(b"Variables:\n");
            for (name, value) in &self.variables {
                out.extend([b" ", &name[..], b" = ", &replace(value, b"\n", b"\\n"), b"\n"].concat());
            }
        }
        out.push(b'\n');
    }
}

fn line(out: &mut Text, name: &[u8], value: &[u8]) {
    out.extend([name, b": ", value, b"\n"].concat());
}

/// The text of a file with these records.
pub(super) fn write(records: &Records) -> Text {
    let mut out = Vec::new();
    for (name, record) in records {
        record.write(name, &mut out);
    }
    out
}

/// Reads a file. What debconf would not have written is read as debconf reads it: a record without a name is none.
pub(super) fn parse(text: &[u8]) -> Records {
    let mut records = Records::new();
    let mut reading = Reading::default();
    for line in text.split(|byte| *byte == b'\n') {
        if line.is_empty() {
            let Reading { name, record, .. } = std::mem::take(&mut reading);
            records.extend(name.map(|name| (name, Arc::new(record))));
        } else {
            reading.line(line);
        }
    }
    records.extend(reading.name.map(|name| (name, Arc::new(reading.record))));
    records
}

/// A record as far as it is read.
#[derive(Default)]
struct Reading {
    name: Option<Text>,
    record: Record,
    in_variables: bool,
}

impl Reading {
    fn line(&mut self, line: &[u8]) {
        self.in_variables &= line[0].is_ascii_whitespace();
        if self.in_variables {
            let (name, value) = cut(line.trim_ascii_start(), b'=');
            self.record.variables.insert(name.trim_ascii_end().to_vec(), replace(value, b"\\n", b"\n"));
            return;
        }
        let (key, value) = cut(line, b':');
        match key.to_ascii_lowercase().as_slice() {
            b"owners" => self.record.owners = list(value).map(<[u8]>::to_vec).collect(),
            b"flags" => self.record.flags = list(value).map(|name| (name.to_vec(), b"true".to_vec())).collect(),
            b"variables" => self.in_variables = true,
            b"name" => self.name = Some(value.to_vec()),
            b"" => {}
            field => {
                self.record.fields.insert(field.to_vec(), replace(value, b"\\n", b"\n"));
            }
        }
    }
}

/// A line at its first `mark`, one blank behind which belongs to neither side.
fn cut(line: &[u8], mark: u8) -> (&[u8], &[u8]) {
    let at = line.iter().position(|byte| *byte == mark).unwrap_or(line.len());
    let value = line.get(at + 1..).unwrap_or_default();
    (&line[..at], if value.first().is_some_and(u8::is_ascii_whitespace) { &value[1..] } else { value })
}

/// Names parted by commas and blanks.
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii_start).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As debconf 1.5.91 left it.
    const FILE: &str = "Name: a/list\nTemplate: a/list\nValue: \nOwners: a, a:amd64\nFlags: seen\nVariables:\n all = x, y\n none = \n\n\
        Name: a/note\nDescription: D\nExtended_description: E.\\n\\nF.\nType: note\nOwners: a/note\n\n";

    #[test]
    fn what_is_read_is_written_again() {
        let records = parse(FILE.as_bytes());
        assert_eq!(String::from_utf8(write(&records)).unwrap(), FILE);
        let list = &records[&b"a/list"[..]];
        assert_eq!((list.flag(b"seen"), list.flag(b"other")), (&b"true"[..], &b"false"[..]));
        assert_eq!(list.owners.len(), 2);
        assert_eq!(list.variables[&b"all"[..]], b"x, y");
        assert_eq!(records[&b"a/note"[..]].fields[&b"extended_description"[..]], b"E.\n\nF.");
    }

    #[test]
    fn bytes_that_debconf_did_not_write_are_read() {
        for text in [&b""[..], b"\n\n\n", b"Value: x\n\n", b":\n : \n=\n", b"Variables:\n =\n  \n x\n"] {
            assert!(parse(text).is_empty(), "{text:?}");
        }
        let records = parse(b"Name: a\nValue\nVariables:\n x\n\xff: \xfe\nOwners: ,b, ,c");
        let record = &records[&b"a"[..]];
        assert_eq!((record.fields.len(), record.variables.len(), record.owners.len()), (2, 1, 2));
    }

    #[test]
    fn a_record_loses_what_is_not_written() {
        let flags = [(b"seen".to_vec(), b"false".to_vec()), (b"own".to_vec(), b"true".to_vec())].into();
        let owners = [Vec::new()].into();
        let fields = [(b"value".to_vec(), b"C:\\new".to_vec())].into();
        let read = Record { owners, fields, flags, ..Record::default() }.reread(b"q");
        assert!(read.owners.is_empty());
        assert_eq!(read.flags.len(), 1);
        assert_eq!(read.fields[&b"value"[..]], b"C:\new", "as with debconf, whose file does not tell them apart");
    }
}
