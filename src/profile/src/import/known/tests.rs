use std::collections::BTreeSet;

use vmbake_shell::{Call, Commands, ErrorKind, Host, Outcome, Script, Settings, run};

use super::KnownFiles;
use crate::import::base;

/// A caller that knows no commands.
struct Nothing;

impl Commands for Nothing {
    fn run(&mut self, _call: &mut Call<'_>) -> Option<Outcome> {
        None
    }
}

fn result(source: &str) -> Result<u8, ErrorKind> {
    let (mut tree, absent) = (base::tree().unwrap(), BTreeSet::new());
    let mut files = KnownFiles::new(&mut tree, &absent);
    let script = Script { name: "script", source: source.as_bytes(), args: &[] };
    let mut host = Host { files: &mut files, commands: &mut Nothing };
    run(&script, &mut host, &Settings::default()).map(|finished| finished.status).map_err(|error| error.kind)
}

#[test]
fn links_to_what_a_machine_may_have_are_not_looked_through() {
    for command in [
        "mkdir -p l",
        "mkdir -p l/",
        "mkdir -p l/x",
        "install -d l",
        "test -d l",
        "test -e l",
        "[ -f l ]",
        "touch l",
        "touch l/x",
        "chmod 755 l",
        "chown 0:0 l",
        "cp f l",
        "cp -t l f",
        "cp -r d l",
        "cp f l/x",
        "mv f l",
        "mv -t l f",
        "mv f l/x",
        "ln -s f l",
        "ln -sf f l",
        "ln -s f l/x",
        "install f l",
        "install -t l f",
        "install -D f l/x",
        "cd l",
        "ls l",
        "ls l/",
        "find l/",
        "find -L l",
        "cat l",
        "cat l/x",
        "echo a > l",
        "echo a >> l",
        "echo a > l/x",
        "echo a | tee l/x",
        "rm l/x",
        "rm -r l/",
        "rmdir l/x",
        "realpath -e l",
        "stat -L -c %F l",
    ] {
        let source = format!("cd /opt; ln -s /etc/logrotate.d l; touch f; mkdir d; {command} || echo n > b");
        let found = result(&source);
        assert!(matches!(found, Err(ErrorKind::Unknown { .. })), "{command}: {found:?}");
    }
}

#[test]
fn links_to_what_commands_made_are_looked_through() {
    let script = "cd /opt; mkdir e; ln -s e l; ln -s f k; touch f; mkdir -p l l/x; cp f l; ln -s ../f l/g; echo a > k\n\
        install -d l/y; mv f l/h; readlink l; rm l; ln -s /etc/logrotate.d l; rm l; ln -sfn /etc/logrotate.d l; [ -L l ]";
    assert_eq!(result(script), Ok(0));
}
