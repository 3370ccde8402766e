//! Runs ssh and rsync on this host: scripts and files in, responses out.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::script::ANSWER;
use super::{Destination, SyncError};

/// Directory for received files, with a subdirectory per sync. Only root can write to it.
const STAGE: &str = "/var/lib/vmbake/sync";

/// Runs the shell as root, directly or by sudo, and reports which. A single line without expansions.
const SHELL: &str = r#"exec /bin/sh -c 'test "$(id -u)" = 0 && exec /bin/sh -s root; exec sudo -n /bin/sh -s sudo'"#;

/// Timeout in seconds for an unresponsive host, when connecting and while a script runs.
const PATIENCE: [&str; 3] = ["ConnectTimeout=30", "ServerAliveInterval=15", "ServerAliveCountMax=8"];

/// Method of becoming root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Login {
    Root,
    Sudo,
}

/// Output of a script, after its first line.
pub(super) struct Answer {
    pub(super) login: Login,
    pub(super) fields: Vec<Vec<u8>>,
}

/// Runs a script as root on the machine.
pub(super) fn run(to: &Destination, action: &str, script: String) -> Result<Answer, SyncError> {
    let mut command = Command::new("ssh");
    command.args(options(to)).arg("--").arg(&to.host).arg(SHELL).env("LC_ALL", "C");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |source| SyncError::Program { program: "ssh", source };
    let mut child = command.spawn().map_err(failed)?;
    // It can exit before it has read everything; its exit status is more useful than the broken pipe.
    let writer =
        child.stdin.take().map(|mut stdin| std::thread::spawn(move || stdin.write_all(script.as_bytes()).is_ok()));
    let output = child.wait_with_output().map_err(failed)?;
    let _written = writer.map(std::thread::JoinHandle::join);
    answer(to, action, &output)
}

/// Sends the files of a directory to one with the same name.
pub(super) fn send(to: &Destination, login: Login, folder: &Path, name: &str) -> Result<(), SyncError> {
    let sudo = match login {
        Login::Root => "",
        Login::Sudo => "sudo -n ",
    };
    let start = format!("{sudo}mkdir -p -m 0700 /var/lib/vmbake {STAGE} && {sudo}rsync");
    let shell = [OsString::from("ssh")].into_iter().chain(options(to)).map(|word| rsync_word(&word));
    let mut command = Command::new("rsync");
    command.args(["--recursive", "--chmod=D0700,F0600", "--no-owner", "--no-group"]);
    command.arg("--rsync-path").arg(start).arg("--rsh").arg(shell.collect::<Vec<_>>().join(OsStr::new(" ")));
    let host = if to.host.contains(':') { format!("[{}]", to.host) } else { to.host.clone() };
    command
        .arg("--")
        .arg(folder.join(""))
        .arg(format!("{host}:{STAGE}/{name}/"))
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    let output = command.output().map_err(|source| SyncError::Program { program: "rsync", source })?;
    if output.status.success() { Ok(()) } else { Err(failed(to, "send files by rsync", &output)) }
}

fn options(to: &Destination) -> Vec<OsString> {
    let patience = PATIENCE.iter().flat_map(|option| ["-o", option]);
    to.options.iter().cloned().chain(["-T"].into_iter().chain(patience).map(OsString::from)).collect()
}

/// Quotes a word for rsync's `--rsh`, which supports quotes with doubled quotes inside.
fn rsync_word(word: &OsStr) -> OsString {
    let quote = OsStr::new("'");
    let text = word.to_string_lossy().replace('\'', "''");
    [quote, OsStr::new(&text), quote].into_iter().collect()
}

fn answer(to: &Destination, action: &str, output: &Output) -> Result<Answer, SyncError> {
    let start = [ANSWER.as_bytes(), b"\0"].concat();
    let at = output.stdout.windows(start.len()).position(|window| window == start);
    let mut fields: Vec<Vec<u8>> = Vec::new();
    if let Some(at) = at {
        let rest = &output.stdout[at + start.len()..];
        fields = rest.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        fields.pop();
    }
    if !output.status.success() {
        let what = match &fields[..] {
            [.., failed, what] if failed == b"failed" => String::from_utf8_lossy(what).into_owned(),
            _ => action.to_owned(),
        };
        return Err(self::failed(to, &what, output));
    }
    let login = match fields.first().map(Vec::as_slice) {
        Some(b"root") => Login::Root,
        Some(b"sudo") => Login::Sudo,
        _ => {
            let found = String::from_utf8_lossy(&output.stdout).chars().take(200).collect();
            return Err(SyncError::Answer { host: to.shown.clone(), expected: ANSWER, found });
        }
    };
    fields.remove(0);
    Ok(Answer { login, fields })
}

fn failed(to: &Destination, action: &str, output: &Output) -> SyncError {
    let said = String::from_utf8_lossy(&output.stderr)
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("; ");
    SyncError::Remote { host: to.shown.clone(), action: action.to_owned(), status: output.status, said }
}
