//! The life of a node of a cluster whose command line writes minimal user data: first boot, a delivery of everything else, another one
//! that removes most of it, all of it once more, and a boot after the servers of the cluster moved to other ports. The result of each stage is compared with a snapshot, and with results of Jinja and parsers
//! of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;

use super::image::{Image, put};
use super::machine::{Machine, USER_DATA, as_root, moved, scratch, server};
use super::settings::{Choice, bare, delivery};
use super::snapshot::{self, Point, Tree};
use super::trees::{commands, compare, judge};

const RECEIVED: &str = "/opt/nstance-agent/recv";

const AXES: [&[&str]; 4] = [
    &["knd", "knc"],
    &["local", "aws", "google", "proxmox"],
    &["ipv4", "dual"],
    &["bare", "delivered", "emptied", "again", "moved"],
];

/// What a delivery takes away again: buckets, targets and names.
const EMPTIED: [&str; 5] =
    ["NETSY_BUCKET", "REGISTRY_BUCKET", "REGISTRY_HOSTNAME", "TELEMETRY_OTLP_ENDPOINT", "TELEMETRY_S3_BUCKET"];

#[test]
fn is_that_of_the_snapshot() {
    if !as_root("life::is_that_of_the_snapshot") {
        return;
    }
    let work = scratch();
    let images = AXES[0].iter().map(|kind| Image::new(kind)).collect::<Vec<_>>();
    let choices = Choice::all().into_iter().filter(|choice| choice.0[3..] == [0, 0]);
    let machines: Vec<(Choice, Machine)> = choices
        .map(|choice| {
            let root = work.path().join(choice.to_string());
            let machine = Machine::new(root, &images[choice.0[0]], "amd64", &bare(choice));
            (choice, machine)
        })
        .collect();
    let mut trees: BTreeMap<Point, Tree> = BTreeMap::new();
    for stage in 0..AXES[3].len() {
        // A run of recv-watch waits a second for more files.
        thread::scope(|scope| {
            let running: Vec<_> =
                machines.iter().map(|(choice, machine)| scope.spawn(|| live(*choice, machine, stage))).collect();
            for ((choice, machine), run) in machines.iter().zip(running) {
                let said = run.join().unwrap().replace(' ', "\n    ");
                let mut tree = snapshot::tree(&machine.root);
                tree.retain(|path, _| !path.starts_with(RECEIVED));
                tree.insert("run".to_owned(), format!("commands\n{said}"));
                commands(machine, &images[choice.0[0]], &mut tree);
                trees.insert([&choice.0[..3], &[stage]].concat(), tree);
            }
        });
        judge(&machines.iter().map(|(_, machine)| machine.root.clone()).collect::<Vec<_>>());
    }
    compare("life.txt", &snapshot::text(&AXES, &trees));
}

/// Goes through a stage; what the program said that it runs.
fn live(choice: Choice, machine: &Machine, stage: usize) -> String {
    if stage == 0 {
        if choice.dual() {
            machine.dual();
        }
        if let Some(data) = choice.cloud() {
            put(&machine.root, "/run/cloud-init/instance-data.json", data);
        }
        return commands_of(&machine.succeed(&["configure"]));
    }
    if stage == 4 {
        // As the command line of a local cluster edits it, which starts its servers at other ports each time.
        let mut text = fs::read_to_string(machine.root.join(&USER_DATA[1..])).unwrap();
        for (old, new) in server().iter().zip(moved()) {
            assert!(text.contains(old), "{choice}: {text}");
            text = text.replace(old, new);
        }
        put(&machine.root, USER_DATA, &text);
        let said = commands_of(&machine.succeed(&["configure"]));
        let agent = fs::read_to_string(machine.root.join("opt/env/nstance-agent.env")).unwrap();
        assert!(moved().iter().all(|address| agent.contains(&format!("_ADDR='{address}'\n"))), "{choice}: {agent}");
        return said;
    }
    let mut values = delivery(choice);
    values.sort();
    if stage == 2 {
        values.iter_mut().filter(|(name, _)| EMPTIED.contains(name)).for_each(|(_, value)| value.clear());
    }
    // As the server writes it: without quotes, and without a line end at its end.
    let lines: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    put(&machine.root, &format!("{RECEIVED}/mutable.env"), &lines.join("\n"));
    put(&machine.root, &format!("{RECEIVED}/ca.pub"), "");
    put(&machine.root, &format!("{RECEIVED}/write-files.last"), "");
    let said = commands_of(&machine.succeed(&["recv-watch"]));
    // A run without news changes nothing.
    let before = fs::read(mutable(&machine.root)).unwrap();
    machine.succeed(&["configure"]);
    assert_eq!(fs::read(mutable(&machine.root)).unwrap(), before, "{choice}");
    said
}

fn mutable(root: &Path) -> std::path::PathBuf {
    root.join("opt/podplane/etc/mutable.env")
}

fn commands_of(said: &str) -> String {
    said.lines().filter(|line| line.starts_with("run ")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn settings_that_are_given_as_empty_stay_empty() {
    if !as_root("life::settings_that_are_given_as_empty_stay_empty") {
        return;
    }
    let work = scratch();
    let choice = Choice([1, 0, 1, 0, 0]);
    let mut user_data = bare(choice);
    for name in ["INSTANCE_IPV6", "TELEMETRY_LOG_SERVICES"] {
        user_data.insert(name.to_owned(), String::new());
    }
    let machine = Machine::new(work.path().join("0"), &Image::new("knc"), "amd64", &user_data);
    live(choice, &machine, 0);
    let read = |path: &str| fs::read_to_string(machine.root.join(path)).unwrap_or_default();
    assert!(read("opt/podplane/etc/detected.env").contains("INSTANCE_IPV6=''\n"));
    let telemetry = read("opt/fluent-bit/etc/fluent-bit.yml");
    assert!(!telemetry.contains("name: systemd") && telemetry.contains("name: tail"), "{telemetry}");
    judge(std::slice::from_ref(&machine.root));

    put(&machine.root, "/opt/new.env", "TELEMETRY_ENABLED=''\nREGISTRY_ENABLED=''\n");
    machine.succeed(&["update-mutable-env", "/opt/new.env", "/opt/podplane/etc/mutable.env"]);
    machine.succeed(&["configure"]);
    assert_eq!(read("opt/fluent-bit/etc/fluent-bit.yml"), "", "telemetry is off");
    assert!(read("opt/env/zot.env").contains("REGISTRY_ENABLED='true'\n"), "the registry has its default");
    assert!(machine.succeed(&["restart"]).contains("disable --no-reload --now fluent-bit.service"));
}

#[test]
fn older_names_are_kept_where_somebody_gives_them() {
    if !as_root("life::older_names_are_kept_where_somebody_gives_them") {
        return;
    }
    let work = scratch();
    let choice = Choice([1, 0, 0, 0, 0]);
    let mut user_data = bare(choice);
    user_data.insert("KUBE_API_PORT".to_owned(), "16443".to_owned());
    user_data.insert("KUBE_API_PUBLIC_HOSTNAME".to_owned(), "api.demo.example".to_owned());
    user_data.insert("OIDC_ISSUER".to_owned(), "https://login.demo.example".to_owned());
    let machine = Machine::new(work.path().join("0"), &Image::new("knc"), "amd64", &user_data);
    live(choice, &machine, 0);
    for (setting, port) in [("", "16443"), ("KUBE_API_PORT=6443", "6443"), ("KUBE_API_PORT=", "16443")] {
        put(&machine.root, "/opt/new.env", &format!("{setting}\n"));
        machine.succeed(&["update-mutable-env", "/opt/new.env", "/opt/podplane/etc/mutable.env"]);
        machine.succeed(&["configure"]);
        let said = machine.succeed(&["exec", "kube-apiserver"]);
        for flag in [format!("    --secure-port={port}\n"), "    --oidc-username-claim=sub\n".to_owned()] {
            assert!(said.contains(&flag), "{setting}: {said}");
        }
        let config = fs::read_to_string(machine.root.join("opt/kubelet/etc/kubeconfig")).unwrap();
        assert!(config.contains(&format!("kube-apiserver.podplane.internal:{port}")), "{setting}: {config}");
    }
    put(&machine.root, "/opt/new.env", "OIDC_USERNAME_CLAIM=email\n");
    let refused = machine.run(&["update-mutable-env", "/opt/new.env", "/opt/podplane/etc/mutable.env"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("OIDC_USERNAME_CLAIM is not a mutable variable"));
}

#[test]
fn an_address_of_a_server_is_that_of_user_data_while_none_is_delivered() {
    if !as_root("life::an_address_of_a_server_is_that_of_user_data_while_none_is_delivered") {
        return;
    }
    let work = scratch();
    let choice = Choice([0, 0, 0, 0, 0]);
    let machine = Machine::new(work.path().join("0"), &Image::new("knd"), "amd64", &bare(choice));
    live(choice, &machine, 0);
    let ([old, _], [new, _]) = (server(), moved());
    for (delivered, expected) in [(new.as_str(), new), ("", old)] {
        put(&machine.root, "/opt/new.env", &format!("NSTANCE_SERVER_REGISTRATION_ADDR={delivered}"));
        machine.succeed(&["update-mutable-env", "/opt/new.env", "/opt/podplane/etc/mutable.env"]);
        machine.succeed(&["configure"]);
        let agent = fs::read_to_string(machine.root.join("opt/env/nstance-agent.env")).unwrap();
        let line = format!("NSTANCE_SERVER_REGISTRATION_ADDR='{expected}'\n");
        assert!(agent.contains(&line), "{delivered}: {agent}");
    }
}

#[test]
fn variables_of_the_newest_agent_are_passed_on() {
    if !as_root("life::variables_of_the_newest_agent_are_passed_on") {
        return;
    }
    let work = scratch();
    let choice = Choice([0, 0, 0, 0, 0]);
    let mut user_data = bare(choice);
    for (name, value) in [("NSTANCE_REPORT_INTERVAL", "5s"), ("NSTANCE_HEALTH_ADDR", "[::1]:8081")] {
        user_data.insert(name.to_owned(), value.to_owned());
    }
    let machine = Machine::new(work.path().join("0"), &Image::new("knd"), "amd64", &user_data);
    live(choice, &machine, 0);
    let agent = fs::read_to_string(machine.root.join("opt/env/nstance-agent.env")).unwrap();
    for line in ["NSTANCE_REPORT_INTERVAL='5s'\n", "NSTANCE_HEALTH_ADDR='[::1]:8081'\n"] {
        assert!(agent.contains(line), "{agent}");
    }
    for name in ["NSTANCE_METRICS_INTERFACE", "NSTANCE_EBPF_COUNTERS_PATH", "NSTANCE_METRICS_INTERVAL"] {
        assert!(!agent.contains(name), "{agent}");
    }
}

#[test]
fn an_apostrophe_is_read_as_tools_quote_it() {
    if !as_root("life::an_apostrophe_is_read_as_tools_quote_it") {
        return;
    }
    let work = scratch();
    let choice = Choice([0, 1, 0, 0, 0]);
    let machine = Machine::new(work.path().join("0"), &Image::new("knd"), "amd64", &bare(choice));
    let text = fs::read_to_string(machine.root.join(&USER_DATA[1..])).unwrap();
    put(&machine.root, USER_DATA, &(text + "SSH_AUTHORIZED_KEY='ssh-ed25519 AAAA jo'\\''s laptop'\n"));
    live(choice, &machine, 0);
    let read = |path: &str| fs::read_to_string(machine.root.join(path)).unwrap();
    assert_eq!(read("home/admin/.ssh/authorized_keys"), "ssh-ed25519 AAAA jo's laptop\n");
    let kept = r#"SSH_AUTHORIZED_KEYS='ssh-ed25519 AAAA jo'"'"'s laptop'"#;
    assert!(read("opt/podplane/etc/mutable.env").contains(kept), "written as systemd and shells read it");
}
