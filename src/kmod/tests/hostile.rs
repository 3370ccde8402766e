//! Damaged input causes an error or a result, but no panic and no endless search.

use vmbake_kmod::{Index, Module, Release};

use crate::tree::{MODULES, Tree, module};

fn tree(content: Vec<u8>) -> (Tree, String) {
    let path = format!("{MODULES}/kernel/a.ko");
    (Tree([(path.clone(), content)].into()), path)
}

fn whole() -> Vec<u8> {
    module(&["undefined one", "weak two", "crc three", "string four", "version five", "info alias=a-[0-9]*"])
}

#[test]
fn truncated_modules_are_errors() {
    let module = whole();
    for len in 0..module.len() {
        let (tree, path) = tree(module[..len].to_vec());
        let error = tree.depmod(Release::Kmod34, 1, None).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{path}: ")) && error.contains(" at byte "), "{len}: {error}");
    }
}

#[test]
fn damaged_modules_do_not_panic() {
    let module = whole();
    for at in 0..module.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut damaged = module.clone();
            damaged[at] = value;
            let (tree, path) = tree(damaged);
            let _ = tree.depmod(Release::Kmod34, 1, None);
            let _ = Module::read(&tree, &path);
        }
    }
}

#[test]
fn faults_are_named() {
    let cases: [(usize, &[u8], &str); 7] = [
        (0, b"MZ", "magic number at byte 0: expected ELF, found MZLF"),
        (4, &[1], "EI_CLASS at byte 4: expected 2, found 1"),
        (5, &[2], "EI_DATA at byte 5: expected 1, found 2"),
        (18, &[3], "e_machine at byte 18: expected 62 or 183, found 3"),
        (58, &[32], "e_shentsize at byte 58: expected 64, found 32"),
        (62, &[0], "e_shstrndx at byte 62: expected a section from 1 to 7, found 0"),
        (40, &[0xff; 8], "section header table at byte 40: expected within"),
    ];
    for (at, bytes, expected) in cases {
        let mut damaged = whole();
        damaged[at..at + bytes.len()].copy_from_slice(bytes);
        let (tree, path) = tree(damaged);
        let error = Module::read(&tree, &path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn compressed_modules_are_read_by_their_content() {
    let (plain, path) = tree(whole());
    let zst = zstd::bulk::compress(&whole(), 0).unwrap();
    let mut xz = Vec::new();
    std::io::copy(&mut liblzma::read::XzEncoder::new(&whole()[..], 0), &mut xz).unwrap();
    let expected = plain.depmod(Release::Kmod34, 1, None).unwrap();
    for content in [zst, xz] {
        let (tree, _) = tree(content.clone());
        assert_eq!(tree.depmod(Release::Kmod34, 1, None).unwrap(), expected);
        let truncated = Tree([(path.clone(), content[..content.len() - 9].to_vec())].into());
        let error = truncated.depmod(Release::Kmod34, 1, None).unwrap_err().to_string();
        assert!(error.contains("cannot read") || error.contains("not one frame"), "{error}");
    }
    let (streamed, _) = tree(zstd::stream::encode_all(&whole()[..], 0).unwrap());
    assert!(streamed.depmod(Release::Kmod34, 1, None).unwrap_err().to_string().contains("not one frame"));
    let (gzip, _) = tree(vec![0x1f, 0x8b, 8]);
    assert!(gzip.depmod(Release::Kmod34, 1, None).unwrap_err().to_string().contains("gzip"));
}

#[test]
fn damaged_indexes_do_not_panic() {
    let (tree, _) = tree(whole());
    for release in [Release::Kmod30, Release::Kmod34] {
        let files = tree.depmod(release, 1, None).unwrap().files;
        let whole = &files.iter().find(|(name, _)| *name == "modules.alias.bin").unwrap().1;
        assert_eq!(Index::new(whole).unwrap().matching(b"a_5x").unwrap(), [(0, &b"a"[..])]);
        for at in 0..whole.len() {
            let damaged = (0..=255).map(|value| [&whole[..at], &[value], &whole[at + 1..]].concat());
            for bytes in damaged.chain([whole[..at].to_vec()]) {
                let Ok(index) = Index::new(&bytes) else { continue };
                let _ = index.matching(b"a_5x");
                let _ = index.get(b"a_5x");
            }
        }
    }
}

#[test]
fn an_endless_index_is_an_error() {
    // A root whose only child is itself.
    let mut bytes = vec![0xb0, 7, 0xf4, 0x57, 0, 2, 0, 1, 0x20, 0, 0, 12, b'*', b'*'];
    bytes.extend(0x2000_000c_u32.to_be_bytes());
    let error = Index::new(&bytes).unwrap().matching(b"a").unwrap_err();
    assert!(error.to_string().contains("an index without cycles"), "{error}");
}
