//! Executable files written by tests.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A new program of these bytes. Another process writes it: a file that this one has open for writing is inherited by whatever another
/// test starts meanwhile, and cannot be run until that has let go of it (`ETXTBSY` of execve(2)).
pub fn write_program(path: &Path, bytes: &[u8]) {
    let mut writer = Command::new("tee").arg(path).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    writer.stdin.take().unwrap().write_all(bytes).unwrap();
    assert!(writer.wait().unwrap().success(), "{}", path.display());
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
