//! pwck(8), grpck(8), pwconv(8), grpconv(8): check the account files, and move passwords to shadow(5) and gshadow(5).

use vmbake_shell::Call;

use super::{Done, System, save, status, unsupported};
use crate::merge::accounts::{Defs, Tables};
use crate::merge::place::Target;

/// Mode of the file with passwords that the tools create.
const CREATED: u16 = 0o400;
/// Mode of the copy of passwd(5) that pwconv(8) leaves.
const KEPT: u16 = 0o600;

/// `pwck -q -r` of files without faults: it says nothing. What it says of others is not known here.
pub(super) fn pwck(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    check(system, call, &["-q", "-r"])
}

/// `grpck -r` of files without faults.
pub(super) fn grpck(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    check(system, call, &["-r"])
}

fn check(system: &mut System<'_, '_>, call: &mut Call<'_>, options: &[&str]) -> Done {
    let known = call.args.iter().all(|word| options.iter().any(|option| option.as_bytes() == word))
        && call.args.len() == options.len();
    if known && Tables::read(&system.target())?.agree() { status(0) } else { unsupported(call) }
}

pub(super) fn pwconv(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let mut target = system.target();
    let mut tables = Tables::read(&target)?;
    if !call.args.is_empty() || !tables.are_whole() {
        return unsupported(call);
    }
    let is_new = is_missing(&target, "/etc/shadow");
    tables.shadow_users(&Defs::read(&target)?.aging(false));
    save(&mut target, &tables)?;
    set_mode(&mut target, "/etc/passwd-", KEPT);
    if is_new {
        set_mode(&mut target, "/etc/shadow", CREATED);
    }
    status(0)
}

pub(super) fn grpconv(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let mut target = system.target();
    let mut tables = Tables::read(&target)?;
    if !call.args.is_empty() || !tables.are_whole() {
        return unsupported(call);
    }
    let is_new = is_missing(&target, "/etc/gshadow");
    tables.shadow_groups();
    save(&mut target, &tables)?;
    if is_new {
        set_mode(&mut target, "/etc/gshadow", CREATED);
    }
    status(0)
}

fn is_missing(target: &Target, path: &str) -> bool {
    target.tree.resolve(path.as_bytes()).is_err()
}

fn set_mode(target: &mut Target, path: &str, mode: u16) {
    if let Ok(id) = target.tree.resolve(path.as_bytes()) {
        target.tree.meta_mut(id).mode = mode;
    }
}

#[cfg(test)]
mod tests {
    use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};

    use crate::merge::database::Database;
    use crate::merge::maintainer::{Call, Ran, run};
    use crate::merge::place::Target;

    const LOGIN_DEFS: &str = "PASS_MAX_DAYS\t99999\nPASS_MIN_DAYS\t0\nPASS_WARN_AGE\t7\n";
    const NAMES: [&str; 9] =
        [".pwd.lock", "group", "group-", "gshadow", "gshadow-", "passwd", "passwd-", "shadow", "shadow-"];

    /// A machine with these files below `/etc`, all of them 0640 and of the group adm.
    fn system(files: &[(&str, &str)]) -> Target {
        let epoch = Timestamp { secs: 1_757_635_200, nanos: 0 };
        let mut target = Target::new(Tree::new(Metadata::root(0o755, epoch), Origin::default()), epoch);
        target.set_text("/etc/login.defs", LOGIN_DEFS).unwrap();
        for (name, text) in files {
            let meta = Metadata { gid: 4, ..target.meta(0o640) };
            target.file(&format!("/etc/{name}"), meta, text.as_bytes().to_vec()).unwrap();
        }
        target
    }

    fn script(target: &mut Target, lines: &str) -> Result<Ran, String> {
        let mut database = Database::read(target, "amd64").unwrap();
        let source = format!("#!/bin/sh\nset -e\n{lines}\n");
        let (source, args) = (source.as_bytes(), &["configure", ""][..]);
        let call = Call { package: "p", stem: "p", arch: "all", script: "postinst", source, args, control: None };
        run(target, &mut database, &call).map_err(|error| error.to_string())
    }

    /// Every file with its mode, its group and its text.
    fn files(target: &Target) -> String {
        let there =
            NAMES.iter().filter_map(|name| Some((name, target.tree.resolve(format!("/etc/{name}").as_bytes()).ok()?)));
        let show = |(name, id): (&&str, _)| {
            let meta = &target.tree.inode(id).meta;
            format!("{:03o} {} {name}\n{}", meta.mode, meta.gid, target.text(&format!("/etc/{name}")).unwrap())
        };
        there.map(show).collect()
    }

    const FRESH: [(&str, &str); 2] = [
        ("passwd", "root:*:0:0:root:/root:/bin/bash\nlp:*:7:7:lp:/var/spool/lpd:/usr/sbin/nologin\n"),
        ("group", "root:*:0:\nlp:*:7:\nusers:*:100:root,lp\n"),
    ];
    const PARTLY: [(&str, &str); 4] = [
        (
            "passwd",
            "root:x:0:0:root:/root:/bin/bash\ndaemon:*:1:1::/:/bin/sh\nlp:abc:7:7::/:/bin/sh\nnew:x:8:8::/:/bin/sh\n",
        ),
        ("shadow", "root:*:1:0:99999:7:::\nlp:old:2:3:4:5:6:7:\ngone:*:1::::::\n"),
        ("group", "root:x:0:\ndaemon:*:1:\nlp:pw:7:daemon\nnew:x:8:lp\n"),
        ("gshadow", "root:*::\nlp:!:daemon:root\ngone:*::\n"),
    ];
    const SHADOWED: [(&str, &str); 4] = [
        ("passwd", "root:x:0:0:root:/root:/bin/bash\n"),
        ("shadow", "root:*:1:0:99999:7:::\n"),
        ("group", "root:x:0:\nu:x:5:root\n"),
        ("gshadow", "root:*::\nu:!::root\n"),
    ];

    /// What pwconv and grpconv of shadow 4.17 left in a chroot with the same files.
    #[test]
    fn passwords_move_as_by_the_real_tools() {
        for (before, expected) in [
            (
                &FRESH[..],
                "600 0 .pwd.lock\n640 4 group\nroot:x:0:\nlp:x:7:\nusers:x:100:root,lp\n\
                640 4 group-\nroot:*:0:\nlp:*:7:\nusers:*:100:root,lp\n\
                400 0 gshadow\nroot:*::\nlp:*::\nusers:*::root,lp\n\
                640 4 passwd\nroot:x:0:0:root:/root:/bin/bash\nlp:x:7:7:lp:/var/spool/lpd:/usr/sbin/nologin\n\
                600 4 passwd-\nroot:*:0:0:root:/root:/bin/bash\nlp:*:7:7:lp:/var/spool/lpd:/usr/sbin/nologin\n\
                400 0 shadow\nroot:*:20343:0:99999:7:::\nlp:*:20343:0:99999:7:::\n",
            ),
            (
                &PARTLY,
                "600 0 .pwd.lock\n640 4 group\nroot:x:0:\ndaemon:x:1:\nlp:x:7:daemon\nnew:x:8:lp\n\
                640 4 group-\nroot:x:0:\ndaemon:*:1:\nlp:pw:7:daemon\nnew:x:8:lp\n\
                640 4 gshadow\nroot:*::\nlp:pw:daemon:daemon\ndaemon:*::\nnew:x::lp\n\
                640 4 gshadow-\nroot:*::\nlp:!:daemon:root\ngone:*::\n\
                640 4 passwd\nroot:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/:/bin/sh\nlp:x:7:7::/:/bin/sh\nnew:x:8:8::/:/bin/sh\n\
                600 4 passwd-\nroot:x:0:0:root:/root:/bin/bash\ndaemon:*:1:1::/:/bin/sh\nlp:abc:7:7::/:/bin/sh\nnew:x:8:8::/:/bin/sh\n\
                640 4 shadow\nroot:*:1:0:99999:7:::\nlp:abc:20343:3:4:5:6:7:\ndaemon:*:20343:0:99999:7:::\n\
                new:x:20343:0:99999:7:::\n\
                640 4 shadow-\nroot:*:1:0:99999:7:::\nlp:old:2:3:4:5:6:7:\ngone:*:1::::::\n",
            ),
            (
                &SHADOWED,
                "600 0 .pwd.lock\n640 4 group\nroot:x:0:\nu:x:5:root\n640 4 group-\nroot:x:0:\nu:x:5:root\n\
                640 4 gshadow\nroot:*::\nu:!::root\n640 4 gshadow-\nroot:*::\nu:!::root\n\
                640 4 passwd\nroot:x:0:0:root:/root:/bin/bash\n640 4 shadow\nroot:*:1:0:99999:7:::\n",
            ),
        ] {
            let mut target = system(before);
            assert_eq!(script(&mut target, "pwconv\ngrpconv"), Ok(Ran::Done));
            assert_eq!(files(&target), expected);
        }
    }

    #[test]
    fn files_without_faults_pass_and_others_stop() {
        for (before, lines, is_known) in [
            (&FRESH[..], "pwck -q -r\ngrpck -r", true),
            (&SHADOWED, "pwck -q -r\ngrpck -r", true),
            (&PARTLY, "pwck -q -r", false),
            (&PARTLY, "grpck -r", false),
            (&[("group", "g:x:1:nobody\n")], "grpck -r", false),
            (&[("passwd", "a:*:1:1:::\na:*:2:2:::\n")], "pwck -q -r", false),
            (&[("passwd", "a:*:x:1:::\n")], "pwck -q -r", false),
            (&[("passwd", "a:*:1:1::\n")], "pwconv", false),
            (&FRESH, "pwck", false),
            (&FRESH, "grpck -r /etc/group", false),
            (&FRESH, "pwconv --root /x", false),
        ] {
            let ran = script(&mut system(before), lines);
            assert_eq!(ran.is_ok(), is_known, "{lines}: {ran:?}");
        }
    }
}
