//! `md5sum` and `sha256sum`.

use sha2::Digest as _;

use super::inputs;
use super::options::{Accepted, parse};
use crate::eval::Run;
use crate::shell::Shell;

pub(super) fn md5sum(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    sums(shell, "md5sum", args, |bytes| md5::Md5::digest(bytes).to_vec())
}

pub(super) fn sha256sum(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    sums(shell, "sha256sum", args, |bytes| sha2::Sha256::digest(bytes).to_vec())
}

fn sums(shell: &mut Shell<'_>, program: &str, args: &[Vec<u8>], digest: fn(&[u8]) -> Vec<u8>) -> Run<u8> {
    let options = parse(shell, args, &Accepted { letters: b"bt", long: &[], strict: false })?;
    let mark = if options.has(b'b') { b'*' } else { b' ' };
    let (contents, failed) = inputs(shell, program, &options.operands)?;
    for (name, content) in contents {
        if name.contains(&b'\\') || name.contains(&b'\n') {
            return shell.unsupported(&name);
        }
        shell.spend(content.len())?;
        let hex: String = digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
        shell.out(&[hex.as_bytes(), b" ", &[mark], &name, b"\n"].concat())?;
    }
    Ok(u8::from(failed))
}
