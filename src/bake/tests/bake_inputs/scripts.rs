//! Maintainer scripts: what they do, what a layer says instead, and what waits for the first boot.

use vmbake_common::digest::Digest;
use vmbake_disk::tree::{Inode, Kind, Metadata, Timestamp, Tree};

use super::parts::{
    BASE_STATUS, Part, bake_onto, base_with, control, deb, dir, file, hint, link, owned, package, text,
};

/// As that of Debian's docker-registry: an account, modes, a System V script, a unit.
const SERVICE: &str = "#!/bin/sh\nset -e\n\nif [ \"$1\" = 'configure' ]; then\n\tadduser --system --group registry\n\
    \tchmod 0755 /etc/reg\n\tchown registry:registry /var/lib/registry\nfi\n\
    # Automatically added by dh_installinit/13.24.2\n\
    if [ \"$1\" = \"configure\" ] || [ \"$1\" = \"abort-upgrade\" ] ; then\n\
    \tif [ -z \"$DPKG_ROOT\" ] && [ -x \"/etc/init.d/reg\" ]; then\n\t\tupdate-rc.d reg defaults >/dev/null\n\
    \t\tif [ -n \"$2\" ]; then\n\t\t\t_dh_action=restart\n\t\telse\n\t\t\t_dh_action=start\n\t\tfi\n\
    \t\tinvoke-rc.d --skip-systemd-native reg $_dh_action || exit 1\n\tfi\nfi\n# End automatically added section\n\
    # Automatically added by dh_installsystemd/13.24.2\n\
    if [ \"$1\" = \"configure\" ] ; then\n\tif deb-systemd-helper --quiet was-enabled 'reg.service'; then\n\
    \t\tdeb-systemd-helper enable 'reg.service' >/dev/null || true\n\tfi\nfi\n# End automatically added section\nexit 0\n";

/// One of its lines is not known.
const QUIET: &str = "#!/bin/sh\nset -e\n\ncase \"$1\" in\n    configure)\n        update-alternatives --config\n        if [ -n \"$2\" ]; then\n\
    \x20           deb-systemd-invoke try-restart own.service\n        fi\n        ;;\nesac\n";

const INIT: &str = "#!/bin/sh\n### BEGIN INIT INFO\n# Provides: reg\n# Default-Start:  2 3\n# Default-Stop:\t0 6\n\
    ### END INIT INFO\n# Default-Start: 5\n";

fn entry(package: &str, script: &str, content: &str, more: &str) -> String {
    let sha256 = Digest::of(content.as_bytes()).hex();
    format!(r#", "scripts": [{{"package": "{package}", "script": "{script}", "sha256": "{sha256}"{more}}}]"#)
}

fn service() -> Part {
    service_with(SERVICE)
}

fn service_with(postinst: &str) -> Part {
    let data = [
        dir("./etc/"),
        owned(dir("./etc/reg/"), 0o700, 0, 0),
        dir("./etc/init.d/"),
        owned(file("./etc/init.d/reg", INIT), 0o755, 0, 0),
        file("./usr/lib/systemd/system/reg.service", "[Install]\nWantedBy=multi-user.target\n"),
        dir("./var/lib/registry/"),
    ];
    package("reg", deb(&control("reg", ""), &[("postinst", postinst)], &data))
}

const EFFECTS: &str = r#", "users": ["registry"], "groups": ["registry"],
    "directories": {"/var/lib/registry": {"mode": "0755", "owner": "registry", "group": "registry"}},
    "files": {"/etc/reg": {"mode": "0755"}}, "symlinks": {"/etc/reg/link": "../x"}, "units": {"enable": ["own.service"]}"#;
const USERS: &str = r#", "users": {"registry": {"id": 901, "home": "/nonexistent"}}"#;

fn run(part: Part, keys: &str) -> Result<Tree, String> {
    run_all(&[part], keys)
}

fn run_all(parts: &[Part], keys: &str) -> Result<Tree, String> {
    let unit = "[Install]\nWantedBy=timers.target\n";
    bake_onto(base_with(&[("/usr/lib/systemd/system/own.service", unit)]), parts, keys)
}

#[test]
fn a_service_is_installed() {
    let script =
        SERVICE.replace("\tadduser --system --group registry\n", "").replace("registry:registry", "daemon:daemon");
    let part = service_with(&script);
    let base =
        base_with(&[("/etc/passwd", "root:x:0:0::/:\ndaemon:x:1:1::/:\n"), ("/etc/group", "root:x:0:\ndaemon:x:1:\n")]);
    let tree = bake_onto(base, &[part], "").unwrap();
    let meta = |path: &str| tree.inode(tree.lookup(path.as_bytes()).unwrap()).meta.clone();
    let (home, folder) = (meta("/var/lib/registry"), meta("/etc/reg"));
    assert_eq!((home.mode, home.uid, home.gid, folder.mode), (0o755, 1, 1, 0o755));
    for (path, expected) in [
        ("/etc/rc2.d/S01reg", true),
        ("/etc/rc3.d/S01reg", true),
        ("/etc/rc0.d/K01reg", true),
        ("/etc/rc6.d/K01reg", true),
        ("/etc/rc5.d/S01reg", false),
    ] {
        assert_eq!(tree.lookup(path.as_bytes()).is_some(), expected, "{path}");
    }
    assert_eq!(link(&tree, "/etc/rc2.d/S01reg"), "../init.d/reg");
    assert!(tree.lookup(b"/etc/systemd/system/multi-user.target.wants/reg.service").is_some());
}

#[test]
fn a_layer_says_what_a_script_does_instead() {
    let keys = entry("reg", "postinst", SERVICE, EFFECTS);
    let tree = run(service(), &format!("{keys}{USERS}")).unwrap();
    let meta = |path: &str| tree.inode(tree.lookup(path.as_bytes()).unwrap()).meta.clone();
    let (home, folder) = (meta("/var/lib/registry"), meta("/etc/reg"));
    assert_eq!((home.mode, home.uid, home.gid, folder.mode), (0o755, 901, 901, 0o755));
    assert_eq!(link(&tree, "/etc/reg/link"), "../x");
    assert!(tree.lookup(b"/etc/systemd/system/timers.target.wants/own.service").is_some());
    assert!(
        tree.lookup(b"/etc/systemd/system/multi-user.target.wants/reg.service").is_none(),
        "the script did not run"
    );

    let error = run(service(), &keys).unwrap_err();
    assert_eq!(error, "reg: its scripts need the user registry, which no layer creates");
    let tree = run(service(), &entry("reg", "postinst", SERVICE, r#", "skip": "its registry is not used""#)).unwrap();
    assert!(tree.lookup(b"/etc/systemd/system/multi-user.target.wants/reg.service").is_none());
}

#[test]
fn what_a_layer_says_is_about_one_script_only() {
    let part = |fields: &str| package("own", deb(&control("own", fields), &[("postinst", QUIET)], &[]));
    run(part(""), &entry("own", "postinst", QUIET, "")).unwrap();
    for keys in [
        String::new(),
        entry("other", "postinst", QUIET, ""),
        entry("own", "preinst", QUIET, ""),
        entry("own", "postinst", &QUIET.replace("--config", "--other"), ""),
    ] {
        let error = run(part(""), &keys).unwrap_err();
        assert!(
            error.contains("own: its postinst (sha256 ") && error.contains("own.postinst:6: update-alt"),
            "{error}"
        );
    }
}

/// The hint about a script that does not run leads to an entry that demands the accounts, and names the rest.
#[test]
fn a_hint_names_what_a_script_creates() {
    let creates = "useradd -r agent\naddgroup --system readers\nmkdir -p /var/lib/agent\nsystemctl enable agent\n";
    let unknown = format!("#!/bin/sh\n{creates}update-alternatives --config\n");
    let part = |script: &'static str| package("own", deb(&control("own", ""), &[(script, &unknown)], &[]));
    let hint_of = |part: Part| hint(&[part], "").unwrap();
    let listed = "user agent, group readers, directory /var/lib/agent, enabled unit agent";
    let preinst = hint_of(part("preinst"));
    let sha256 = Digest::of(unknown.as_bytes()).hex();
    let entry = format!(
        "\"sha256\": \"{sha256}\", \"users\": [\"agent\"], \"groups\": [\"readers\"]}}, which skips the script; "
    );
    assert!(preinst.contains(&entry) && preinst.contains(&format!("or the first boot fails: {listed}; ")), "{preinst}");
    let postinst = hint_of(part("postinst"));
    let entry = format!(
        "\"sha256\": \"{sha256}\", \"defer\": true}}, which defers the script to the first boot; until then the image lacks: {listed}; "
    );
    assert!(postinst.contains(&entry), "{postinst}");

    let fails =
        package("own", deb(&control("own", ""), &[("postinst", "#!/bin/sh\nmkdir /var/lib/agent\nfalse\n")], &[]));
    let hint = hint_of(fails);
    assert!(hint.starts_with("the script also fails on a machine") && !hint.contains("defer"), "{hint}");
    assert!(hint.contains("directory /var/lib/agent"), "{hint}");

    let keys = entry_with_accounts(&unknown);
    let error = run(part("preinst"), &keys).unwrap_err();
    assert_eq!(error, "own: its scripts need the user agent, which no layer creates");
}

fn entry_with_accounts(script: &str) -> String {
    entry("own", "preinst", script, r#", "users": ["agent"], "groups": ["readers"]"#)
}

/// What a script did until it turned out that it has to wait is taken back, and it waits with those that need its package.
#[test]
fn a_script_that_needs_the_machine_waits() {
    let script = "#!/bin/sh\nset -e\nmkdir /usr/made\nchmod 0700 /etc/awaits.conf\nssh-keygen -q -f /usr/made/key\n";
    let waits = package(
        "awaits",
        deb(&control("awaits", "Provides: keys\n"), &[("postinst", script)], &[file("./etc/awaits.conf", "")]),
    );
    let after = "#!/bin/sh\nmkdir /usr/after\n";
    let needs = package("needs", deb(&control("needs", "Depends: keys\n"), &[("postinst", after)], &[]));
    let other = package("other", deb(&control("other", ""), &[("postinst", after)], &[]));
    let tree = run_all(&[waits, needs, other], "").unwrap();
    assert!(tree.lookup(b"/usr/made").is_none());
    assert_eq!(tree.inode(tree.lookup(b"/etc/awaits.conf").unwrap()).meta.mode, 0o644);
    assert!(tree.lookup(b"/usr/after").is_some(), "another package is configured");
    let status = text(&tree, "/var/lib/dpkg/status");
    for (name, state) in [("awaits", "unpacked"), ("needs", "unpacked"), ("other", "installed")] {
        assert!(status.contains(&format!("Package: {name}\nStatus: install ok {state}\n")), "{name}: {status}");
    }
    assert!(tree.lookup(b"/var/lib/vmbake/configure-packages").is_some());

    let early = package("early", deb(&control("early", ""), &[("preinst", script)], &[]));
    let error = run(early, "").unwrap_err();
    assert!(error.contains("early.preinst:4: ") || error.contains("fails with status"), "{error}");
    let early = package("early", deb(&control("early", ""), &[("preinst", "#!/bin/sh\nhostname -f\n")], &[]));
    let error = run(early, "").unwrap_err();
    assert!(
        error.contains("cannot run during a bake, and only a postinst can be deferred to the first boot"),
        "{error}"
    );
    let perl = package("pl", deb(&control("pl", ""), &[("postinst", "#!/usr/bin/perl -w\nprint 1;\n")], &[]));
    let base = base_with(&[("/usr/bin/perl", "#!/bin/sh\n")]);
    let status = text(&bake_onto(base, &[perl], "").unwrap(), "/var/lib/dpkg/status");
    assert!(status.contains("Package: pl\nStatus: install ok unpacked\n"), "{status}");
}

/// As the packages of agents do that ask for the init system of the machine, here and in `postinst`.
#[test]
fn a_script_knows_process_1() {
    let script = "#!/bin/sh\nif [ $(cat /proc/1/comm) = systemd ]; then systemctl enable reg; fi\n\
        read -r name </proc/1/comm\ngrep -q \"^$name$\" /proc/1/comm && touch /usr/known\n";
    let unit = file("./usr/lib/systemd/system/reg.service", "[Install]\nWantedBy=multi-user.target\n");
    let scripts = [("preinst", "#!/bin/sh\nread -r name </proc/1/comm\n"), ("postinst", script)];
    let part = package("reg", deb(&control("reg", ""), &scripts, &[unit]));
    let mut base = base_with(&[("/usr/lib/systemd/systemd", "")]);
    let error = bake_onto(base.clone(), std::slice::from_ref(&part), "").unwrap_err();
    assert!(error.contains("depends on the running machine: /proc/1/comm"), "{error}");
    let meta = Metadata::root(0o777, Timestamp::default());
    let (kind, origin) = (Kind::Symlink(b"/usr/lib/systemd/systemd".to_vec()), base.first_origin());
    base.make_dirs(b"/sbin", &meta, origin).unwrap();
    base.place(b"/sbin/init", Inode { meta, kind, origin }).unwrap();
    let tree = bake_onto(base, &[part], "").unwrap();
    assert!(tree.lookup(b"/usr/known").is_some());
    assert!(tree.lookup(b"/etc/systemd/system/multi-user.target.wants/reg.service").is_some());
}

/// All packages are unpacked before the first is configured, as dpkg does with those of one call.
#[test]
fn packages_are_configured_when_all_are_unpacked() {
    let script = "#!/bin/sh\n[ -e /usr/share/b/file ]\n";
    let a = package("a", deb(&control("a", ""), &[("postinst", script)], &[]));
    let b = package(
        "b",
        deb(&control("b", ""), &[], &[dir("./usr/share/"), dir("./usr/share/b/"), file("./usr/share/b/file", "")]),
    );
    run_all(&[a, b], "").unwrap();
}

#[test]
fn a_deferred_package_is_configured_on_the_first_boot() {
    let tree = run(service(), &entry("reg", "postinst", SERVICE, r#", "defer": true"#)).unwrap();
    let status = text(&tree, "/var/lib/dpkg/status");
    assert!(status.contains("Package: reg\nStatus: install ok unpacked\n"), "{status}");
    assert_eq!(text(&tree, "/etc/init.d/reg"), INIT);
    for path in ["/etc/rc2.d/S01reg", "/etc/systemd/system/multi-user.target.wants/reg.service"] {
        assert!(tree.lookup(path.as_bytes()).is_none(), "{path}: nothing of the script is done");
    }
    let unit = "/usr/lib/systemd/system/vmbake-configure-packages.service";
    let wants = "/etc/systemd/system/multi-user.target.wants/vmbake-configure-packages.service";
    assert_eq!(link(&tree, wants), unit);
    let lines = text(&tree, unit);
    let condition = lines.lines().find_map(|line| line.strip_prefix("ConditionPathExists=")).unwrap();
    assert!(tree.lookup(condition.as_bytes()).is_some(), "it runs");
    assert!(lines.contains(&format!("ExecStartPost=/usr/bin/rm -f {condition}\n")), "once");
    assert!(lines.contains("ExecStart=/usr/bin/dpkg --configure --pending\n"));

    let preinst = package("own", deb(&control("own", ""), &[("preinst", QUIET)], &[]));
    let error = run(preinst, &entry("own", "preinst", QUIET, r#", "defer": true"#)).unwrap_err();
    assert!(error.contains("is deferred by a layer, but only a postinst"), "{error}");
}

#[test]
fn accounts_of_systemd() {
    let script = |command: &str| {
        format!(
            "#!/bin/sh\n# Automatically added by dh_installsysusers/13\n{command}\n# End automatically added section\n"
        )
    };
    let sysusers = script("systemd-sysusers ${DPKG_ROOT:+--root=\"$DPKG_ROOT\"} own.conf");
    let run = |script: &str, config: &str, content: &str| {
        let data = [file(&format!("./usr/lib/{config}"), content)];
        let part = package("own", deb(&control("own", ""), &[("postinst", script)], &data));
        let base = base_with(&[
            ("/etc/passwd", "root:x:0:0::/:\nhas:x:5:5::/:\n"),
            ("/etc/group", "root:x:0:\nhas:x:5:root\n"),
        ]);
        bake_onto(base, &[part], "")
    };
    let fine = "# comment\nu has - \"Has\" /\nu! has 5:0\ng has -\nm root has\nr - 500-900\n";
    run(&sysusers, "sysusers.d/own.conf", fine).unwrap();
    let tree = run(&sysusers, "sysusers.d/own.conf", "u new -\nm new has\n").unwrap();
    assert!(text(&tree, "/etc/passwd").ends_with("new:x:999:999::/:/usr/sbin/nologin\n"));
    assert_eq!(text(&tree, "/etc/group"), "root:x:0:\nhas:x:5:root,new\nnew:x:999:\n");
    let error = run(&sysusers, "sysusers.d/own.conf", "x y\n").unwrap_err();
    assert!(error.contains("/usr/lib/sysusers.d/own.conf: line \"x y\" is invalid"), "{error}");
    let error = run(&sysusers, "sysusers.d/other.conf", "").unwrap_err();
    assert_eq!(error, "/usr/lib/sysusers.d/own.conf: is used by a script, but not contained in any package");
}

#[test]
fn scripts_of_system_v_are_registered_once() {
    let links = ["/etc/rc2.d/S01reg", "/etc/rc0.d/K01reg"];
    let script = "#!/bin/sh\n# Automatically added by dh_installinit/13\nupdate-rc.d reg COMMAND >/dev/null || exit 1\n\
        # End automatically added section\n";
    let run = |mode: u32, command: &str, base: Tree| {
        let data = [owned(file("./etc/init.d/reg", INIT), mode, 0, 0)];
        let part =
            package("reg", deb(&control("reg", ""), &[("postinst", &script.replace("COMMAND", command))], &data));
        let tree = bake_onto(base, &[part], "").unwrap();
        links.map(|path| tree.lookup(path.as_bytes()).is_some())
    };
    let base = || base_with(&[("/var/lib/dpkg/status", BASE_STATUS)]);
    assert_eq!(run(0o755, "defaults", base()), [true, true]);
    assert_eq!(run(0o755, "defaults-disabled", base()), [false, true]);
    assert_eq!(run(0o644, "defaults", base()), [true, true], "no program");
    assert_eq!(run(0o755, "defaults", base_with(&[("/etc/rc5.d/K20reg", "")])), [false, false], "the base has some");
    assert_eq!(run(0o755, "defaults", base_with(&[("/etc/rc5.d/K20other", "")])), [true, true]);
}

#[test]
fn ucf_keeps_what_is_there() {
    // It goes by what dpkg says of `--force-confold`.
    let postinst = "#!/bin/sh\nset -e\necho \"$DPKG_FORCE\" >/etc/force\n";
    let tree = run(service_with(postinst), "").unwrap();
    assert_eq!(text(&tree, "/etc/force"), "security-mac,downgrade,confold\n");
}
