//! The three files of debconf's database: read on first use, kept in memory between scripts, and written when packages are configured.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::record::{Record, Records, Text, parse, write};
use crate::merge::MergeError;
use crate::merge::place::Target;

/// Records of one file at most: a whole system has 2,000.
const MAX_RECORDS: usize = 50_000;

/// debconf's database. A copy shares its records.
#[derive(Clone, Debug, Default)]
pub(in crate::merge) struct Debconf {
    files: Option<Files>,
}

/// The files as one run of debconf has them.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) config: DataFile,
    pub(super) passwords: DataFile,
    pub(super) templates: DataFile,
}

/// What becomes of the file that is there when another one is written.
#[derive(Clone, Debug)]
enum Old {
    /// It gets the name with `-old`.
    InTree,
    /// It was replaced more than once: the last content before.
    Written(Arc<Records>),
}

/// A file of records.
#[derive(Clone, Debug)]
pub(super) struct DataFile {
    path: &'static str,
    mode: u16,
    backup: bool,
    records: Arc<Records>,
    /// As the running frontend found it.
    before: Arc<Records>,
    /// Whether there was a file then.
    existed: bool,
    /// Whether the running frontend has set anything, to the same value perhaps.
    dirty: bool,
    /// Whether the tree has something else.
    unwritten: bool,
    old: Option<Old>,
}

impl Debconf {
    /// A frontend starts: what was saved is what it knows.
    pub(in crate::merge) fn begin(&mut self, target: &Target) -> Result<(), MergeError> {
        let mut files = match self.files.take() {
            Some(files) => files,
            None => Files {
                config: DataFile::read(target, "/var/cache/debconf/config.dat", 0o644, true)?,
                passwords: DataFile::read(target, "/var/cache/debconf/passwords.dat", 0o600, false)?,
                templates: DataFile::read(target, "/var/cache/debconf/templates.dat", 0o644, true)?,
            },
        };
        files.all().into_iter().for_each(DataFile::begin);
        self.files = Some(files);
        Ok(())
    }

    /// A frontend ends, and saves.
    pub(in crate::merge) fn end(&mut self) {
        if let Some(files) = &mut self.files {
            files.all().into_iter().for_each(DataFile::end);
        }
    }

    /// The questions and templates, once a frontend has started.
    pub(super) fn files(&mut self) -> Option<&mut Files> {
        self.files.as_mut()
    }

    /// Questions of a package, as the last frontend has saved them: name, value, whether it was seen, and its type.
    pub(in crate::merge) fn shown(&self, owner: &[u8]) -> Vec<(Text, Text, bool, Text)> {
        let Some(files) = &self.files else { return Vec::new() };
        let both = files.passwords.records.iter().chain(files.config.records.iter());
        let mut found: Vec<_> = both
            .filter(|(_, record)| record.owners.contains(owner))
            .map(|(name, record)| {
                let value = files.value(name).unwrap_or_default();
                (name.clone(), value, record.flag(b"seen") == b"true", files.kind(name))
            })
            .collect();
        found.sort();
        found
    }

    /// Writes what has changed into the tree.
    pub(in crate::merge) fn write(&mut self, target: &mut Target) -> Result<(), MergeError> {
        let Some(files) = &mut self.files else { return Ok(()) };
        files.all().into_iter().try_for_each(|file| file.write(target))
    }
}

impl Files {
    fn all(&mut self) -> [&mut DataFile; 3] {
        [&mut self.config, &mut self.passwords, &mut self.templates]
    }
}

impl DataFile {
    fn read(target: &Target, path: &'static str, mode: u16, backup: bool) -> Result<Self, MergeError> {
        let existed = target.wrap(target.tree.find(path.as_bytes()))?.is_some();
        let text = if existed { target.bytes(path)? } else { Vec::new() };
        let records = Arc::new(parse(&text));
        let before = records.clone();
        Ok(Self { path, mode, backup, records, before, existed, dirty: false, unwritten: false, old: None })
    }

    fn begin(&mut self) {
        let is_new = !self.existed && !self.unwritten;
        self.existed = !is_new;
        // An empty file is made at once.
        self.unwritten |= is_new;
        self.before = self.records.clone();
        self.dirty = false;
    }

    fn end(&mut self) {
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        let changed: Vec<(Text, Record)> = self
            .records
            .iter()
            .filter(|(name, record)| !self.before.get(*name).is_some_and(|before| Arc::ptr_eq(before, record)))
            .map(|(name, record)| (name.clone(), record.reread(name)))
            .collect();
        Arc::make_mut(&mut self.records).extend(changed.into_iter().map(|(name, record)| (name, Arc::new(record))));
        if self.existed && self.backup {
            self.old = Some(if self.unwritten { Old::Written(self.before.clone()) } else { Old::InTree });
        }
        self.existed = true;
        self.unwritten = true;
    }

    fn write(&mut self, target: &mut Target) -> Result<(), MergeError> {
        if !std::mem::take(&mut self.unwritten) {
            return Ok(());
        }
        let old = match self.old.take() {
            None => None,
            Some(Old::InTree) => Some(target.bytes(self.path)?),
            Some(Old::Written(records)) => Some(write(&records)),
        };
        if let Some(content) = old {
            let meta = target.meta(self.mode);
            target.file(&format!("{}-old", self.path), meta, content)?;
        }
        let meta = target.meta(self.mode);
        target.file(self.path, meta, write(&self.records))
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<&Record> {
        self.records.get(name).map(Arc::as_ref)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Text> {
        self.records.keys()
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.records.len() >= MAX_RECORDS
    }

    /// A record to be changed.
    pub(super) fn change(&mut self, name: &[u8]) -> Option<&mut Record> {
        if !self.records.contains_key(name) {
            return None;
        }
        self.dirty = true;
        Arc::make_mut(&mut self.records).get_mut(name).map(Arc::make_mut)
    }

    /// Adds an owner, and the record if there is none.
    pub(super) fn add_owner(&mut self, name: &[u8], owner: &[u8]) {
        if self.get(name).is_some_and(|record| record.owners.contains(owner)) {
            return;
        }
        self.dirty = true;
        let records: &mut BTreeMap<Text, Arc<Record>> = Arc::make_mut(&mut self.records);
        Arc::make_mut(records.entry(name.to_vec()).or_default()).owners.insert(owner.to_vec());
    }

    /// Takes an owner away, and the record when that was the last one. Says whether the record is gone.
    pub(super) fn remove_owner(&mut self, name: &[u8], owner: &[u8]) -> bool {
        let Some(record) = self.get(name) else { return false };
        let others = record.owners.iter().any(|found| found != owner);
        if others && !record.owners.contains(owner) {
            return false;
        }
        self.dirty = true;
        let records = Arc::make_mut(&mut self.records);
        if !others {
            records.remove(name);
        } else if let Some(record) = records.get_mut(name) {
            Arc::make_mut(record).owners.remove(owner);
        }
        !others
    }
}
