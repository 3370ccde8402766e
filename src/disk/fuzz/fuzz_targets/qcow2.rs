//! Disk images: what is said to be a hole reads as zeros, and where data begins is where a read says so.
#![no_main]

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use vmbake_disk::image::{Image, Overlay};
use vmbake_disk::source::ReadAt;

/// As much as is read of each image.
const READ: u64 = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::tempfile_in("/dev/shm").unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    overlay(file.try_clone().unwrap());
    let Ok(image) = Image::of(file, Path::new("fuzz")) else { return };
    let len = image.len().min(READ);
    let mut at = 0;
    let mut piece = vec![0; 64 << 10];
    while at < len {
        let Ok(data) = image.next_data(at) else { return };
        let begin = data.as_ref().map_or(len, |data| data.start.min(len));
        assert!(data.as_ref().is_none_or(|data| at <= data.start && data.start < data.end && data.end <= image.len()));
        while at < begin {
            let part = &mut piece[..usize::try_from((begin - at).min(64 << 10)).unwrap()];
            // What finds holes and what reads clusters must agree.
            image.read_exact_at(part, at).unwrap();
            assert!(part.iter().all(|byte| *byte == 0));
            at += part.len() as u64;
        }
        let end = data.map_or(len, |data| data.end.min(len));
        while at < end {
            let part = &mut piece[..usize::try_from((end - at).min(64 << 10)).unwrap()];
            if image.read_exact_at(part, at).is_err() {
                return;
            }
            at += part.len() as u64;
        }
    }
});

/// The same file as an overlay: what it says of itself is in order and inside the disk, and can be read or is refused.
fn overlay(file: File) {
    let Ok(overlay) = Overlay::of(file, Path::new("fuzz")) else { return };
    let Ok(parts) = overlay.parts() else { return };
    let mut end = 0;
    let mut piece = vec![0; 64 << 10];
    for part in parts {
        assert!(end <= part.range.start && part.range.start < part.range.end && part.range.end <= overlay.len());
        end = part.range.end;
        let len = usize::try_from((part.range.end - part.range.start).min(64 << 10)).unwrap();
        let read = overlay.read_exact_at(&mut piece[..len], part.range.start);
        assert!(!part.is_zero || read.is_ok() && piece[..len].iter().all(|byte| *byte == 0));
    }
}
