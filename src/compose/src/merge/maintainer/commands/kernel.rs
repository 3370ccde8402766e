//! Commands of kernel packages: depmod(8), and the programs of linux-base.
//!
//! Those programs are written in Perl. They are implemented for the versions in [`PROGRAMS`]; any other one runs on the machine.

mod depmod;
mod links;
mod versions;

use std::collections::BTreeMap;

use vmbake_common::digest::Digest;
use vmbake_shell::{Call, Files, Follow, NodeKind, Outcome};

pub(super) use depmod::chain;

use super::programs::ends;
use super::{Command, Done, System, unsupported, words};

/// Name, command, and digests of the program: those of Debian 12 and 13.
const PROGRAMS: [(&str, Command, &[&str]); 4] = [
    ("linux-check-removal", check_removal, &["4a4c364fa4560065531d13532239205b8a905189859559197d8da36fdb8248f6"]),
    (
        "linux-run-hooks",
        run_hooks,
        &[
            "c6617e6c24adb83d5a6986390c7a92a2a658808d67a0c3fa55e993367c2e81a7",
            "518b767051c05ee163f7ba316c054eb46c438360a659280e6e1f9a0bcd069f29",
        ],
    ),
    ("linux-update-symlinks", links::update, &["4b20c414747306790d5a9ec5e3d8e72b9943a1a334646b843a5ba2013398903f"]),
    ("linux-version", versions::linux_version, &["01ec2f02d1b6c1c12963162c02482bfb457ec0da9978ac94bf5966d08cad0c31"]),
];
/// The module of Perl that they share, and its digest.
const SHARED: (&str, &str) =
    ("/usr/share/perl5/DebianLinux.pm", "b19de6884b73da9f8be32dacd8d07f074b264ca35dd753822cd921352a976590");

/// Runs hooks as `run-parts --exit-on-error`: the first operands are the arguments of each, up to `--`.
const RUN_HOOKS: &str = "\
version=$1 image=$2
shift 2
for hook; do
    \"$hook\" \"$version\" ${image:+\"$image\"} || { status=$?; echo \"run-parts: $hook exited with return code $status\" >&2; exit $status; }
done";

/// Longest program that is read, in bytes: the largest has 6,000.
const MAX_PROGRAM: usize = 1 << 20;

pub(super) fn find(name: &str, call: &Call<'_>) -> Option<Command> {
    if name == "depmod" {
        return Some(depmod::depmod);
    }
    let (_, command, digests) = PROGRAMS.iter().find(|(program, ..)| *program == name)?;
    let found = digest(call.files, &format!("/usr/bin/{name}"))?;
    let is_known = digests.contains(&found.as_str()) && digest(call.files, SHARED.0)? == SHARED.1;
    is_known.then_some(*command)
}

fn digest(files: &dyn Files, path: &str) -> Option<String> {
    files.read(path.as_bytes(), MAX_PROGRAM).ok().map(|content| Digest::of(&content).hex())
}

/// In a chroot, any kernel may be removed.
fn check_removal(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if call.args.len() == 1 { ends(call, Outcome::Status(0)) } else { unsupported(call) }
}

/// `linux-run-hooks image SCRIPT VERSION IMAGE -- PARAMETERS`, `linux-run-hooks headers SCRIPT VERSION -- PARAMETERS`
fn run_hooks(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let words = words(call).unwrap_or_default();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (kind, version, image, parameters) = match words[..] {
        ["image", script, version, image, "--", ref parameters @ ..] => (script.to_owned(), version, image, parameters),
        ["headers", script, version, "--", ref parameters @ ..] => {
            (format!("header_{script}"), version, "", parameters)
        }
        _ => return unsupported(call),
    };
    hooks(call, &kind, version, image, &parameters.join(" "))
}

/// Becomes the hooks of a kind, in the order of their names; those in `/etc` replace others of the same name.
fn hooks(call: &mut Call<'_>, kind: &str, version: &str, image: &str, parameters: &str) -> Done {
    let mut found = BTreeMap::new();
    for directory in [format!("/etc/kernel/{kind}.d"), format!("/usr/share/kernel/{kind}.d")] {
        for name in call.files.list(directory.as_bytes()).unwrap_or_default() {
            let path = [directory.as_bytes(), b"/", &name].concat();
            let node = call.files.lookup(&path, Follow::Yes);
            let is_program = node.is_ok_and(|node| node.kind == NodeKind::File && node.mode & 0o111 != 0);
            if is_program && vmbake_layer::is_run_by_parts(&name) {
                found.entry(name).or_insert(path);
            }
        }
    }
    if found.is_empty() {
        return Ok(Outcome::Status(0));
    }
    let parameters = format!("DEB_MAINT_PARAMS={parameters}");
    let command = ["env", &parameters, "sh", "-c", RUN_HOOKS, "linux-run-hooks", version, image];
    let command = command.iter().map(|word| word.as_bytes().to_vec());
    Ok(Outcome::Exec(command.chain(found.into_values()).collect()))
}
