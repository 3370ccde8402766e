//! What the scripts of a package change, whoever found it out.

use std::collections::{BTreeMap, BTreeSet};

use crate::layer::{Alternative, AuditedScript, Ownership};

/// When a script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run<'a> {
    /// For a package that was not there.
    New,
    /// That of the old version, in an upgrade.
    Before,
    /// That of the new version, in an upgrade from that one.
    After(&'a str),
}

/// Everything that the scripts of a package change.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// Units to enable, and units that only get a record of what enabling them would link.
    pub(super) enable: BTreeSet<String>,
    pub(super) record: BTreeSet<String>,
    /// Units to enable only where an older version has left a record of them.
    pub(super) earlier: BTreeSet<String>,
    /// Whether an older version was there: what its owner disabled stays so.
    pub(super) upgrade: bool,
    /// System V scripts to register, and whether they start.
    pub(super) init: BTreeMap<String, bool>,
    /// Files of sysusers.d(5) whose users have to be there, and files of tmpfiles.d(5).
    pub(super) sysusers: BTreeSet<String>,
    pub(super) tmpfiles: BTreeSet<String>,
    pub(super) alternatives: Vec<Alternative>,
    /// Whether the postinst runs on the first boot.
    pub(super) defer: bool,
    pub(super) users: BTreeSet<String>,
    pub(super) groups: BTreeSet<String>,
    pub(super) directories: BTreeMap<String, Ownership>,
    pub(super) files: BTreeMap<String, Ownership>,
    pub(super) symlinks: BTreeMap<String, String>,
}

impl Effects {
    /// Takes over what a layer says that a script does.
    pub(super) fn extend(&mut self, entry: &AuditedScript) {
        let entry = entry.clone();
        self.defer |= entry.defer;
        self.users.extend(entry.users);
        self.groups.extend(entry.groups);
        self.directories.extend(entry.directories);
        self.files.extend(entry.files);
        self.symlinks.extend(entry.symlinks);
        self.alternatives.extend(entry.alternatives);
        self.enable.extend(entry.units.enable);
    }
}
