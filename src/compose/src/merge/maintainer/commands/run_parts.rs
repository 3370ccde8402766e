//! run-parts(8): only lists files.

use vmbake_shell::{Call, Follow, NodeKind};

use super::{Command, Done, System, idle, status};

pub(super) fn find(name: &str) -> Option<Command> {
    (name == "run-parts").then_some(run_parts as Command)
}

/// `--test` lists the programs of a directory. What they would do, the machine does.
fn run_parts(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let words: Vec<&[u8]> = call.args.iter().map(Vec::as_slice).collect();
    let ([b"--test", b"--", dir] | [b"--test", dir]) = words[..] else { return idle::machine(system, call) };
    let dir = dir.to_vec();
    let Ok(mut names) = call.files.list(&call.path(&dir)) else {
        let shown = String::from_utf8_lossy(&dir).into_owned();
        call.stderr.extend(format!("run-parts: failed to open directory {shown}\n").into_bytes());
        return status(1);
    };
    names.sort();
    for name in names {
        let path = [dir.as_slice(), b"/", &name].concat();
        let node = call.files.lookup(&call.path(&path), Follow::Yes);
        let is_program = node.is_ok_and(|node| node.kind == NodeKind::File && node.mode & 0o111 != 0);
        if is_program && vmbake_layer::is_run_by_parts(&name) {
            call.stdout.extend([path.as_slice(), b"\n"].concat());
        }
    }
    status(0)
}
