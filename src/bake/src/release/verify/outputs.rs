//! Verifies the digests of all outputs.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};

use vmbake_disk::source::FileSource;
use vmbake_disk::write::fsverity;

use super::{CheckState, Verification, belongs, image_name};
use crate::incremental::checksums::Checksum;
use crate::incremental::published::Sidecar;
use crate::release::sign::BUNDLE;
use vmbake_common::digest::Digest;
use vmbake_common::input;

impl Verification<'_> {
    /// Compares every file with its list, and finds files that are not listed.
    pub(super) fn outputs(&mut self, names: &BTreeSet<String>) {
        for (file, expected) in self.listed.clone() {
            // The other format of the named image may be stored elsewhere.
            let is_other = image_name(&file).is_some() && self.request.image.is_some_and(|image| image != file);
            let check = if matches!(expected, Checksum::Bytes(_)) { "sha256" } else { "fs-verity" };
            match self.measure(&file, expected) {
                Ok(found) if found == expected => self.report.ok(&file, check, ""),
                Ok(found) => {
                    self.report.failed(&file, check, format!("found {found}, but the list states {expected}"));
                }
                Err(error) if error.kind() == ErrorKind::NotFound && is_other => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    self.report.failed(&file, check, "listed, but missing");
                }
                Err(error) => self.report.failed_by(&file, check, &error),
            }
        }
        for file in self.unlisted(names) {
            self.report.failed(&file, "list", "not listed");
        }
        for file in self.strays(names) {
            self.report.add(CheckState::Warning, &file, "list", "not listed, but has the name of the image");
        }
    }

    fn measure(&self, file: &str, like: Checksum) -> io::Result<Checksum> {
        let file = input::open_regular(&self.request.folder.join(file))?;
        Ok(match like {
            Checksum::Bytes(like) => Checksum::Bytes(like.of_stream(file)?.0),
            Checksum::Verity(_) => {
                let digest = fsverity(&FileSource::new(file)?, self.request.threads)?;
                Checksum::Verity(Digest::Sha256(digest))
            }
        })
    }

    /// The names of everything in the directory.
    fn entries(&self) -> impl Iterator<Item = String> + use<> {
        let entries = std::fs::read_dir(self.request.folder).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
    }

    /// Unlisted files, directories and links with the name of an image, sorted. Signatures are never listed.
    fn strays(&self, names: &BTreeSet<String>) -> BTreeSet<String> {
        let is_of = |file: &str, name: &str| {
            let Some((start, rest)) = file.split_at_checked(name.len()) else { return false };
            start.eq_ignore_ascii_case(name) && !rest.starts_with(|next: char| next.is_ascii_alphanumeric())
        };
        let is_signature = |file: &str, name: &str| {
            let statement = Sidecar::Provenance.file_name(name);
            let start = statement.strip_suffix("json").unwrap_or(&statement);
            file.starts_with(start) && file.ends_with(BUNDLE)
        };
        let is_stray = |file: &String| {
            names.iter().any(|name| is_of(file, name)) && !names.iter().any(|name| is_signature(file, name))
        };
        let unlisted = self.unlisted(names);
        let is_known =
            |file: &String| self.listed.contains_key(file) || self.is_listed(file) || unlisted.contains(file);
        self.entries().filter(|file| is_stray(file) && !is_known(file)).collect()
    }

    /// Whether any list has a file, including lists of images that are not verified.
    fn is_listed(&self, file: &str) -> bool {
        self.lists.values().any(|list| list.checksums.contains_key(file))
    }

    /// Unlisted files with the name of an output, sorted.
    fn unlisted(&self, names: &BTreeSet<String>) -> BTreeSet<String> {
        let files = self.entries();
        let is_wanted = |file: &String| match self.request.image {
            Some(image) => file == image || image_name(file).is_none(),
            None => true,
        };
        let is_output = |file: &String| {
            let is_beside = file.ends_with(".json") && names.iter().any(|name| belongs(file, name));
            image_name(file).is_some() || is_beside
        };
        let files = files.filter(|file| !file.starts_with('.') && !file.ends_with(BUNDLE));
        files.filter(|file| is_output(file) && is_wanted(file) && !self.listed.contains_key(file)).collect()
    }
}
