//! Core images compared with those of grub-mkimage(1): equal but for the compressed bytes, whose content is equal.

use liblzma::stream::{Action, Filters, LzmaOptions, Stream};
use vmbake_disk::tree::Tree;
use vmbake_grub::{BIOS_DIR, CoreImage, DEFAULT_MODULES, PREFIX};

use crate::tools::{have, run};
use crate::trees::{add, with_bios};

const START: u64 = 2048;
const ROOM: u64 = 3 << 20;

fn le32(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// The parts of a core image: what is not compressed, without the fields that contain lengths, and the decompressed rest.
fn parts(core: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let decompressor = std::fs::metadata(format!("{BIOS_DIR}/lzma_decompress.img")).unwrap().len();
    let start = 512 + usize::try_from(decompressor).unwrap();
    let (packed, len) = (le32(core, 512 + 8), le32(core, 512 + 12));
    assert_eq!(core.len(), start + packed);
    let sectors = u16::from_le_bytes(core[508..510].try_into().unwrap());
    assert_eq!(usize::from(sectors), (core.len() - 512).div_ceil(512));
    let mut options = LzmaOptions::new_preset(6).unwrap();
    options.dict_size(1 << 16);
    let mut stream = Stream::new_raw_decoder(Filters::new().lzma1(&options)).unwrap();
    let mut payload = Vec::with_capacity(len);
    stream.process_vec(&core[start..], &mut payload, Action::Run).unwrap();
    assert_eq!(payload.len(), len);
    let mut plain = core[..start].to_vec();
    plain[500..510].fill(0);
    plain[512 + 8..512 + 12].fill(0);
    (plain, payload)
}

fn build(tree: &Tree, modules: &[&str], prefix: &str) -> CoreImage {
    CoreImage::build(tree, modules, prefix, START, ROOM).unwrap()
}

#[test]
fn payload_is_that_of_grub_mkimage() {
    let Some(tree) = with_bios().filter(|_| have("grub-mkimage")) else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("core.img");
    let path = path.to_str().unwrap();
    let many = ["normal", "ext2", "part_gpt", "biosdisk", "btrfs", "lvm", "search", "linux", "gfxterm", "test"];
    for (modules, prefix) in [(&DEFAULT_MODULES[..], PREFIX), (&many, "(hd0,gpt2)/grub"), (&["biosdisk"], "")] {
        run("grub-mkimage", &[&["-O", "i386-pc", "-p", prefix, "-o", path], modules].concat());
        let theirs = std::fs::read(path).unwrap();
        let ours = build(&tree, modules, prefix);
        assert!(parts(&ours.core) == parts(&theirs), "{modules:?}");
        assert_eq!(ours, build(&tree, modules, prefix), "the same bytes every time");
    }
}

#[test]
fn loaders_know_where_the_rest_is() {
    let Some(tree) = with_bios() else { return };
    let image = build(&tree, &DEFAULT_MODULES, PREFIX);
    let mut boot = std::fs::read(format!("{BIOS_DIR}/boot.img")).unwrap();
    assert_eq!(image.boot_code[0x5C..0x64], START.to_le_bytes());
    boot[0x5C..0x64].copy_from_slice(&START.to_le_bytes());
    boot[0x66..0x68].fill(0x90);
    assert_eq!(image.boot_code[..], boot[..440]);
    assert_eq!(image.core[500..508], (START + 1).to_le_bytes());
    assert_eq!(image.core[510..512], [0x20, 0x08], "the segment");
}

#[test]
fn damaged_files_are_refused() {
    let Some(original) = with_bios() else { return };
    let error = CoreImage::build(&original, &DEFAULT_MODULES, PREFIX, START, 20_000).unwrap_err().to_string();
    assert!(error.starts_with("GRUB's core image: ") && error.ends_with("more than the limit of 20000"), "{error}");
    let kernel = std::fs::read(format!("{BIOS_DIR}/kernel.img")).unwrap();
    let changed = |at: usize, bytes: &[u8]| {
        let mut kernel = kernel.clone();
        kernel[at..at + bytes.len()].copy_from_slice(bytes);
        kernel
    };
    let text = le32(&kernel, 0x20) + 40;
    let cases: [(&str, Vec<u8>, &str); 10] = [
        ("kernel.img", b"\x7fELF".to_vec(), "header at byte 0"),
        ("kernel.img", changed(0x12, &[62, 0]), "machine at byte 18: expected 3, found 62"),
        ("kernel.img", changed(0x18, &[0, 0, 0, 0]), "entry point at byte 24"),
        ("kernel.img", changed(0x20, &[0xFF; 4]), "number at byte"),
        ("kernel.img", changed(text + 12, &[0, 0, 0, 0]), "section at byte"),
        ("kernel.img", changed(text + 16, &[0xFF; 4]), "section at byte"),
        ("kernel.img", changed(text + 20, &[0xFF; 4]), "section at byte"),
        ("diskboot.img", vec![0; 511], "length at byte 0: expected 512, found 511"),
        ("lzma_decompress.img", vec![0; 10], "field at byte 8"),
        ("moddep.lst", b"ext2: fshelp\n".to_vec(), "module \"fshelp\" is listed"),
    ];
    for (name, content, expected) in cases {
        let mut tree = original.clone();
        let path = format!("{BIOS_DIR}/{name}");
        tree.remove(path.as_bytes()).unwrap();
        add(&mut tree, &path, content);
        let error = CoreImage::build(&tree, &DEFAULT_MODULES, PREFIX, START, ROOM).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{path}: {expected}")), "{name}: {error}");
    }
}
