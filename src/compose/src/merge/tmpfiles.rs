//! systemd-tmpfiles(8) with `--create`, as called by a postinst: creates the paths of tmpfiles.d(5) in the image. Lines that are for paths
//! below `/run`, that depend on the machine or that apply only at boot are left to systemd-tmpfiles-setup.service, which processes all
//! lines on every boot.

use vmbake_disk::tree::{InodeId, Kind, Metadata};

use super::MergeError;
use super::accounts::lookup;
use super::config::{Config, expand};
use super::place::Target;
use vmbake_common::glob::matches;
use vmbake_common::paths::is_at_or_below;

/// File systems of the machine alone.
const VOLATILE: [&str; 4] = ["/run", "/proc", "/sys", "/dev"];

/// Exit statuses of systemd-tmpfiles for an invalid line, and for a path that it cannot create.
const DATA_ERROR: u8 = 65;
const CANNOT_CREATE: u8 = 73;

/// Options of a call.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// `--boot`: lines with `!` too.
    pub(super) boot: bool,
    /// `--prefix`: nothing but what is below.
    pub(super) prefixes: Vec<String>,
}

/// How a call ends: its status, and what it writes to standard error.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) status: u8,
    pub(super) messages: String,
}

impl Report {
    fn add(&mut self, status: u8, message: &str) {
        self.status = status;
        self.note(message);
    }

    fn note(&mut self, message: &str) {
        self.messages.push_str(message);
        self.messages.push('\n');
    }
}

/// One line.
#[derive(Debug)]
struct Item {
    kind: char,
    /// `+`: what is there gives way.
    force: bool,
    path: String,
    mode: Option<Mode>,
    uid: Option<u32>,
    gid: Option<u32>,
    argument: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct Mode {
    bits: u16,
    /// `~`: bits for execution and set-id only as far as there are some.
    masked: bool,
    /// `:`: not for what exists.
    new_only: bool,
}

/// Makes what the files list.
pub(super) fn create(target: &mut Target, configs: &[Config], choice: &Choice) -> Result<Report, MergeError> {
    let mut report = Report::default();
    let mut items = Vec::new();
    for config in configs {
        for line in config.lines() {
            let (line, words) = line?;
            match Item::read(target, &words, choice)? {
                Read::Item(item) => {
                    let other = |found: &Item| !found.changes() && !item.changes() && found.path == item.path;
                    match items.iter().any(other) {
                        true => report.note(&format!("Duplicate line for path \"{}\", ignoring.", item.path)),
                        false => items.push(item),
                    }
                }
                Read::Left => {}
                Read::Account(name) => {
                    report.add(DATA_ERROR, &format!("{}: Failed to resolve '{name}': No such process", config.path));
                }
                Read::Unknown => return Err(config.fault(line)),
            }
        }
    }
    // Directories before what is in them, and what changes others at the end.
    items.sort_by(|a, b| (a.changes(), &a.path).cmp(&(b.changes(), &b.path)));
    for item in &items {
        item.apply(target, &mut report)?;
    }
    Ok(report)
}

enum Read {
    Item(Item),
    /// Nothing to do for an image.
    Left,
    /// There is no such account.
    Account(String),
    Unknown,
}

impl Item {
    fn read(target: &Target, words: &[String], choice: &Choice) -> Result<Read, MergeError> {
        let field = |at: usize| words.get(at).map(String::as_str).filter(|word| !matches!(*word, "" | "-"));
        let (Some(kind), Some(path)) = (words.first(), field(1)) else { return Ok(Read::Unknown) };
        let mut letters = kind.chars();
        let Some(kind) = letters.next() else { return Ok(Read::Unknown) };
        let modifiers = letters.as_str();
        // What is cleaned or removed later, and attributes, are none of `--create`, or the machine's.
        let left = "xXrRaAtThH".contains(kind) || modifiers.contains('^') || (modifiers.contains('!') && !choice.boot);
        if left {
            return Ok(Read::Left);
        }
        if !"dDvqQefFwLCzZm".contains(kind) || !modifiers.chars().all(|char| "+!-=$?".contains(char)) {
            return Ok(Read::Unknown);
        }
        let argument = words.get(6..).unwrap_or_default().join(" ");
        let argument = Some(argument).filter(|text| !matches!(text.as_str(), "" | "-"));
        let (Some(path), Some(argument)) = (expand(path), argument.map_or(Some(None), |text| expand(&text).map(Some)))
        else {
            return Ok(Read::Left);
        };
        let below = |dir: &str| is_at_or_below(&path, dir.trim_end_matches('/'));
        let chosen = choice.prefixes.is_empty() || choice.prefixes.iter().any(|prefix| below(prefix));
        if VOLATILE.iter().any(|dir| below(dir)) || !chosen {
            return Ok(Read::Left);
        }
        let Some(mode) = field(2).map_or(Some(None), |text| Mode::read(text).map(Some)) else {
            return Ok(Read::Unknown);
        };
        if !path.starts_with('/') {
            return Ok(Read::Unknown);
        }
        let account = |file: &str, at: usize| match field(at).map(|name| name.trim_start_matches(':')) {
            None => Ok(Ok(None)),
            Some(name) => match name.parse::<u32>() {
                Ok(id) => Ok(Ok(Some(id))),
                Err(_) => lookup(target, file, name).map(|id| id.map(Some).ok_or_else(|| name.to_owned())),
            },
        };
        let (uid, gid) = match (account("/etc/passwd", 3)?, account("/etc/group", 4)?) {
            (Ok(uid), Ok(gid)) => (uid, gid),
            (Err(name), _) | (_, Err(name)) => return Ok(Read::Account(name)),
        };
        let force = modifiers.contains('+') || kind == 'F';
        Ok(Read::Item(Self { kind, force, path, mode, uid, gid, argument }))
    }

    /// Whether it only changes what is there.
    fn changes(&self) -> bool {
        matches!(self.kind, 'e' | 'z' | 'Z' | 'm' | 'w')
    }

    fn apply(&self, target: &mut Target, report: &mut Report) -> Result<(), MergeError> {
        match self.kind {
            'd' | 'D' | 'v' | 'q' | 'Q' => self.directory(target, report),
            'f' | 'F' => self.file(target, report),
            'w' => self.write(target),
            'L' => self.link(target),
            'C' => self.copy(target),
            'Z' => {
                for path in self.found(target)? {
                    let top = target.wrap(target.tree.find(path.as_bytes()))?;
                    let below = top.map(|top| target.tree.walk_from(top).map(|(inner, ..)| inner).collect::<Vec<_>>());
                    for inner in below.unwrap_or_default() {
                        let Ok(inner) = String::from_utf8(inner) else { continue };
                        self.change(target, &format!("{path}{inner}"))?;
                    }
                }
                Ok(())
            }
            _ => self.found(target)?.iter().try_for_each(|path| self.change(target, path)),
        }
    }

    /// What is made new.
    fn meta(&self, target: &Target, mode: u16) -> Metadata {
        let mut meta = target.meta(self.mode.map_or(mode, |mode| mode.bits));
        (meta.uid, meta.gid) = (self.uid.unwrap_or(0), self.gid.unwrap_or(0));
        meta
    }

    fn directory(&self, target: &mut Target, report: &mut Report) -> Result<(), MergeError> {
        match find(target, &self.path)?.map(|id| &target.tree.inode(id).kind) {
            None => {
                let meta = self.meta(target, 0o755);
                target.directory(&self.path, meta)
            }
            Some(Kind::Directory(_)) => self.change(target, &self.path),
            Some(_) => {
                report.add(CANNOT_CREATE, &format!("\"{}\" already exists and is not a directory.", self.path));
                Ok(())
            }
        }
    }

    fn file(&self, target: &mut Target, report: &mut Report) -> Result<(), MergeError> {
        match find(target, &self.path)?.map(|id| &target.tree.inode(id).kind) {
            Some(Kind::File(_)) if self.force => {
                let text = self.content();
                target.set_text(&self.path, &text)?;
                self.change(target, &self.path)
            }
            Some(Kind::File(_)) => self.change(target, &self.path),
            None => {
                let meta = self.meta(target, 0o644);
                target.check_privileges(
                    self.path.as_bytes(),
                    &meta,
                    &Kind::File(vmbake_disk::source::Map::default()),
                )?;
                target.file(&self.path, meta, self.content().into_bytes())
            }
            Some(_) => {
                report.add(CANNOT_CREATE, &format!("{} exists and is not a regular file.", self.path));
                Ok(())
            }
        }
    }

    /// The text for a file, whose escapes are those of C.
    fn content(&self) -> String {
        let mut out = String::new();
        let mut chars = self.argument.as_deref().unwrap_or_default().chars();
        while let Some(char) = chars.next() {
            match char {
                '\\' => match chars.next() {
                    Some('n') => out.push('\n'),
                    Some('t') => out.push('\t'),
                    Some('s') => out.push(' '),
                    Some(other) => out.push(other),
                    None => {}
                },
                _ => out.push(char),
            }
        }
        out
    }

    /// Writes over the beginning of a file, or with `+` at its end.
    fn write(&self, target: &mut Target) -> Result<(), MergeError> {
        for path in self.found(target)? {
            if matches!(find(target, &path)?.map(|id| &target.tree.inode(id).kind), Some(Kind::File(_))) {
                let (before, new) = (target.text(&path)?, self.content());
                let text = match self.force {
                    true => before + &new,
                    false => format!("{new}{}", before.get(new.len()..).unwrap_or_default()),
                };
                target.set_text(&path, &text)?;
            }
        }
        Ok(())
    }

    fn link(&self, target: &mut Target) -> Result<(), MergeError> {
        let to = self.argument.clone().unwrap_or_else(|| format!("/usr/share/factory{}", self.path));
        match find(target, &self.path)? {
            Some(_) if !self.force => Ok(()),
            Some(_) => {
                target.remove_below(&self.path)?;
                target.symlink(&self.path, &to)
            }
            None => target.symlink(&self.path, &to),
        }
    }

    /// Copies a file or a directory, unless there is one that is not empty.
    fn copy(&self, target: &mut Target) -> Result<(), MergeError> {
        let from = self.argument.clone().unwrap_or_else(|| format!("/usr/share/factory{}", self.path));
        let Some(source) = find(target, &from)? else { return Ok(()) };
        let there = find(target, &self.path)?.map(|id| &target.tree.inode(id).kind);
        if there.is_some_and(|kind| !matches!(kind, Kind::Directory(entries) if entries.is_empty())) && !self.force {
            return self.change(target, &self.path);
        }
        target.copy_below(source, &self.path)?;
        self.change(target, &self.path)
    }

    /// Gives what is there the mode and owner of the line.
    fn change(&self, target: &mut Target, path: &str) -> Result<(), MergeError> {
        let Some(id) = find(target, path)? else { return Ok(()) };
        let old = &target.tree.inode(id);
        if matches!(old.kind, Kind::Symlink(_)) {
            return Ok(());
        }
        let mut meta = old.meta.clone();
        if let Some(mode) = self.mode.filter(|mode| !mode.new_only) {
            meta.mode = if mode.masked { mode.within(meta.mode, &old.kind) } else { mode.bits };
        }
        (meta.uid, meta.gid) = (self.uid.unwrap_or(meta.uid), self.gid.unwrap_or(meta.gid));
        if (meta.mode, meta.uid, meta.gid) == (old.meta.mode, old.meta.uid, old.meta.gid) {
            return Ok(());
        }
        target.set_mode(path, &meta)
    }

    /// The paths that match a pattern with `*` in its last component.
    fn found(&self, target: &Target) -> Result<Vec<String>, MergeError> {
        let (dir, last) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        if !last.contains('*') {
            return Ok(vec![self.path.clone()]);
        }
        let found = target.tree.resolve(format!("{dir}/").as_bytes()).ok();
        let Some(Kind::Directory(names)) = found.map(|id| &target.tree.inode(id).kind) else { return Ok(Vec::new()) };
        let names = names.keys().filter(|name| matches(last.as_bytes(), name) && !name.starts_with(b"."));
        Ok(names.filter_map(|name| std::str::from_utf8(name).ok()).map(|name| format!("{dir}/{name}")).collect())
    }
}

impl Mode {
    fn read(text: &str) -> Option<Self> {
        let digits = text.trim_start_matches([':', '~']);
        let bits = u16::from_str_radix(digits, 8).ok().filter(|bits| *bits <= 0o7777)?;
        let prefix = text.strip_suffix(digits).unwrap_or_default();
        Some(Self { bits, masked: prefix.contains('~'), new_only: prefix.contains(':') })
    }

    /// The bits that a masked mode leaves.
    fn within(self, old: u16, kind: &Kind) -> u16 {
        let mut bits = self.bits;
        for class in [0o111, 0o222, 0o444] {
            if old & class == 0 {
                bits &= !class;
            }
        }
        if matches!(kind, Kind::Directory(_)) { bits } else { bits & 0o1777 }
    }
}

fn find(target: &Target, path: &str) -> Result<Option<InodeId>, MergeError> {
    target.wrap(target.tree.find(path.as_bytes()))
}
