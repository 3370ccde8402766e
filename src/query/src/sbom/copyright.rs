//! The licenses of packages: copyright files in, SPDX expressions and the texts of unknown licenses out.
//!
//! Files in DEP-5 format (copyright-format/1.0) name their licenses: those of the header and of all files paragraphs
//! apply together. Any other file is a custom license with the whole file as its text. Malformed files are read as far as possible.

use std::collections::BTreeMap;

use vmbake_disk::tree::{InodeId, Kind, Tree, TreeError};

use super::licence::{Expression, expression};
use vmbake_common::digest::Digest;
use vmbake_common::escape;

/// Maximum length of a copyright file, in bytes; that of Linux has 100 KB, that of a browser 1 MB.
const MAX_FILE: u64 = 4 << 20;

/// Maximum total length of copyright files; those of a node have 3 MB. A malicious image can have sparse files of any length.
const MAX_FILES: u64 = 256 << 20;

/// Characters of a license's name in its identifier, and of the digest of its text.
const SHOWN_NAME: usize = 48;
const SHOWN_DIGEST: usize = 16;

/// Placeholder for the text of a license that a copyright file does not quote; SPDX requires one.
const NO_TEXT: &str = "The copyright file names this licence and does not quote it.";

/// A license without an SPDX identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnLicence {
    pub(super) name: String,
    pub(super) text: String,
}

/// Collected licenses, filled package by package.
#[derive(Debug)]
pub(super) struct Copyrights {
    /// Licenses without an SPDX identifier, by their generated identifiers.
    pub(super) own: BTreeMap<String, OwnLicence>,
    /// Expressions of read files, which packages share by links.
    read: BTreeMap<InodeId, Option<String>>,
    /// Problems.
    pub(super) notes: Vec<String>,
    /// Number of bytes that may still be read.
    left: u64,
}

impl Default for Copyrights {
    fn default() -> Self {
        Self { own: BTreeMap::new(), read: BTreeMap::new(), notes: Vec::new(), left: MAX_FILES }
    }
}

impl Copyrights {
    /// The licenses of a package as an expression; `None` if unknown.
    pub(super) fn of(&mut self, tree: &Tree, package: &str) -> Result<Option<String>, TreeError> {
        let path = format!("/usr/share/doc/{package}/copyright");
        let id = match tree.resolve(path.as_bytes()) {
            Ok(id) => id,
            Err(TreeError::NotFound { .. } | TreeError::NotDirectory { .. }) => return Ok(None),
            Err(error) => return Ok(self.skip(&error)),
        };
        if let Some(known) = self.read.get(&id) {
            return Ok(known.clone());
        }
        if let Kind::File(map) = &tree.inode(id).kind {
            let Some(left) = self.left.checked_sub(map.len().min(MAX_FILE)) else {
                self.notes
                    .push(format!("{path}: not read, since all copyright files together exceed {MAX_FILES} bytes"));
                return Ok(None);
            };
            self.left = left;
        }
        let found = match tree.read(path.as_bytes(), MAX_FILE) {
            Ok(bytes) => self.expression(&String::from_utf8_lossy(&bytes)),
            Err(error @ TreeError::Read { .. }) => return Err(error),
            Err(error) => self.skip(&error),
        };
        self.read.insert(id, found.clone());
        Ok(found)
    }

    fn skip(&mut self, error: &TreeError) -> Option<String> {
        self.notes.push(format!("cannot read a copyright file: {}", escape::chain(error)));
        None
    }

    fn expression(&mut self, text: &str) -> Option<String> {
        let paragraphs: Vec<Paragraph> = paragraphs(text);
        match paragraphs.first() {
            None => None,
            Some(header) if header.is_header => self.machine_readable(&paragraphs),
            Some(_) => Some(self.own("copyright", text.trim())),
        }
    }

    fn machine_readable(&mut self, paragraphs: &[Paragraph]) -> Option<String> {
        let alone = paragraphs.iter().filter(|one| !one.is_header && !one.has_files);
        let texts: BTreeMap<&str, &str> = alone
            .filter_map(|one| one.licence.as_ref())
            .map(|(synopsis, text)| (synopsis.as_str(), text.as_str()))
            .collect();
        let holding = paragraphs.iter().filter(|one| one.is_header || one.has_files);
        let mut expressions = Vec::new();
        for (synopsis, quoted) in holding.filter_map(|one| one.licence.as_ref()).filter(|(name, _)| !name.is_empty()) {
            let mut unknown = |name: &str| {
                let text = texts.get(name).copied().filter(|text| !text.is_empty()).unwrap_or(quoted);
                self.own(name, text)
            };
            expressions.push(expression(synopsis, &mut unknown));
        }
        Expression::all(expressions).map(|all| all.text())
    }

    /// The identifier of a license unknown to SPDX, derived from name and text.
    fn own(&mut self, name: &str, text: &str) -> String {
        let text = if text.is_empty() { NO_TEXT } else { text };
        let is_allowed = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '.';
        let shown: String =
            name.chars().take(SHOWN_NAME).map(|char| if is_allowed(char) { char } else { '-' }).collect();
        let digest = Digest::of(format!("{name}\0{text}").as_bytes()).hex();
        let id = format!("LicenseRef-{shown}-{}", digest.get(..SHOWN_DIGEST).unwrap_or_default());
        self.own.entry(id.clone()).or_insert_with(|| OwnLicence { name: name.to_owned(), text: text.to_owned() });
        id
    }
}

/// License fields of a paragraph.
#[derive(Default)]
struct Paragraph {
    /// Whether it declares the DEP-5 format.
    is_header: bool,
    has_files: bool,
    /// The first line of the field, and the text below it.
    licence: Option<(String, String)>,
}

fn paragraphs(text: &str) -> Vec<Paragraph> {
    let mut found = Vec::new();
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in text.lines().chain([""]).filter(|line| !line.starts_with('#')) {
        if line.trim().is_empty() {
            if !fields.is_empty() {
                found.push(Paragraph::new(&fields, found.is_empty()));
                fields.clear();
            }
        } else if let Some(rest) = line.strip_prefix([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                value.push('\n');
                value.push_str(if rest.trim() == "." { "" } else { rest.trim_end() });
            }
        } else {
            // Lines that are not fields count as present, but their text is ignored.
            let (name, value) = line.split_once(':').unwrap_or(("", ""));
            fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    found
}

impl Paragraph {
    fn new(fields: &[(String, String)], is_first: bool) -> Self {
        let get = |wanted: &str| fields.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
        let licence = get("license").map(|value| {
            let (synopsis, text) = value.split_once('\n').unwrap_or((value, ""));
            (synopsis.trim().to_owned(), text.trim_matches('\n').to_owned())
        });
        let is_header = is_first && (get("format").is_some() || get("format-specification").is_some());
        Self { is_header, has_files: get("files").is_some(), licence }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use vmbake_disk::source::Map;
    use vmbake_disk::tree::{Inode, Metadata, Origin};

    use super::*;

    fn read(text: &str) -> (Option<String>, BTreeMap<String, OwnLicence>) {
        let mut copyrights = Copyrights::default();
        (copyrights.expression(text), copyrights.own)
    }

    #[test]
    fn files_and_header_count_and_texts_are_quoted() {
        let text = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nLicense: ISC\n\n# note\n\
                    Files: *\nLicense: Expat\n\nFiles: a\n  b\nLicense: odd or GPL-2+\n\nLicense: odd\n May be\n .\n  used.\n \n\
                    License: unused\n Text.\n\nFiles: c\nLicense: inline\n Here.\n\nFiles: d\nLicense: nowhere\n";
        let (found, own) = read(text);
        let found = found.unwrap();
        let texts: Vec<_> = own.values().map(|own| (own.name.as_str(), own.text.as_str())).collect();
        assert_eq!(texts, [("inline", "Here."), ("nowhere", NO_TEXT), ("odd", "May be\n\n used.")]);
        let ids: Vec<&str> = own.keys().map(String::as_str).collect();
        assert_eq!(found, format!("(GPL-2.0-or-later OR {}) AND ISC AND {} AND {} AND MIT", ids[2], ids[0], ids[1]));
        spdx::Expression::parse(&found).unwrap();
    }

    #[test]
    fn other_files_are_their_own_licence() {
        let (found, own) = read("This is free.\nNo form: at all\n\nLicense: GPL-2\n");
        assert_eq!(
            own.values().map(|own| own.text.as_str()).collect::<Vec<_>>(),
            ["This is free.\nNo form: at all\n\nLicense: GPL-2"]
        );
        assert_eq!(found.as_ref(), own.keys().next());
        assert_eq!(read("\n \n"), (None, BTreeMap::new()));
        assert_eq!(read("Format: 1\n\nFiles: *\n"), (None, BTreeMap::new()));
    }

    #[test]
    fn no_more_is_read_than_honest_images_have() {
        let mut tree = Tree::new(Metadata::default(), Origin::default());
        for name in ["a", "b", "c"] {
            let source = tree.sources_mut().add(Arc::new(b"text".to_vec()));
            let inode = Inode {
                meta: Metadata::default(),
                kind: Kind::File(Map::whole(source, 0, 4)),
                origin: tree.first_origin(),
            };
            let folder = format!("/usr/share/doc/{name}");
            tree.make_dirs(folder.as_bytes(), &Metadata::default(), tree.first_origin()).unwrap();
            tree.place(format!("{folder}/copyright").as_bytes(), inode).unwrap();
        }
        let mut copyrights = Copyrights { left: 9, ..Copyrights::default() };
        let found = ["a", "b", "a", "c"].map(|name| copyrights.of(&tree, name).unwrap().is_some());
        assert_eq!(found, [true, true, true, false]);
        assert_eq!(copyrights.notes.len(), 1);
        assert!(copyrights.notes[0].starts_with("/usr/share/doc/c/copyright: not read, "), "{:?}", copyrights.notes);
    }

    #[test]
    fn hostile_files_give_valid_expressions() {
        let long = "x".repeat(1 << 20);
        for licence in ["\u{1}\u{202e}(", "or or or", "a (b OR", &long, ",", "with", "GPL-2 with ", "and"] {
            let (found, own) = read(&format!("Format: 1\n\nFiles: *\nLicense: {licence}\n"));
            let found = found.unwrap();
            spdx::Expression::parse(&found).unwrap();
            assert_eq!(own.keys().collect::<Vec<_>>(), [&found], "{licence:.20}");
            assert!(found.len() < 100);
        }
    }
}
