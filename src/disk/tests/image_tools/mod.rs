//! Common parts of the image tests: external tools, disks to store, and comparison.
#![allow(dead_code, reason = "each test program uses a part")]

use std::path::Path;
use std::process::Command;

use vmbake_disk::source::ReadAt;

/// Whether a tool can be run. Without it a test is skipped on a laptop, but fails in CI.
pub fn have(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        crate::skip::skip(&format!("{tool} is not installed"));
    }
    found
}

/// Runs a tool that has to succeed, and returns what it prints.
pub fn run(tool: &str, args: &[&str]) -> String {
    let output = Command::new(tool).args(args).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{tool} {args:?}: {}\n{out}{err}", output.status);
    out.into_owned()
}

/// A path as an argument.
pub fn arg(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Bytes that do not compress, the same for each `seed`.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[0]
    };
    (0..len).map(|_| next()).collect()
}

/// Bytes that compress.
pub fn text(seed: u64, len: usize) -> Vec<u8> {
    (seed..).flat_map(|i| format!("line {i} of {seed}\n").into_bytes()).take(len).collect()
}

/// A disk with text, noise and zeros in runs that start and end anywhere.
pub fn mixed(len: usize) -> Vec<u8> {
    let mut disk = vec![0; len];
    let mut at = 0;
    for (i, step) in (0u64..).zip([70_000, 130_000, 3_000, 513, 200_001, 65_536, 66_000, 1, 300_000].iter().cycle()) {
        let end = len.min(at + step);
        match i % 4 {
            0 | 3 => disk[at..end].copy_from_slice(&text(i, end - at)),
            1 => disk[at..end].copy_from_slice(&noise(i, end - at)),
            _ => {}
        }
        at = end;
        if at == len {
            return disk;
        }
    }
    disk
}

/// Reads a disk as a whole and in pieces of odd length, and checks that what `next_data` skips is zeros.
pub fn assert_reads(disk: &dyn ReadAt, expected: &[u8], what: &str) {
    assert_eq!(disk.len(), expected.len() as u64, "{what}");
    let mut all = vec![0xaa; expected.len()];
    disk.read_exact_at(&mut all, 0).unwrap();
    assert!(all == expected, "{what}: differs at {:?}", all.iter().zip(expected).position(|(a, b)| a != b));
    let mut at = 0;
    for len in [1, 511, 4097, 65_537, 30_000].iter().cycle() {
        let end = expected.len().min(at + len);
        let mut part = vec![0xaa; end - at];
        disk.read_exact_at(&mut part, at as u64).unwrap();
        assert!(part == expected[at..end], "{what}: {at}..{end}");
        at = end;
        if at == expected.len() {
            break;
        }
    }
    let mut at = 0;
    while at < disk.len() {
        let data = disk.next_data(at).unwrap().unwrap_or(disk.len()..disk.len());
        assert!(data.start >= at && data.end <= disk.len() && (data.end > data.start || data.start == disk.len()));
        let skipped = &expected[usize::try_from(at).unwrap()..usize::try_from(data.start).unwrap()];
        assert!(skipped.iter().all(|byte| *byte == 0), "{what}: {at}..{} is not zero", data.start);
        at = data.end;
    }
    assert!(disk.read_exact_at(&mut [0; 2], disk.len().saturating_sub(1)).is_err(), "{what}: past the end");
    assert_eq!(disk.next_data(disk.len()).unwrap(), None);
}
