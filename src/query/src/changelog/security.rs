//! Security-relevant facts of an image: a tree in, facts by name out, each as text to compare.

use std::collections::BTreeMap;

use vmbake_disk::tree::{Inode, Kind, Tree, TreeError};

use vmbake_common::digest::Digest;
use vmbake_common::escape;

/// Maximum length of a file, in bytes; the certificates of all authorities have 250 KB.
const MAX_FILE: u64 = 16 << 20;

/// Paths of keys, authorities and authorization rules; `*` matches any name. Directories include all files below.
const TRUST: [&str; 14] = [
    "/etc/apt/trusted.gpg",
    "/etc/apt/trusted.gpg.d",
    "/etc/apt/keyrings",
    "/usr/share/keyrings",
    "/etc/ssl/certs/ca-certificates.crt",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/root/.ssh/authorized_keys",
    "/home/*/.ssh/authorized_keys",
    "/etc/ssh/sshd_config",
    "/etc/ssh/sshd_config.d",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/pam.d",
];

/// Unit directories, in order of precedence.
const UNITS: [&str; 3] = ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];

/// Facts to compare.
#[derive(Debug, Default)]
pub struct SecurityFacts {
    /// Files with set-uid or set-gid bits or capabilities: mode and owner.
    pub privileged: BTreeMap<String, String>,
    /// Accounts: id, home and shell.
    pub users: BTreeMap<String, String>,
    /// Groups: id and members.
    pub groups: BTreeMap<String, String>,
    /// Enabled units, and the units that want them.
    pub units: BTreeMap<String, String>,
    /// Listening addresses of socket units.
    pub sockets: BTreeMap<String, String>,
    /// Digests of trusted keys and authorities, and of authorization rules.
    pub trust: BTreeMap<String, String>,
}

impl SecurityFacts {
    pub fn read(tree: &Tree) -> Result<Self, TreeError> {
        let mut facts = Self {
            users: table(tree, "/etc/passwd", |fields| {
                let [id, home, shell] = [2, 5, 6].map(|at| fields.get(at).copied().unwrap_or_default());
                format!("id {id}, home {home}, shell {shell}")
            })?,
            groups: table(tree, "/etc/group", |fields| {
                let [id, members] = [2, 3].map(|at| fields.get(at).copied().unwrap_or_default());
                if members.is_empty() { format!("id {id}") } else { format!("id {id}, members {members}") }
            })?,
            units: units(tree),
            ..Self::default()
        };
        for (path, _, inode) in tree.walk() {
            facts.privileged.extend(privilege(inode).map(|found| (escape::path(&path), found)));
        }
        for unit in facts.units.keys().filter(|unit| unit.ends_with(".socket")) {
            facts.sockets.extend(listens(tree, unit)?.map(|places| (unit.clone(), places)));
        }
        for pattern in TRUST {
            trust(tree, pattern, &mut facts.trust)?;
        }
        Ok(facts)
    }
}

fn privilege(inode: &Inode) -> Option<String> {
    let Kind::File(_) = inode.kind else { return None };
    let capabilities = inode.meta.xattrs.get(&b"security.capability"[..]);
    if inode.meta.mode & 0o6000 == 0 && capabilities.is_none() {
        return None;
    }
    let mut text = format!("mode {:04o}, owner {}:{}", inode.meta.mode, inode.meta.uid, inode.meta.gid);
    if let Some(value) = capabilities {
        let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        text.push_str(&format!(", capabilities {hex}"));
    }
    Some(text)
}

/// The lines of an account file, by name.
fn table(tree: &Tree, path: &str, describe: fn(&[&str]) -> String) -> Result<BTreeMap<String, String>, TreeError> {
    let text = text(tree, path.as_bytes())?.unwrap_or_default();
    let lines = text.lines().map(|line| line.split(':').collect::<Vec<_>>()).filter(|fields| fields.len() > 2);
    Ok(lines.map(|fields| (fields.first().copied().unwrap_or_default().to_owned(), describe(&fields))).collect())
}

/// Enabled units: those in `*.wants` and `*.requires` below `/etc/systemd/system`.
fn units(tree: &Tree) -> BTreeMap<String, String> {
    let mut wanted: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, id) in entries(tree, UNITS[0].as_bytes()) {
        let by = [".wants", ".requires"].iter().find_map(|end| name.strip_suffix(end));
        let (Some(by), Kind::Directory(units)) = (by, &tree.inode(id).kind) else { continue };
        for unit in units.keys() {
            wanted.entry(escape::name(unit)).or_default().push(by.to_owned());
        }
    }
    wanted.into_iter().map(|(unit, by)| (unit, format!("wanted by {}", by.join(", ")))).collect()
}

/// Listening addresses of a socket unit; `None` if its file is missing.
fn listens(tree: &Tree, unit: &str) -> Result<Option<String>, TreeError> {
    for folder in UNITS {
        if let Some(text) = text(tree, format!("{folder}/{unit}").as_bytes())? {
            let places = text.lines().filter_map(|line| {
                let (key, value) = line.strip_prefix("Listen")?.split_once('=')?;
                Some(format!("{} {}", key.trim().to_lowercase(), value.trim()))
            });
            return Ok(Some(places.collect::<Vec<_>>().join(", ")));
        }
    }
    Ok(None)
}

fn trust(tree: &Tree, pattern: &str, found: &mut BTreeMap<String, String>) -> Result<(), TreeError> {
    let paths: Vec<Vec<u8>> = match pattern.split_once("/*/") {
        Some((folder, rest)) => entries(tree, folder.as_bytes())
            .into_iter()
            .map(|(name, _)| format!("{folder}/{name}/{rest}").into_bytes())
            .collect(),
        None => vec![pattern.as_bytes().to_vec()],
    };
    for start in paths {
        let Ok(Some(id)) = tree.find(&start) else { continue };
        for (below, _, inode) in tree.walk_from(id) {
            let path = [start.as_slice(), &below].concat();
            let said = match &inode.kind {
                Kind::Directory(_) => continue,
                Kind::Symlink(target) => format!("link to {}", escape::name(target)),
                _ => match read(tree, &path)? {
                    Some(content) => Digest::of(&content).to_string(),
                    None => format!("{}, not read", inode.kind.name()),
                },
            };
            found.insert(escape::path(&path), said);
        }
    }
    Ok(())
}

/// The entries of a directory with UTF-8 names.
fn entries(tree: &Tree, path: &[u8]) -> Vec<(String, vmbake_disk::tree::InodeId)> {
    let Ok(id) = tree.resolve(path) else { return Vec::new() };
    match &tree.inode(id).kind {
        Kind::Directory(entries) => {
            entries.iter().filter_map(|(name, id)| Some((String::from_utf8(name.clone()).ok()?, *id))).collect()
        }
        _ => Vec::new(),
    }
}

fn text(tree: &Tree, path: &[u8]) -> Result<Option<String>, TreeError> {
    Ok(read(tree, path)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// The content of a file; `None` if it is missing or not a regular file.
fn read(tree: &Tree, path: &[u8]) -> Result<Option<Vec<u8>>, TreeError> {
    match tree.read(path, MAX_FILE) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error @ TreeError::Read { .. }) => Err(error),
        Err(_) => Ok(None),
    }
}
