//! Which files of packages dpkg leaves out: `path-exclude` and `path-include` of its configuration (dpkg(1)), as images
//! for containers have them. A path that is left out stays in the package's list.

mod pattern;

use std::collections::BTreeSet;

use vmbake_common::message;
use vmbake_disk::tree::Kind;

use super::MergeError;
use super::place::Target;
use super::placed::Placed;
use crate::stage::{Member, MemberKind};
use pattern::Pattern;

/// Read first, in the order of their names.
const FOLDER: &str = "/etc/dpkg/dpkg.cfg.d";
const CONFIG: &str = "/etc/dpkg/dpkg.cfg";

/// The patterns, of which the last one that matches decides.
#[derive(Debug, Default)]
pub(super) struct Filters(Vec<Filter>);

#[derive(Debug)]
struct Filter {
    is_include: bool,
    pattern: Pattern,
}

impl Filters {
    /// Reads the configuration of the tree.
    pub(super) fn read(target: &Target) -> Result<Self, MergeError> {
        let mut filters = Self::default();
        let folder = target.tree.resolve(FOLDER.as_bytes()).map(|id| &target.tree.inode(id).kind);
        let names: Vec<String> = match folder {
            Ok(Kind::Directory(entries)) => {
                entries.keys().filter(|name| is_read(name)).map(|name| String::from_utf8_lossy(name).into()).collect()
            }
            _ => Vec::new(),
        };
        for path in names.iter().map(|name| format!("{FOLDER}/{name}")).chain([CONFIG.to_owned()]) {
            let text = target.text_or_empty(&path)?;
            for (number, line) in text.lines().enumerate() {
                filters.add(line).map_err(|fault| message!("{path}: line {}: {fault}", number + 1))?;
            }
        }
        Ok(filters)
    }

    /// Adds what a line of the configuration says.
    fn add(&mut self, line: &str) -> Result<(), &'static str> {
        let line = line.trim();
        let end = line.find(|char: char| !char.is_ascii_alphanumeric() && char != '-').unwrap_or(line.len());
        let (name, rest) = line.split_at(end);
        let is_include = match name {
            "path-include" => true,
            "path-exclude" => false,
            _ => return Ok(()),
        };
        let value = rest.trim_start();
        let value = value.strip_prefix('=').unwrap_or(value).trim_start();
        let quote = value.chars().next().filter(|char| matches!(char, '"' | '\''));
        let value = match quote {
            Some(quote) => value[1..].strip_suffix(quote).ok_or("the quotation does not end")?,
            None => value,
        };
        if value.is_empty() {
            return Err("the pattern is missing");
        }
        self.0.push(Filter { is_include, pattern: Pattern::parse(value.as_bytes())? });
        Ok(())
    }

    /// Whether dpkg leaves out a member with that absolute path. It keeps directories and links above what a later
    /// pattern may include.
    fn leaves_out(&self, path: &[u8], kind: &MemberKind) -> bool {
        let last = self.0.iter().rev().find(|filter| filter.pattern.matches(path));
        if last.is_none_or(|filter| filter.is_include) {
            return false;
        }
        let may_lead = matches!(kind, MemberKind::Directory | MemberKind::Symlink(_));
        let mut includes = self.0.iter().filter(|filter| filter.is_include);
        !(may_lead && includes.any(|filter| path.starts_with(filter.pattern.fixed())))
    }

    /// Marks what dpkg leaves out. Fails where it would stop or record something else.
    pub(super) fn apply(&self, target: &Target, placed: &mut [Placed], conffiles: &[String]) -> Result<(), MergeError> {
        for one in placed.iter_mut() {
            one.left_out = self.leaves_out(path(&one.listed), &one.entry.kind);
        }
        let refused =
            |one: &Placed, what: &str| message!("{}: `path-exclude` of dpkg's configuration {what}", one.listed);
        let mut left_out = placed.iter().filter(|one| one.left_out);
        if let Some(one) = left_out.find(|one| conffiles.contains(&one.listed)) {
            return Err(refused(one, "excludes a conffile, which is not supported").into());
        }
        let folders: BTreeSet<&str> = placed.iter().filter(|one| one.left_out).map(|one| one.listed.as_str()).collect();
        let is_stuck = |one: &&Placed| {
            let folder = one.listed.rsplit_once('/').map_or("", |(folder, _)| folder);
            !one.left_out && folders.contains(folder) && target.tree.resolve(folder.as_bytes()).is_err()
        };
        if let Some(one) = placed.iter().find(is_stuck) {
            return Err(refused(one, "excludes the directory of this file, which does not exist").into());
        }
        let is_left_out = |to: &[u8]| placed.iter().any(|one| one.left_out && one.entry.path == to);
        let is_lost = |one: &&Placed| match &one.entry.kind {
            MemberKind::HardLink(to) => !one.left_out && is_left_out(to),
            _ => false,
        };
        match placed.iter().find(is_lost) {
            Some(one) => Err(refused(one, "excludes the file that this is a hard link to").into()),
            None => Ok(()),
        }
    }
}

/// The members that are written.
pub(super) fn written(placed: &[Placed]) -> Vec<Member> {
    placed.iter().filter(|one| !one.kept && !one.left_out).map(|one| one.entry.clone()).collect()
}

/// A listed path as dpkg compares it: that of the package's own root is empty.
fn path(listed: &str) -> &[u8] {
    if listed == "/." { b"" } else { listed.as_bytes() }
}

/// Whether dpkg reads a file of that name.
fn is_read(name: &[u8]) -> bool {
    name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(lines: &[&str]) -> Filters {
        let mut filters = Filters::default();
        lines.iter().for_each(|line| filters.add(line).unwrap());
        filters
    }

    #[test]
    fn the_last_pattern_decides() {
        let docs = filters(&[
            "# a comment",
            "no-debsig",
            "path-exclude=/usr/share/doc/*",
            "path-include /usr/share/doc/*/copyright",
            "  path-exclude = \"/usr/share/man/*\"",
        ]);
        for (path, kind, expected) in [
            ("/usr/share/doc/nano/README", MemberKind::Fifo, true),
            ("/usr/share/doc/nano/copyright", MemberKind::Fifo, false),
            // The directory leads to a file that is included.
            ("/usr/share/doc/nano", MemberKind::Directory, false),
            ("/usr/share/doc", MemberKind::Directory, false),
            ("/usr/share/doc/a", MemberKind::Symlink(Vec::new()), false),
            ("/usr/share/man/man1", MemberKind::Directory, true),
            ("/usr/share/man", MemberKind::Directory, false),
            ("/usr/bin/nano", MemberKind::Fifo, false),
        ] {
            assert_eq!(docs.leaves_out(path.as_bytes(), &kind), expected, "{path}");
        }
        assert!(!filters(&["path-exclude=/a*", "path-include=/ab"]).leaves_out(b"/ab", &MemberKind::Fifo));
        assert!(filters(&["path-include=/ab", "path-exclude=/a*"]).leaves_out(b"/ab", &MemberKind::Fifo));
    }

    #[test]
    fn bad_lines_are_refused() {
        for (line, expected) in [
            ("path-exclude", "the pattern is missing"),
            ("path-include=", "the pattern is missing"),
            ("path-exclude='/a", "the quotation does not end"),
        ] {
            assert_eq!(Filters::default().add(line), Err(expected), "{line}");
        }
    }
}
