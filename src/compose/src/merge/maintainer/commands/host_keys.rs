//! Host keys, which openssh-server generates when it is configured. Images do not contain keys: the first boot generates them.

use vmbake_common::digest::Digest;
use vmbake_shell::{Call, Outcome};

use super::programs::ends;
use super::{Command, Done, System, idle};

/// SHA-256 of the postinst scripts of openssh-server in Debian 12 and 13, which use these programs for host keys only. Other scripts run on the
/// machine.
const SCRIPTS: [&str; 2] = [
    "1f8313aaab8c83b0c758a10c84936fc867ac252302fffabaec15b36856776a67",
    "7beb9854ed70640a6f681602150cc6789dd81d7b611c961036b1dc1c5b844368",
];

pub(super) fn find(name: &str) -> Option<Command> {
    matches!(name, "ssh-keygen" | "sshd" | "sshd.session-split").then_some(keys as Command)
}

/// The server lists no host keys, and none is generated.
fn keys(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    match SCRIPTS.contains(&Digest::of(system.script.source).hex().as_str()) {
        true => ends(call, Outcome::Status(0)),
        false => idle::machine(system, call),
    }
}
