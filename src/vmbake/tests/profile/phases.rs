//! The two phases of a profile in cloud-init's order, and scripts that only the first boot can run.

use serde_json::json;
use vmbake_profile::import::{ImportError, ImportedProfile};

use super::Desk;
use super::import::{content, document, import_of, run};

/// The parts of one phase: `bootcmd`, files, `runcmd`.
type Phase<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a [&'a str]);

const NONE: Phase<'_> = (&[], &[], &[]);
/// After this, cloud-init runs nothing on another boot.
const OFF: &[&str] = &["touch /etc/cloud/cloud-init.disabled"];

fn phase((bootcmd, files, runcmd): Phase<'_>) -> String {
    let file = |(path, content): &(&str, &str)| {
        let lines: String = content.lines().map(|line| format!("            {line}\n")).collect();
        format!(
            "    - path: {path}\n      permissions: 755\n      content:\n        inline:\n          data: |\n{lines}"
        )
    };
    let list = |lines: &[&str]| lines.iter().map(|line| format!("\n        - '{line}'")).collect::<String>();
    let files: String = files.iter().map(file).collect();
    let key = |name: &str, lines: &[&str]| match lines {
        [] => String::new(),
        lines => format!("      {name}:{}\n", list(lines)),
    };
    let modules = key("bootcmd", bootcmd) + &key("runcmd", runcmd);
    match (files.as_str(), modules.as_str()) {
        ("", "") => " {}\n".to_owned(),
        ("", modules) => format!("\n    modules:\n{modules}"),
        (files, "") => format!("\n    files:\n{files}"),
        (files, modules) => format!("\n    files:\n{files}    modules:\n{modules}"),
    }
}

fn both(bootstrap: Phase<'_>, provisioning: Phase<'_>) -> Result<ImportedProfile, ImportError> {
    let mut desk = Desk::new();
    desk.options.clear();
    desk.profile = format!(
        "apiVersion: operatingsystemmanager.k8c.io/v1alpha1\nkind: OperatingSystemProfile\nmetadata: {{name: example-debian}}\nspec:\n  \
         osName: debian\n  osVersion: '13'\n  version: v1.0.0\n  supportedCloudProviders: [{{name: hetzner}}]\n  bootstrapConfig:{}  \
         provisioningConfig:{}",
        phase(bootstrap),
        phase(provisioning)
    );
    import_of(&desk, &json!({}))
}

fn is(imported: &Result<ImportedProfile, ImportError>, path: &str, expected: Option<&str>) {
    let found = content(imported.as_ref().unwrap(), path);
    assert_eq!(found.as_deref(), expected, "{path}");
}

/// The path of the script has the identity of the machine.
#[test]
fn files_that_commands_read_do_not_know_the_script() {
    for text in ["echo $0 > /opt/f", "case $0 in *runcmd) touch /opt/f;; esac", "f=${0##*/}; echo x > /opt/f"] {
        let error = both((&[], &[("/opt/e", text)], &[". /opt/e"]), NONE).map(|found| document(&found)).unwrap_err();
        assert!(error.to_string().contains("{{ path-of-the-script }}, which is not known here"), "{text}\n{error}");
    }
    let failing =
        both((&[], &[("/opt/e", "cd /opt/absent")], &[". /opt/e"]), NONE).map(|found| document(&found)).unwrap_err();
    assert!(failing.to_string().contains("runcmd: 1: cd: can't cd to /opt/absent"), "{failing}");
}

/// Machines run `bootcmd` on each boot, an import once.
#[test]
fn bootcmd_changes_nothing_on_another_boot() {
    for (bootcmd, runcmd, expected) in [
        (&["echo a >> /opt/f"][..], &[][..], "another boot changes /opt/f"),
        (&["echo a > /opt/f"], &["echo b > /opt/f"], "another boot changes /opt/f"),
        (&["rm -f /opt/f"], &["touch /opt/f"], "another boot changes /opt/f"),
        (&["test -e /opt/f && touch /opt/g || touch /opt/f"], &[], "another boot changes /opt/g"),
        (&["systemctl stop ssh"], &["systemctl enable --now ssh"], "another boot has other effects"),
    ] {
        for error in [both((bootcmd, &[], runcmd), NONE), both(NONE, (bootcmd, &[], runcmd))] {
            let error = error.map(|imported| document(&imported)).unwrap_err().to_string();
            assert!(
                error.contains("bootcmd: machines run it on each boot") && error.contains(expected),
                "{bootcmd:?}\n{error}"
            );
        }
    }
    for (bootcmd, runcmd) in [
        (&["echo a > /opt/f"][..], &[][..]),
        (&["mkdir -p /opt/d", "echo a > /opt/d/f"], &[]),
        // A line that fails stops nothing.
        (&["mkdir /opt/d", "echo a > /opt/d/f"], &[]),
        // Without cloud-init, there is no other boot.
        (&["echo a >> /opt/f"], OFF),
    ] {
        assert!(both((bootcmd, &[], runcmd), NONE).is_ok(), "{bootcmd:?}");
    }
}

#[test]
fn commands_of_a_phase_are_one_script() {
    for (lines, path, expected) in [
        (&["cd /opt", "echo x > f"][..], "/opt/f", Some("x\n")),
        (&["A=1", "echo \"[$A]\" > /opt/f"], "/opt/f", Some("[1]\n")),
        (&["export A=1", "sh -c \"echo [\\$A] > /opt/f\""], "/opt/f", Some("[1]\n")),
        (&["exit 0", "echo x > /opt/f"], "/opt/f", None),
        (&["f() { echo x > /opt/f; }", "f"], "/opt/f", Some("x\n")),
        (&["for i in 1 2; do", "echo $i >> /opt/f", "done"], "/opt/f", Some("1\n2\n")),
        (&["exec > /opt/f", "echo x"], "/opt/f", Some("x\n")),
        // Subshells go on after a failure.
        (&["echo $(false; echo hi) > /opt/f"], "/opt/f", Some("hi\n")),
        (&["(false; echo hi) > /opt/f"], "/opt/f", Some("hi\n")),
        (&["if :; then false; echo hi; fi | cat > /opt/f"], "/opt/f", Some("hi\n")),
        (&["set -e", "echo $(false; echo hi) > /opt/f"], "/opt/f", Some("\n")),
    ] {
        is(&both(NONE, (&[], &[], lines)), path, expected);
        is(&both(NONE, (lines, &[], OFF)), path, expected);
        is(&both((&[], &[], lines), NONE), path, expected);
    }
    let imported = both(NONE, (&[], &[], &["umask 077", "echo x > /opt/f"])).unwrap();
    assert_eq!(document(&imported)["files"]["/opt/f"]["mode"], "0600");
    // The other list is another script.
    is(&both(NONE, (&["A=1", "cd /opt"], &[], &["echo \"[$A]\" > f; cp f /opt/f"])), "/opt/f", Some("[]\n"));
}

#[test]
fn a_line_that_fails_stops_the_import() {
    let error = both(NONE, (&[], &[], &["test a = b", "echo x > /opt/f"])).unwrap_err().to_string();
    assert!(error.starts_with("provisioningConfig.runcmd:1"), "{error}");
    for line in ["echo $? > /opt/f", "echo $- > /opt/f", "echo $0 > /opt/f"] {
        let error = both(NONE, (&[], &[], &["systemctl start ssh", line])).unwrap_err().to_string();
        assert!(error.contains("is not supported in commands: move the command to a script in `files`"), "{error}");
    }
}

#[test]
fn files_are_placed_when_their_phase_begins() {
    let theirs = [("/opt/y", "theirs")];
    let seen = (&[][..], &[("/opt/x", "a")][..], &["cp /opt/x /opt/seen"][..]);
    let imported = both(seen, (&[], &[("/opt/x", "b")], &[]));
    is(&imported, "/opt/seen", Some("a"));
    is(&imported, "/opt/x", Some("b"));
    is(&both((&[], &[], &["echo mine > /opt/y"]), (&[], &theirs, &["cat /opt/y > /opt/z"])), "/opt/z", Some("theirs"));
    let asks = "test -e /opt/y || echo absent > /opt/f";
    is(&both((&[], &[], &[asks]), (&[], &theirs, &[])), "/opt/f", Some("absent\n"));
    // `bootcmd` runs before the files of its phase.
    is(&both(NONE, (&[asks], &theirs, &[])), "/opt/f", Some("absent\n"));
    is(&both((&["echo mine > /opt/y"], &theirs, OFF), NONE), "/opt/y", Some("theirs"));
    is(
        &both((&[], &[], &["test -e /opt/y || touch /opt/f"]), (&["test ! -e /opt/y || touch /opt/g"], &theirs, OFF)),
        "/opt/g",
        None,
    );
}

#[test]
fn scripts_have_the_environment_of_cloud_init() {
    let print = "echo \"${HOME-none} ${LC_ALL-none} ${DEBIAN_FRONTEND-none} ${A-none}\" > /opt/f";
    let expected = Some("none none none none\n");
    is(&both(NONE, (&[], &[("/etc/environment", "A=b")], &[print])), "/opt/f", expected);
    let unit = |more: &str| format!("[Service]\nType=oneshot\nExecStart=/opt/x\n{more}");
    for (more, expected) in [("", "none\n"), ("EnvironmentFile=-/etc/environment\n", "b\n")] {
        let unit = unit(more);
        let files = [
            ("/etc/environment", "A=b"),
            ("/opt/x", "#!/bin/sh\necho ${A-none} > /opt/f\n"),
            ("/etc/systemd/system/x.service", unit.as_str()),
        ];
        is(&both(NONE, (&[], &files, &["systemctl start x"])), "/opt/f", Some(expected));
    }
    is(&both(NONE, (&[], &[], &["sudo sh -c \"echo \\$HOME > /opt/f\""])), "/opt/f", Some("/root\n"));
    // The search path is that of systemd, and below sudo that of Debian's sudoers.
    let of_systemd = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin";
    let print = "sh -c \"echo \\$PATH > /opt/f\"";
    is(&both(NONE, (&[], &[], &[print])), "/opt/f", Some(&format!("{of_systemd}\n")));
    let of_sudo = Some(format!("{of_systemd}:/sbin:/bin\n"));
    is(&both(NONE, (&[], &[], &[&format!("sudo {print}")])), "/opt/f", of_sudo.as_deref());
    is(&both(NONE, (&[], &[], &[&format!("sudo sudo {print}")])), "/opt/f", of_sudo.as_deref());
}

/// A script that only a machine can run, which reads and writes files.
const ASKS: (&str, &str) =
    ("/opt/asks", "#!/bin/sh\nip route > /opt/route\ncat /opt/cfg >> /opt/list\necho ${N:-} $PWD; helper\n");

fn left(script: &str) -> Result<ImportedProfile, ImportError> {
    let files = [ASKS, ("/opt/cfg", "v1"), ("/usr/local/bin/helper", "#!/bin/sh\n:\n")];
    run(script, &files, &json!({}))
}

#[test]
fn the_first_boot_calls_scripts_as_they_were_called() {
    for (script, expected) in [
        ("/opt/asks; echo v2 > /opt/cfg", "/opt/cfg: it is changed after the call of /opt/asks"),
        ("/opt/asks; rm /opt/cfg", "/opt/cfg: it is removed after the call"),
        ("/opt/asks; echo b > /opt/list", "/opt/list: it is created after the call"),
        ("/opt/asks; echo b > /opt/route", "/opt/route: it is created after the call"),
        ("/opt/asks; rm /opt/asks", "/opt/asks: it is removed after the call"),
        ("/opt/asks; chmod 600 /opt/asks", "/opt/asks: it is changed after the call"),
        ("/opt/asks; sed -i s/route/addr/ /opt/asks", "/opt/asks: it is changed after the call"),
        ("N=1 /opt/asks", "with the variable N"),
        ("export N=1; /opt/asks", "with the variable N"),
        ("export PATH=/opt:$PATH; /opt/asks", "with the variable PATH"),
        ("umask 077; /opt/asks", "called with the umask 077"),
        ("/opt/asks <<E\nx\nE", "with input on stdin"),
        ("echo x | /opt/asks", "with input on stdin"),
        ("/opt/asks > /opt/log", "whose result the profile uses"),
        ("/opt/asks 2> /opt/log", "with stderr redirected"),
        ("{ /opt/asks; } 2>> /opt/log", "with stderr redirected"),
        ("exec 2> /opt/log; /opt/asks", "with stderr redirected"),
        ("exec 3> /opt/log; /opt/asks", "with an open descriptor above 2"),
        ("sed -i 1d /opt/asks; sh -c /opt/asks", "without an interpreter line (#!)"),
        ("/opt/asks; /opt/asks", "a second time"),
        ("for i in 1 2; do /opt/asks; done", "a second time"),
        ("set +e; /opt/asks; echo $? > /opt/status", "the exit status of `/opt/asks`"),
    ] {
        match left(script) {
            Ok(_) => panic!("{script} is imported"),
            Err(error) => assert!(error.to_string().contains(expected), "{script}: {error}"),
        }
    }
    let imported = left("cd /opt; /opt/asks").unwrap();
    let expected = json!([["/usr/bin/env", "--chdir=/opt", "/opt/asks"]]);
    assert_eq!(document(&imported)["first_boot"]["commands"], expected);
    for script in [
        "/opt/asks",
        "export M=1; /opt/asks; echo y > /opt/other",
        "helper; /opt/asks",
        "sudo /opt/asks",
        "/opt/asks 2> /dev/null",
        "/opt/asks 2>&1",
    ] {
        let imported = left(script).unwrap_or_else(|error| panic!("{script}: {error}"));
        assert_eq!(document(&imported)["first_boot"]["commands"], json!([["/opt/asks"]]), "{script}");
        // What the script calls by its name alone stays.
        assert!(content(&imported, "/usr/local/bin/helper").is_some(), "{script}");
    }
}
