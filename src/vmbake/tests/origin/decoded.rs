//! Decoded artifacts in the store: modified, truncated, copied or incomplete ones are decoded again,
//! and the image is identical.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use vmbake_bake::BakeRequest;
use vmbake_common::digest::Digest;
use vmbake_store::store::{DecodedForm, Store};

use super::bakery::{bake, can_bake, pack, qcow2_base, request};

/// A base, a store, and the image that they become without anything decoded.
struct Bakery {
    dir: tempfile::TempDir,
    base: PathBuf,
    image: Vec<u8>,
}

impl Bakery {
    fn new() -> Option<Self> {
        if !can_bake() {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let base = qcow2_base(dir.path());
        let mut bakery = Self { dir, base, image: Vec::new() };
        bakery.image = bakery.bake("cold", 1);
        Some(bakery)
    }

    fn request(&self, out: &str, threads: usize) -> BakeRequest {
        request(self.dir.path(), self.base.clone(), out, threads)
    }

    fn bake(&self, out: &str, threads: usize) -> Vec<u8> {
        image(&self.request(out, threads))
    }

    fn store(&self) -> Store {
        Store::open(Some(self.dir.path().join("store"))).unwrap()
    }

    /// The decoded forms that a bake makes.
    fn forms(&self) -> [(Digest, DecodedForm); 2] {
        [(Digest::of(&fs::read(&self.base).unwrap()), DecodedForm::Disk), (Digest::of(&pack()), DecodedForm::Tar)]
    }

    fn is_warm(&self) -> bool {
        self.forms().iter().all(|(digest, form)| self.store().has_decoded(digest, *form))
    }
}

fn image(request: &BakeRequest) -> Vec<u8> {
    let baked = bake(request).unwrap();
    let image = fs::read(&baked.outputs[0].path).unwrap();
    fs::remove_dir_all(&request.out).unwrap();
    image
}

/// Opens a file that its owner may not write either.
fn writable(path: &Path) -> fs::File {
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::File::options().write(true).open(path).unwrap()
}

fn record(path: &Path) -> PathBuf {
    path.with_file_name(format!("{}.json", path.file_name().unwrap().to_str().unwrap()))
}

/// What tells a file from one that took its place, which may have the same inode.
fn identity(path: &Path) -> (u64, i64, i64) {
    let meta = fs::metadata(path).unwrap();
    (meta.ino(), meta.ctime(), meta.ctime_nsec())
}

/// What may happen to a decoded form.
type Way = (&'static str, fn(&Path));

const DAMAGE: [Way; 9] = [
    ("nothing", |_| ()),
    ("a byte is another", |path| writable(path).write_all_at(b"\xff", fs::metadata(path).unwrap().len() / 2).unwrap()),
    ("cut", |path| writable(path).set_len(fs::metadata(path).unwrap().len() / 2).unwrap()),
    ("a byte more", |path| writable(path).write_all_at(b"x", fs::metadata(path).unwrap().len()).unwrap()),
    ("zeros in place of it", |path| {
        let len = fs::metadata(path).unwrap().len();
        fs::remove_file(path).unwrap();
        fs::File::create(path).unwrap().set_len(len).unwrap();
    }),
    ("gone", |path| fs::remove_file(path).unwrap()),
    ("without a record", |path| fs::remove_file(record(path)).unwrap()),
    ("with half a record", |path| fs::write(record(path), "{\"device\": 1").unwrap()),
    // As after a power cut, which may leave a file's length and times without its bytes.
    ("of an earlier start of the machine", |path| {
        let mut stamp: serde_json::Value = serde_json::from_slice(&fs::read(record(path)).unwrap()).unwrap();
        stamp["boot"] = "another".into();
        fs::write(record(path), stamp.to_string()).unwrap();
    }),
];

#[test]
fn what_was_touched_is_decoded_again_to_the_same_image() {
    let Some(bakery) = Bakery::new() else { return };
    for (what, damage) in DAMAGE {
        for (digest, form) in bakery.forms() {
            assert!(bakery.is_warm(), "{what}");
            let path = bakery.store().form(&digest, form);
            let before = identity(&path);
            damage(&path);
            assert_eq!(bakery.store().has_decoded(&digest, form), what == "nothing", "{what}");
            assert!(bakery.bake("again", 2) == bakery.image, "{what}: another image");
            assert_eq!(identity(&path) == before, what == "nothing", "{what}: made again");
        }
    }
    assert_eq!(fs::read_dir(bakery.dir.path().join("store/partial")).unwrap().count(), 0);
}

#[test]
fn what_a_kill_left_is_made_again() {
    let Some(bakery) = Bakery::new() else { return };
    for (digest, form) in bakery.forms() {
        let path = bakery.store().form(&digest, form);
        let partial = bakery.dir.path().join("store/partial").join(path.file_name().unwrap());
        fs::rename(&path, &partial).unwrap();
        writable(&partial).write_all_at(&[0xff; 4096], 0).unwrap();
        assert!(bakery.bake("again", 2) == bakery.image);
        assert!(bakery.is_warm() && !partial.exists());
    }
}

#[test]
fn a_store_that_cannot_be_written_is_enough() {
    let Some(bakery) = Bakery::new() else { return };
    for folder in ["decoded", "partial", "seen"] {
        let folder = bakery.dir.path().join("store").join(folder);
        if folder.exists() {
            fs::remove_dir_all(&folder).unwrap();
        }
        // Root may write to any directory, but not below a file.
        fs::write(&folder, "").unwrap();
    }
    assert!(bakery.bake("again", 2) == bakery.image);
    assert!(!bakery.is_warm());
}

#[test]
fn bakes_at_the_same_time_share_what_one_of_them_decodes() {
    let Some(bakery) = Bakery::new() else { return };
    fs::remove_dir_all(bakery.dir.path().join("store/decoded")).unwrap();
    // Written before any of them runs: they share the files.
    let requests: Vec<BakeRequest> = (0..4).map(|number| bakery.request(&format!("out-{number}"), 2)).collect();
    std::thread::scope(|scope| {
        let bakes: Vec<_> = requests.iter().map(|request| scope.spawn(|| image(request))).collect();
        assert!(bakes.into_iter().all(|bake| bake.join().unwrap() == bakery.image));
    });
    assert!(bakery.is_warm());
    assert_eq!(fs::read_dir(bakery.dir.path().join("store/partial")).unwrap().count(), 0);
}

#[test]
fn maintenance_knows_decoded_forms() {
    let Some(bakery) = Bakery::new() else { return };
    let (store, forms) = (bakery.store(), bakery.forms());
    let collect = |keep: &[Digest], dry_run| {
        let keep = || Ok::<_, vmbake_store::store::StoreError>(keep.iter().copied().collect());
        store.collect_garbage(keep, vmbake_bake::incremental::record::stale, dry_run).unwrap().files
    };
    let all = [forms[0].0, forms[1].0, Digest::of(super::bakery::TOOL), super::bakery::sums().0];
    // The image was removed, so its records are garbage.
    let records = fs::read_dir(store.root().join("bakes")).unwrap().map(|entry| entry.unwrap().path());
    let records: Vec<_> = records.collect();
    assert_eq!((records.len(), collect(&all, false)), (1, records));
    assert_eq!(collect(&all, false), Vec::<PathBuf>::new());
    // A form of an older program, and one that was touched.
    let old = store.form(&forms[1].0, DecodedForm::Tar).with_extension("tar-0");
    fs::write(&old, "").unwrap();
    let disk = store.form(&forms[0].0, DecodedForm::Disk);
    writable(&disk).write_all_at(b"\xff", 0).unwrap();
    let mut expected = vec![disk.clone(), record(&disk), old];
    expected.sort();
    assert_eq!(collect(&all, true), expected);
    assert_eq!(collect(&all, false), expected);
    assert!(store.has_decoded(&forms[1].0, DecodedForm::Tar));
    // The other one goes with its blob.
    assert_eq!(collect(&all[2..], false).len(), 3);
    assert!(bakery.bake("again", 1) == bakery.image);
}

#[test]
fn verification_hashes_and_decodes_everything_again() {
    let Some(bakery) = Bakery::new() else { return };
    let (_, corrupt) = bakery.store().verify(std::num::NonZeroUsize::MIN).unwrap();
    assert!(corrupt.is_empty() && !bakery.is_warm());
    assert!(bakery.bake("again", 1) == bakery.image);
    assert!(bakery.is_warm());
}
