//! Damaged inputs: whatever is changed or cut off, there is a result or an error, never a panic.

use std::fs;

use proptest::prelude::*;
use vmbake_common::catalog::Catalog;
use vmbake_compose::stage::{ArchiveLimits, archive};
use vmbake_layer::Layers;

use super::parts::{ar, bake, compress, control, dir, file, layer_json, member, package, pax, tar, temporary};

/// Some bytes replaced, and perhaps the end cut off: positions are counted in 65,536ths of the length.
type Damage = (Vec<(u16, u8)>, Option<u16>);

fn damage() -> impl Strategy<Value = Damage> {
    (prop::collection::vec(any::<(u16, u8)>(), 0..6), any::<Option<u16>>())
}

fn damaged(bytes: &[u8], (changes, cut): &Damage) -> Vec<u8> {
    let at = |position: u16| bytes.len() * usize::from(position) / 65_536;
    let mut bytes = bytes.to_vec();
    for (position, byte) in changes {
        bytes[at(*position)] = *byte;
    }
    bytes.truncate(cut.map_or(bytes.len(), at));
    bytes
}

fn members() -> Vec<u8> {
    let link = member(b'1', b"./b", b"./a", b"");
    tar(&[dir("./"), pax("mtime", b"1.5"), file("./a", "content"), link, member(b'2', b"./c", b"a", b"")])
}

proptest! {
    #[test]
    fn archives(damage in damage()) {
        let _ = archive::read(&temporary(&damaged(&members(), &damage)), &ArchiveLimits::ROOT);
    }

    #[test]
    fn compressed_archives(format in prop::sample::select(vec!["gz", "xz", "zst"]), damage in damage()) {
        let _ = bake(&[super::parts::archive("a", damaged(&compress(format, &members()), &damage))]);
    }

    /// Uncompressed, so that the damage reaches the archives inside and their text.
    #[test]
    fn packages(damage in damage()) {
        let scripts = "#!/bin/sh\nset -e\n# Automatically added by dh_makeshlibs/1\nif [ \"$1\" = x ]; then\nldconfig\n\
            fi\n# End automatically added section\n";
        let control = tar(&[file("control", &control("p", "Depends: libc6 (>= 1)\n")), file("postinst", scripts)]);
        let deb = ar(&[("debian-binary", b"2.0\n"), ("control.tar", &control), ("data.tar", &members())]);
        let _ = bake(&[package("a", damaged(&deb, &damage))]);
    }

    #[test]
    fn layers(damage in damage()) {
        let rest = r#", "requires": ["b"], "directories": {"/x": {"mode": "0755"}}, "remove": ["/tmp/*"],
            "artifacts": {"t": {"type": "tar", "path": "/opt", "strip": 1, "members": ["a"]}}"#;
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        let path = dir.path().join("a/layer.json");
        fs::write(path, damaged(layer_json("a", rest).as_bytes(), &damage)).unwrap();
        if let Ok(layers) = Layers::load(&Catalog::only(dir.path())) {
            let _ = layers.resolve("a", "o");
        }
    }
}
