//! Queries of the machine: `uname`, `date`, `df`.

use super::complain;
use crate::ErrorKind;
use crate::eval::Run;
use crate::files::Follow;
use crate::random::PID;
use crate::shell::Shell;

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
