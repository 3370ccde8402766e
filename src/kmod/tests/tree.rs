//! Trees in memory, and handmade modules like those of `tests/harness/kmod.py`.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::num::NonZeroUsize;

use vmbake_kmod::{Entry, EntryKind, Files, Indexes, KmodError, Release, Settings, depmod};

pub const MODULES: &str = "/lib/modules/6.1.0-9-amd64";

/// Files by path.
#[derive(Clone, Debug, Default)]
pub struct Tree(pub BTreeMap<String, Vec<u8>>);

impl Files for Tree {
    fn list(&self, path: &str) -> io::Result<Option<Vec<Entry>>> {
        let mut found = BTreeMap::new();
        for below in self.0.keys().filter_map(|file| file.strip_prefix(path)?.strip_prefix('/')) {
            match below.split_once('/') {
                Some((name, _)) => found.insert(name, EntryKind::Directory),
                None => found.insert(below, EntryKind::File),
            };
        }
        let entry = |(name, kind): (&str, EntryKind)| Entry { name: name.as_bytes().to_vec(), kind };
        // In an order that no file system has.
        let entries: Vec<Entry> = found.into_iter().rev().map(entry).collect();
        Ok((!entries.is_empty()).then_some(entries))
    }

    fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.get(path).cloned())
    }
}

impl Tree {
    pub fn depmod(&self, release: Release, threads: usize, system_map: Option<&[u8]>) -> Result<Indexes, KmodError> {
        let threads = NonZeroUsize::new(threads).unwrap();
        depmod(self, &Settings { directory: MODULES, release, system_map, threads })
    }
}

/// A module. Lines: `undefined`, `weak`, `crc`, `string`, `version` or `info` and a value; `machine`; `stripped`.
pub fn module(lines: &[&str]) -> Vec<u8> {
    let mut values: HashMap<&str, Vec<&str>> = HashMap::new();
    for line in lines {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        values.entry(key).or_default().push(value);
    }
    let get = |key| values.get(key).cloned().unwrap_or_default();
    let mut strings = vec![0];
    let mut symbols = vec![0; 24];
    for (key, prefix, info, section) in
        [("undefined", "", 0x10, 0_u16), ("weak", "", 0x20, 0), ("crc", "__crc_", 0x10, 0xfff1)]
    {
        for name in get(key) {
            symbols.extend(u32::try_from(strings.len()).unwrap().to_le_bytes());
            symbols.extend([info, 0]);
            symbols.extend(section.to_le_bytes());
            symbols.extend([0; 16]);
            strings.extend(format!("{prefix}{name}\0").into_bytes());
        }
    }
    let lines = |key| get(key).iter().map(|text| format!("{text}\0")).collect::<String>().into_bytes();
    let version = |name: &&str| [&1_u64.to_le_bytes()[..], name.as_bytes(), &vec![0; 56 - name.len()]].concat();
    let versions: Vec<u8> = get("version").iter().flat_map(version).collect();
    let mut sections =
        vec![(".modinfo", lines("info")), ("__ksymtab_strings", lines("string")), ("__versions", versions)];
    sections.retain(|(_, content)| !content.is_empty());
    if !values.contains_key("stripped") {
        sections.extend([(".symtab", symbols), (".strtab", strings)]);
    }
    file(sections, if get("machine") == ["arm64"] { 183 } else { 62 })
}

fn file(mut sections: Vec<(&str, Vec<u8>)>, machine: u16) -> Vec<u8> {
    let names: String = sections.iter().map(|(name, _)| format!("\0{name}")).collect();
    let names = format!("{names}\0.shstrtab\0");
    sections.push((".shstrtab", names.clone().into_bytes()));
    let (mut body, mut table) = (Vec::new(), vec![0; 64]);
    for (name, content) in &sections {
        let at = names.find(&format!("\0{name}\0")).unwrap() + 1;
        table.extend(u32::try_from(at).unwrap().to_le_bytes());
        table.extend([1_u32.to_le_bytes(), [0; 4], [0; 4], [0; 4], [0; 4]].concat());
        table.extend((64 + body.len() as u64).to_le_bytes());
        table.extend((content.len() as u64).to_le_bytes());
        table.extend([0; 24]);
        body.extend(content);
    }
    let count = u16::try_from(sections.len()).unwrap();
    let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0".to_vec();
    header.extend(machine.to_le_bytes());
    header.extend([1, 0, 0, 0]);
    header.extend([0; 16]);
    header.extend((64 + body.len() as u64).to_le_bytes());
    header.extend([0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 64, 0]);
    header.extend([(count + 1).to_le_bytes(), count.to_le_bytes()].concat());
    [header, body, table].concat()
}
