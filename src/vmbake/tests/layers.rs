//! `vmbake layer` and `vmbake schema`: all errors of a layer are found, with file, line and column, and a bake finds the same.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

fn vmbake(args: &[&OsStr]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vmbake")).args(args).output().unwrap()
}

/// Writes a layer whose keys after `os` begin on line 2.
fn layer(root: &Path, name: &str, rest: &str) {
    fs::create_dir_all(root.join(name)).unwrap();
    let head = format!(r#"{{"name": "{name}", "version": "1", "description": "d", "os": ["o"]"#);
    fs::write(root.join(name).join("layer.json"), format!("{head}{rest}\n}}\n")).unwrap();
}

/// What `vmbake layer check` prints, without the directory, and whether it found the layer good.
fn check(dir: &Path) -> (Vec<String>, bool) {
    let output = vmbake(&["layer".as_ref(), "check".as_ref(), dir.as_os_str()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    let prefix = format!("{}/", dir.display());
    (text.lines().map(|line| line.replace(&prefix, "")).collect(), output.status.success())
}

/// A base from before a point release has earlier revisions of packages: no layer that is built in stops at them.
#[test]
fn layers_that_are_built_in_upgrade_their_packages() {
    let mut packages = 0;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../layers")).unwrap() {
        let Ok(text) = fs::read_to_string(entry.unwrap().path().join("layer.json")) else { continue };
        let layer: serde_json::Value = serde_json::from_str(&text).unwrap();
        let debs = layer["artifacts"].as_object().into_iter().flatten().filter(|(_, install)| install["type"] == "deb");
        for (artifact, _) in debs {
            packages += 1;
            let upgrade = layer["upgrade"].as_array().unwrap_or_else(|| panic!("{}: no `upgrade`", layer["name"]));
            assert!(upgrade.contains(&artifact.as_str().into()), "{}: {artifact}", layer["name"]);
        }
    }
    assert!(packages > 10, "{packages}");
}

/// A fault of each kind; `¦` stands where it begins.
const FAULTS: &[(&str, &str)] = &[
    (r#""requires": [¦"none"]"#, "layer none does not exist"),
    (r#""requires": [¦"a"]"#, "dependency cycle of layers: a -> a"),
    (r#""requires": ["ok", ¦"ok"]"#, "duplicate \"ok\""),
    (r#""artifacts": {¦"A": {"type": "deb"}}"#, "name \"A\" is invalid: expected lowercase letters"),
    (r#""artifacts": {"x": {"type": "file", "path": ¦"x", "mode": "0755"}}"#, "path \"x\" is not absolute"),
    (r#""artifacts": {"x": {"type": "file", "path": "/x", "mode": ¦"4755"}}"#, "mode 4755 has set-uid"),
    (
        r#""artifacts": {"x": {"type": "tar", "path": "/x", "members": [¦"../y"]}}"#,
        "member \"../y\" is not absolute or contains",
    ),
    (r#""artifacts": {"x": {"type": "deb"}}, "upgrade": [¦"Y"]"#, "\"Y\" is not a valid package name"),
    (r#""artifacts": {"x": {"type": "deb"}}, "upgrade": ["x", ¦"x"]"#, "duplicate \"x\""),
    (
        r#""artifacts": {"x": {"type": "file", "path": "/x", "mode": "0755"}}, "upgrade": [¦"x"]"#,
        "artifact \"x\" is not a package",
    ),
    (
        r#""packages": [¦"Nginx"]"#,
        "\"Nginx\" is not a valid package name: expected at least two lowercase letters, digits",
    ),
    (
        r#""packages": [¦"nginx:arm64"]"#,
        "\"nginx:arm64\" names the architecture \"arm64\": images only contain packages of their architecture",
    ),
    (r#""packages": [¦"nginx="]"#, "version \"\" is invalid: expected letters"),
    (r#""packages": [¦"nginx=1.2 "]"#, "version \"1.2 \" is invalid: expected letters"),
    (r#""packages": ["nginx", ¦"nginx=1.*"]"#, "duplicate \"nginx\""),
    (r#""packages": [¦"nginx"], "without": ["nginx"]"#, "\"nginx\" is also in `without`"),
    (
        r#""artifacts": {"nginx": {"type": "deb"}}, "packages": [¦"nginx"]"#,
        "\"nginx\" is already an artifact of the layer",
    ),
    (r#""packages": ["nginx"], "recommends": [¦"Nginx"]"#, "\"Nginx\" is not a valid package name"),
    (r#""packages": ["nginx"], "hold": [¦"x y"]"#, "\"x y\" is not a valid package name"),
    (r#""recommends": ¦true"#, "`recommends` requires `packages` or `upgrade`"),
    (r#""archive": ¦"a""#, "`archive` requires `packages` or `upgrade`"),
    (r#""upgrade": [¦"libc6"], "hold": ["libc6"]"#, "\"libc6\" is also in `hold`"),
    (
        r#""scripts": [{"package": "p", "script": ¦"prerm", "sha256": "00"}]"#,
        "script \"prerm\" requires `\"upgrade\": true` or `\"remove\": true`",
    ),
    (r#""remove_packages": [¦"Nano"]"#, "\"Nano\" is not a valid package name"),
    (r#""remove_packages": ["nano", ¦"nano"]"#, "duplicate \"nano\""),
    (r#""remove_packages": [¦"nano"], "packages": ["nano"]"#, "\"nano\" is also in `packages`"),
    (r#""remove_packages": [¦"nano"], "hold": ["nano"]"#, "\"nano\" is also in `hold`"),
    (r#""remove_packages": [¦"nano"], "upgrade": ["nano"]"#, "\"nano\" is also in `upgrade`"),
    (r#""artifacts": {"nano": {"type": "deb"}}, "remove_packages": [¦"nano"]"#, "\"nano\" is an artifact of the layer"),
    (
        r#""scripts": [{"package": "p", "script": ¦"postinst", "sha256": "00", "remove": true}]"#,
        "script \"postinst\" does not run when a package is removed",
    ),
    (
        r#""scripts": [{"package": "p", "script": ¦"config", "sha256": "00"}]"#,
        "invalid script \"config\": expected preinst or postinst",
    ),
    (r#""groups": {¦"G": 5}"#, "name \"G\" is not valid for useradd"),
    (r#""groups": {"g": 5, "h": ¦5}"#, "id 5 is already used by g"),
    (r#""groups": {"g": ¦0}"#, "id 0 is not between 1 and 65533"),
    (r#""users": {"u": {"id": 901, "home": ¦"u"}}"#, "path \"u\" is not absolute"),
    (r#""users": {"u": {"id": 901, "groups": [¦"nobodys"]}}"#, "group \"nobodys\" is created neither by"),
    (
        r#""users": {"u": {"id": 901, "subordinate": ¦{"start": 4294967295, "count": 2}}}"#,
        "invalid range of subordinate ids: 2 ids from 4294967295",
    ),
    (r#""directories": {"/x": {"mode": "0750", "owner": ¦"who"}}"#, "user \"who\" is created neither by"),
    (r#""directories": {"/x": {"mode": "0750", "group": ¦"who"}}"#, "group \"who\" is created neither by"),
    (r#""directories": {¦"/x/../y": {"mode": "0750"}}"#, "path \"/x/../y\" is not absolute or contains `..`"),
    (r#""directories": {¦"x": {"mode": "0750"}}"#, "path \"x\" is not absolute"),
    (r#""directories": {¦"/x/": {"mode": "0750"}}"#, "path \"/x/\" contains an empty name"),
    (
        r#""directories": {¦"/x\n": {"mode": "0750"}}"#,
        "path \"/x\\n\" contains a control, bidirectional or zero-width character",
    ),
    (
        r#""directories": {¦"/x\u0000": {"mode": "0750"}}"#,
        "path \"/x\\0\" contains a control, bidirectional or zero-width character",
    ),
    (
        r#""directories": {"/x": {"mode": ¦"2777"}}"#,
        "mode 2777 makes a directory with set-uid or set-gid bits writable",
    ),
    (r#""directories": {"/x": {"mode": ¦"750"}}"#, "mode \"750\" is not four octal digits"),
    (r#""directories": {"/x": {"mode": "0755"}, ¦"/x": {"mode": "0700"}}"#, "duplicate key \"/x\""),
    (r#""files": {¦"/none": {"mode": "0644"}}"#, "\"/none\" is not below files/"),
    (
        r#""files": {"/file": {"mode": ¦"4755"}}"#,
        "mode 4755 has set-uid, set-gid or sticky bits, but `setuid` does not",
    ),
    (
        r#""setuid": ["/file"], "files": {"/file": {"mode": ¦"4757"}}"#,
        "mode 4757 makes a file with set-uid, set-gid or sticky bits writable",
    ),
    (r#""modes": {"/file": {"mode": ¦"2755"}}"#, "mode 2755 has set-uid"),
    (r#""directories": {"/x": {"mode": ¦"+755"}}"#, "mode \"+755\" is not four octal digits"),
    (
        r#""scripts": [{"package": "p", "script": "postinst", "sha256": "0000000000000000000000000000000000000000000000000000000000000000", "files": {"/x": {"mode": ¦"4755"}}}]"#,
        "mode 4755 has set-uid, set-gid or sticky bits, but `setuid` does not list \"/x\"",
    ),
    (
        r#""scripts": [{"package": "p", "script": "postinst", "sha256": "0000000000000000000000000000000000000000000000000000000000000000", "directories": {"/x": {"mode": ¦"2777"}}}]"#,
        "mode 2777 makes a directory with set-uid or set-gid bits writable",
    ),
    (
        r#""first_boot": {"modes": {"/x": {"mode": ¦"4755"}}}"#,
        "mode 4755 has set-uid, set-gid or sticky bits, but `setuid` does not list \"/x\"",
    ),
    (
        r#""first_boot": {"optional_modes": {"/x/*": {"mode": ¦"2755"}}}"#,
        "mode 2755 has set-uid, set-gid or sticky bits, but `setuid` does not list \"/x/*\"",
    ),
    (
        r#""first_boot": {"files": [{"path": "/x", "mode": ¦"4755", "content": {"text": "x"}}]}"#,
        "mode 4755 has set-uid, set-gid or sticky bits, but `setuid` does not list \"/x\"",
    ),
    (r#""expand": [¦"/none"]"#, "\"/none\" is not below files/"),
    (r#""symlinks": {"/a": ¦"b", "/b": "c", "/c": "/x/../a"}"#, "symbolic link \"/a\" leads back to itself"),
    (r#""symlinks": {"/a": ¦""}"#, "target \"\" is not a valid target"),
    (r#""symlinks": {"/a": "/etc"}, "directories": {¦"/a/b": {"mode": "0755"}}"#, "\"/a/b\" would be placed through"),
    (r#""units": {"enable": [¦"x"]}"#, "unit \"x\" does not end with .service"),
    (r#""units": {"enable": [¦"plain.service"]}"#, "unit \"plain.service\" has no [Install] section"),
    (r#""units": {"enable": [¦"x.timer"], "mask": ["x.timer"]}"#, "unit \"x.timer\" is also disabled or masked"),
    (r#""remove": [¦"/"]"#, "path \"/\" would remove /, a system directory that the image needs"),
    (r#""remove": ["/usr/share/doc/*", ¦"/usr"]"#, "path \"/usr\" would remove /usr, a system directory"),
    (r#""remove": ["/tmp/*", ¦"/lib/*"]"#, "path \"/lib/*\" would remove /usr/lib, a system directory"),
    (r#""remove": [¦"/a/*/b"]"#, "path \"/a/*/b\" has `*` before its last component"),
    (
        r#""files": {¦"/etc/cron.daily/tidy": {"content": "x"}, "/etc/cron.daily/a.txt": {"content": "x"}}"#,
        "\"/etc/cron.daily/tidy\" is not executable, but /etc/cron.daily runs only executable files: add",
    ),
    (
        r#""files": {¦"/opt/x": {"content": "x"}, "/etc/cron.d/x": {"content": "A=1\n5 * * * * root /opt/x -a\n"}}"#,
        "\"/opt/x\" is not executable, but /etc/cron.d/x runs it",
    ),
    (
        r##""files": {¦"/opt/x": {"content": "x"}, "/opt/y": {"content": "#!/bin/sh\n", "mode": "0755"}}, "units": {"enable": ["x.service"],
            "files": {"x.service": "[Service]\nExecStartPre=/opt/y\nExecStart = -/opt/x a\n[Install]\nWantedBy=a.target\n"}}"##,
        "\"/opt/x\" is not executable, but /etc/systemd/system/x.service runs it",
    ),
    (
        r##""files": {¦"/opt/x": {"content": "x"}}, "units": {"enable": ["y.timer"], "files": {"y.timer": "[Timer]\nUnit=x.service\n[Install]\nWantedBy=a\n", "x.service": "[Service]\nExecStart=/opt/x\n"}}"##,
        "\"/opt/x\" is not executable, but /etc/systemd/system/x.service runs it",
    ),
    (
        r##""files": {¦"/opt/x": {"content": "x"}}, "units": {"enable": ["y.service"], "files": {"y.service": "[Unit]\nWants=z.service x.service\n[Install]\nWantedBy=a\n", "x.service": "[Service]\nExecCondition=/opt/x\n"}}"##,
        "\"/opt/x\" is not executable, but /etc/systemd/system/x.service runs it",
    ),
    (
        r##""files": {¦"/opt/x": {"content": "x"}}, "symlinks": {"/etc/systemd/system/a.target.wants/x.service": "../x.service"}, "units": {"files": {"x.service": "[Service]\nExecStart=@-\"/opt/x\" y\n"}}"##,
        "\"/opt/x\" is not executable, but /etc/systemd/system/x.service runs it",
    ),
    (
        r##""files": {¦"/opt/x": {"content": "x"}, "/etc/systemd/system/nginx.service.d/a.conf": {"content": "[Service]\nExecStartPre=+/opt/x\n"}}"##,
        "\"/opt/x\" is not executable, but /etc/systemd/system/nginx.service.d/a.conf runs it",
    ),
    (
        r##""files": {¦"/opt/x": {"content": "x"}, "/etc/systemd/user/x.service": {"content": "[Service]\nExecStart=/opt/x\n"}}, "symlinks": {"/etc/systemd/user/default.target.wants/x.service": "../x.service"}"##,
        "\"/opt/x\" is not executable, but /etc/systemd/user/x.service runs it",
    ),
    (
        r##""files": {¦"/opt/x": {"content": "x"}}, "symlinks": {"/usr/bin/y": "/opt/x"}, "units": {"enable": ["x.service"], "files": {"x.service": "[Service]\nExecStart=/usr/bin/y\n[Install]\nWantedBy=a\n"}}"##,
        "\"/opt/x\" is not executable, but /etc/systemd/system/x.service runs it",
    ),
    (
        r##""files": {¦"/opt/x": {"content": "x"}, "/etc/cron.d/x": {"content": "@daily root cd / && nice -n 5 /opt/x\n"}}"##,
        "\"/opt/x\" is not executable, but /etc/cron.d/x runs it",
    ),
    (
        r##""files": {¦"/etc/network/if-up.d/x": {"content": "x"}, "/etc/update-motd.d/README": {"content": "x"}}"##,
        "\"/etc/network/if-up.d/x\" is not executable, but /etc/network/if-up.d runs only executable files",
    ),
    (
        r##""files": {¦"/etc/systemd/system-generators/x": {"content": "x"}, "/etc/update-motd.d/README": {"content": "x"}}"##,
        "\"/etc/systemd/system-generators/x\" is not executable, but /etc/systemd/system-generators runs only executable files",
    ),
    (
        r##""files": {¦"/etc/networkd-dispatcher/routable.d/50-x.sh": {"content": "x"}, "/etc/update-motd.d/README": {"content": "x"}}"##,
        "\"/etc/networkd-dispatcher/routable.d/50-x.sh\" is not executable, but /etc/networkd-dispatcher/routable.d runs only executable files",
    ),
    (
        r##""files": {¦"/var/lib/cloud/scripts/per-boot/x.sh": {"content": "x"}, "/etc/update-motd.d/README": {"content": "x"}}"##,
        "\"/var/lib/cloud/scripts/per-boot/x.sh\" is not executable, but /var/lib/cloud/scripts/per-boot runs only executable files",
    ),
    (
        r##""files": {¦"/opt/x": {"content": "echo a\n", "mode": "0755"}}, "units": {"enable": ["x.service"],
            "files": {"x.service": "[Service]\nExecStart=/opt/x\n[Install]\nWantedBy=a.target\n"}}"##,
        "\"/opt/x\" cannot be run: expected `#!` and an interpreter in its first line, such as `#!/bin/sh`, found \"echo a\"",
    ),
    (
        r##""files": {¦"/etc/cron.daily/x": {"content": "echo a\n", "mode": "0755"}, "/etc/cron.daily/y": {"content": "#!/bin/sh\n", "mode": "0755"},
            "/etc/NetworkManager/dispatcher.d/z": {"content": "echo a\n", "mode": "0755"}, "/opt/z": {"content": "echo a\n", "mode": "0755"},
            "/etc/cron.d/z": {"content": "@daily root /opt/z\n"}}"##,
        "\"/etc/cron.daily/x\" cannot be run: expected `#!`",
    ),
    (
        r##""files": {¦"/etc/update-motd.d/50-x": {"content": "#!/bin/sh\r\necho a\r\n", "mode": "0755"}}"##,
        "\"/etc/update-motd.d/50-x\" cannot be run: expected a newline after its first line, found a carriage return in \"#!/bin/sh\\r\"",
    ),
    (
        r##""files": {¦"/etc/rc.local": {"content": "x"}, "/etc/update-motd.d/README": {"content": "x"}}"##,
        "\"/etc/rc.local\" is not executable, but /etc runs only executable files",
    ),
    (
        r##""files": {¦"/etc/cron.daily/x.sh": {"content": "x", "mode": "0755"}}"##,
        "\"/etc/cron.daily/x.sh\" never runs: in /etc/cron.daily, only names of letters",
    ),
    (
        r#""units": {"files": {¦"x.service": "[Unit]\nConditionFirstBoot=yes\n"}}"#,
        "\"/etc/systemd/system/x.service\" waits for ConditionFirstBoot=, which is never true",
    ),
    (r#""truncate": [¦"x"]"#, "path \"x\" is not absolute"),
    (
        r#""units": {"files": {¦"x.service": "[Unit]\nConditionFirstBoot=!no\n"}}"#,
        "\"/etc/systemd/system/x.service\" waits for ConditionFirstBoot=, which is never true",
    ),
    (
        r#""units": {"files": {¦"x.service": "[Unit]\nConditionFirstBoot=| ! OFF\nConditionFirstBoot=|maybe\n"}}"#,
        "\"/etc/systemd/system/x.service\" waits for ConditionFirstBoot=, which is never true",
    ),
    (r#""directories": {¦"/x": {"owner": "root"}}"#, "`owner` and `group` need a `mode`"),
    (r#""directories": {¦"/x": {"group": "adm"}}"#, "`owner` and `group` need a `mode`"),
    (
        r#""symlinks": {¦"/opt/podplane/share/firstboot.json": "/etc/passwd"}"#,
        "path \"/opt/podplane/share/firstboot.json\" is written by the bake itself",
    ),
    (
        r#""directories": {¦"/opt/podplane/share/vmbake-origin.json": {"mode": "0755"}}"#,
        "path \"/opt/podplane/share/vmbake-origin.json\" is written by the bake itself",
    ),
    (
        r#""modes": {¦"/opt/podplane/share/firstboot.json": {"mode": "0600"}}"#,
        "path \"/opt/podplane/share/firstboot.json\" is written by the bake itself",
    ),
    (
        r#""remove": [¦"/opt/podplane/share/vmconfig-installed.json"]"#,
        "path \"/opt/podplane/share/vmconfig-installed.json\" is written by the bake itself",
    ),
    (
        r#""empty": [¦"/opt/podplane/share/vmbake-origin.json"]"#,
        "path \"/opt/podplane/share/vmbake-origin.json\" is written by the bake itself",
    ),
    (
        r#""truncate": [¦"/opt/podplane/share/vmbake-origin.json"]"#,
        "path \"/opt/podplane/share/vmbake-origin.json\" is written by the bake itself",
    ),
    (
        r#""images": ¦"/opt/podplane/share/firstboot.json""#,
        "path \"/opt/podplane/share/firstboot.json\" is written by the bake itself",
    ),
    (
        r#""artifacts": {"x": {"type": "file", "path": ¦"/opt/podplane/share/firstboot.json", "mode": "0644"}}"#,
        "path \"/opt/podplane/share/firstboot.json\" is written by the bake itself",
    ),
    (
        r#""first_boot": {"files": [{"path": ¦"/opt/podplane/share/vmconfig-installed.json", "mode": "0644", "content": {"text": "x"}}]}"#,
        "path \"/opt/podplane/share/vmconfig-installed.json\" is written by the bake itself",
    ),
    (r#""keep": [¦"/tmp/f"]"#, "path \"/tmp/f\" is below /tmp, but machines mount another file system at /tmp"),
    (r#""keep": [¦"/none"]"#, "\"/none\" is not a file, directory or link of the layer"),
    (
        r#""files": {¦"/run/x": {"content": ""}}"#,
        "path \"/run/x\" is below /run, but machines mount another file system at /run: use a file in /etc/tmpfiles.d",
    ),
    (
        r#""directories": {¦"/var/tmp/x": {"mode": "0755"}}"#,
        "path \"/var/tmp/x\" is below /var/tmp, but the layer `hygiene` empties /var/tmp, and machines delete old files there",
    ),
    (r#""symlinks": {¦"/dev/x": "y"}"#, "path \"/dev/x\" is below /dev"),
    (r#""artifacts": {"x": {"type": "file", "path": ¦"/tmp/x", "mode": "0755"}}"#, "path \"/tmp/x\" is below /tmp"),
    (r#""os_release": {¦"a b": "c"}"#, "key \"a b\" is not a variable of os-release"),
    (
        r#""first_boot": {"files": [{"path": "/x", "mode": ¦"640", "content": {"text": ""}}]}"#,
        "mode \"640\" is not four",
    ),
    (r#""first_boot": {"values": ["A", ¦{"value": "a"}]}"#, "missing field `name`"),
    (r#""first_boot": {"exec": {"x": {"arguments": [{"value": "a", "name": ¦"b"}]}}}"#, "unknown field `name`"),
    (
        r#""first_boot": {"files": [{"path": "/x", "mode": "0640", "group": ¦"who", "content": {"text": ""}}]}"#,
        "group \"who\" is created neither by",
    ),
    (
        r#""first_boot": {"files": [{"path": "/x", "mode": "0640", "directory": {"mode": "0700", "owner": ¦"who"}, "content": {"text": ""}}]}"#,
        "user \"who\" is created neither by",
    ),
    (
        r#""first_boot": {"optional_modes": {"/x": {"mode": "0640", "owner": ¦"who"}}}"#,
        "user \"who\" is created neither by",
    ),
    (
        r#""first_boot": {"received": {"x": {"directory": "/y", "group": ¦"who"}}}"#,
        "group \"who\" is created neither by",
    ),
    (
        r#""first_boot": {"services": [{"on_change": ¦"/etc/x", "unit": "plain.service"}]}"#,
        "/etc/x is not a file of the plan",
    ),
    (
        r#""first_boot": {"accounts": {"a": {"id": 1, "home": ¦"home/a", "shell": "/bin/sh"}}}"#,
        "\"home/a\" is not an absolute path",
    ),
    (r#""first_boot": {"services": [{"unit": ¦"x"}]}"#, "unit \"x\" does not end with .service"),
    (r#""first_boot": {"services": [{"unit": ¦"plain.service"}]}"#, "unit \"plain.service\" has no [Install] section"),
    (
        r#""first_boot": {"files": [{"path": ¦"/file", "mode": "0640", "content": {"text": ""}}]}"#,
        "path \"/file\" is also below files/ of layer a",
    ),
    (
        r#""symlinks": {"/x": "y"}, "first_boot": {"files": [{"path": ¦"/x", "mode": "0640", "content": {"text": ""}}]}"#,
        "path \"/x\" is also a symbolic link of layer a",
    ),
    (
        r#""first_boot": {"files": [{"path": ¦"/x", "mode": "0640", "content": {"text": ""}}, {"path": "/x", "mode": "0640", "content": {"text": ""}}]}"#,
        "duplicate /x",
    ),
    (
        r#""first_boot": {"files": [{"path": "/x", "mode": "0640", "content": {"text": ""}}], "blocks": [{"path": ¦"/x", "name": "n", "text": ""}]}"#,
        "path \"/x\" is also written by a rule",
    ),
    (r#""first_boot": {"values": [{"name": "A", "value": ¦"{{ B }}"}]}"#, "B is not defined"),
    (r#""first_boot": {"values": [{"name": "A", "value": ¦"{{ 'x'|shout }}"}]}"#, "line 1: "),
    (r#""first_boot": {"values": [{"name": "A", "value": "", "when": ¦"1 +"}]}"#, "line 1: "),
    (r#""first_boot": {"variables": {¦"a b": {}}}"#, "\"a b\" is not a valid name of a variable"),
    (r#""first_boot": {"variables": {"A": {"default": ¦"70000", "format": "port"}}}"#, "A: expected a port"),
    (
        r#""first_boot": {"variables": {"A": {"default": ¦"33", "format": "number", "max": 32}}}"#,
        "A: expected a number from 0 to 32",
    ),
    (r#""first_boot": {"variables": {"A": {"format": "port", "max": ¦32}}}"#, "A: `max` requires the format `number`"),
    (
        r#""files": {"/lib/x/a": {"content": ""}, ¦"/usr/lib/x/a": {"content": ""}}"#,
        "\"/usr/lib/x/a\" is the same path as \"/lib/x/a\" on Debian",
    ),
    (r#""symlinks": {¦"/usr/bin/b": "a", "/bin/b": "a"}"#, "\"/usr/bin/b\" is the same path as \"/bin/b\" on Debian"),
    (r#""first_boot": {"modes": {¦"x/../y": {"mode": "0640"}}}"#, "\"x/../y\" is not an absolute path"),
    (
        r#""first_boot": {"files": [{"path": "/x", "mode": "0640", "content": {"template": {"file": ¦"/none", "format": "text"}}}]}"#,
        "/none is not a file of any layer",
    ),
    (
        r#""first_boot": {"exec": {¦"x": {"environment_file": "/none", "program": "/usr/bin/x"}}}"#,
        "no unit of the layers calls `firstboot exec x`",
    ),
    (
        r#""directories": {"/x": {"mode": "0755"}}, "first_boot": {"directories": {¦"/x": {"mode": "0700"}}}"#,
        "already defined by layer a",
    ),
    (r#""sysctl": {¦"a b": 1}"#, "\"a b\" is not a valid variable of sysctl"),
    (r#""sysctl": {"a": ¦"b\nc = 1"}"#, "\"b\\nc = 1\" is not one line of text"),
    (r#""sysctl": {"a": ¦1.5}"#, "data did not match any variant"),
    (r#""modules_load": ["a", ¦"a b"]"#, "\"a b\" is not a valid kernel module"),
    (r#""hostname": ¦"a_b""#, "\"a_b\" is not a valid host name"),
    (r#""hostname": ¦"a..b""#, "\"a..b\" is not a valid host name"),
    (r#""timezone": ¦"../../etc/shadow""#, "\"../../etc/shadow\" is not a valid time zone"),
    (r#""timezone": ¦"Europe//Berlin""#, "\"Europe//Berlin\" is not a valid time zone"),
    (r#"¦"timezone": "UTC", "symlinks": {"/etc/localtime": "x"}"#, "\"/etc/localtime\" is duplicated in the layer"),
    (r#""locale": ¦"../C""#, "\"../C\" is not a valid locale"),
    (r#""keyboard": {"layout": ¦""}"#, "\"\" is not a valid value of `layout`"),
    (r#""keyboard": {"layout": "de", "options": ¦"$(x)"}"#, "\"$(x)\" is not a valid value of `options`"),
    (r#""ssh_authorized_keys": [¦"-----BEGIN OPENSSH PRIVATE KEY-----"]"#, "is not a valid public key"),
    (r#""ssh_authorized_keys": [¦"ssh-ed25519 AAAA\nssh-rsa AAAA"]"#, "is not a valid public key"),
    (r#""ssh_authorized_keys": [¦"command=\"x\" ssh-ed25519 AAAA"]"#, "is not a valid public key"),
    (r#""ssh_authorized_keys": [¦"ssh-rsa AAAA key"]"#, "is not a valid public key"),
    (
        r#""ssh_authorized_keys": [¦"ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIGUbvTMsley0Dbzg6VnQ01ne/i3NBkGrNDmNzl5OV/zJ"]"#,
        "is not a valid public key",
    ),
    (
        r#""ssh_authorized_keys": [¦"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGUbvTMsley0Dbzg6VnQ01ne/i3NBkGrNDmNzl5O"]"#,
        "is not a valid public key",
    ),
    (
        r#""files": {¦"/etc/sudoers.d/ops": {"content": "ops ALL=(ALL NOPASSWD: ALL\n"}}"#,
        "\"/etc/sudoers.d/ops\": line 1: ",
    ),
    (
        r#""units": {"mask": ["x.service"]}, "remove": [¦"/etc/systemd/system/x.service"]"#,
        "\"/etc/systemd/system/x.service\" is removed after unit \"x.service\" is masked there",
    ),
    (
        r#""files": {¦"/etc/systemd/network/10-x.conf": {"content": ""}}"#,
        "\"/etc/systemd/network/10-x.conf\" is not read: systemd-networkd reads only names that end with .network or .netdev or .link",
    ),
    (r#""motd": ¦3"#, "invalid type: integer `3`, expected a string or a list of lines"),
    (r#""motd": ["a", ¦"b\nc"]"#, "line \"b\\nc\" contains a line feed"),
    (r#""files": {"/file": {¦"content": "a"}}"#, "\"/file\" is duplicated in the layer"),
    (r#""files": {"/x": {"content": "a", "mode": ¦"4755"}}"#, "mode 4755 has set-uid"),
    (r#""units": {"files": {¦"x": ""}}"#, "unit \"x\" does not end with .service"),
    (
        r#""units": {"files": {"x.service": "[Service]\nExecStart=x"}, "enable": [¦"x.service"]}"#,
        "unit \"x.service\" has no [Install] section",
    ),
    (
        r#""units": {"files": {"x.service": "[Service]\nExecStart=x\n[Install]\nWantedBy=a b.target"}, "enable": [¦"x.service"]}"#,
        "unit \"x.service\" cannot be enabled: /etc/systemd/system/x.service:4: WantedBy=a is not a valid name",
    ),
    (
        r#""units": {"files": {¦"x.service": "[Install\nWantedBy=b.target"}, "enable": ["x.service"]}"#,
        "\"/etc/systemd/system/x.service\": line 1: is not loaded by systemd: \"[Install\" is not a section header",
    ),
    (
        r#""symlinks": {"/a": "/b"}, "setuid": [¦"/a"]"#,
        "\"/a\" is a symbolic link of the layer: name the file that it leads to, \"/b\"",
    ),
    (r#""symlinks": {"/a": "/b"}, "truncate": [¦"/a"]"#, "\"/a\" is a symbolic link of the layer"),
    (r#""directories": {"/a": {"mode": "0755"}}, "empty": [¦"/a"]"#, "\"/a\" is a directory of the layer"),
    (
        r#""directories": {"/a": {"mode": "0755"}}, "capabilities": {¦"/a": "cap_chown=p"}, "setuid": ["/a"]"#,
        "\"/a\" is a directory of the layer",
    ),
    (
        r#""files": {¦"/etc/grub.d/50_x": {"content": "x"}}"#,
        "\"/etc/grub.d/50_x\" cannot be used: it takes effect only when `grub-mkconfig` runs; use the key",
    ),
    (
        r#""files": {¦"/usr/local/share/ca-certificates/a.crt": {"content": "x"}}"#,
        "\"/usr/local/share/ca-certificates/a.crt\" cannot be used: it contains no certificate",
    ),
    (r#""files": {¦"/x": {"content": "@{kin}"}}, "expand": ["/x"]"#, "\"/x\" has the unknown word @{kin}"),
    (
        r#""files": {¦"/etc/sysctl.d/60-x": {"content": ""}}"#,
        "\"/etc/sysctl.d/60-x\" is not read: systemd-sysctl reads only names that end with .conf",
    ),
    (
        r#""files": {¦"/etc/systemd/system/x.service.d/override": {"content": ""}}"#,
        "\"/etc/systemd/system/x.service.d/override\" is not read: systemd reads only drop-ins that end with .conf",
    ),
    (
        r#""files": {¦"/etc/ssh/sshd_config.d/x.conf": {"content": "PermitRootLogins no\n"}}"#,
        "\"/etc/ssh/sshd_config.d/x.conf\": line 1: keeps sshd from starting: unknown keyword \"PermitRootLogins\"; did you mean `permitrootlogin`?",
    ),
    (
        r#""files": {¦"/etc/systemd/network/x.network": {"content": "", "mode": "0600"}}"#,
        "\"/etc/systemd/network/x.network\": is not read: systemd-networkd runs as systemd-network, which cannot read it, mode 0600 root:root",
    ),
    (
        r#""units": {"files": {¦"x.timer": ["[Timer]", "OnCalendar=dayly"]}}"#,
        "\"/etc/systemd/system/x.timer\": line 2: systemd ignores OnCalendar=dayly: expected a time such as",
    ),
    (r#"¦"unknown": 1"#, "unknown field `unknown`"),
    (r#""requires": ["ok",¦]"#, "trailing comma"),
];

/// What comes after it would not be cleaned.
#[test]
fn hygiene_is_the_last_layer_even_if_others_require_it() {
    let dir = tempfile::tempdir().unwrap();
    layer(dir.path(), "hygiene", "");
    layer(dir.path(), "b", r#", "requires": ["hygiene"]"#);
    layer(dir.path(), "a", r#", "requires": ["hygiene", "b"]"#);
    let layers = vmbake_layer::Layers::load(&vmbake_common::catalog::Catalog::only(dir.path())).unwrap();
    let names = |kind: &str, more: &[String]| -> Vec<String> {
        let layers = layers.resolve_with(kind, "o", more).unwrap();
        layers.into_iter().map(|layer| layer.schema.name).collect()
    };
    assert_eq!(names("a", &[]), ["b", "a", "hygiene"]);
    assert_eq!(names("a", &["hygiene".to_owned()]), ["b", "a", "hygiene"]);
    assert_eq!(names("hygiene", &[]), ["hygiene"]);
}

#[test]
fn every_fault_has_its_line_and_column() {
    are_found(FAULTS.iter().map(|(marked, message)| ((*marked).to_owned(), *message)));
}

/// Each of these faults is found where its mark stands, by a check and by a bake.
pub(crate) fn are_found(faults: impl Iterator<Item = (String, &'static str)>) {
    let mut missed = Vec::new();
    for (marked, message) in faults {
        let rest = marked.replace('¦', "");
        let expected = format!("{}: {message}", marked.find('¦').unwrap() + 1);
        let dir = tempfile::tempdir().unwrap();
        layer(dir.path(), "ok", "");
        layer(dir.path(), "hygiene", "");
        layer(dir.path(), "a", &format!(",\n{rest}"));
        fs::create_dir_all(dir.path().join("a/files/etc/systemd/system")).unwrap();
        fs::write(dir.path().join("a/files/file"), "").unwrap();
        fs::write(dir.path().join("a/files/etc/systemd/system/plain.service"), "[Service]\nExecStart=/bin/true\n")
            .unwrap();
        let (faults, good) = check(&dir.path().join("a"));
        if good || !faults.iter().any(|fault| fault.starts_with(&format!("layer.json:2:{expected}"))) {
            missed.push(format!("{rest}\n  expected {expected}\n  found {}", faults.join("\n        ")));
            continue;
        }
        // A bake says the same; only accounts are known to the image alone.
        if !expected.contains("is created neither") {
            let error = vmbake_layer::Layers::load(&vmbake_common::catalog::Catalog::only(dir.path()))
                .and_then(vmbake_layer::Layers::complete)
                .unwrap_err()
                .to_string();
            assert!(error.contains(&format!("a/layer.json:2:{expected}")), "{rest}: {error}");
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn all_faults_are_told_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let rest = ",\n\"requires\": [\"vm\"],\n\"directories\": {\"/x\": {\"mode\": \"0750\", \"group\": \"podplane\"},\n\
        \"/X\": {\"mode\": \"0750\", \"group\": \"whose\"}},\n\"remove\": [\"a\",\n\"/tmp/*\", \"b\"]";
    layer(dir.path(), "a", rest);
    let (faults, good) = check(&dir.path().join("a"));
    let expected = [
        "layer.json:3:17: warning: path \"/x\" differs from \"/X\" only in case",
        "layer.json:4:33: group \"whose\" is created neither by this layer",
        "layer.json:5:12: path \"a\" is not absolute",
        "layer.json:6:11: path \"b\" is not absolute",
    ];
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
    faults.iter().zip(expected).for_each(|(fault, expected)| assert!(fault.starts_with(expected), "{fault}"));
    assert!(!good);
    // Warnings do not fail the check.
    layer(dir.path(), "b", ", \"directories\": {\"/x\": {\"mode\": \"0750\"}, \"/X\": {\"mode\": \"0750\"}}");
    let (faults, good) = check(&dir.path().join("b"));
    assert!(good && faults.len() == 1, "{faults:?}");
}

#[test]
fn files_that_a_layer_may_not_have_are_refused() {
    type Make = fn(&Path);
    let cases: &[(&str, Make)] = &[
        ("a/files/link: is a symbolic link", |files| symlink("/etc/shadow", files.join("link")).unwrap()),
        ("a/files/dir: is a symbolic link", |files| symlink("/etc", files.join("dir")).unwrap()),
        ("a/files/pipe: expected a regular file or a directory", |files| {
            assert!(Command::new("mkfifo").arg(files.join("pipe")).status().unwrap().success());
        }),
        ("a/files/socket: expected a regular file or a directory", |files| {
            drop(std::os::unix::net::UnixListener::bind(files.join("socket")).unwrap());
        }),
        ("has a name that is not UTF-8", |files| fs::write(files.join(OsStr::from_bytes(b"\xff")), "").unwrap()),
        ("contains a control, bidirectional or zero-width character", |files| {
            fs::write(files.join("a\nb"), "").unwrap()
        }),
        ("differs from another name only in case", |files| {
            fs::write(files.join("README"), "").unwrap();
            fs::write(files.join("Readme"), "").unwrap();
        }),
        ("is more than 40 directories deep", |files| fs::create_dir_all(files.join("d/".repeat(60))).unwrap()),
        ("has more than 67108864 bytes; put larger files into local/", |files| {
            fs::File::create(files.join("big")).unwrap().set_len(1 << 42).unwrap();
        }),
        ("has more than 268435456 bytes", |files| {
            for name in 0..5 {
                fs::File::create(files.join(name.to_string())).unwrap().set_len(60 << 20).unwrap();
            }
        }),
        ("has more than 10000 files and directories", |files| {
            for name in 0..10_000 {
                fs::File::create(files.join(name.to_string())).unwrap();
            }
        }),
        ("a/install.sh: unexpected entry: expected layer.json, files, local", |files| {
            fs::write(files.join("../install.sh"), "").unwrap()
        }),
        ("a/layer.json: is missing", |files| fs::remove_file(files.join("../layer.json")).unwrap()),
        ("a/layer.json: is a symbolic link", |files| {
            fs::remove_file(files.join("../layer.json")).unwrap();
            symlink("/etc/passwd", files.join("../layer.json")).unwrap();
        }),
    ];
    for (expected, make) in cases {
        let dir = tempfile::tempdir().unwrap();
        layer(dir.path(), "a", "");
        fs::create_dir(dir.path().join("a/files")).unwrap();
        fs::write(dir.path().join("a/README.md"), "").unwrap();
        assert_eq!(check(&dir.path().join("a")), (vec![], true));
        make(&dir.path().join("a/files"));
        let output = vmbake(&["layer".as_ref(), "check".as_ref(), dir.path().join("a").as_os_str()]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success() && text.contains(expected), "{expected}: {output:?}");
    }
}

#[test]
fn faults_do_not_steer_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    layer(dir.path(), "a", ", \"\\u001b[2J\": 1");
    layer(dir.path(), "b", "");
    fs::create_dir(dir.path().join("b/files")).unwrap();
    fs::write(dir.path().join("b/files/\u{1b}[2J"), "").unwrap();
    for (name, expected) in [
        ("a", "unknown field `\\x1b[2J`"),
        ("b", "files/\\x1b[2J: contains a control, bidirectional or zero-width character"),
    ] {
        let (faults, good) = check(&dir.path().join(name));
        assert!(!good && faults[0].contains(expected), "{faults:?}");
    }
}

#[test]
fn large_layers_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let list = |entry: fn(usize) -> String| (0..40_000).map(entry).collect::<Vec<_>>().join(",");
    let rest = format!(
        ", \"symlinks\": {{{}}}, \"directories\": {{{}}}, \"empty\": [{}]",
        list(|n| format!("\"/l/{n}\":\"x\"")),
        list(|n| format!("\"/d/{n}\":{{\"mode\":\"0755\"}}")),
        list(|n| format!("\"/e/{n}\"")),
    );
    layer(dir.path(), "a", &rest);
    // Comparing each with each would take minutes.
    assert_eq!(check(&dir.path().join("a")), (vec![], true));
}

#[test]
fn no_layer_is_left_out_silently() {
    let dir = tempfile::tempdir().unwrap();
    for name in 0..10_001 {
        fs::File::create(dir.path().join(format!("{name}"))).unwrap();
    }
    let error = vmbake_layer::Layers::load(&vmbake_common::catalog::Catalog::only(dir.path()))
        .and_then(vmbake_layer::Layers::complete)
        .unwrap_err()
        .to_string();
    assert!(error.contains("has more than 10000 files and directories"), "{error}");
}

#[test]
fn built_in_layers_are_listed_and_good() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../layers");
    let output = vmbake(&["layer".as_ref(), "list".as_ref(), "--json".as_ref()]);
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut count = 0;
    for dir in fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        assert_eq!(check(&dir), (vec![], true), "{}", dir.display());
        let name = dir.file_name().unwrap().to_str().unwrap();
        assert!(listed.as_array().unwrap().iter().any(|layer| layer["name"] == name), "{name}");
        count += 1;
    }
    assert_eq!(listed.as_array().unwrap().len(), count);
}

/// A python3 that has the validator. Where none has it the test is skipped, but not in CI.
pub fn python() -> Option<&'static str> {
    let has = |python: &&str| {
        let output = Command::new(python).args(["-c", "import jsonschema"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has);
    if found.is_none() {
        crate::tools::skip::skip("python3-jsonschema is not installed");
    }
    found
}

/// Another validator agrees with ours about what the schema can say.
#[test]
fn the_schema_tells_good_layers_from_bad_ones() {
    let schema = vmbake(&["schema".as_ref(), "layer".as_ref()]).stdout;
    let value: serde_json::Value = serde_json::from_slice(&schema).unwrap();
    assert_eq!(value["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let script = "import json, sys, jsonschema\n\
        schema = json.load(open(sys.argv[1]))\n\
        jsonschema.Draft202012Validator.check_schema(schema)\n\
        validator = jsonschema.Draft202012Validator(schema)\n\
        for path in sys.argv[2:]:\n    print(len(list(validator.iter_errors(json.load(open(path))))))\n";
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("schema.json"), &schema).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../layers");
    let mut paths: Vec<_> =
        fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path().join("layer.json")).collect();
    paths.retain(|path| path.exists());
    let good = paths.len();
    let bad = [
        r#", "unknown": 1"#,
        r#", "directories": {"/x": {"mode": "750"}}"#,
        r#", "directories": {"/x": {"owner": 1}}"#,
        r#", "artifacts": {"x": {"type": "zip"}}"#,
        r#", "artifacts": {"x": {"type": "file", "path": "/x"}}"#,
        r#", "units": {"start": []}"#,
        r#", "upgrade": "x""#,
        r#", "packages": "nginx""#,
        r#", "recommends": 1"#,
    ];
    for (index, rest) in bad.iter().enumerate() {
        layer(dir.path(), &index.to_string(), rest);
        paths.push(dir.path().join(index.to_string()).join("layer.json"));
    }
    let output =
        Command::new(python).args(["-c", script]).arg(dir.path().join("schema.json")).args(&paths).output().unwrap();
    let counts: Vec<usize> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(counts.len(), paths.len(), "{}", String::from_utf8_lossy(&output.stderr));
    for (index, count) in counts.iter().enumerate() {
        assert_eq!(*count == 0, index < good, "{}", paths[index].display());
    }
}
