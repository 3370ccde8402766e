//! date(1) and `uname -r` for scripts whose effects do not depend on the result: they print the time, or require a
//! minimum version of the kernel. Any other script runs on the machine.
//!
//! The result contains a number that no file may keep, so that another use of it by a new version of the script stops
//! the bake.

use vmbake_shell::{Call, UNKNOWN_NUMBER};

use super::idle::machine;
use super::{Command, Done, System, status};

/// Command, package and script.
const HARMLESS: [(&str, &str, &str); 2] = [("date", "tzdata", "postinst"), ("uname", "libc6", "preinst")];

pub(super) fn find(name: &str, call: &Call<'_>) -> Option<Command> {
    match name {
        "date" => Some(date),
        "uname" if call.args == [b"-r"] => Some(kernel),
        _ => None,
    }
}

/// The local time.
fn date(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    print(system, call, &[b"Thu Jan  1 00:00:00 UTC ", UNKNOWN_NUMBER, b"\n"])
}

/// The version of the kernel, newer than any that a script requires.
fn kernel(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    print(system, call, &[UNKNOWN_NUMBER, b".0.0\n"])
}

fn print(system: &mut System<'_, '_>, call: &mut Call<'_>, text: &[&[u8]]) -> Done {
    let name = call.base_name();
    let is_harmless = HARMLESS.iter().any(|(command, package, script)| {
        command.as_bytes() == name && *package == system.script.package && *script == system.script.script
    });
    if !is_harmless {
        return machine(system, call);
    }
    text.iter().for_each(|part| call.stdout.extend_from_slice(part));
    status(0)
}

#[cfg(test)]
mod tests {
    use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};

    use crate::merge::database::Database;
    use crate::merge::maintainer::{Call, Ran, run};
    use crate::merge::place::Target;

    #[test]
    fn the_time_and_the_kernel_are_known_to_no_file() {
        for (package, script, command, is_done) in [
            ("tzdata", "postinst", "echo \"Local time is now: $(date).\"", true),
            ("tzdata", "postinst", "utc=$(LC_ALL=C TZ=UTC0 date); date -d \"$utc\"", true),
            ("tzdata", "postinst", "date >/etc/time", false),
            ("other", "postinst", "date", false),
            ("tzdata", "preinst", "date", false),
            ("libc6", "preinst", "test \"$(uname -r | sed 's/\\..*//')\" -ge 6", true),
            ("libc6", "preinst", "uname -r >/etc/kernel", false),
            ("libc6", "preinst", "mkdir \"/etc/$(uname -r)\"", false),
            ("libc6", "preinst", "date", false),
            ("tzdata", "postinst", "uname -r", false),
        ] {
            let root = Metadata::root(0o755, Timestamp::default());
            let mut target = Target::new(Tree::new(root, Origin::default()), Timestamp::default());
            for path in ["/usr/bin/date", "/usr/bin/uname", "/usr/bin/sed", "/etc/passwd"] {
                target.set_text(path, "\x7fELF").unwrap();
            }
            let mut database = Database::read(&target, "amd64").unwrap();
            let source = format!("#!/bin/sh\nset -e\n{command}\n");
            let (source, args) = (source.as_bytes(), &["configure", ""][..]);
            let call = Call { package, stem: package, arch: "all", script, source, args, control: None };
            let ran = run(&mut target, &mut database, &call);
            assert_eq!(matches!(ran, Ok(Ran::Done)), is_done, "{package}.{script}: {command}");
        }
    }
}
