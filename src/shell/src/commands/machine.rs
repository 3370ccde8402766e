//! Queries of the user and the machine: `id`, `whoami`, `uname`, `date`, `df`.

use super::complain;
use super::options::{Accepted, parse};
use crate::ErrorKind;
use crate::eval::Run;
use crate::files::Follow;
use crate::random::PID;
use crate::shell::Shell;

/// Scripts run as root.
pub(super) fn id(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] = &[("user", b'u'), ("group", b'g'), ("groups", b'G'), ("name", b'n')];
    let options = parse(shell, args, &Accepted { letters: b"ugGnr", long, strict: false })?;
    let Some(name) = options.operands.first() else {
        let names = options.has(b'n');
        if !options.has(b'u') && !options.has(b'g') && !options.has(b'G') {
            return shell.unsupported(b"id without -u or -g");
        }
        shell.out(if names { b"root\n" } else { b"0\n" })?;
        return Ok(0);
    };
    let Some(uid) = shell.commands.user_id(&*shell.files, name) else {
        return complain(shell, "id", &["‘".as_bytes(), name, "’: no such user".as_bytes()].concat());
    };
    let gid = crate::accounts::user_field(&*shell.files, name, 3).and_then(|field| crate::accounts::number(&field));
    let text = match (options.has(b'u'), options.has(b'g'), options.has(b'n')) {
        (true, _, true) => name.clone(),
        (true, _, false) => uid.to_string().into_bytes(),
        (false, true, named) => {
            let Some(gid) = gid else { return shell.unsupported(b"a user without an entry") };
            match shell.commands.group_name(&*shell.files, gid).filter(|_| named) {
                Some(group) => group,
                None => gid.to_string().into_bytes(),
            }
        }
        _ if options.has(b'G') => return groups(shell, name, gid, options.has(b'n')),
        _ => full(shell, name, uid, gid)?,
    };
    shell.out(&[&text[..], b"\n"].concat())?;
    Ok(0)
}

/// All groups of a user: the own one first, others in the order of their file.
fn memberships(shell: &Shell<'_>, name: &[u8], gid: Option<u32>) -> Vec<(u32, Vec<u8>)> {
    let text = shell.files.read(crate::accounts::GROUP, shell.budget.limits.size_bytes).unwrap_or_default();
    let mut found: Vec<(u32, Vec<u8>)> = Vec::new();
    if let Some(gid) = gid {
        let own = shell.commands.group_name(&*shell.files, gid).unwrap_or_else(|| gid.to_string().into_bytes());
        found.push((gid, own));
    }
    for line in text.split(|byte| *byte == b'\n') {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b':').collect();
        let [group, _, id, members] = fields[..] else { continue };
        let member = members.split(|byte| *byte == b',').any(|member| member == name);
        if let Some(id) = crate::accounts::number(id).filter(|id| member && Some(*id) != gid) {
            found.push((id, group.to_vec()));
        }
    }
    found
}

fn groups(shell: &mut Shell<'_>, name: &[u8], gid: Option<u32>, named: bool) -> Run<u8> {
    let found = memberships(shell, name, gid);
    let words: Vec<Vec<u8>> =
        found.into_iter().map(|(id, group)| if named { group } else { id.to_string().into_bytes() }).collect();
    shell.out(&[&words.join(&b' ')[..], b"\n"].concat())?;
    Ok(0)
}

/// `uid=1(a) gid=1(a) groups=1(a),2(b)`
fn full(shell: &Shell<'_>, name: &[u8], uid: u32, gid: Option<u32>) -> Run<Vec<u8>> {
    let Some(gid) = gid else { return shell.unsupported(b"a user without an entry") };
    let found = memberships(shell, name, Some(gid));
    let words: Vec<Vec<u8>> =
        found.iter().map(|(id, group)| [id.to_string().as_bytes(), b"(", group, b")"].concat()).collect();
    let own = words.first().cloned().unwrap_or_default();
    let uid = uid.to_string();
    Ok([b"uid=", uid.as_bytes(), b"(", name, b") gid=", &own, b" groups=", &words.join(&b',')].concat())
}

pub(super) fn whoami(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    if let Some(arg) = args.first() {
        return shell.unsupported(arg);
    }
    shell.out(b"root\n")?;
    Ok(0)
}

pub(super) fn uname(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let text = match args {
        [] => "Linux",
        [option] if option == b"-s" => "Linux",
        [option] if option == b"-o" => "GNU/Linux",
        [option] if option == b"-m" => match shell.commands.machine() {
            Some(machine) => machine,
            None => return Err(shell.fatal(ErrorKind::Machine { what: "uname -m".to_owned() })),
        },
        _ => return Err(shell.fatal(ErrorKind::Machine { what: "the kernel and the name of the machine".to_owned() })),
    };
    shell.out(format!("{text}\n").as_bytes())?;
    Ok(0)
}

pub(super) fn date(shell: &mut Shell<'_>, _args: &[Vec<u8>]) -> Run<u8> {
    Err(shell.fatal(ErrorKind::Clock { what: "date".to_owned() }))
}

/// `df --output=avail PATH`, by which scripts ask whether there is room: there is, some gigabytes. The number is that of [`PID`], which may not
/// be left in a file.
pub(super) fn df(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let (Some(b"--output=avail"), [_, path]) = (args.first().map(Vec::as_slice), args) else {
        return Err(shell.fatal(ErrorKind::Machine { what: "its free disk space".to_owned() }));
    };
    if let Err(error) = shell.stat(path, Follow::Yes) {
        return complain(shell, "df", &[path, &b": "[..], error.text().as_bytes()].concat());
    }
    shell.out(&[b"  Avail\n", PID, b"\n"].concat())?;
    Ok(0)
}
