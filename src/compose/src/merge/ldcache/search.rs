//! Lists the libraries of a directory as ldconfig does: the newest file for each soname.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use vmbake_disk::tree::{Kind, Tree};

use super::conf::Directory;
use vmbake_image::elf::{Class, EM_386, EM_AARCH64, EM_ARM, EM_X86_64, ET_DYN, Elf, Machine};

/// A library of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Library {
    /// Name of the file or link.
    pub(super) name: Vec<u8>,
    /// The name that others need it by.
    pub(super) soname: Vec<u8>,
    /// Whether `name` is a link that has the soname, or the one that compilers use.
    pub(super) is_link: bool,
    /// What it runs on, in the words of the cache.
    pub(super) flags: u32,
    /// Which level of x86-64 it needs.
    pub(super) isa_level: u32,
}

/// What a directory holds.
#[derive(Default)]
pub(super) struct Found {
    pub(super) libraries: Vec<Library>,
    /// Links of libraries that point to nothing; ldconfig removes them.
    pub(super) stale: Vec<Vec<u8>>,
}

/// Reads the libraries of a directory. Files that are damaged or made for other machines are not libraries.
pub(super) fn search(tree: &Tree, directory: &Directory, machine: Machine) -> Found {
    let mut found = Found::default();
    let Kind::Directory(entries) = &tree.inode(directory.id).kind else { return found };
    let mut places = BTreeMap::new();
    for (name, id) in entries {
        let is_link = match &tree.inode(*id).kind {
            Kind::Symlink(_) => true,
            Kind::File(_) => false,
            _ => continue,
        };
        let named = is_library(name) || (directory.hwcaps.is_some() && is_link);
        if !named || is_temporary(name) {
            continue;
        }
        let path = [&directory.path, &b"/"[..], name].concat();
        match tree.resolve(&path) {
            Ok(id) => {
                if let Some(library) = library(tree, &tree.inode(id).kind, name, is_link, machine) {
                    add(&mut found.libraries, &mut places, library);
                }
            }
            Err(_) if contains(name, b".so.") => found.stale.push(name.clone()),
            Err(_) => {}
        }
    }
    found
}

/// Whether a name looks like that of a library or of a loader.
fn is_library(name: &[u8]) -> bool {
    let named = name.starts_with(b"lib") || name.starts_with(b"ld-");
    (named && contains(name, b".so")) || name.starts_with(b"ld.so.") || name.starts_with(b"ld64.so.")
}

/// Whether prelink, rpm or dpkg are just writing this file.
fn is_temporary(name: &[u8]) -> bool {
    const PRELINK: &[u8] = b".#prelink#";
    let random = name.len().checked_sub(PRELINK.len() + 7).and_then(|at| name.get(at..at + PRELINK.len() + 1));
    name.ends_with(PRELINK)
        || random.is_some_and(|part| part == b".#prelink#.")
        || name.contains(&b';')
        || name.ends_with(b".dpkg-new")
        || name.ends_with(b".dpkg-tmp")
}

fn contains(name: &[u8], part: &[u8]) -> bool {
    name.windows(part.len()).any(|window| window == part)
}

fn library(tree: &Tree, kind: &Kind, name: &[u8], is_link: bool, machine: Machine) -> Option<Library> {
    let Kind::File(map) = kind else { return None };
    let elf = Elf::read(map, tree.sources()).ok()?.filter(|elf| elf.e_type == ET_DYN)?;
    let flags = flags(&elf, machine)?;
    let isa_level = elf.isa_level(map, tree.sources()).unwrap_or(0);
    let soname = elf.dynamic?.soname.unwrap_or_else(|| name.to_vec());
    if soname.is_empty() || soname.contains(&b'/') || soname == b"." || soname == b".." {
        return None;
    }
    // A link that is neither the soname nor the name for compilers, libx.so of libx.so.1, counts as a file.
    let is_link = is_link && (name == soname || (name.ends_with(b".so") && soname.starts_with(name)));
    let soname = if is_link { name.to_vec() } else { soname };
    Some(Library { name: name.to_vec(), soname, is_link, flags, isa_level })
}

/// The kind of library (`FLAG_ELF_LIBC6` and the machine's bits of glibc's `ldconfig.h`); `None` for one that the
/// ldconfig of this machine does not know.
fn flags(elf: &Elf, machine: Machine) -> Option<u32> {
    const LIBC6: u32 = 0x0003;
    const X8664_LIB64: u32 = 0x0300;
    const X8664_LIBX32: u32 = 0x0800;
    const ARM_LIBHF: u32 = 0x0900;
    const AARCH64_LIB64: u32 = 0x0a00;
    const ARM_LIBSF: u32 = 0x0b00;
    const EF_ARM_EABIMASK: u32 = 0xff00_0000;
    const EF_ARM_EABI_VER5: u32 = 0x0500_0000;
    const EF_ARM_ABI_FLOAT_SOFT: u32 = 0x200;
    const EF_ARM_ABI_FLOAT_HARD: u32 = 0x400;
    if elf.machine.data != machine.data {
        return None;
    }
    let bits = match (machine.e_machine, elf.machine.e_machine, elf.machine.class) {
        (EM_X86_64, EM_X86_64, Class::Elf64) => X8664_LIB64,
        (EM_X86_64, EM_X86_64, Class::Elf32) => X8664_LIBX32,
        (EM_X86_64, EM_386, Class::Elf32) => 0,
        (EM_AARCH64, EM_AARCH64, Class::Elf64) => AARCH64_LIB64,
        (EM_AARCH64, EM_ARM, Class::Elf32) => match elf.e_flags {
            flags if flags & EF_ARM_EABIMASK != EF_ARM_EABI_VER5 => 0,
            flags if flags & EF_ARM_ABI_FLOAT_HARD != 0 => ARM_LIBHF,
            flags if flags & EF_ARM_ABI_FLOAT_SOFT != 0 => ARM_LIBSF,
            _ => 0,
        },
        _ => return None,
    };
    Some(LIBC6 | bits)
}

/// Adds a library; of several with one soname a file wins over a link, and then the later version. `places` tells where
/// in the list a soname is.
fn add(libraries: &mut Vec<Library>, places: &mut BTreeMap<Vec<u8>, usize>, new: Library) {
    let Some(old) = places.get(&new.soname).and_then(|at| libraries.get_mut(*at)) else {
        places.insert(new.soname.clone(), libraries.len());
        libraries.push(new);
        return;
    };
    let newer = old.is_link == new.is_link && version_order(&old.name, &new.name) == Ordering::Less;
    if newer || (old.is_link && !new.is_link) {
        *old = Library { flags: old.flags, ..new };
    }
}

/// The order of glibc's `_dl_cache_libcmp`: runs of digits by their values, as 32 bits hold them, all else by bytes,
/// which are signed on x86 and unsigned on Arm; digits stand behind everything else.
pub(super) fn version_order(left: &[u8], right: &[u8]) -> Ordering {
    let (mut left, mut right) = (left, right);
    loop {
        let digit = |text: &[u8]| text.first().is_some_and(u8::is_ascii_digit);
        match (left.split_first(), right.split_first()) {
            (None, _) | (_, None) => return left.len().cmp(&right.len()),
            _ if digit(left) && digit(right) => {
                let (a, b) = (number(&mut left), number(&mut right));
                if a != b {
                    return a.cmp(&b);
                }
            }
            _ if digit(left) => return Ordering::Greater,
            _ if digit(right) => return Ordering::Less,
            (Some((a, _)), Some((b, _))) if a != b => return a.cmp(b),
            (Some((_, a)), Some((_, b))) => (left, right) = (a, b),
        }
    }
}

/// Takes a run of digits off a text.
fn number(text: &mut &[u8]) -> i32 {
    let len = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(len);
    *text = rest;
    digits.iter().fold(0_i32, |value, digit| value.wrapping_mul(10).wrapping_add(i32::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (left, right, expected) in [
            ("libx.so.9", "libx.so.10", Ordering::Less),
            ("libx.so.1.2", "libx.so.1.2", Ordering::Equal),
            ("libx.so.01", "libx.so.1", Ordering::Equal),
            ("libx.so.1", "libx.so", Ordering::Greater),
            ("libx.so", "libx1.so", Ordering::Less),
            ("liba.so", "libb.so", Ordering::Less),
            ("lib-2.so", "lib_2.so", Ordering::Less),
        ] {
            assert_eq!(version_order(left.as_bytes(), right.as_bytes()), expected, "{left} {right}");
            assert_eq!(version_order(right.as_bytes(), left.as_bytes()), expected.reverse(), "{right} {left}");
        }
    }

    #[test]
    fn names_of_libraries() {
        for name in ["libc.so.6", "libelf-0.192.so", "ld-linux-x86-64.so.2", "ld.so.1", "ld64.so.2", "libx.so-gdb.py"] {
            assert!(is_library(name.as_bytes()), "{name}");
        }
        for name in ["pam_unix.so", "libc.a", "lib", "ld", "x-libc.so"] {
            assert!(!is_library(name.as_bytes()), "{name}");
        }
        for name in ["libx.so.1.#prelink#", "libx.so.1.#prelink#.AbCdEf", "libx.so.1;5f3", "libx.so.1.dpkg-new"] {
            assert!(is_temporary(name.as_bytes()), "{name}");
        }
        assert!(!is_temporary(b"libx.so.1"));
    }
}
