//! update-rc.d, compared with the real one.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::bake_inputs::parts::{base_with, text};

use super::helpers::postinst;

/// Runs update-rc.d on the system in `$R`, and writes down what it leaves.
const JUDGE: &str = r#"
for l in 0 1 2 3 4 5 6 S; do mkdir -p $R/etc/rc$l.d; done
header() { printf '#!/bin/sh\n### BEGIN INIT INFO\n# Default-Start: %s\n# Default-Stop:\t%s\n### END INIT INFO\n' "$2" "$3" >$R/etc/init.d/$1; }
header reg '2 3 4 5' '0 1 6'; header s S ''; header none '' ''; echo text >$R/etc/init.d/nohead
chmod 755 $R/etc/init.d/*
u() {
    s=0
    DPKG_ROOT=$R update-rc.d "$@" 2>$R/err >>$R/said || s=$?
    echo "$ $*: $s" >>$R/said
    cat $R/err >>$R/said
    for f in $R/etc/rc?.d/*; do
        if [ -L $f ]; then echo "$f -> $(readlink $f)" >>$R/said; fi
    done
}
"#;

const CASES: [(&str, &str); 5] = [
    (
        "registered",
        "u reg defaults; u reg defaults-disabled; u reg remove; u -f reg remove; u s defaults; u none defaults; u nohead defaults",
    ),
    ("off at first", "u reg defaults-disabled; u reg defaults 20 80; u -f reg remove"),
    ("no script", "u nix defaults; u nix defaults-disabled; u nix enable; u nix disable; u nix remove; u x/y defaults"),
    (
        "own links",
        "ln -s ../init.d/reg $R/etc/rc3.d/S20reg; u reg defaults; chmod -x $R/etc/init.d/reg; u reg remove; u reg defaults\n\
         rm $R/etc/init.d/reg; u reg remove",
    ),
    ("usage", "u; u reg; u reg foo; u -x reg defaults; u --help; u -f"),
];

/// What the real one does in `/`: levels that are switched, status, and the links then.
const SWITCHED: [(&str, &str, &str); 9] = [
    ("disable 2 3", "0", "K01 K01 K20 S01 S01"),
    ("disable", "0", "K01 K01 K20 K01 K01"),
    ("enable 4", "0", "K01 K01 K20 S01 K01"),
    ("enable S", "1", "K01 K01 K20 S01 K01"),
    ("disable 7 4", "0", "K01 K01 K20 K01 K01"),
    ("enable 1", "1", "K01 K01 K20 K01 K01"),
    ("enable", "0", "S01 S01 S20 S01 S01"),
    ("enable", "0", "S01 S01 S20 S01 S01"),
    ("disable foo", "1", "S01 S01 S20 S01 S01"),
];

#[test]
fn scripts_are_switched_on_and_off() {
    let commands: String = SWITCHED
        .iter()
        .map(|(action, ..)| {
            format!(
                "s=0; update-rc.d reg {action} || s=$?\n\
                echo \"$s\" $(cd /etc; ls rc2.d rc3.d rc4.d rc5.d | sed -n 's/reg$//p') >>/said\n"
            )
        })
        .collect();
    let script = "#!/bin/sh\n### BEGIN INIT INFO\n# Default-Start: 2 3 4 5\n### END INIT INFO\n";
    let first = "update-rc.d reg defaults\nln -s ../init.d/reg /etc/rc3.d/S20reg\n";
    let tree = postinst(base_with(&[("/etc/init.d/reg", script)]), &format!("{first}{commands}")).unwrap();
    let expected: String = SWITCHED.iter().map(|(_, status, links)| format!("{status} {links}\n")).collect();
    assert_eq!(text(&tree, "/said"), expected);
    let lines = "if update-rc.d none enable 2>/said; then exit 1; fi\nif update-rc.d reg disable 2>>/said; then exit 1; fi\n\
        update-rc.d reg start 20 2 . stop 20 0 . 2>>/said\nupdate-rc.d reg enable 7 2 2>>/said";
    let base = base_with(&[("/etc/init.d/none", "#!/bin/sh\n"), ("/etc/init.d/reg", script)]);
    let tree = postinst(base, lines).unwrap();
    let expected = "update-rc.d: error: none Default-Start contains no runlevels, aborting.\n\
        update-rc.d: error: no runlevel symlinks to modify, aborting!\n\
        update-rc.d: warning: start and stop actions are no longer supported; falling back to defaults\n\
        update-rc.d: warning: enable action will have no effect on runlevel 7\n\
        Failed to enable unit: Unit reg.service does not exist\n";
    assert_eq!(text(&tree, "/said"), expected);
}

#[test]
fn scripts_are_registered_as_with_update_rc_d() {
    if !Path::new("/usr/sbin/update-rc.d").exists() {
        println!("skipped: update-rc.d is not here");
        return;
    }
    for (label, lines) in CASES {
        let tree = postinst(base_with(&[("/etc/init.d/other", "")]), &format!("R=\n{JUDGE}\n{lines}")).expect(label);
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_str().unwrap();
        fs::create_dir_all(format!("{root}/etc/init.d")).unwrap();
        let output = Command::new("sh")
            .args(["-c", &format!("set -e\nR={root}\n{JUDGE}\n{lines}")])
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("LC_ALL", "C.UTF-8")
            .output()
            .unwrap();
        assert!(output.status.success(), "{label}: {}", String::from_utf8_lossy(&output.stderr));
        let expected = fs::read_to_string(format!("{root}/said")).unwrap().replace(root, "");
        assert_eq!(text(&tree, "/said"), expected, "{label}");
    }
}

#[test]
fn the_unit_of_the_name_is_switched_too() {
    let script = "#!/bin/sh\n### BEGIN INIT INFO\n# Default-Start: 2\n### END INIT INFO\n";
    let unit = "[Install]\nWantedBy=multi-user.target\n";
    let base = || base_with(&[("/etc/init.d/reg", script), ("/usr/lib/systemd/system/reg.service", unit)]);
    let wants = b"/etc/systemd/system/multi-user.target.wants/reg.service";
    let tree = postinst(base(), "update-rc.d reg defaults\nupdate-rc.d reg enable").unwrap();
    assert!(tree.lookup(wants).is_some());
    let tree = postinst(base(), "update-rc.d reg defaults\nupdate-rc.d reg enable\nupdate-rc.d reg disable").unwrap();
    assert!(tree.lookup(wants).is_none() && tree.lookup(b"/etc/rc2.d/K01reg").is_some());
}
