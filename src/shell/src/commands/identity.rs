//! `id`, `whoami`: the user of scripts, which is root, and users of the tree.

use super::complain_exactly;
use super::options::{Accepted, Options, parse};
use crate::accounts::{self, GROUP, number, user_field};
use crate::eval::Run;
use crate::shell::Shell;

const OPTIONS: Accepted = Accepted {
    letters: b"agGnruzZ",
    long: &[
        ("user", b'u'),
        ("group", b'g'),
        ("groups", b'G'),
        ("name", b'n'),
        ("real", b'r'),
        ("zero", b'z'),
        ("context", b'Z'),
    ],
    strict: false,
};

/// A user with its groups: the own one first, others in the order of their file.
struct Identity {
    name: Vec<u8>,
    uid: u32,
    groups: Vec<(u32, Vec<u8>)>,
}

pub(super) fn id(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &OPTIONS)?;
    let choices = b"ugG".iter().filter(|letter| options.has(**letter)).count();
    let wrong: Option<&[u8]> = if options.has(b'Z') {
        Some(b"--context (-Z) works only on an SELinux-enabled kernel")
    } else if choices > 1 {
        Some(b"cannot print \"only\" of more than one choice")
    } else if choices == 0 && (options.has(b'n') || options.has(b'r')) {
        Some(b"cannot print only names or real IDs in default format")
    } else if choices == 0 && options.has(b'z') {
        Some(b"option --zero not permitted in default format")
    } else {
        None
    };
    if let Some(message) = wrong {
        return complain_exactly(shell, "id", message);
    }
    if options.operands.is_empty() {
        // The groups of a process of root are not those of its entries.
        let user = shell.commands.user_name(&*shell.files, 0).unwrap_or_else(|| b"0".to_vec());
        let identity = Identity { name: user, uid: 0, groups: vec![(0, group_name(shell, 0))] };
        print(shell, &options, &identity)?;
        return Ok(0);
    }
    let mut status = 0;
    for operand in &options.operands {
        match identity(shell, operand, options.has(b'u'))? {
            Some(identity) => print(shell, &options, &identity)?,
            None => status = complain_exactly(shell, "id", &[b"'", &operand[..], b"': no such user"].concat())?,
        }
    }
    Ok(status)
}

/// The user of a name, or else of a number.
fn identity(shell: &Shell<'_>, operand: &[u8], only_uid: bool) -> Run<Option<Identity>> {
    let by_name = if operand.starts_with(b"+") { None } else { shell.commands.user_id(&*shell.files, operand) };
    let (name, uid) = match by_name {
        Some(uid) => (operand.to_vec(), uid),
        None => {
            let digits = operand.strip_prefix(b"+").unwrap_or(operand);
            let found = number(digits).and_then(|uid| Some((shell.commands.user_name(&*shell.files, uid)?, uid)));
            let Some(found) = found else { return Ok(None) };
            found
        }
    };
    let gid = user_field(&*shell.files, &name, 3).and_then(|field| number(&field));
    let groups = match gid {
        Some(gid) => memberships(shell, &name, gid),
        None if only_uid => Vec::new(),
        None => return shell.unsupported(b"a user without an entry"),
    };
    Ok(Some(Identity { name, uid, groups }))
}

fn group_name(shell: &Shell<'_>, gid: u32) -> Vec<u8> {
    shell.commands.group_name(&*shell.files, gid).unwrap_or_else(|| gid.to_string().into_bytes())
}

/// All groups of a user.
fn memberships(shell: &Shell<'_>, name: &[u8], gid: u32) -> Vec<(u32, Vec<u8>)> {
    let text = shell.files.read(GROUP, shell.budget.limits.size_bytes).unwrap_or_default();
    let mut found = vec![(gid, group_name(shell, gid))];
    for line in text.split(|byte| *byte == b'\n') {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b':').collect();
        let [_, _, id, members] = fields[..] else { continue };
        let member = members.split(|byte| *byte == b',').any(|member| member == name);
        if let Some(id) = accounts::number(id).filter(|id| member && found.iter().all(|(own, _)| own != id)) {
            found.push((id, group_name(shell, id)));
        }
    }
    found
}

/// Writes what the options ask for: an id, all groups, or `uid=1(a) gid=1(a) groups=1(a),2(b)`.
fn print(shell: &mut Shell<'_>, options: &Options, identity: &Identity) -> Run<()> {
    let Identity { name, uid, groups } = identity;
    let chosen = |id: u32, name: &[u8]| if options.has(b'n') { name.to_vec() } else { id.to_string().into_bytes() };
    let end: &[u8] = if options.has(b'z') { b"\0" } else { b"\n" };
    if options.has(b'u') {
        return shell.out(&[&chosen(*uid, name)[..], end].concat());
    }
    if options.has(b'g') || options.has(b'G') {
        let count = if options.has(b'g') { 1 } else { groups.len() };
        let words: Vec<Vec<u8>> = groups.iter().take(count).map(|(id, group)| chosen(*id, group)).collect();
        let separator = if options.has(b'z') { 0 } else { b' ' };
        // Each list of several users ends with one more NUL.
        let more: &[u8] =
            if options.has(b'G') && options.has(b'z') && options.operands.len() > 1 { b"\0" } else { b"" };
        return shell.out(&[&words.join(&separator)[..], end, more].concat());
    }
    let words: Vec<Vec<u8>> =
        groups.iter().map(|(id, group)| [id.to_string().as_bytes(), b"(", group, b")"].concat()).collect();
    let (uid, own) = (uid.to_string(), words.first().cloned().unwrap_or_default());
    let line = [b"uid=", uid.as_bytes(), b"(", name, b") gid=", &own, b" groups=", &words.join(&b','), b"\n"].concat();
    shell.out(&line)
}

pub(super) fn whoami(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    if let Some(arg) = args.first() {
        return shell.unsupported(arg);
    }
    shell.out(b"root\n")?;
    Ok(0)
}
