//! Parsing ELF files: synthetic ones of both classes and byte orders, malformed ones, and all of this host.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use vmbake_disk::source::{FileSource, Map, Sources};
use vmbake_image::elf::{Class, Data, Elf, Machine};

use super::parts::{AARCH64, Make, X86_64, library, program, read, read_counted, run};
use crate::tools::have;

#[test]
fn all_classes_and_byte_orders_are_read() {
    for (class, data) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        let make = Make {
            class,
            data,
            machine: AARCH64,
            soname: Some("libx.so.1"),
            rpath: Some("/r"),
            runpath: Some("$ORIGIN/../lib"),
            isa: Some(5),
            ..program(&["liba.so.1", "libb.so.2"])
        };
        let elf = read(&make.bytes()).unwrap().unwrap();
        let dynamic = elf.dynamic.unwrap();
        assert_eq!(dynamic.needed, [b"liba.so.1", b"libb.so.2"]);
        assert_eq!(dynamic.soname.as_deref(), Some(&b"libx.so.1"[..]));
        assert_eq!(dynamic.rpath.as_deref(), Some(&b"/r"[..]));
        assert_eq!(dynamic.runpath.as_deref(), Some(&b"$ORIGIN/../lib"[..]));
        assert_eq!(elf.interpreter.as_deref(), Some(&b"/lib64/ld-linux-x86-64.so.2"[..]));
        let class = if class == 1 { Class::Elf32 } else { Class::Elf64 };
        let data = if data == 1 { Data::Lsb } else { Data::Msb };
        assert_eq!(elf.machine, Machine { class, data, e_machine: AARCH64 });
    }
}

#[test]
fn the_level_of_x86_64_is_read() {
    for (class, machine, isa, expected) in [
        (2, X86_64, None, 0),
        (2, X86_64, Some(0), 0),
        (2, X86_64, Some(1), 0),
        (2, X86_64, Some(5), 2),
        (2, X86_64, Some(8), 3),
        (1, 3, Some(2), 1),
        (2, AARCH64, Some(8), 0),
    ] {
        let bytes = Make { class, machine, isa, ..library(&[]) }.bytes();
        let mut sources = Sources::default();
        let map = Map::whole(sources.add(Arc::new(bytes.clone())), 0, bytes.len() as u64);
        let elf = Elf::read(&map, &sources).unwrap().unwrap();
        assert_eq!(elf.isa_level(&map, &sources).unwrap(), expected, "{class} {machine} {isa:?}");
    }
}

#[test]
fn machines_have_names() {
    let machine = |class, data, machine| read(&Make { class, data, machine, ..library(&[]) }.bytes()).unwrap().unwrap();
    for ((class, data, number), expected) in [
        ((2, 1, X86_64), "ELF64 x86-64"),
        ((1, 1, X86_64), "ELF32 x86-64"),
        ((1, 1, 3), "ELF32 x86"),
        ((1, 1, 40), "ELF32 Arm"),
        ((2, 2, AARCH64), "ELF64 big-endian AArch64"),
        ((2, 2, 22), "ELF64 big-endian machine 22"),
    ] {
        assert_eq!(machine(class, data, number).machine.to_string(), expected);
    }
}

#[test]
fn what_is_no_elf_file_is_none() {
    for bytes in [&b""[..], b"\x7fEL", b"#!/bin/sh\n", b"MZ\x7fELF", &[0; 64]] {
        assert_eq!(read(bytes).unwrap(), None);
    }
}

#[test]
fn damaged_files_are_refused() {
    let make = Make { soname: Some("libx.so.1"), ..program(&["liba.so.1"]) };
    let (good, places) = make.build();
    let (interpreter, dynamic) = (places.headers, places.headers + 2 * 56);
    let cases: Vec<(&str, usize, Vec<u8>, &str)> = vec![
        ("class", 4, vec![3], "EI_CLASS is 0x3, expected 1 or 2"),
        ("data", 5, vec![0], "EI_DATA is 0x0, expected 1 or 2"),
        ("size of headers", 0x36, vec![0x20], "e_phentsize is 0x20, expected 0x38"),
        ("extended count", 0x38, vec![0xff, 0xff], "e_phnum is 65535, more than the limit of 512"),
        (
            "headers outside",
            0x20,
            vec![0xff; 8],
            "the program headers, 224 bytes at byte 18446744073709551615, extends beyond the end of the file",
        ),
        (
            "many headers",
            0x38,
            vec![0, 2],
            "the program headers, 28672 bytes at byte 64, extends beyond the end of the file",
        ),
        (
            "interpreter outside",
            interpreter + 8,
            vec![0, 0, 0, 1],
            "PT_INTERP, 28 bytes at byte 16777216, extends beyond the end of the file",
        ),
        (
            "long interpreter",
            interpreter + 32,
            vec![1, 16],
            "the length of PT_INTERP is 4097, more than the limit of 4096",
        ),
        ("open interpreter", interpreter + 32, vec![4], "the last byte of PT_INTERP is 0x62, expected 0"),
        (
            "dynamic outside",
            dynamic + 8,
            vec![0xf0; 8],
            "PT_DYNAMIC, 80 bytes at byte 17361641481138401520, extends beyond the end of the file",
        ),
        (
            "huge dynamic",
            dynamic + 32,
            vec![0, 0, 2],
            "the length of PT_DYNAMIC is 131072, more than the limit of 65536",
        ),
        (
            "name outside",
            places.dynamic + 8,
            vec![0xff],
            "an offset into the string table is 0xff, expected below DT_STRSZ",
        ),
        (
            "strings outside",
            places.dynamic + 40,
            vec![0xff; 8],
            "DT_STRTAB is 0xffffffffffffffff, expected an address of",
        ),
        ("open string", places.dynamic + 56, vec![5], "DT_STRSZ is 0x5, expected the end of a string"),
    ];
    for (name, at, bytes, expected) in cases {
        let mut damaged = good.clone();
        damaged[at..at + bytes.len()].copy_from_slice(&bytes);
        let error = read(&damaged).expect_err(name).to_string();
        assert!(error.starts_with(expected), "{name}: {error}");
    }
    for len in 0..places.end {
        assert!(len < 4 || read(&good[..len]).is_err(), "{len} bytes of it are no whole file");
    }
}

#[test]
fn a_name_without_end_is_not_read_to_the_end() {
    let long: &'static str = Box::leak("x".repeat(100_000).into_boxed_str());
    let (result, bytes) = read_counted(Arc::new(library(&[long]).bytes()));
    assert_eq!(result.unwrap_err().to_string(), "the length of a string is 100001, more than the limit of 4096");
    assert!(bytes < 6000, "{bytes}");
}

#[test]
fn object_files_are_read_no_further() {
    let mut bytes = Make { e_type: 1, ..program(&["liba.so"]) }.bytes();
    bytes.truncate(64);
    let elf = read(&bytes).unwrap().unwrap();
    assert!(!elf.is_loadable() && elf.dynamic.is_none() && elf.interpreter.is_none());
}

/// Programs and libraries of this machine.
fn files() -> Vec<PathBuf> {
    let libraries = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let list = |dir: &str| -> Vec<PathBuf> {
        let mut paths: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.retain(|path| path.is_file() && !path.is_symlink());
        paths.truncate(400);
        paths
    };
    [list("/usr/bin"), list(&libraries)].concat()
}

#[test]
fn readelf_says_the_same() {
    if !have(&["readelf"]) {
        return;
    }
    let mut found = BTreeMap::new();
    for path in files() {
        let (elf, bytes) = read_counted(Arc::new(FileSource::new(File::open(&path).unwrap()).unwrap()));
        if let Some(elf) = elf.unwrap().filter(Elf::is_loadable) {
            assert!(bytes < 20_000, "{}: {bytes} bytes read", path.display());
            found.insert(path.to_str().unwrap().to_owned(), elf);
        }
    }
    assert!(found.len() > 50, "{} programs", found.len());
    let args = ["-l", "-d", "-W"].into_iter().chain(found.keys().map(String::as_str));
    let text = run("readelf", &args.collect::<Vec<_>>());
    let mut said: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        let word = line.rsplit(' ').next().unwrap_or_default().trim_end_matches(']');
        match line.split_once(':').map(|(key, _)| key.trim()) {
            Some("File") => current = word.to_owned(),
            Some("[Requesting program interpreter") => said.entry(current.clone()).or_default().push(word.to_owned()),
            Some(key) if ["(NEEDED)", "(SONAME)", "(RPATH)", "(RUNPATH)"].iter().any(|tag| key.contains(tag)) => {
                let value = line.rsplit_once('[').unwrap().1.trim_end_matches(']');
                said.entry(current.clone()).or_default().push(value.to_owned());
            }
            _ => {}
        }
    }
    for (path, elf) in found {
        let dynamic = elf.dynamic.unwrap_or_default();
        let names = dynamic.needed.into_iter().chain(dynamic.soname).chain(dynamic.rpath).chain(dynamic.runpath);
        let names = elf.interpreter.into_iter().chain(names);
        let mut names: Vec<String> = names.map(|name| String::from_utf8(name).unwrap()).collect();
        let mut said = said.remove(&path).unwrap_or_default();
        names.sort();
        said.sort();
        assert_eq!(names, said, "{path}");
    }
}

/// A real program, and the places in it that are read.
static REAL: LazyLock<(Vec<u8>, Vec<usize>)> = LazyLock::new(|| {
    let bytes = fs::read("/bin/sh").unwrap();
    let u64_at = |at: usize| usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap();
    let headers = u64_at(0x20);
    let count = usize::from(u16::from_le_bytes([bytes[0x38], bytes[0x39]]));
    let mut places: Vec<usize> = (0..headers + count * 56).collect();
    for at in (0..count).map(|index| headers + index * 56).filter(|at| [2, 3].contains(&bytes[*at])) {
        let start = u64_at(at + 8);
        places.extend(start..start + u64_at(at + 32));
    }
    (bytes, places)
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn damaged_programs(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), cut in 0..20_usize) {
        let (bytes, places) = &*REAL;
        let mut bytes = bytes.clone();
        for (at, byte) in edits {
            bytes[places[at.index(places.len())]] = byte;
        }
        if cut < 4 {
            bytes.truncate(bytes.len() >> (cut * 2));
        }
        let (result, read) = read_counted(Arc::new(bytes));
        prop_assert!(read < 1 << 20, "{} bytes read", read);
        if let Ok(Some(elf)) = result {
            let _ = elf.machine.to_string();
        }
    }

    #[test]
    fn random_headers(tail in prop::collection::vec(any::<u8>(), 0..600), class in 1..3_u8, data in 1..3_u8) {
        let bytes = [b"\x7fELF", &[class, data][..], &tail].concat();
        let _ = read(&bytes);
    }
}

#[test]
fn names_of_libraries_are_limited_together() {
    let long: &'static str = Box::leak("x".repeat(4000).into_boxed_str());
    assert_eq!(read(&library(&[long; 16]).bytes()).unwrap().unwrap().dynamic.unwrap().needed.len(), 16);
    let error = read(&library(&[long; 17]).bytes()).unwrap_err().to_string();
    assert_eq!(error, "the length of all DT_NEEDED is 68000, more than the limit of 65536");
}
