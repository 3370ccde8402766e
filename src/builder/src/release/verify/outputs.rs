//! The digests of all outputs, computed from their bytes.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use vmbake_disk::source::FileSource;
use vmbake_disk::write::fsverity;

use super::{Verification, belongs, image_name};
use crate::digest::Digest;
use crate::incremental::checksums::Checksum;
use crate::release::sign::BUNDLE;

impl Verification<'_> {
    /// Compares every file with its list, and looks for files that no list has.
    pub(super) fn outputs(&mut self, names: &BTreeSet<String>) {
        for (file, expected) in self.listed.clone() {
            // Of the image that was named the other form may be elsewhere.
            let is_other = image_name(&file).is_some() && self.request.image.is_some_and(|image| image != file);
            let check = if matches!(expected, Checksum::Bytes(_)) { "sha256" } else { "fs-verity" };
            match self.measure(&file, expected) {
                Ok(found) if found == expected => self.report.ok(&file, check, ""),
                Ok(found) => {
                    self.report.failed(&file, check, format!("it has {found}, the list says {expected}"));
                }
                Err(error) if error.kind() == ErrorKind::NotFound && is_other => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    self.report.failed(&file, check, "it is listed, and not there");
                }
                Err(error) => self.report.failed_by(&file, check, &error),
            }
        }
        for file in self.unlisted(names) {
            self.report.failed(&file, "list", "it is there, and no list has it");
        }
    }

    fn measure(&self, file: &str, like: Checksum) -> io::Result<Checksum> {
        let file = open(&self.request.folder.join(file))?;
        Ok(match like {
            Checksum::Bytes(like) => Checksum::Bytes(like.of_stream(file)?.0),
            Checksum::Verity(_) => {
                let digest = fsverity(&FileSource::new(file)?, self.request.threads)?;
                Checksum::Verity(Digest::Sha256(digest))
            }
        })
    }

    /// Files that look like outputs, sorted.
    fn unlisted(&self, names: &BTreeSet<String>) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.request.folder).into_iter().flatten();
        let files = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
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

/// Opens a regular file.
fn open(path: &Path) -> io::Result<File> {
    match path.metadata()?.is_file() {
        true => File::open(path),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file")),
    }
}
