//! Overlays: differences between two disks, written, verified by QEMU, and applied.

use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use tempfile::TempDir;
use vmbake_disk::disk::Disk;
use vmbake_disk::image::{Backing, Format, Image, Overlay};
use vmbake_disk::source::{FileSource, Map, ReadAt, Sources};
use vmbake_disk::write::{Clusters, FileDigest, Output, Patched, differences, fsverity, patch, write, write_overlay};

use crate::image_tools::{arg, have, mixed, noise, run};

const CLUSTER: usize = 64 << 10;
const THREADS: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// A disk that begins with a zero, as no text does.
fn mixed_disk(len: usize) -> Vec<u8> {
    let mut disk = mixed(len);
    disk[0] = 0;
    disk
}

fn create(path: &Path) -> File {
    File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap()
}

/// Writes a disk of these bytes, whose clusters have ids.
fn store(bytes: &[u8], format: Format, path: &Path) -> (Image, Clusters, FileDigest) {
    let mut sources = Sources::default();
    let id = sources.add(Arc::new(bytes.to_vec()));
    let disk = Disk::new(Map::whole(id, 0, bytes.len() as u64), sources);
    let file = create(path);
    let written = write(&disk, &[Output::new(format, &file)], THREADS, &|_| ()).unwrap().remove(0);
    (Image::open(path).unwrap(), written.clusters, written.digest)
}

/// The clusters that differ, by comparing every byte.
fn expected(old: &[u8], new: &[u8]) -> Vec<usize> {
    let at = |disk: &[u8], start: usize| {
        let mut cluster: Vec<u8> = disk.get(start..disk.len().min(start + CLUSTER)).unwrap_or_default().to_vec();
        cluster.resize(CLUSTER, 0);
        cluster
    };
    (0..new.len()).step_by(CLUSTER).filter(|start| at(old, *start) != at(new, *start)).map(|at| at / CLUSTER).collect()
}

fn verity(path: &Path) -> [u8; 32] {
    fsverity(&FileSource::new(File::open(path).unwrap()).unwrap(), THREADS).unwrap()
}

/// Makes an overlay of two disks in one format, applies it, and checks all that must hold.
fn check(dir: &Path, old: &[u8], new: &[u8], format: Format) -> Overlay {
    let path = |name: &str| dir.join(format!("{name}.{format}"));
    let (old_image, old_clusters, _) = store(old, format, &path("old"));
    let (new_image, new_clusters, new_digest) = store(new, format, &path("new"));
    let changed = differences(&old_image, &new_image, None, THREADS).unwrap();
    let known = (&old_clusters.sums(), &new_clusters.sums());
    assert_eq!(differences(&old_image, &new_image, Some(known), THREADS).unwrap(), changed);
    let numbers = |ranges: Vec<std::ops::Range<u64>>| -> Vec<usize> {
        ranges
            .into_iter()
            .flat_map(|range| range.step_by(CLUSTER))
            .map(|at| usize::try_from(at).unwrap() / CLUSTER)
            .collect()
    };
    assert_eq!(numbers(changed.ranges().collect()), expected(old, new));
    let backing = Backing::new(path("old").file_name().unwrap().to_str().unwrap(), format).unwrap();
    write_overlay(Arc::new(new_image), changed, &backing, &create(&path("delta")), THREADS, &|_| ()).unwrap();
    let overlay = || Overlay::of(File::open(path("delta")).unwrap(), &path("delta")).unwrap();
    let own = overlay().parts().unwrap();
    assert_eq!(numbers(own.iter().map(|part| part.range.clone()).collect()), expected(old, new));
    for part in own.iter().filter(|part| part.is_zero) {
        let range = usize::try_from(part.range.start).unwrap()..new.len().min(usize::try_from(part.range.end).unwrap());
        assert!(new[range].iter().all(|byte| *byte == 0));
    }
    std::fs::write(path("bytes"), new).unwrap();
    for (to, out) in [(Format::Raw, path("out.raw")), (Format::Qcow2, path("out.qcow2"))] {
        let file = create(&out);
        let (base, over): (Arc<dyn ReadAt>, _) = (Arc::new(Image::open(&path("old")).unwrap()), Arc::new(overlay()));
        let patched = patch(&base, &over, Output::new(to, &file), THREADS, &|_| ()).unwrap();
        let Patched { written, base, result } = patched;
        let whole = |bytes: &[u8]| fsverity(&bytes.to_vec(), THREADS).unwrap();
        assert_eq!((base, result), (whole(old), whole(new)), "{format} to {to}");
        if to == format {
            assert_eq!(written.digest, new_digest, "the same file as is written of the disk itself");
        }
        if to == Format::Raw {
            assert!(std::fs::read(&out).unwrap() == new);
            assert_eq!(verity(&out), result);
        }
    }
    overlay()
}

#[test]
fn an_overlay_has_what_differs_and_leads_to_the_new_disk() {
    let (old, mut new) = (mixed_disk(40 * CLUSTER), mixed_disk(40 * CLUSTER));
    new[3 * CLUSTER + 17] ^= 1;
    new[7 * CLUSTER..9 * CLUSTER].fill(0);
    new[12 * CLUSTER..13 * CLUSTER].copy_from_slice(&noise(5, CLUSTER));
    new[39 * CLUSTER..].fill(0);
    // Far from all data of the old one, and behind it only zeros.
    let cases: [(&str, Vec<u8>, Vec<u8>); 9] = [
        ("changed", old.clone(), new.clone()),
        ("the same", old.clone(), old.clone()),
        ("grown", old.clone(), [&new[..], &noise(6, 3 * CLUSTER + 512)].concat()),
        ("grown by zeros", old.clone(), [&old[..], &vec![0; 20 * CLUSTER]].concat()),
        ("shrunk", new.clone(), old[..20 * CLUSTER + 1024].to_vec()),
        ("shrunk to a page", new.clone(), old[..4096].to_vec()),
        ("grown from a page", old[..4096].to_vec(), new.clone()),
        ("emptied", old.clone(), vec![0; 40 * CLUSTER]),
        ("filled", vec![0; 40 * CLUSTER], new.clone()),
    ];
    for (what, old, new) in &cases {
        for format in [Format::Raw, Format::Qcow2] {
            eprintln!("{what}, {format}");
            let dir = TempDir::new().unwrap();
            check(dir.path(), old, new, format);
            if !have("qemu-img") {
                continue;
            }
            let [delta, raw] = [format!("delta.{format}"), format!("bytes.{format}")].map(|name| dir.path().join(name));
            run("qemu-img", &["check", "-f", "qcow2", arg(&delta)]);
            run("qemu-img", &["compare", "-f", "qcow2", "-F", "raw", arg(&delta), arg(&raw)]);
        }
    }
}

#[test]
fn what_is_known_to_be_the_same_is_not_read() {
    let dir = TempDir::new().unwrap();
    let (old, mut new) = (mixed_disk(20 * CLUSTER), mixed_disk(20 * CLUSTER));
    new[CLUSTER] ^= 1;
    let [old_path, new_path] = ["old", "new"].map(|name| dir.path().join(name));
    let (old_image, old_clusters, _) = store(&old, Format::Qcow2, &old_path);
    let (_, new_clusters, _) = store(&new, Format::Qcow2, &new_path);
    // Something else where the file has the first compressed cluster that did not change.
    let mut bytes = std::fs::read(&new_path).unwrap();
    let frame = bytes.windows(4).rposition(|magic| magic == b"\x28\xb5\x2f\xfd").unwrap();
    bytes[frame + 20] ^= 0xff;
    std::fs::write(&new_path, bytes).unwrap();
    let new_image = Image::open(&new_path).unwrap();
    let known = differences(&old_image, &new_image, Some((&old_clusters.sums(), &new_clusters.sums())), THREADS);
    assert!(known.unwrap().ranges().eq(std::iter::once(CLUSTER as u64..2 * CLUSTER as u64)));
    let read = differences(&old_image, &new_image, None, THREADS);
    assert!(read.is_err() || read.is_ok_and(|read| read.count() == 2));
}

#[test]
fn no_overlay_stands_on_anything_but_a_file_beside_it() {
    for (name, reason) in [
        ("", "not a file name"),
        ("..", "not a file name"),
        ("../a.raw", "another directory"),
        ("/a.raw", "another directory"),
        ("nbd:a", "protocol"),
        ("json:{}", "protocol"),
        ("a\nb", "control character"),
        (&"a".repeat(256), "255 bytes"),
    ] {
        let error = Backing::new(name, Format::Raw).unwrap_err();
        assert!(error.reason.contains(reason), "{name:?}: {error}");
    }
    assert_eq!(Backing::new("a b.raw", Format::Raw).unwrap().name(), "a b.raw");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_two_disks_have_an_overlay(
        sectors in (1usize..3000, 1usize..3000),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..200_000, 0u64..4), 0..6),
        is_raw in any::<bool>(),
    ) {
        let dir = TempDir::new().unwrap();
        let (old, mut new) = (mixed_disk(sectors.0 * 512), mixed_disk(sectors.1 * 512));
        for (at, len, seed) in edits {
            let at = at.index(new.len());
            let end = new.len().min(at + len);
            match seed {
                0 => new[at..end].fill(0),
                _ => new[at..end].copy_from_slice(&noise(seed, end - at)),
            }
        }
        check(dir.path(), &old, &new, if is_raw { Format::Raw } else { Format::Qcow2 });
    }
    #[test]
    fn a_damaged_overlay_is_refused_or_read_without_a_panic(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        in_header in any::<bool>(),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let dir = TempDir::new().unwrap();
        let (old, mut new) = (mixed_disk(10 * CLUSTER), mixed_disk(12 * CLUSTER));
        new[3 * CLUSTER..4 * CLUSTER].fill(0);
        check(dir.path(), &old, &new, Format::Raw);
        let path = dir.path().join("delta.raw");
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, value) in edits {
            // The tables are at the end, the header is at the start.
            let at = at.index(if in_header { 200 } else { bytes.len() });
            bytes[at] = value;
        }
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        std::fs::write(&path, bytes).unwrap();
        let Ok(overlay) = Overlay::of(File::open(&path).unwrap(), &path) else { return Ok(()) };
        let base: Arc<dyn ReadAt> = Arc::new(old);
        let out = create(&dir.path().join("patched"));
        // An endless disk would only take long.
        if overlay.len() <= 1 << 30 {
            let _any = patch(&base, &Arc::new(overlay), Output::new(Format::Raw, &out), THREADS, &|_| ());
        }
    }
}
