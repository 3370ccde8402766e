use super::*;

fn section(body: &str) -> Result<Effects, String> {
    let mut effects = Effects::default();
    let text = format!(
        "#!/bin/sh\nset -e\n# Automatically added by dh_installsystemd/13\n{body}\n# End automatically added section\n"
    );
    interpret(&text, Run::New, &mut effects).map(|_| effects)
}

#[test]
fn new_installations_enable_what_is_not_bound_to_an_earlier_one() {
    let enabled = "if [ \"$1\" = \"configure\" ] || [ \"$1\" = \"abort-upgrade\" ] ; then\n\
        deb-systemd-helper unmask 'a.service' >/dev/null || true\n\
        if deb-systemd-helper --quiet was-enabled 'a.service'; then\n\
        deb-systemd-helper enable 'a.service' >/dev/null || true\nelse\n\
        deb-systemd-helper update-state 'a.service' >/dev/null || true\nfi\nfi";
    let effects = section(enabled).unwrap();
    assert!(effects.enable.contains("a.service") && effects.record.contains("a.service"));

    let disabled = "if deb-systemd-helper debian-installed 'b.service'; then\n\
        deb-systemd-helper unmask 'b.service' >/dev/null || true\n\
        if deb-systemd-helper --quiet was-enabled 'b.service'; then\n\
        deb-systemd-helper enable 'b.service' >/dev/null || true\nfi\nfi\n\
        deb-systemd-helper update-state 'b.service' >/dev/null || true";
    let effects = section(disabled).unwrap();
    assert!(!effects.enable.contains("b.service") && effects.record.contains("b.service"));
}

#[test]
fn a_script_in_the_manner_of_debhelper() {
    let text = "#!/bin/sh\nset -e\ncase \"$1\" in\n    configure)\n        ldconfig\n\
        if [ -z \"${DPKG_ROOT:-}\" ] && [ -d /run/systemd/system ]; then\n\
        systemctl --system daemon-reload >/dev/null || true\n    if [ -n \"$2\" ]; then\n\
        deb-systemd-invoke try-restart a.service >/dev/null || true\n    fi\n  fi\n;;\nesac\nexit 0\n";
    assert_eq!(interpret(text, Run::New, &mut Effects::default()).unwrap().reason(), None);
    for line in ["adduser a", "deb-systemd-helper disable a.service", "chmod +x /etc/init.d/a"] {
        let more = text.replace("ldconfig", &format!("ldconfig\n{line}"));
        let reason = format!("the line {line:?}");
        assert_eq!(interpret(&more, Run::New, &mut Effects::default()).unwrap().reason(), Some(reason.as_str()));
    }
}

#[test]
fn every_kind_of_section() {
    let text = "if [ -z \"$DPKG_ROOT\" ] && [ -x \"/etc/init.d/d\" ]; then\nupdate-rc.d d defaults >/dev/null\n\
        if [ -n \"$2\" ]; then\n_dh_action=restart\nelse\n_dh_action=start\nfi\n\
        invoke-rc.d --skip-systemd-native d $_dh_action || exit 1\nfi\n\
        update-rc.d e defaults-disabled >/dev/null || exit 1\n\
        if [ -x \"$(command -v systemd-tmpfiles)\" ]; then\n\
        systemd-tmpfiles ${DPKG_ROOT:+--root=\"$DPKG_ROOT\"} --create d.conf e.conf || true\nfi\n\
        systemd-sysusers ${DPKG_ROOT:+--root=\"$DPKG_ROOT\"} d.conf\nldconfig\n\
        chmod +x \"/etc/init.d/d\" >/dev/null || true\n\
        dpkg-maintscript-helper rm_conffile /etc/d 2.13.1-2\\~ -- \"$@\"\n\
        update-alternatives --install /usr/bin/x x /usr/bin/y 10 \\\n    --slave /usr/man/x x.1 /usr/man/y";
    let effects = section(text).unwrap();
    assert_eq!(effects.init.into_iter().collect::<Vec<_>>(), [("d".to_owned(), true), ("e".to_owned(), false)]);
    assert_eq!((effects.tmpfiles.len(), effects.sysusers.len()), (2, 1));
    let alternative = &effects.alternatives[0];
    assert_eq!((alternative.link.as_str(), alternative.priority), ("/usr/bin/x", 10));
    assert_eq!(alternative.slaves["x.1"], ("/usr/man/x".to_owned(), "/usr/man/y".to_owned()));
}

#[test]
fn what_is_not_understood_is_refused() {
    for body in [
        "rm -rf /",
        "if rm -rf /; then",
        "if [ -e $(touch /x) ]; then",
        "if [ -x \"$(command -v systemd-tmpfiles; rm x)\" ]; then",
        "deb-systemd-helper enable 'a.service' ; rm x",
        "deb-systemd-helper --user enable 'a.service'",
        "deb-systemd-helper enable --now 'a.service'",
        "systemctl --system daemon-reload && rm x",
        "ldconfig || rm x",
        "if [ a ] || rm x ; then",
        "update-rc.d ../x defaults",
        "update-rc.d x remove",
        "systemd-tmpfiles --create --prefix=/x a.conf",
        "systemd-tmpfiles --create /tmp/a.conf",
        "chmod +x /usr/bin/x",
        "update-alternatives --install /x x /y z",
        "update-alternatives --remove x /y",
        "dpkg-maintscript-helper rm_conffile `touch x`",
        "dpkg-maintscript-helper rm_conffile \\; x",
        "chmod +x /etc/init.d/x \\\n/usr/bin/y",
        "deb-systemd-invoke restart a.service && rm x",
        "deb-systemd-helper unmask a.service || rm x",
        "invoke-rc.d a start | tee /x",
        "invoke-rc.d a start & rm x",
        "invoke-rc.d a start&rm x",
        "update-rc.d x defaults && rm x",
        "dpkg-maintscript-helper rm_conffile /x && rm x",
        "if deb-systemd-helper --quiet was-enabled a && rm x; then",
        "if [ a || rm x ]; then",
        "if [ a ]||rm ]; then",
        "# a \\\nrm x",
        "ldconfig # a \\\nrm x",
        "deb-systemd-invoke restart a \\ \nrm x",
        // Behind what looks like a comment.
        "deb-systemd-invoke restart 'a #' ; rm x",
        "deb-systemd-invoke restart \"a #\" && rm x",
        "ldconfig '' #\nrm x",
        // In quotes that end where a comment seems to be.
        "deb-systemd-invoke restart 'a\n# '; rm x",
        "deb-systemd-invoke restart \"a\n# \"; rm x",
        "deb-systemd-invoke restart 'a\\\n# '; rm x",
        "deb-systemd-invoke restart a <<X\n# X\nX\nrm x",
        "deb-systemd-invoke restart a <<'X'\nX",
        "deb-systemd-invoke restart \"$(rm x)\"",
        "deb-systemd-invoke restart \"`rm x`\"",
        "deb-systemd-invoke restart `rm x`",
        "deb-systemd-invoke restart ${x:=y}",
        "deb-systemd-invoke restart \"${x:-$(rm x)}\"",
        "deb-systemd-invoke restart a > /x",
        "deb-systemd-invoke restart a 2>/dev/null",
        "deb-systemd-invoke restart a >/dev/null >/x",
        "deb-systemd-invoke restart a\r; rm x",
        "ldconfig\r",
        "ldconfig\0",
        "# \0\nldconfig",
        "ldconfig\u{a0}",
        "\u{2003}ldconfig",
        "ldconfig\u{c}",
        "deb-systemd-invoke restart \u{fffd}",
        "deb-systemd-helper enable a*.service",
        "deb-systemd-helper enable $x",
        "deb-systemd-helper enable 'a b.service'",
        "systemd-tmpfiles --create ?.conf",
        "update-alternatives --install /x x $y 10",
        "'if' [ a ]; then",
        "if [ a ] 'then'",
        "ldconfig;; rm x",
        "ldconfig & rm x",
        "if [ a ]; rm x; then",
    ] {
        assert!(section(body).is_err(), "{body:?}");
    }
    for (text, expected) in [
        ("echo hello", "the line \"echo hello\""),
        ("# Automatically added by dh_other/1\n# End automatically added section", "a section of dh_other"),
    ] {
        assert_eq!(interpret(text, Run::New, &mut Effects::default()).unwrap().reason(), Some(expected));
    }
    for first in ["#!/usr/bin/perl", "#!/bin/rm -rf", "#!/bin/sh -c", "#!/bin/sh /x", "#! /usr/bin/env sh"] {
        let text = format!("{first}\nset -e\nexit 0\n");
        let rest = interpret(&text, Run::New, &mut Effects::default()).unwrap();
        assert_eq!(rest.reason(), Some(format!("the line {first:?}").as_str()));
    }
    for first in ["#!/bin/sh", "#! /bin/sh -e", "#!/bin/bash -eu", "#!/usr/bin/dash", "# none"] {
        let text = format!("{first}\nset -e\nexit 0\n");
        assert_eq!(interpret(&text, Run::New, &mut Effects::default()).unwrap().reason(), None, "{first}");
    }
    let generated = "# Automatically added by dh_makeshlibs/1\nldconfig\n# End automatically added section\n";
    for (before, after) in [("exit 0\n", ""), ("if [ -n \"$2\" ]; then\n", "fi\n")] {
        let rest = interpret(&format!("{before}{generated}{after}"), Run::New, &mut Effects::default()).unwrap();
        assert_eq!(rest.reason(), Some("a section of dh_makeshlibs, which not every installation reaches"));
    }
    let text = format!("if [ -n \"$2\" ]; then\ntrue\nfi\n{generated}exit 0\n");
    assert_eq!(interpret(&text, Run::New, &mut Effects::default()).unwrap().reason(), None);
    assert!(interpret("# Automatically added by dh_installinit/1\n", Run::New, &mut Effects::default()).is_err());
}
