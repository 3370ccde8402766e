//! Completion scripts work in their shells.

use std::io::Write;
use std::process::{Command, Output};

use crate::tools::have;

fn vmbake(shell: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vmbake")).args(["completions", shell]).output().unwrap()
}

#[test]
fn bash_completes_commands_options_and_values() {
    // It is longer than an argument may be.
    let mut script = tempfile::NamedTempFile::new().unwrap();
    script.write_all(&vmbake("bash").stdout).unwrap();
    let complete = |words: &str| {
        let ask = format!(
            ". \"$0\"\nCOMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n\
             _vmbake vmbake \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"\necho \"${{COMPREPLY[*]}}\""
        );
        let output = Command::new("bash").args(["--norc", "-c", &ask]).arg(script.path()).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    if have(&["bash"]) {
        assert_eq!(complete("vmbake ba"), "bake");
        assert_eq!(complete("vmbake boot --firm"), "--firmware");
        assert_eq!(complete("vmbake boot --firmware d"), "direct");
        assert_eq!(complete("vmbake user-data re"), "render");
    }
}

#[test]
fn every_shell_gets_a_script_with_all_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = vmbake(shell);
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{shell}");
        for word in ["inspect", "user-data", "firmware", "network-config"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let unknown = vmbake("tcsh");
    assert_eq!((unknown.status.code(), &unknown.stdout[..]), (Some(2), &b""[..]));
}
