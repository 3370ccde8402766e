//! Archives. After a first byte of 0, what follows is the file; else it is the index and the blobs, each behind a NUL, of a file whose headers are
//! right. `@d` and `@s` stand for digest and size of the next blob, without which none would be read.
#![no_main]

use std::num::NonZeroUsize;

use libfuzzer_sys::fuzz_target;
use vmbake_common::digest::Digest;
use vmbake_archive::contents::Contents;
use vmbake_archive::verify::verify;

const MARKER: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;

fuzz_target!(|bytes: &[u8]| {
    let Some((form, rest)) = bytes.split_first() else { return };
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("a.tar");
    let archive = match form {
        0 => rest.to_vec(),
        _ => String::from_utf8_lossy(rest).split('\0').take(4).collect::<Layout>().0,
    };
    std::fs::write(&path, archive).unwrap();
    let Ok(contents) = Contents::open(&path) else { return };
    let report = verify(&contents, NonZeroUsize::MIN).unwrap();
    assert_eq!(report.ok, report.problems.is_empty());
    if report.ok {
        assert_eq!(contents.entries().iter().filter(|entry| !entry.held).count(), report.blobs);
    }
});

/// A tar file of a layout.
struct Layout(Vec<u8>);

impl<'a> FromIterator<&'a str> for Layout {
    fn from_iter<T: IntoIterator<Item = &'a str>>(texts: T) -> Self {
        let texts: Vec<&str> = texts.into_iter().collect();
        let mut blobs: Vec<(String, Vec<u8>)> = Vec::new();
        for text in texts.into_iter().rev() {
            let below = blobs.last().map(|(_, blob)| blob.as_slice()).unwrap_or_default();
            let blob = text.replace("@d", &Digest::of(below).to_string()).replace("@s", &below.len().to_string());
            blobs.push((format!("blobs/sha256/{}", Digest::of(blob.as_bytes()).hex()), blob.into_bytes()));
        }
        let index = blobs.pop().unwrap_or_default().1;
        blobs.sort();
        blobs.dedup();
        let mut file = Vec::new();
        let fixed = [("oci-layout".to_owned(), MARKER.into()), ("index.json".to_owned(), index)];
        for (name, content) in fixed.into_iter().chain(blobs) {
            let mut header = tar::Header::new_ustar();
            header.set_path(&name).unwrap();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            header.set_cksum();
            file.extend(header.as_bytes());
            file.extend(&content);
            file.resize(file.len().next_multiple_of(512), 0);
        }
        file.resize(file.len() + 1024, 0);
        Self(file)
    }
}
