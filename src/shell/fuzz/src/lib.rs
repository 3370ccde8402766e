//! Runs what a fuzzer derives: a run ends soon, twice in the same way, and what it leaves is a tree.

use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};
use vmbake_shell::{Call, Commands, Files, Finished, Host, Limits, Outcome, Script, Settings, ShellError, TreeFiles, run};

struct Known;

impl Commands for Known {
    fn run(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
        match call.base_name() {
            b"db_get" => call.variables.set(b"RET", b"a b"),
            b"adduser" => call.stdout.extend((call.stdin)()),
            _ => return None,
        }
        Some(Outcome::Status(0))
    }
}

fn tree() -> Tree {
    let meta = Metadata::root(0o755, Timestamp::default());
    let mut tree = Tree::new(meta.clone(), Origin::default());
    let origin = tree.first_origin();
    for dir in [&b"/etc/a"[..], b"/tmp", b"/usr/bin"] {
        tree.make_dirs(dir, &meta, origin).unwrap();
    }
    let mut files = TreeFiles::new(&mut tree, Timestamp::default(), origin);
    files.write(b"/etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nb:x:1:1::/:\n".to_vec(), 0o644).unwrap();
    files.write(b"/etc/a/conf", b"# a\nkey = value\n\nother=1".to_vec(), 0o600).unwrap();
    files.write(b"/usr/bin/tool", b"#!/bin/sh\nset -e\necho \"$@\"\n".to_vec(), 0o755).unwrap();
    files.symlink(b"a/conf", b"/etc/link").unwrap();
    tree
}

fn interpret(source: &[u8]) -> (Result<Finished, Box<ShellError>>, Vec<Vec<u8>>) {
    let mut tree = tree();
    let origin = tree.first_origin();
    let mut files = TreeFiles::new(&mut tree, Timestamp::default(), origin);
    let args = [b"configure".to_vec(), b"1.0-1".to_vec()];
    let limits = Limits { steps: 2_000, work_bytes: 1 << 22, size_bytes: 1 << 16, variables_bytes: 1 << 16, fields: 1_000, ..Limits::default() };
    let script = Script { name: "fuzz.postinst", source, args: &args };
    let settings = Settings { limits, directory: b"/etc".to_vec(), ..Settings::default() };
    let result = run(&script, &mut Host { files: &mut files, commands: &mut Known }, &settings);
    let paths = tree.walk().map(|(path, ..)| path).collect();
    (result, paths)
}

/// Runs a script twice, and compares.
pub fn check(source: &[u8]) {
    assert_eq!(interpret(source), interpret(source));
}
