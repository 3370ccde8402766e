//! Units of profiles: effects of starting them at build time, as in systemd, and refusals.

use serde_json::json;

use super::import::{content, document, run};

const SCRIPT: (&str, &str) = ("/opt/s", "#!/bin/sh\necho \"${1:-x} ${A:-unset}\" >> /opt/o");

/// A unit of `[Service]` and what follows.
fn service(text: &str) -> String {
    format!("[Service]\n{text}")
}

/// Imports a script with files in addition to `/opt/s`.
fn with(script: &str, files: &[(&str, &str)]) -> Result<vmbake_profile::import::ImportedProfile, String> {
    let files: Vec<(&str, &str)> = files.iter().copied().chain([SCRIPT]).collect();
    run(script, &files, &json!({})).map_err(|error| error.to_string())
}

#[test]
fn a_start_runs_what_systemd_runs() {
    for (script, unit, expected) in [
        ("systemctl start u; systemctl start u", "ExecStart=/opt/s", "x unset\nx unset\n"),
        ("systemctl start u; systemctl start u", "RemainAfterExit=yes\nExecStart=/opt/s", "x unset\n"),
        ("systemctl start u; systemctl restart u", "RemainAfterExit=yes\nExecStart=/opt/s", "x unset\nx unset\n"),
        ("systemctl start u; systemctl try-restart u", "RemainAfterExit=1\nExecStart=/opt/s", "x unset\nx unset\n"),
        (
            "systemctl start u; systemctl stop u; systemctl start u",
            "RemainAfterExit=on\nExecStart=/opt/s",
            "x unset\nx unset\n",
        ),
        ("systemctl start u", "ExecStart=/opt/s main\nExecStartPre=/opt/s pre", "pre unset\nmain unset\n"),
        ("systemctl start u", "ExecStart=/opt/s a\nExecStart=\nExecStart=/opt/s b", "b unset\n"),
        ("systemctl start u", "ExecStart=/opt/s\n[Unit]\nRequires=basic.target\nWants=v.service", "x unset\n"),
        ("systemctl start u", "# a \\\nExecStart=/opt/s a \\\n# b\n", "a unset\n"),
        ("echo A=b > /etc/environment; systemctl start u", "ExecStart=/opt/s a", "a unset\n"),
        (
            "echo A=b > /etc/environment; systemctl start u",
            "EnvironmentFile=/etc/environment\nExecStart=/opt/s a",
            "a b\n",
        ),
    ] {
        let unit = service(&format!("Type=oneshot\n{unit}"));
        let imported = with(script, &[("/etc/systemd/system/u.service", &unit)]).unwrap();
        assert_eq!(content(&imported, "/opt/o").as_deref(), Some(expected), "{script}\n{unit}");
    }
}

#[test]
fn waits_may_be_longer_than_the_timeout_of_a_unit() {
    let files = |timeout: &str| {
        let unit = service(&format!("Type=oneshot\nTimeoutStartSec={timeout}\nExecStart=/opt/w"));
        with(
            "systemctl start u",
            &[("/etc/systemd/system/u.service", &unit), ("/opt/w", "#!/bin/sh\nsleep 9; touch /opt/o")],
        )
    };
    for timeout in ["infinity", "0", ""] {
        assert_eq!(content(&files(timeout).unwrap(), "/opt/o").as_deref(), Some(""), "{timeout}");
    }
    let error = files("5s").map(|imported| document(&imported)).unwrap_err();
    assert!(error.contains("/opt/w:2: `sleep 9`: is refused: it waits in a unit with TimeoutStartSec="), "{error}");
}

#[test]
fn units_whose_start_does_more_are_refused() {
    let own = "/etc/systemd/system/u.service";
    let plain = "[Service]\nType=oneshot\nExecStart=/opt/s\n";
    for (script, files, expected) in [
        (
            "systemctl start u",
            vec![(own, plain), ("/etc/systemd/system/u.service.d/a.conf", "[Service]\nUser=a\n")],
            "a unit whose start /etc/systemd/system/u.service.d changes",
        ),
        (
            "systemctl start u",
            vec![(own, plain), ("/etc/systemd/system/service.d/a.conf", "[Service]\nUser=a\n")],
            "system/service.d changes",
        ),
        (
            "mkdir -p /run/systemd/system/u.service.wants; systemctl start u",
            vec![(own, plain)],
            "u.service.wants changes",
        ),
        (
            "systemctl start u",
            vec![(own, "[Unit]\nConditionPathExists=/a\n[Service]\nType=oneshot\nExecStart=/opt/s\n")],
            "ConditionPathExists=/a in a unit that scripts start",
        ),
        (
            "systemctl start u",
            vec![(own, "[Unit]\nRequires=basic.target v.service\n[Service]\nType=oneshot\nExecStart=/opt/s\n")],
            "a unit that requires v.service, which a machine may not have,",
        ),
        (
            "systemctl mask network-online.target; systemctl start u",
            vec![(own, "[Unit]\nRequires=network-online.target\n[Service]\nType=oneshot\nExecStart=/opt/s\n")],
            "a unit that requires network-online.target",
        ),
        (
            r"printf '[Service]\nType=oneshot\n# a\rUser=a\n' > /etc/systemd/system/u.service; systemctl start u",
            vec![(own, plain)],
            "a carriage return or a NUL in a unit",
        ),
        (
            "systemctl start u",
            vec![(own, "[Service]\nType=oneshot\nStandardOutput=append:/opt/log\nExecStart=/opt/s\n")],
            "StandardOutput=append:/opt/log in a unit that scripts start",
        ),
        (
            "systemctl start u",
            vec![
                (own, "[Unit]\nRequires=v.service\n[Service]\nType=oneshot\nExecStart=/opt/s\n"),
                ("/etc/systemd/system/v.service", plain),
            ],
            "a unit whose start also starts v.service, a unit of the profile,",
        ),
        (
            "systemctl enable v; systemctl start u",
            vec![
                (own, plain),
                ("/etc/systemd/system/v.service", "[Service]\nExecStart=/opt/s\n[Install]\nWantedBy=u.service\n"),
            ],
            "also starts v.service",
        ),
        (
            "systemctl start u v",
            vec![
                (own, "[Unit]\nAfter=v.service\n[Service]\nType=oneshot\nExecStart=/opt/s\n"),
                ("/etc/systemd/system/v.service", plain),
            ],
            "a start together with v.service",
        ),
        (
            "systemctl start u@a",
            vec![("/etc/systemd/system/u@.service", plain)],
            "/etc/systemd/system/u@.service and not /etc/systemd/system/u@a.service",
        ),
        (
            "systemctl start u",
            vec![("/usr/local/lib/systemd/system/u.service", plain)],
            "whose file is /usr/local/lib/systemd/system/u.service",
        ),
        ("systemctl start u", vec![("/lib/systemd/system/u.service", plain)], "/lib/systemd/system/u.service"),
        (
            "systemctl start u; echo '[Service]' > /etc/systemd/system/u.service",
            vec![(own, plain)],
            "it is changed after it was started",
        ),
        (
            "systemctl start u; echo '#' >> /etc/systemd/system/u.service; systemctl start u",
            vec![(own, plain)],
            "which was changed after its start",
        ),
        ("for i in 1 2 3 4 5 6; do systemctl start u; done", vec![(own, plain)], "for the sixth time"),
        (
            "echo 'touch /opt/x' > /opt/bare; chmod +x /opt/bare; systemctl start u",
            vec![(own, "[Service]\nType=oneshot\nExecStart=/opt/bare\n")],
            "/opt/bare, which lacks the interpreter line (#!) that systemd needs",
        ),
        (
            ": > /opt/bare; chmod +x /opt/bare; systemctl start u",
            vec![(own, "[Service]\nType=oneshot\nExecStartPre=/opt/bare\nExecStart=/opt/s\n")],
            "/opt/bare, which lacks the interpreter line",
        ),
        (
            "echo 'A=\"b c\"' > /etc/environment; systemctl start u",
            vec![(own, "[Service]\nType=oneshot\nEnvironmentFile=-/etc/environment\nExecStart=/opt/s\n")],
            "an /etc/environment with quotes",
        ),
        ("systemctl mask u || true", vec![(own, plain)], "does not mask such units"),
        ("systemctl mask a; systemctl enable a || true", vec![], "a.service is masked"),
        (
            "systemctl start u",
            vec![(own, "[Service]\nType=oneshot\nExecStart=/bin/systemctl restart u\n")],
            "restart of u.service while it runs",
        ),
        (
            "systemctl enable --now u; sleep 2; [ -e /opt/flag ] || touch /opt/r",
            vec![(own, "[Service]\nExecStart=/opt/s\n")],
            "the file /opt/flag",
        ),
    ] {
        let error = with(script, &files).expect_err(script);
        assert!(error.contains(expected), "{script}\n{error}");
    }
}

#[test]
fn the_last_word_on_a_unit_counts() {
    let daemon =
        [("/etc/systemd/system/u.service", "[Service]\nExecStart=/opt/s\n[Install]\nWantedBy=multi-user.target\n")];
    let services = |script: &str| {
        let layer = document(&with(script, &daemon).unwrap());
        (layer.pointer("/first_boot/services").cloned(), layer.pointer("/units/disable").cloned())
    };
    let (started, disabled) = (Some(json!([{"unit": "u.service"}])), Some(json!(["u.service"])));
    assert_eq!(services("systemctl enable u; systemctl disable u"), (None, disabled.clone()));
    assert_eq!(services("systemctl disable u; systemctl enable u"), (started.clone(), None));
    assert_eq!(services("systemctl enable --now u; systemctl stop u; systemctl disable u"), (None, disabled.clone()));
    assert_eq!(services("systemctl enable --now u; systemctl disable --now u"), (None, disabled));
    assert_eq!(services("systemctl start u; systemctl stop u; systemctl start u"), (started, None));
}

/// A machine starts at its first boot as at every other, so that what ran when a script stopped or started it does not matter.
#[test]
fn starts_and_stops_of_units_of_the_base_are_warnings() {
    let stop = "systemctl stop ssh.service: if the unit is enabled, machines start it at boot: disable or mask it to prevent that";
    let start =
        "systemctl start ssh.service: machines start the unit at boot only if it is enabled: enable it to ensure that";
    let [restart, reload] =
        ["restart", "reload-or-restart"].map(|verb| start.replace("start ssh", &format!("{verb} ssh")));
    for (script, expected) in [
        ("systemctl stop ssh", vec![stop]),
        ("systemctl stop ssh || true", vec![stop]),
        ("systemctl start ssh", vec![start]),
        ("systemctl stop ssh; systemctl start ssh", vec![start]),
        ("systemctl start ssh; systemctl stop ssh", vec![stop]),
        ("systemctl stop ssh; systemctl restart ssh; systemctl reload ssh", vec![&*restart]),
        ("systemctl restart ssh", vec![&*restart]),
        ("systemctl restart ssh || true", vec![&*restart]),
        ("systemctl restart ssh; systemctl enable ssh", vec![]),
        ("systemctl restart ssh; systemctl stop ssh", vec![stop]),
        ("systemctl reload-or-restart ssh", vec![&*reload]),
        ("systemctl try-restart ssh; systemctl try-reload-or-restart ssh; systemctl force-reload ssh", vec![]),
        ("systemctl reload ssh", vec![]),
        ("systemctl restart systemd-journald systemd-sysctl", vec![]),
        ("systemctl stop ssh; systemctl disable ssh", vec![]),
        ("systemctl disable --now ssh", vec![]),
        ("systemctl stop ssh; systemctl mask ssh", vec![]),
        ("systemctl start ssh; systemctl enable ssh", vec![]),
        ("systemctl enable --now ssh", vec![]),
    ] {
        assert_eq!(with(script, &[]).unwrap().report.warnings, expected, "{script}");
    }
    let own = [("/etc/systemd/system/u.service", "[Service]\nExecStart=/opt/s\n")];
    assert!(with("systemctl start u; systemctl stop u", &own).unwrap().report.warnings.is_empty());
    assert!(with("systemctl restart u", &own).unwrap().report.warnings.is_empty());
}

/// systemctl fails for these, or what it does depends on the processes of a running unit.
#[test]
fn reloads_of_inactive_units_and_signals_are_refused() {
    let text = "[Service]\nExecStart=/opt/s\n";
    let reloadable = format!("{text}ExecReload=/bin/kill -HUP $MAINPID\n");
    let reset = format!("{reloadable}ExecReload=\n");
    for (script, unit, expected) in [
        ("systemctl reload u", reloadable.as_str(), "reload of u.service, which is not active"),
        ("systemctl enable u; systemctl reload u || true", &reloadable, "reload of u.service, which is not active"),
        ("systemctl start u; systemctl stop u; systemctl reload u", &reloadable, "which is not active"),
        ("systemctl start u; systemctl reload u", text, "reload of u.service, which has no ExecReload="),
        ("systemctl start u; systemctl reload u", &reset, "which has no ExecReload="),
        ("systemctl stop ssh; systemctl reload ssh", text, "reload of ssh.service, which is not active"),
        ("systemctl kill ssh", text, "kill"),
        ("systemctl kill u || true", text, "kill"),
        ("systemctl isolate rescue.target", text, "isolate"),
    ] {
        let error = with(script, &[("/etc/systemd/system/u.service", unit)]).expect_err(script);
        assert!(error.contains(expected), "{script}\n{error}");
    }
    let own = [("/etc/systemd/system/u.service", reloadable.as_str())];
    assert!(with("systemctl start u; systemctl reload u", &own).is_ok());
}

#[test]
fn what_a_unit_of_the_image_starts_or_calls_stays() {
    let done = "[Service]\nType=oneshot\nExecStart=/opt/s\n";
    let unit = ("/etc/systemd/system/u.service", done);
    let timer = ("/etc/systemd/system/u.timer", "[Timer]\nOnCalendar=hourly\n[Install]\nWantedBy=timers.target\n");
    let wants =
        ("/etc/systemd/system/w.service", "[Unit]\nRequires=u.service\n[Service]\nExecStart=/usr/bin/sleep infinity\n");
    let after =
        ("/etc/systemd/system/w.service", "[Unit]\nAfter=u.service\n[Service]\nExecStart=/usr/bin/sleep infinity\n");
    for (files, stays) in
        [(vec![unit, timer], true), (vec![unit, wants], true), (vec![unit, after], false), (vec![unit], false)]
    {
        let layer = document(&with("systemctl start u", &files).unwrap());
        let has = |path: &str| layer["files"].get(path).is_some();
        assert_eq!((has(unit.0), has("/opt/s")), (stays, stays), "{files:?}");
    }
    let files = [
        ("/usr/local/bin/helper", "#!/bin/sh\ntouch /opt/made"),
        ("/etc/systemd/system/w.service", "[Service]\nExecStart=/bin/sh -c 'helper loop'\n"),
    ];
    assert!(document(&with("helper now", &files).unwrap())["files"].get("/usr/local/bin/helper").is_some());
}
