//! Programs that do nothing, fail or wait where nothing runs.

use super::helpers::{postinst, refusal, said};
use crate::bake_inputs::parts::{bake_onto, base_with, control, deb, file, owned, package, text};

#[test]
fn programs_end_as_where_nothing_runs() {
    let programs = [
        ("py3compile -p own", 0),
        ("py3clean -p own", 0),
        ("pypy3compile -p own", 0),
        ("logger hello", 0),
        ("restorecon /etc/group", 0),
        ("update-menus", 0),
        ("apparmor_parser -r -T -W /etc/apparmor.d/own", 0),
        ("aa-enabled --quiet", 1),
        ("aa-status --enabled", 1),
        ("selinuxenabled", 1),
        ("stty size", 1),
        ("pidof own", 1),
        ("pgrep own", 1),
        ("pkill own", 1),
        ("killall -0 own", 1),
        ("dbus-send --system / a.b.c", 1),
        ("modprobe own", 1),
        ("chattr +C /etc", 1),
        ("start-stop-daemon --stop --exec /usr/bin/own", 1),
        ("start-stop-daemon --stop --oknodo --exec /usr/bin/own", 0),
        ("sysctl --system", 0),
        ("udevadm control --reload-rules", 0),
        ("perl -e ''", 0),
        ("udevadm trigger --subsystem-match=own", 0),
        ("apache2ctl configtest", 0),
    ];
    let paths = programs.map(|(command, _)| format!("/usr/bin/{}", command.split(' ').next().unwrap()));
    let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "\x7fELF")).collect();
    let commands = programs.map(|(command, _)| command);
    let (found, _) = said(base_with(&files), &commands);
    for ((command, status), found) in programs.iter().zip(found) {
        assert_eq!(found, if *status == 0 { String::new() } else { format!("={status}\n") }, "{command}");
    }
    // An image that lacks them.
    let (found, tree) = said(base_with(&[]), &commands);
    assert!(found.iter().all(|found| found == "=127\n"), "{found:?}");
    assert!(text(&tree, "/errors").starts_with("py3compile: not found\n"));
}

/// As perl 5.36 prints it, for ucf of Debian 12.
#[test]
fn perl_quotes_lines() {
    let base = base_with(&[("/usr/bin/perl", "\x7fELF"), ("/in", "a/b.c-d_e\n\n9 x\n+"), ("/empty", "")]);
    let commands = ["/in", "/empty"].map(|path| format!(r#"perl -nle 'print "\Q$_\E\n"' <{path}"#));
    let (found, _) = said(base, &commands.each_ref().map(String::as_str));
    assert_eq!(found, ["a\\/b\\.c\\-d_e\n\n\n\n9\\ x\n\n\\+\n\n", ""]);
}

#[test]
fn what_only_a_machine_can_run_waits_for_the_first_boot() {
    const COMPILED: &str = "\x7fELF";
    for (command, content) in [
        ("anything --at all", COMPILED),
        ("pam-auth-update", "#!/usr/bin/perl -w\n"),
        ("perl -e 'print 1'", COMPILED),
        ("newaliases", "#!/usr/bin/env python3\n"),
        ("sysctl -n kernel.x", COMPILED),
        ("start-stop-daemon --start", COMPILED),
    ] {
        let path = format!("/usr/bin/{}", command.split(' ').next().unwrap());
        let lines = format!("chmod 755 {path}\necho >/etc/before\n{command} || true");
        let tree = postinst(base_with(&[(&path, content)]), &lines).unwrap();
        let status = text(&tree, "/var/lib/dpkg/status");
        assert!(status.contains("Package: own\nStatus: install ok unpacked\n"), "{command}: {status}");
        assert!(tree.lookup(b"/etc/before").is_none(), "{command}");
    }
}

/// A cache of the files of all packages is left to the machine, where the script of its package runs again for its triggers.
#[test]
fn caches_are_left_to_the_machine() {
    let compiler = "/usr/lib/x86_64-linux-gnu/glib-2.0/glib-compile-schemas";
    let base = || base_with(&[(compiler, "\x7fELF"), ("/usr/share/schemas/a.gschema.xml", "")]);
    let script = format!("#!/bin/sh\nset -e\n{compiler} /usr/share/schemas\necho >/etc/after\n");
    let part = |interest| {
        let info = [("postinst", script.as_str()), ("triggers", interest)];
        package("own", deb(&control("own", ""), &info, &[]))
    };
    let tree = bake_onto(base(), &[part("interest-noawait /usr/share/schemas\n")], "").unwrap();
    let status = text(&tree, "/var/lib/dpkg/status");
    assert!(status.contains("Package: own\nStatus: install ok triggers-pending\n"), "{status}");
    assert!(status.contains("Triggers-Pending: /usr/share/schemas\n"), "{status}");
    assert!(tree.lookup(b"/etc/after").is_some() && tree.lookup(b"/var/lib/vmbake/configure-packages").is_some());
    // Nothing would run it there.
    let status = text(&bake_onto(base(), &[part("")], "").unwrap(), "/var/lib/dpkg/status");
    assert!(status.contains("Package: own\nStatus: install ok unpacked\n"), "{status}");
}

/// Each verified with the programs of Debian 13.
#[test]
fn glib_has_nothing_to_do_without_schemas_and_modules() {
    const COMPILED: &str = "\x7fELF";
    let folder = "/usr/lib/x86_64-linux-gnu/glib-2.0";
    let files = [
        (format!("{folder}/glib-compile-schemas"), COMPILED),
        (format!("{folder}/gio-querymodules"), COMPILED),
        ("/usr/share/empty/README".to_owned(), ""),
        ("/usr/share/old/gschemas.compiled".to_owned(), ""),
        ("/usr/share/old/giomodule.cache".to_owned(), ""),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, content)| (path.as_str(), *content)).collect();
    let commands = ["empty", "old", "none"].map(|name| {
        [
            format!("{folder}/glib-compile-schemas /usr/share/{name}"),
            format!("{folder}/gio-querymodules /usr/share/{name}"),
        ]
    });
    let commands: Vec<&str> = commands.iter().flatten().map(String::as_str).collect();
    let (found, tree) = said(base_with(&files), &commands);
    assert_eq!(found, ["", "", "", "", "=1\n", ""]);
    assert_eq!(
        text(&tree, "/errors"),
        "No schema files found: doing nothing.\nNo schema files found: removed existing output file.\n\
         Error opening directory \u{201c}/usr/share/none\u{201d}: No such file or directory\n\
         Unable to open directory /usr/share/none: Error opening directory \u{201c}/usr/share/none\u{201d}: No such file or directory\n"
    );
    assert!(tree.lookup(b"/usr/share/old/gschemas.compiled").is_none());
    assert!(tree.lookup(b"/usr/share/old/giomodule.cache").is_none());
}

#[test]
fn the_machine_id_is_empty_and_scripts_that_read_it_wait() {
    let files = [("/usr/bin/systemd-machine-id-setup", "\x7fELF"), ("/usr/bin/dbus-uuidgen", "\x7fELF")];
    let base = || {
        let mut base = base_with(&files);
        let _ = base.remove(b"/etc/machine-id");
        base
    };
    let (found, tree) = said(base(), &["systemd-machine-id-setup", "dbus-uuidgen --ensure", "test -f /etc/machine-id"]);
    assert_eq!(found, ["", "", ""]);
    assert_eq!(text(&tree, "/errors"), "Initializing machine ID from random generator.\n");
    for reads in [
        "cat /etc/machine-id",
        "read -r id </etc/machine-id || true",
        "cp /etc/machine-id /etc/x",
        "ln -s machine-id /etc/l; grep -c . /etc/l || true",
    ] {
        let tree = postinst(base(), &format!("systemd-machine-id-setup\n{reads} >/etc/before")).unwrap();
        let status = text(&tree, "/var/lib/dpkg/status");
        assert!(status.contains("Package: own\nStatus: install ok unpacked\n"), "{reads}: {status}");
        assert!(tree.lookup(b"/etc/before").is_none(), "{reads}");
    }
}

/// Only a postinst can wait, and only for what the machine can run.
#[test]
fn programs_that_no_machine_can_stand_for_stop_the_bake() {
    for (script, content, expected) in [
        ("preinst", "\x7fELF", "anything is a compiled program, which only a machine can run"),
        ("postinst", "echo a\0\n", "the command is not known"),
    ] {
        let data = [owned(file("./usr/bin/anything", content), 0o755, 0, 0)];
        let first = package("first", deb(&control("first", ""), &[], &data));
        let calls = deb(&control("own", "Pre-Depends: first\n"), &[(script, "#!/bin/sh\nanything || true\n")], &[]);
        let error = bake_onto(base_with(&[]), &[first, package("own", calls)], "").unwrap_err();
        assert!(error.contains(expected), "{script}: {error}");
    }
}

#[test]
fn versions_and_byte_code_of_python() {
    let defaults = "[DEFAULT]\ndefault-version = python3.13\nsupported-versions = python3.12, python3.13\n";
    let files = [
        ("/usr/share/python3/debian_defaults", defaults),
        ("/usr/bin/py3versions", "#!/usr/bin/python3\n"),
        ("/usr/bin/python3", "\x7fELF"),
        ("/usr/bin/python3.13", "\x7fELF"),
    ];
    let commands = [
        "py3versions -d",
        "py3versions -s",
        "py3versions -i",
        "python3.13 -E -S /usr/lib/python3.13/py_compile.py x.py",
    ];
    let (found, _) = said(base_with(&files), &commands);
    assert_eq!(found, ["python3.13\n", "python3.12 python3.13\n", "python3.13\n", ""]);
}

#[test]
fn what_is_not_known_is_refused() {
    for command in ["udevadm info --export", "chattr +i /etc/x", "apache2ctl graceful"] {
        let error = refusal(base_with(&[]), &format!("{command} || true"));
        assert!(error.contains("is not supported"), "{command}: {error}");
    }
}
