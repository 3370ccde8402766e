//! Machine files: the record, the manifest, kernel tables and resolv.conf, all with the same bytes.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use vmbake_firstboot::record::Record;
use vmbake_firstboot::root::Root;
use vmbake_firstboot::{accounts::Accounts, detect, facts, status};

const FILES: [&str; 10] = [
    "var/lib/vmbake/firstboot.json",
    "opt/podplane/share/vmconfig-installed.json",
    "proc/net/route",
    "proc/net/ipv6_route",
    "proc/net/fib_trie",
    "proc/net/if_inet6",
    "proc/sys/kernel/hostname",
    "etc/resolv.conf",
    "etc/passwd",
    "etc/group",
];

fuzz_target!(|bytes: &[u8]| {
    let top = tempfile::tempdir_in("/dev/shm").unwrap();
    for file in FILES {
        let path = top.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let root = Root::open(top.path(), false).unwrap();
    Accounts::read(&root).unwrap();
    facts::installed(&root).ok();
    detect::variables(&root).ok();
    if let Ok(record) = Record::read(&root) {
        record.placed();
        record.value().map(status::line);
    }
});
