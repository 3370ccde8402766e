//! Known state of the base during an import: a script that depends on anything else is refused.

use serde_json::json;
use vmbake::cli::error_report;

use super::import::{content, document, layer, run};

/// Scripts whose result depends on what a machine has, and what of it.
const DEPENDS: &[(&str, &str)] = &[
    // Listings.
    ("find /etc/sudoers.d -type f -delete", "the file /etc/sudoers.d"),
    ("find /etc/apt -type f -delete", "the entries of /etc/apt"),
    ("find /etc/apt -name '*.list' | xargs rm -f", "the entries of /etc/apt"),
    ("ls /opt | while read f; do rm -rf /opt/$f; done", "the entries of /opt"),
    ("cd /opt; ls | while read f; do :; done", "the entries of /opt"),
    ("if [ -z \"$(ls -A /opt)\" ]; then echo a > /opt/x; fi", "the entries of /opt"),
    ("for f in /etc/*.conf; do echo $f; done", "the entries of /etc"),
    ("for f in /opt/*; do echo $f; done", "the entries of /opt"),
    ("touch /opt/a; for f in /opt/*; do echo $f; done", "the entries of /opt"),
    ("echo x > /etc/apt/apt.conf.d/9x; cat /etc/apt/apt.conf.d/* > /opt/all", "the entries of /etc/apt/apt.conf.d"),
    ("cd /etc; cat *.conf > /opt/x || true", "the entries of /etc"),
    ("d=/etc/apt; rm -f \"$d\"/*", "the entries of /etc/apt"),
    ("rm -rf /etc/apt", "the entries of /etc/apt"),
    ("mkdir -p /etc/kubernetes; rm -rf /etc/kubernetes", "the entries of /etc/kubernetes"),
    ("mkdir -p /etc/kubernetes; ls /etc/kubernetes > /opt/x", "the entries of /etc/kubernetes"),
    ("mkdir -p /etc/kubernetes; rmdir /etc/kubernetes || true", "the entries of /etc/kubernetes"),
    ("mkdir -p /etc/kubernetes; mv /etc/kubernetes /opt/k", "the entries of /etc/kubernetes"),
    ("mkdir -p /etc/kubernetes; chmod -R 700 /etc/kubernetes", "the entries of /etc/kubernetes"),
    ("mkdir -p /etc/kubernetes; cp -r /etc/kubernetes /opt/k", "the entries of /etc/kubernetes"),
    ("ln -s /etc /opt/e; ls /opt/e > /opt/x", "the entries of /etc"),
    ("ln -s /etc /opt/e; cd /opt/e; ls > /opt/x", "the entries of /etc"),
    ("cd /opt/../etc; ls > /opt/x", "the entries of /etc"),
    ("du=$(echo ~/*)", "the file /etc/passwd"),
    // Names.
    ("[ -e /opt/../etc/hostname ] && touch /opt/x || true", "the file /etc/hostname"),
    ("cd /opt; [ -e ../etc/hostname ] && touch /opt/x || true", "the file /etc/hostname"),
    ("ln -s /etc /opt/e; [ -f /opt/e/hostname ] || true", "the file /etc/hostname"),
    ("ln -s /etc/hostname /opt/e; test -f /opt/e || true", "the file /etc/hostname"),
    ("[[ -f /etc/hostname ]] || true", "the file /etc/hostname"),
    ("[ ! -d /etc/kubernetes ] || true", "the file /etc/kubernetes"),
    ("[ -e /etc/kubernetes/admin.conf ] || touch /opt/x", "the file /etc/kubernetes"),
    ("mkdir -p /etc/kubernetes; [ -e /etc/kubernetes/admin.conf ] || touch /opt/x", "/etc/kubernetes/admin.conf"),
    ("[ /etc/a -ef /opt/a ] || true", "the file /etc/a"),
    ("[ -x /usr/sbin/ufw ] || true", "the file /usr/sbin/ufw"),
    ("[ -e /bin/odd ] || true", "the file /usr/bin/odd"),
    ("[ -e /lib64/x ] || true", "the file /lib64"),
    ("[ -e ~/.bashrc ] || true", "the file /etc/passwd"),
    ("[ -d /home/debian ] || true", "the file /home/debian"),
    ("[ -d /run/systemd/system ] || true", "the file /run/systemd"),
    ("[ -d /etc/sysctl.d ] || true", "the file /etc/sysctl.d"),
    ("readlink -f /etc/localtime > /opt/x", "the file /etc/localtime"),
    ("realpath /etc/alternatives/editor > /opt/x", "the file /etc/alternatives"),
    ("readlink /etc/localtime > /opt/x || true", "the file /etc/localtime"),
    ("(rm -f /etc/motd)", "the file /etc/motd"),
    ("unlink /etc/motd || true", "the file /etc/motd"),
    ("find /etc/motd -delete || true", "the file /etc/motd"),
    ("mkdir /etc/kubernetes", "the file /etc/kubernetes"),
    ("mkdir /srv/x || true", "the file /srv/x"),
    ("ln -s /opt/a /etc/localtime || true", "the file /etc/localtime"),
    ("touch /opt/a; ln /opt/a /etc/b || true", "the file /etc/b"),
    ("mv /etc/hosts /opt/hosts || true", "the file /etc/hosts"),
    ("cp /etc/hosts /opt/hosts || true", "the file /etc/hosts"),
    ("install /etc/hosts /opt/hosts || true", "the file /etc/hosts"),
    ("touch /opt/a; cp -n /opt/a /etc/a", "the file /etc/a"),
    ("touch /opt/a; cp -u /opt/a /etc/a", "the file /etc/a"),
    ("touch /opt/a; mv -n /opt/a /etc/a", "the file /etc/a"),
    ("mkdir /opt/a; cp -r /opt/a /etc/a", "the file /etc/a"),
    ("mkdir /opt/a; mv /opt/a /etc/a", "the file /etc/a"),
    ("touch /opt/a; install -C /opt/a /etc/a", "-C is not supported"),
    ("set -C; echo a > /etc/a", "the file /etc/a"),
    ("mkdir -p /etc/ssl/private", "the directory /etc/ssl/private"),
    ("mkdir -p /var/spool/cron/crontabs", "the directory /var/spool/cron"),
    ("mkdir -p /var/lock/x", "the directory /var/lock"),
    ("echo a > /etc/localtime", "the file /etc/localtime"),
    ("echo a > /etc/security/opasswd", "the file /etc/security/opasswd"),
    ("touch /etc/a", "the file /etc/a"),
    ("chmod 644 /etc/a || true", "the file /etc/a"),
    ("chmod 644 /etc/sudoers.d || true", "the file /etc/sudoers.d"),
    ("ln -s /etc/shadow /opt/s; chmod 644 /opt/s", "the file /etc/shadow"),
    ("ln -s /etc/shadow /opt/s; cp /opt/s /opt/t", "the file /etc/shadow"),
    ("ln -s /etc/shadow /opt/s; echo x > /opt/s", "the file /etc/shadow"),
    ("echo x > /etc/shadow", "the file /etc/shadow"),
    ("echo x > /etc/kubernetes/x", "the file /etc/kubernetes"),
    ("echo a > /etc/a; rm /etc/a", "the file of the system at /etc/a"),
    ("echo a > /etc/a; mv /etc/a /opt/a", "the file of the system at /etc/a"),
    ("echo a > /etc/a; sed -i.orig s/a/b/ /etc/a", "the file of the system at /etc/a"),
    // What a command puts into a directory, or fails without it.
    ("touch /opt/a; cp /opt/a /etc/new/ || touch /opt/x", "the file /etc/new"),
    ("touch /opt/a; cp -t /etc/new /opt/a || touch /opt/x", "the file /etc/new"),
    ("touch /opt/a /opt/b; mv /opt/a /opt/b /etc/new || touch /opt/x", "the file /etc/new"),
    ("touch /opt/a; install -t /etc/new /opt/a || touch /opt/x", "the file /etc/new"),
    ("ln -sfn /opt/a /etc/netplan", "the file /etc/netplan"),
    // Names that systemd and cloud-init make.
    ("[ -e /tmp/.X11-unix ] || touch /opt/x", "the file /tmp/.X11-unix"),
    ("mkdir -p /home/debian/.ssh", "the directory /home/debian"),
    ("mkdir -p ~/.ssh", "the file /etc/passwd"),
    ("mkdir -p /root/.ssh", "the directory /root/.ssh"),
    // Sizes.
    ("stat -c %s /usr/bin/apt > /opt/x", "the size of /usr/bin/apt"),
    ("stat -Lc %s /etc/os-release > /opt/x", "the size of /usr/lib/os-release"),
    ("stat -c %F /usr/bin/apt > /opt/x", "the size of /usr/bin/apt"),
    ("[ -s /usr/bin/apt ] || touch /opt/x", "the size of /usr/bin/apt"),
    ("[[ -s /usr/bin/apt ]] || touch /opt/x", "the size of /usr/bin/apt"),
    ("find /usr/bin/apt -empty > /opt/x", "the size of /usr/bin/apt"),
    ("find /usr/bin/apt -size -1k > /opt/x", "the size of /usr/bin/apt"),
    ("find /usr/bin/apt -printf %s > /opt/x", "the size of /usr/bin/apt"),
    ("curl -fLo /opt/t https://h.example/t; stat -c %s /opt/t > /opt/x", "the size of /opt/t"),
    ("curl -fLo /opt/t https://h.example/t; [ -s /opt/t ] || exit 1", "the size of /opt/t"),
    // Times.
    ("stat -c %Y /usr/bin/apt > /opt/x", "the time of /usr/bin/apt"),
    ("touch /opt/a; stat -c %Y /opt/a > /opt/x", "the time of /opt/a"),
    ("touch /opt/a; [ /opt/a -nt /usr/bin/apt ] || touch /opt/x", "the time of /opt/a"),
    ("touch /opt/a; [[ /opt/a -ot /usr/bin/apt ]] || touch /opt/x", "the time of /opt/a"),
    ("touch /opt/a; find /usr/bin/apt -newer /opt/a > /opt/x", "the time of /usr/bin/apt"),
    ("touch /opt/a /opt/b; cp -u /opt/a /opt/b", "the time of /opt/a"),
    ("touch /opt/a /opt/b; mv -u /opt/a /opt/b", "the time of /opt/a"),
    // Types and modes of what may have been there.
    ("mkdir -p /etc/kubernetes; [ -L /etc/kubernetes ] || touch /opt/x", "the type of /etc/kubernetes"),
    ("echo a > /etc/a; [ -h /etc/a ] || touch /opt/x", "the type of /etc/a"),
    ("echo a > /etc/a; readlink /etc/a || touch /opt/x", "the type of /etc/a"),
    ("echo a > /etc/a; find /etc/a -type f > /opt/x", "the type of /etc/a"),
    ("echo a > /etc/a; [ -x /etc/a ] || touch /opt/x", "the mode of /etc/a"),
    ("echo a > /etc/a; chmod u+x /etc/a", "the mode of /etc/a"),
    ("echo a > /etc/a; stat -c %a /etc/a > /opt/x", "the mode of /etc/a"),
    ("echo a > /etc/a; cp /etc/a /opt/a", "the mode of /etc/a"),
    ("echo '#!/bin/sh' > /etc/a; /etc/a || touch /opt/x", "the mode of /etc/a"),
    ("echo a > /etc/a; sed -i s/a/b/ /etc/a; stat -c %a /etc/a > /opt/x", "the mode of /etc/a"),
    ("echo a > /etc/a; sed -i s/a/b/ /etc/a; [ -x /etc/a ] || touch /opt/x", "the mode of /etc/a"),
    ("mkdir -p /etc/kubernetes; stat -c %a /etc/kubernetes > /opt/x", "the mode of /etc/kubernetes"),
    ("ln -s /etc/a /opt/l; touch /opt/b; cp /opt/b /opt/l || true", "the file /etc/a"),
    ("ln -s /etc/a /opt/l; mkdir -p /opt/l || echo n > /opt/b", "the directory /etc/a"),
    ("ln -s /etc/a /opt/l; install -d /opt/l || echo n > /opt/b", "the directory /etc/a"),
    // Contents.
    ("cp /usr/bin/sudo /opt/x", "the content of /usr/bin/sudo"),
    ("cat /usr/bin/sudo > /opt/x", "the content of /usr/bin/sudo"),
    ("grep -q ^nobody: /etc/passwd && touch /opt/x || true", "the file /etc/passwd"),
    ("echo x >> /opt/../etc/hosts", "the file /etc/hosts"),
    ("ln -s /etc/hosts /opt/h; echo x >> /opt/h", "the file /etc/hosts"),
    ("ln -s /etc /opt/e; echo x >> /opt/e/hosts", "the file /etc/hosts"),
    ("ln -s ../etc/hosts /opt/h; echo x | tee -a /opt/h", "the file /etc/hosts"),
    ("cd /etc; cat >> hosts <<END\nx\nEND", "the file /etc/hosts"),
    ("f=/etc/hosts; { echo a; echo b; } >> $f", "the file /etc/hosts"),
    ("echo x | tee -a /etc/hosts", "the file /etc/hosts"),
    ("cat < /etc/hosts > /opt/x || true", "the file /etc/hosts"),
    ("while read -r l; do echo $l; done < /etc/passwd > /opt/x", "the file /etc/passwd"),
    ("x=$(cat /etc/hostname 2> /dev/null || true)", "the file /etc/hostname"),
    ("x=$(< /etc/hostname)", "/etc/hostname"),
    (". /etc/default/keyboard || true", "the file /etc/default/keyboard"),
    ("source /etc/default/keyboard || true", "the file /etc/default/keyboard"),
    ("awk '{print $1}' /etc/fstab > /opt/x || true", "the file /etc/fstab"),
    ("grep -c . /etc/debian_version > /opt/x", "the file /etc/debian_version"),
    ("sed -i s/a/b/ /etc/hosts", "the file /etc/hosts"),
    ("sed s/a/b/ /etc/hosts > /opt/x", "the file /etc/hosts"),
    ("touch /opt/a; cmp -s /opt/a /etc/hosts || true", "the file /etc/hosts"),
    ("touch /opt/a; diff -q /opt/a /etc/hosts || true", "the file /etc/hosts"),
    ("head -n 1 /etc/hosts | tail -n 1 > /opt/x", "the file /etc/hosts"),
    ("sort /etc/hosts > /opt/x || true", "the file /etc/hosts"),
    ("sha256sum /etc/hosts > /opt/x || true", "the file /etc/hosts"),
    ("cat /usr/bin/apt > /opt/x", "the content of /usr/bin/apt"),
    ("[ \"$(stat -c %U /etc/hosts)\" = root ] || true", "the file /etc/hosts"),
    (". /etc/os-release; [ $DEBIAN_VERSION_FULL = 13.1 ] || true", "the text"),
    ("chown nobody /opt || true", "the file /etc/passwd"),
    ("touch /opt/a; chown nobody /opt/a || true", "the file /etc/passwd"),
    ("touch /opt/a; chgrp adm /opt/a || true", "the file /etc/group"),
    ("id nobody > /dev/null || true", "the file /etc/passwd"),
    // Texts.
    ("apt-get update > /opt/log", "the text {{ output-of-apt-get }}"),
    ("apt-get install -y jq | tee /opt/log", "the text {{ output-of-apt-get }}"),
    ("x=$(apt-get install -y jq); echo \"$x\" > /opt/log", "the text {{ output-of-apt-get }}"),
    ("if apt-get install -y jq | grep -q newest; then touch /opt/x; fi", "the text {{ output-of-apt-get }}"),
    ("sysctl --system > /opt/x", "the text {{ output-of-sysctl }}"),
    ("FETCH | tee /opt/x", "the text {{ output-of-sha256sum }}"),
    ("cp /etc/os-release /opt/x", "the text {{ DEBIAN_VERSION_FULL }}"),
    ("export A=b; sudo sh -c 'echo ${A-unset}' > /opt/x", "the variable A, which sudo does not pass on"),
    ("sudo -u nobody touch /opt/x", "-u is not supported"),
    // Exit statuses.
    ("if sudo systemctl stop ufw; then touch /opt/x; fi", "the units of the running machine"),
    ("sudo systemctl stop ufw && touch /opt/x", "the units of the running machine"),
    ("if systemctl start ssh; then touch /opt/x; fi", "the units of the running machine"),
    ("systemctl restart ssh || touch /opt/x", "the units of the running machine"),
    ("systemctl enable --now ssh || touch /opt/x", "the units of the running machine"),
    ("echo 'systemctl stop ufw' > /opt/s; if sh /opt/s; then touch /opt/x; fi", "the units of the running machine"),
    ("set +e; systemctl stop ufw; echo $? > /opt/x", "the exit status of `systemctl stop ufw`"),
    ("set +e; systemctl stop ufw; r=$?; [ $r = 0 ] && touch /opt/x", "the exit status of `systemctl stop ufw`"),
    (
        "set +e; f() { systemctl stop ufw; }; f; [[ $? -eq 0 ]] && touch /opt/x",
        "the exit status of `systemctl stop ufw`",
    ),
    ("set +e; modprobe overlay; case $? in 0) touch /opt/x;; esac", "the exit status of `modprobe overlay`"),
    ("sysctl -p", "-p with a file outside /etc/sysctl.d"),
    ("touch /opt/x.conf; sysctl -p /opt/x.conf", "-p with a file outside /etc/sysctl.d"),
    // State.
    ("systemctl is-active ssh || true", "it queries the running machine"),
    ("if systemctl is-enabled -q ssh; then touch /opt/x; fi", "it queries the running machine"),
    ("systemctl status ssh > /opt/x || true", "it queries the running machine"),
    ("systemctl list-unit-files > /opt/x", "it queries the running machine"),
    ("getent passwd nobody || true", "the command is not known"),
    ("dpkg -s curl || true", "dpkg is a compiled program"),
    ("dpkg-query -W curl || true", "the command is not known"),
    ("command -v curl || true", "the program curl"),
    ("type curl || true", "the program curl"),
    ("which curl || true", "the program curl"),
    ("if which curl > /dev/null; then touch /opt/x; fi", "the program curl"),
    ("mount | grep -q /opt || true", "it queries or changes the running machine"),
    ("lsmod || true", "it queries or changes the running machine"),
    ("uname -r > /opt/x", "the kernel"),
    ("/etc/init.d/ssh stop || true", "the file /etc/init.d"),
    // What was unpacked, and what only a machine makes.
    ("mkdir /opt/d; ARCHIVE; [ -e /opt/d/x ] || true", "the file /opt/d/x"),
    ("mkdir /opt/d; ARCHIVE; chmod +x /opt/d/*", "the entries of /opt/d"),
    ("mkdir /opt/d; ARCHIVE; mv /opt/d/x /usr/local/bin/x", "the file /opt/d/x"),
    ("mkdir /opt/d; ARCHIVE; mv /opt/d /opt/e", "the entries of /opt/d"),
    ("mkdir /opt/d; ARCHIVE; rm -rf /opt/d", "the entries of /opt/d"),
    ("mkdir /opt/d; ARCHIVE; chown -R 1000 /opt/d", "the entries of /opt/d"),
    ("mkdir /opt/d; ln -s d /opt/l; D=/opt/l; ARCHIVE", "a path that contains symbolic links"),
    ("ARCHIVE", "a path that contains symbolic links or is not a directory: /opt/d"),
    ("/opt/asks; [ -e /opt/address ] || true", "the file /opt/address"),
    // What is fetched stays as it is.
    ("FETCH; echo more >> /opt/t", "/opt/t: its contents come from downloaded files"),
    ("FETCH; cat /opt/t /opt/t > /opt/u", "/opt/u: its contents come from downloaded files"),
    ("FETCH; echo \"$(cat /opt/t)\" > /opt/u", "/opt/u: its contents come from downloaded files"),
    ("FETCH; { echo '#!/bin/sh'; cat /opt/t; } > /opt/u", "/opt/u: its contents come from downloaded files"),
    ("FETCH; sed -i s/a/b/ /opt/t", "the text"),
    ("FETCH; truncate -s 0 /opt/t", "the command is not known"),
    ("FETCH; while read -r x; do printf %s \"$x\"; done < /opt/t > /opt/u", "the text"),
    ("FETCH; mapfile x < /opt/t; printf %s \"${x[@]}\" > /opt/u", "the text"),
    ("FETCH; cat -A /opt/t > /opt/u", "the text"),
    ("cat /bin/sh > /opt/x", "the content of /usr/bin/dash"),
    ("FETCH; [ -s /opt/t ] && touch /opt/n", "the size of /opt/t"),
    ("FETCH; wc -c /opt/t > /opt/n", "the text"),
];

#[test]
fn nothing_is_guessed_about_the_base() {
    let sum = "b".repeat(64);
    let fetch = |name: &str| {
        format!("curl -fsSLo /opt/{name} https://h.example/v1.0/{name}; echo '{sum}  /opt/{name}' | sha256sum -c -")
    };
    let archive = format!("{}; tar -xzf /opt/a.tgz -C ${{D:-/opt/d}}", fetch("a.tgz"));
    let files = [("/opt/asks", "#!/bin/sh\nip route > /opt/address\n")];
    let mut wrong = Vec::new();
    for (script, expected) in DEPENDS {
        let script = script.replace("ARCHIVE", &archive).replace("FETCH", &fetch("t"));
        match run(&script, &files, &json!({})) {
            Ok(imported) => wrong.push(format!("{script}\n    {}", document(&imported))),
            Err(error) => {
                let text = error.to_string();
                let names = ["/usr/local/sbin/setup:", "/usr/bin/sudo:", "/opt/s:"];
                let has_place = names.iter().any(|name| text.starts_with(name)) && error_report::hint(&error).is_some();
                if !text.contains(expected) || !(has_place || text.contains("come from downloaded files")) {
                    wrong.push(format!("{script}\n    {text}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_does_not_depend_on_the_base_is_done() {
    let script = "mkdir -p /etc/kubernetes/pki /opt/cni/bin\n\
        echo a > /etc/kubernetes/a.conf; echo b >> /etc/kubernetes/a.conf; chmod 600 /etc/kubernetes/a.conf\n\
        sed -i s/a/c/ /etc/kubernetes/a.conf; cp /etc/kubernetes/a.conf /etc/b.conf; install -m 644 /etc/b.conf /etc/c.conf\n\
        echo d | tee /etc/sysctl.d/9-d.conf > /dev/null; touch /opt/t; mv /opt/t /etc/t; ln -sf /opt/x /usr/local/bin/x\n\
        ln -sfn /opt/x /etc/l; ls -A /opt/cni/bin > /opt/list; for f in /opt/cni/*; do echo $f >> /opt/list; done\n\
        [ -e /opt/missing ] || echo none >> /opt/list; rm -rf /opt/missing /opt/cni/bin; [ ! -d /opt/cni/bin ]\n\
        . /etc/os-release; echo $ID-$VERSION_CODENAME >> /opt/list; [ -d /etc/apt ]; cd /tmp; echo z > z; cat z >> /opt/list; rm z\n\
        mkdir /opt/m; find /opt/m -type f -delete; rmdir /opt/m; cat >> /etc/environment <<END\nA=b\nEND\n\
        install -m 755 -d /etc/apt/keyrings; chown root:root /opt/list /opt; command -v systemctl >> /opt/list; cd /opt/cni; echo q > ../../etc/q; id -u >> /opt/list";
    let imported = run(script, &[], &json!({})).unwrap();
    for (path, expected) in [
        ("/etc/kubernetes/a.conf", Some("c\nb\n")),
        ("/etc/b.conf", Some("c\nb\n")),
        ("/etc/c.conf", Some("c\nb\n")),
        ("/etc/sysctl.d/9-d.conf", Some("d\n")),
        ("/etc/t", Some("")),
        ("/opt/list", Some("/opt/cni/bin\nnone\ndebian-trixie\nz\n/usr/bin/systemctl\n0\n")),
        ("/etc/environment", Some("A=b\n")),
        ("/etc/q", Some("q\n")),
        ("/opt/cni/bin", None),
    ] {
        assert_eq!(content(&imported, path).as_deref(), expected, "{path}");
    }
    let found = document(&imported);
    assert_eq!(found["symlinks"], json!({"/etc/l": "/opt/x", "/usr/local/bin/x": "/opt/x"}));
    assert_eq!(found["files"]["/etc/kubernetes/a.conf"], json!({"mode": "0600"}));
}

#[test]
fn packages_of_other_archives_may_fill_local_directories() {
    let rules = json!({"archive": "kubernetes"});
    for (script, expected) in [
        ("[ -e /opt/cni/bin/bridge ] || touch /opt/x", "the file /opt/cni"),
        ("[ -e /usr/local/bin/tool ] || touch /opt/x", "the file /usr/local/bin/tool"),
    ] {
        let error = run(&format!("apt-get install -y kubeadm\n{script}"), &[], &rules).unwrap_err().to_string();
        assert!(error.contains(expected), "{script}: {error}");
    }
}

#[test]
fn statuses_that_change_nothing_are_not_looked_at() {
    for script in [
        "systemctl stop ufw || true",
        "systemctl disable ufw || :",
        "sudo systemctl stop ufw || true",
        "set +e; systemctl stop ufw || true; echo $? > /opt/x",
        "systemctl stop ufw; echo $? > /opt/x",
        "sudo sh -c 'touch /opt/y'; export A=b; sudo touch /opt/x",
        "apt-get update > /dev/null; apt-get install -qq jq > /opt/log",
        "echo a=1 > /etc/sysctl.d/9-x.conf; sysctl -q -p /etc/sysctl.d/9-x.conf",
        "modprobe overlay || true",
        "echo 'systemctl restart ufw' > /opt/s; until sh /opt/s; do sleep 1; done",
        "echo 'systemctl restart ufw' > /opt/s; while ! sh /opt/s; do sleep 1; done",
        "systemctl stop ufw 2> /dev/null || true",
        "echo '[Service]' > /etc/systemd/system/a.service; if systemctl stop a; then touch /opt/x; fi",
        "echo '#!/bin/sh' > /etc/a; chmod 755 /etc/a; [ -x /etc/a ]; /etc/a",
        "touch /opt/a; chmod u+x /opt/a; [ -x /opt/a ]; [ ! -s /opt/a ]; cp -u /opt/a /opt/b",
        "[ -z \"${FLAVOUR:-}\" ]; sudo touch /opt/x",
        "touch /opt/a; cp -p /opt/a /opt/b; touch -m /opt/b; install -p /opt/a /opt/c",
    ] {
        let imported = run(script, &[], &json!({}));
        assert!(imported.is_ok(), "{script}: {}", imported.unwrap_err());
    }
}

#[test]
fn directories_that_may_exist_keep_their_mode() {
    let script = "mkdir -p /etc/kubernetes/manifests /opt/cni; mkdir -p /etc/crio; chmod 700 /etc/crio";
    let found = layer(script, &[], &json!({}));
    for (path, expected) in [
        ("/etc/crio", json!({"mode": "0700"})),
        ("/etc/kubernetes", json!({})),
        ("/etc/kubernetes/manifests", json!({})),
        ("/opt/cni", json!({"mode": "0755"})),
    ] {
        assert_eq!(found["directories"][path], expected, "{path}");
    }
}

#[test]
fn a_hard_link_is_not_two_files() {
    let error = run("touch /opt/a; ln /opt/a /opt/b", &[], &json!({})).unwrap_err().to_string();
    assert_eq!(
        error,
        "/opt/b: it is a hard link to /opt/a, which layers do not support: copy the file, or create a symbolic link"
    );
    assert!(run("touch /opt/a; ln /opt/a /opt/b; rm /opt/a", &[], &json!({})).is_ok());
}

#[test]
fn files_that_do_not_exist_are_older_for_bash() {
    for script in
        ["[ /etc/environment -nt /opt/a ] && touch /opt/x", "[[ /opt/a -ot /etc/environment ]] && touch /opt/x"]
    {
        assert!(content(&run(script, &[], &json!({})).unwrap(), "/opt/x").is_some(), "{script}");
    }
}
