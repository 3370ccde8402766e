//! `chown` and `chgrp`.

use super::attributes::{Through, below, mark_entries, unknown_reference};
use super::options::{Accepted, Options, parse};
use super::{complain, quoted};
use crate::eval::Run;
use crate::files::{Errno, Follow, Node};
use crate::shell::Shell;

/// User and group; `None` keeps it.
pub(super) type Owner = (Option<u32>, Option<u32>);

const OPTIONS: Accepted = Accepted {
    letters: b"RfhcvPHL",
    long: &[
        ("recursive", b'R'),
        ("silent", b'f'),
        ("quiet", b'f'),
        ("no-dereference", b'h'),
        ("dereference", b'D'),
        ("changes", b'c'),
        ("verbose", b'v'),
        ("no-preserve-root", b'0'),
        ("reference=", b'r'),
        ("from=", b'F'),
    ],
    strict: false,
};

/// `user`, `user:group`, `:group` or `user:`, by the names of the caller's accounts. The error is the part that is unknown.
pub(super) fn owner(shell: &Shell<'_>, text: &[u8]) -> Result<Owner, Vec<u8>> {
    let at = text.iter().position(|byte| *byte == b':').or_else(|| {
        // The old form, where no user has a dot in the name.
        text.iter().position(|byte| *byte == b'.').filter(|_| user(shell, text).is_none())
    });
    let (name, group) = at.map_or((text, None), |at| (&text[..at], Some(&text[at + 1..])));
    let uid = if name.is_empty() { None } else { Some(user(shell, name).ok_or_else(|| text.to_vec())?) };
    let gid = match group {
        None => None,
        Some(b"") if uid.is_some() => {
            let field = crate::accounts::user_field(&*shell.files, name, 3);
            Some(field.and_then(|field| crate::accounts::number(&field)).ok_or_else(|| text.to_vec())?)
        }
        Some(b"") => None,
        Some(group) => Some(self::group(shell, group).ok_or_else(|| text.to_vec())?),
    };
    Ok((uid, gid))
}

/// The id of a user by name or number; `+33` is a number even if a user has that name.
pub(super) fn user(shell: &Shell<'_>, name: &[u8]) -> Option<u32> {
    shell.commands.user_id(&*shell.files, name).or_else(|| number(name))
}

pub(super) fn group(shell: &Shell<'_>, name: &[u8]) -> Option<u32> {
    shell.commands.group_id(&*shell.files, name).or_else(|| number(name))
}

fn number(text: &[u8]) -> Option<u32> {
    crate::accounts::number(text.strip_prefix(b"+").unwrap_or(text)).filter(|number| *number != u32::MAX)
}

pub(super) fn chown(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    change_owner(shell, "chown", args)
}

pub(super) fn chgrp(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    change_owner(shell, "chgrp", args)
}

fn change_owner(shell: &mut Shell<'_>, program: &'static str, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &OPTIONS)?;
    let mut operands = options.operands.iter();
    let text = if options.has(b'r') { None } else { operands.next() };
    if operands.len() == 0 {
        return complain(shell, program, b"missing operand");
    }
    let wanted = match (options.value(b'r'), text) {
        (Some(path), _) => match shell.stat(path, Follow::Yes) {
            Ok(node) => (Some(node.uid).filter(|_| program == "chown"), Some(node.gid)),
            Err(error) => return unknown_reference(shell, program, path, error),
        },
        (None, text) => {
            let text = text.map_or(&b""[..], Vec::as_slice);
            if program == "chown" && !text.contains(&b':') && text.contains(&b'.') && user(shell, text).is_none() {
                complain(shell, program, &[b"warning: '.' should be ':': '", text, b"'"].concat())?;
            }
            let prefix: &[u8] = if program == "chown" || text.is_empty() { b"" } else { b":" };
            match owner(shell, &[prefix, text].concat()) {
                Ok(owner) => owner,
                Err(_) => return complain(shell, program, &[b"invalid user or group: '", text, b"'"].concat()),
            }
        }
    };
    let from = match options.value(b'F').map(|text| owner(shell, text)) {
        None => (None, None),
        Some(Ok(owner)) => owner,
        Some(Err(text)) => return complain(shell, program, &[b"invalid user: '", &text[..], b"'"].concat()),
    };
    let Some((through, follow)) = links(shell, program, &options)? else { return Ok(1) };
    let last = options.iter().rev().find(|(letter, _)| matches!(letter, b'v' | b'c'));
    let reports = last.map(|(letter, _)| letter == b'v');
    let names = text.filter(|_| reports.is_some()).map(|text| spelled(shell, program, text));
    let change = Change { wanted, from, follow, reports, names };
    let mut status = 0;
    for operand in operands {
        let mut paths = match options.has(b'R') {
            true => below(shell, operand, through)?,
            false => vec![operand.to_vec()],
        };
        if reports.is_some() {
            mark_entries(shell, &paths)?;
        }
        // A directory comes after its entries.
        paths.reverse();
        for path in paths {
            if let Err(error) = change.one(shell, &path)? {
                status = 1;
                if reports == Some(true) {
                    return shell.unsupported(b"a message about a failure");
                }
                if !options.has(b'f') {
                    super::cannot(shell, program, "access", &path, error)?;
                }
            }
        }
    }
    Ok(status)
}

/// The links that are gone through, and whether a link is changed or what it leads to.
fn links(shell: &mut Shell<'_>, program: &str, options: &Options) -> Run<Option<(Through, Follow)>> {
    let through = options.iter().rev().find_map(|(letter, _)| match letter {
        b'P' => Some(Through::Nothing),
        b'H' => Some(Through::Operands),
        b'L' => Some(Through::All),
        _ => None,
    });
    let through = through.unwrap_or(Through::Nothing);
    let follow = options.iter().rev().find_map(|(letter, _)| match letter {
        b'h' => Some(Follow::No),
        b'D' => Some(Follow::Yes),
        _ => None,
    });
    if !options.has(b'R') || through != Through::Nothing {
        return Ok(Some((through, follow.unwrap_or(Follow::Yes))));
    }
    if follow == Some(Follow::Yes) {
        complain(shell, program, b"-R --dereference requires either -H or -L")?;
        return Ok(None);
    }
    Ok(Some((through, Follow::No)))
}

struct Change {
    wanted: Owner,
    from: Owner,
    follow: Follow,
    /// Whether changes are written, and with `true` also what stays.
    reports: Option<bool>,
    /// The owner as the operand spells it.
    names: Option<Vec<u8>>,
}

/// The owner of an operand for messages: as it is written, with the group that `user:` means.
fn spelled(shell: &Shell<'_>, program: &str, text: &[u8]) -> Vec<u8> {
    let group = || owner(shell, text).ok().and_then(|(_, gid)| shell.commands.group_name(&*shell.files, gid?));
    match text {
        _ if program == "chgrp" => text.to_vec(),
        [b':', group @ ..] if number(group).is_some() => group.strip_prefix(b"+").unwrap_or(group).to_vec(),
        [.., b':'] => [text, &group().unwrap_or_default()].concat(),
        _ => text.to_vec(),
    }
}

impl Change {
    fn one(&self, shell: &mut Shell<'_>, path: &[u8]) -> Run<Result<(), Errno>> {
        let node = match shell.stat(path, self.follow) {
            Ok(node) => node,
            Err(error) => return Ok(Err(error)),
        };
        let differs = |wanted: Option<u32>, found: u32| wanted.is_some_and(|wanted| wanted != found);
        if differs(self.from.0, node.uid) || differs(self.from.1, node.gid) {
            self.report_change(shell, path, &node, false)?;
            return Ok(Ok(()));
        }
        let absolute = shell.path(path);
        if absolute != b"/dev/null"
            && let Err(error) = set(shell, &absolute, self.wanted, self.follow)
        {
            return Ok(Err(error));
        }
        let changed = differs(self.wanted.0, node.uid) || differs(self.wanted.1, node.gid);
        self.report_change(shell, path, &node, changed)?;
        Ok(Ok(()))
    }

    fn report_change(&self, shell: &mut Shell<'_>, path: &[u8], node: &Node, changed: bool) -> Run<()> {
        let Some(all) = self.reports else { return Ok(()) };
        if !changed && !all {
            return Ok(());
        }
        let old = self.names(shell, (node.uid, node.gid));
        let (what, old): (&[u8], _) = match self.wanted {
            (Some(_), _) => (b"ownership", old),
            // Where only the name of a group is given, chown says both.
            (None, Some(_)) if self.names.as_ref().is_some_and(|names| names.starts_with(b":")) => {
                (b"ownership", [&user_name(shell, node.uid)[..], b":", &old].concat())
            }
            (None, Some(_)) => (b"group", old),
            (None, None) => return shell.unsupported(b"a message about nothing to change"),
        };
        let wanted = (self.wanted.0.unwrap_or(node.uid), self.wanted.1.unwrap_or(node.gid));
        let new = self.names.clone().unwrap_or_else(|| self.names(shell, wanted));
        let name = quoted(shell, path)?;
        let line = match changed {
            true => [b"changed ", what, b" of ", &name, b" from ", &old, b" to ", &new, b"\n"].concat(),
            false => [what, b" of ", &name, b" retained as ", &old, b"\n"].concat(),
        };
        shell.out(&line)
    }

    /// The names of those parts of an owner that are wanted.
    fn names(&self, shell: &Shell<'_>, (uid, gid): (u32, u32)) -> Vec<u8> {
        let user = user_name(shell, uid);
        let group = shell.commands.group_name(&*shell.files, gid).unwrap_or_else(|| gid.to_string().into_bytes());
        match self.wanted {
            (Some(_), Some(_)) => [&user[..], b":", &group].concat(),
            (Some(_), None) => user,
            _ => group,
        }
    }
}

fn user_name(shell: &Shell<'_>, uid: u32) -> Vec<u8> {
    shell.commands.user_name(&*shell.files, uid).unwrap_or_else(|| uid.to_string().into_bytes())
}

/// Changes owner and group. Linux takes set-id bits from a file at each such call, even if nothing changes.
pub(super) fn set(shell: &mut Shell<'_>, path: &[u8], wanted: Owner, follow: Follow) -> Result<(), Errno> {
    let node = shell.files.lookup(path, follow)?;
    let (uid, gid) = (wanted.0.unwrap_or(node.uid), wanted.1.unwrap_or(node.gid));
    shell.files.set_owner(path, uid, gid, follow)?;
    if node.is_file() && node.mode & 0o6000 != 0 {
        let group = if node.mode & 0o010 != 0 { 0o2000 } else { 0 };
        shell.files.set_mode(path, node.mode & !(0o4000 | group))?;
    }
    Ok(())
}
