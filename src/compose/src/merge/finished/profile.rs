//! Files that login shells read: each of them in, an error out if neither sh nor bash can read one to its end.

use vmbake_shell::{ErrorKind, Script, parses};

use super::{files_in, of_layer};
use crate::merge::MergeError;
use crate::merge::place::Target;
pub use vmbake_layer::Layer;

const FILES: [&str; 5] =
    ["/etc/profile", "/etc/bash.bashrc", "/etc/skel/.bashrc", "/etc/skel/.profile", "/etc/skel/.bash_logout"];
const PARTS: &str = "/etc/profile.d";

const HINT: &str = "check the file with `bash -n FILE`";

/// How the reader of a file is chosen.
const BASH: &[u8] = b"#!/bin/bash\n";

/// Fails for the first file of a layer with an error of syntax.
pub(super) fn check(target: &Target, layers: &[Layer]) -> Result<(), MergeError> {
    let files = files_in(target, PARTS, &[".sh"]).into_iter().chain(FILES.map(str::to_owned));
    for path in files {
        let Some(layer) = of_layer(target, layers, &path) else { continue };
        let text = target.bytes(&path)?;
        let Some((line, reason)) = fault(&text) else { continue };
        let (path, layer) = (format!("{path}:{line}"), layer.to_owned());
        return Err(MergeError::Unread { path, layer, what: format!("shells stop reading it: {reason}"), hint: HINT });
    }
    Ok(())
}

/// The line at which both shells stop. What the parser does not know is none.
fn fault(text: &[u8]) -> Option<(u32, String)> {
    // The file is sourced: its first line does not choose the shell.
    let dash = [b"\n", text].concat();
    syntax(&dash)?;
    let (line, reason) = syntax(&[BASH, text].concat())?;
    Some((line.saturating_sub(1).max(1), reason))
}

fn syntax(source: &[u8]) -> Option<(u32, String)> {
    let script = Script { name: "profile", source, args: &[] };
    let error = parses(&script).err()?;
    match error.kind {
        ErrorKind::Syntax { reason } => Some((error.line, reason)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn lines_at_which_shells_stop() {
        for (text, expected) in [
            ("export A=1\nif [ -n \"$A\" ]; then\n  B=(1 2)\nfi\n", None),
            ("case $- in *i*) ;; *) return;; esac\nshopt -s histappend\nalias ll='ls -l'\n", None),
            ("#!/bin/sh\na=$((1+1))\n[[ $a == 2 ]] && echo x\n", None),
            ("export A=1\nif true; then\n  echo a\n", Some(4)),
            ("export A=1\nfi\n", Some(2)),
            ("export A=\"1\n", Some(2)),
            ("f() {\n echo a\n}}\n", Some(4)),
        ] {
            assert_eq!(fault(text.as_bytes()).map(|(line, _)| line), expected, "{text:?}");
        }
    }
}
