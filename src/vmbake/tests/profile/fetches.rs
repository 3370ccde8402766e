//! Downloads, archives, apt and sudo in profiles: like the real programs, or refused.

use serde_json::json;

use super::import::{layer, run};

#[test]
fn names_are_those_that_programs_give() {
    let sum = "b".repeat(64);
    for url in ["https://h.example/v1/t?x=/1", "https://h.example/v1/t#part", "https://h.example/v1/t"] {
        let found = layer(&format!("cd /opt; curl -fLO '{url}'; echo '{sum}  t' | sha256sum -c"), &[], &json!({}));
        let downloads = found["downloads"].as_object().unwrap();
        assert_eq!(downloads.values().next().unwrap()["install"]["path"], "/opt/t", "{url}");
    }
}

/// Fetches `/opt/t`, and compares it.
const FETCH: &str = "curl -fsSLo /opt/t https://h.example/v1/t; echo \"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb  /opt/t\" | sha256sum -c";

#[test]
fn new_files_have_the_mode_that_the_mask_leaves() {
    for (umask, expected) in [("022", "0644"), ("077", "0600"), ("002", "0664")] {
        let found = layer(&format!("umask {umask}; {FETCH}; mkdir -p /opt/d/e"), &[], &json!({}));
        assert_eq!(found["downloads"]["t"]["install"]["mode"], expected);
        let directory = format!("{:04o}", 0o777 & !u16::from_str_radix(umask, 8).unwrap());
        assert_eq!(found["directories"]["/opt/d"]["mode"], directory);
        assert_eq!(found["directories"]["/opt/d/e"]["mode"], directory);
    }
    // Of a directory that the base may have, a layer has no mode.
    let found = layer("umask 077; mkdir -p /etc/a; chmod 750 /etc/a", &[], &json!({}));
    assert_eq!(found["directories"]["/etc/a"]["mode"], "0750");
}

#[test]
fn an_archive_meets_what_is_there() {
    let unpack = |before: &str, after: &str| {
        let script = format!("mkdir -p /opt/d/e; {before}; {FETCH}; tar -xzf /opt/t -C /opt/d; rm /opt/t; {after}");
        layer(&script, &[], &json!({}))
    };
    let found = unpack("echo a > /opt/d/x; ln -s x /opt/d/e/y; echo a > /opt/z", "echo a > /opt/d/later");
    assert_eq!(found["downloads"]["t"]["install"]["absent"], json!(["/opt/d/e/y", "/opt/d/x"]));
    // The archive may set modes of directories that were there.
    assert_eq!(found["directories"]["/opt/d"], json!({}));
    assert_eq!(found["directories"]["/opt/d/e"], json!({}));
    let found = unpack("chmod 700 /opt/d", "chmod 711 /opt/d");
    assert_eq!(found["directories"]["/opt/d"]["mode"], "0711");
    assert_eq!(found["downloads"]["t"]["install"].get("absent"), None);
    // The archive itself, in the directory: an image does not have two artifacts at one path.
    let found = layer(&format!("{FETCH}; tar -xzf /opt/t -C /opt; rm /opt/t"), &[], &json!({}));
    assert_eq!(found["downloads"]["t"]["install"].get("absent"), None);
}

#[test]
fn files_of_an_archive_have_the_owners_that_tar_gives_them() {
    for (options, after, expected) in [
        ("-xzf", "", "same-owner"),
        ("--same-owner -xzf", "", "same-owner"),
        ("--no-same-owner -xzf", "", "no-same-owner"),
        ("-xozf", "", "no-same-owner"),
        ("-xzf", "chown -R root:root /opt/d", "no-same-owner"),
        ("-xzf", "chown -R 0: /opt/d", "no-same-owner"),
        ("--no-same-owner -xzf", "chown -R root /opt/d", "no-same-owner"),
    ] {
        let found = layer(
            &format!("mkdir /opt/d; {FETCH}; tar {options} /opt/t -C /opt/d; {after}\nrm /opt/t"),
            &[],
            &json!({}),
        );
        assert_eq!(found["downloads"]["t"]["install"]["extract"], expected, "{options} {after}");
    }
    for (directory, after, expected) in [
        ("/opt/d", "chown -R root /opt/d", "changing only the user, while members"),
        ("/opt/d", "chown root:root /opt/d/x", "the file /opt/d/x"),
        ("/etc/d", "chown -R root:root /etc/d", "the entries of /etc/d"),
    ] {
        let script = format!("mkdir -p {directory}; {FETCH}; tar -xzf /opt/t -C {directory}; {after}");
        let error = run(&script, &[], &json!({})).expect_err(&script).to_string();
        assert!(error.contains(expected), "{script}\n{error}");
    }
}

#[test]
fn what_programs_do_otherwise_is_refused() {
    let tar = format!("mkdir /opt/d; {FETCH}; umask 077; tar -xzf /opt/t -C /opt/d");
    let private = format!("mkdir -m 700 /opt/d; {FETCH}; tar -xzf /opt/t -C /opt/d");
    let listing = format!("mkdir /opt/d; {FETCH}; tar -xzvf /opt/t -C /opt/d > /opt/list");
    for (script, expected) in [
        (tar.as_str(), "tar with the umask 077 instead of 022"),
        (private.as_str(), "/opt/d: it has the mode 0700 only if it does not exist before"),
        (listing.as_str(), "the text {{ output-of-tar }}"),
        ("umask 077; mkdir -p /etc/a", "/etc/a: it has the mode 0700 only if it does not exist before"),
        ("umask 077; sudo touch /opt/x", "the umask 077, which sudo changes"),
        ("umask 0; sudo mkdir -p /opt/x", "the umask 000, which sudo changes"),
        ("exec 3> /opt/x; sudo sh -c 'echo a >&3'", "an open descriptor above 2, which sudo closes"),
        ("exec {fd}> /opt/x; sudo touch /opt/y", "an open descriptor above 2, which sudo closes"),
        ("sudo cat <(echo a) > /opt/x", "an open descriptor above 2, which sudo closes"),
        ("systemctl enable ssh 2> /opt/log", "the text {{ messages-of-systemctl }}"),
        ("apt-get update > /dev/null 2>> /opt/log", "the text {{ messages-of-apt-get }}"),
        ("{ curl -o /opt/t https://h.example/t; } 2> /opt/log", "the text {{ messages-of-curl }}"),
        ("systemctl enable ssh 2>&1 | tee /opt/log", "the text {{ messages-of-systemctl }}"),
        ("cd /opt; echo a > t; wget https://h.example/t", "wget without -O for the existing file t"),
        ("cd /opt; wget https://h.example/t; wget https://h.example/t", "wget without -O for the existing file t"),
        ("cd /opt; wget 'https://h.example/t?a=b'", "which does not end with a plain name"),
        ("cd /opt; wget https://h.example/a%20b", "which does not end with a plain name"),
        ("cd /opt; curl -O https://h.example", "which does not end with a plain name"),
        ("cd /opt; curl -O https://h.example/", "which does not end with a plain name"),
        ("cd /opt; curl -o t -o u https://h.example/t", "more than one output file"),
        ("cd /opt; curl -O -o u https://h.example/t", "more than one output file"),
        ("cd /opt; curl -o t 'https://h.example/t[1-2]'", "a URL with brackets or braces"),
        (
            "mkdir /opt/d; cd /opt; curl -o t https://h.example/t; tar -xzf t -C /opt -C d",
            "more than one archive or directory",
        ),
        ("apt-get install jq", "install without -y, which stops if more packages are needed"),
        ("apt-get -o APT::Get::Assume-Yes=false install jq", "install without -y"),
        ("apt-mark auto jq", "auto is not supported"),
        ("apt-mark hold 'j*'", "hold j* is not supported"),
        ("cloud-init clean --reboot", "cloud-init"),
        ("cloud-init single --name cc_ssh", "cloud-init"),
        ("apt-get install -y -o APT::Install-Recommends=false jq", "-o APT::Install-Recommends=false is not supported"),
        ("apt-get install -y -oAPT::Default-Release=sid jq", "-oAPT::Default-Release=sid is not supported"),
        (
            "echo 'APT::Install-Recommends \"0\";' > /etc/apt/apt.conf.d/9x; apt-get install -y jq",
            "remove this setting, which is not applied: APT::Install-Recommends",
        ),
        (
            "echo 'Package: jq' > /etc/apt/preferences.d/jq; apt-get install -y jq",
            "remove this setting, which is not applied: package pins",
        ),
        ("export PATH=/opt/bin:$PATH; sudo tool || true", "a PATH other than that of sudo"),
        ("sudo printf '%q' 'a b' > /opt/x", "the program printf"),
        ("sudo echo -e a > /opt/x", "the program echo"),
    ] {
        let error = run(script, &[], &json!({})).expect_err(script).to_string();
        assert!(error.contains(expected), "{script}\n{error}");
    }
    for script in [
        "echo 'Acquire::Retries \"3\";' > /etc/apt/apt.conf.d/9x; apt-get -o Dpkg::Options::=--force-confold install -y jq",
        "sudo printf '%s\\n' a > /opt/x; sudo echo a > /opt/y",
        "exec 3> /opt/x; echo a >&3; exec 3>&-; sudo touch /opt/y",
        "systemctl enable ssh 2> /dev/null; apt-get update >&2; x=$(systemctl enable ssh 2>&1)",
        "systemctl enable ssh > /dev/null 2>&1",
    ] {
        assert!(run(script, &[], &json!({})).is_ok(), "{script}");
    }
}
