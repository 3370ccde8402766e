//! Capabilities and set-id bits of files that commands write or give another owner, compared with the kernel.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use vmbake_disk::tree::Tree;
use vmbake_shell::{Files, Settings, TreeFiles};

use crate::host;

const ATTRIBUTE: &[u8] = b"security.capability";
const MODES: [u16; 6] = [0o6755, 0o2644, 0o4644, 0o2755, 0o6644, 0o755];

/// What is done to the file `f`.
const COMMANDS: [&str; 26] = [
    "chown 1:1 f",
    "chown 0:0 f",
    "chown 33 f",
    "chgrp 0 f",
    "chown -R 1 .",
    "chmod 755 f",
    "touch f",
    ": >f",
    "echo x >f",
    "echo x >>f",
    ": >>f",
    ": <>f",
    "cat /dev/null >f",
    "cp /dev/null f",
    "cp g f",
    "cp -p g f",
    "cp -a g f",
    "cp f h && mv h f",
    "cp -p f h && mv h f",
    "cp -a f h && mv h f",
    "mv f h; mv h f",
    "ln f h",
    "sed -i s/a/b/ f",
    "echo x | tee f >/dev/null",
    "echo x | tee -a f >/dev/null",
    "tee -a f </dev/null",
];

#[test]
fn capabilities_go_as_with_the_kernel() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    if !host::has_dash() || !has_capabilities(&root) {
        return crate::skip::skip(
            "capabilities compared with the kernel: dash, setcap, or the right to use it is missing",
        );
    }
    let mut differing = 0;
    for mode in MODES {
        for (number, command) in COMMANDS.iter().enumerate() {
            let directory = root.join(format!("{mode:o}-{number}"));
            let expected = real(command, mode, &directory);
            let found = ours(command, mode, directory.to_str().unwrap());
            if found != expected {
                differing += 1;
                println!("--- {mode:o} {command}: expected mode and capabilities {expected:?}, found {found:?}");
            }
        }
    }
    assert_eq!(differing, 0);
}

/// Mode, and whether the file has capabilities.
type State = (u16, bool);

fn has_capabilities(root: &Path) -> bool {
    let probe = root.join("probe");
    fs::write(&probe, "a").unwrap();
    set_capability(&probe) && is_capable(&probe)
}

fn set_capability(path: &Path) -> bool {
    let setcap = Command::new("/usr/sbin/setcap").arg("cap_net_raw+ep").arg(path).status();
    setcap.is_ok_and(|status| status.success())
}

fn is_capable(path: &Path) -> bool {
    let getcap = Command::new("/usr/sbin/getcap").arg(path).output();
    getcap.is_ok_and(|output| !output.stdout.is_empty())
}

fn real(command: &str, mode: u16, directory: &Path) -> State {
    fs::create_dir(directory).unwrap();
    for name in ["f", "g"] {
        fs::write(directory.join(name), "a\n").unwrap();
    }
    let file = directory.join("f");
    fs::set_permissions(&file, fs::Permissions::from_mode(mode.into())).unwrap();
    assert!(set_capability(&file));
    let done = Command::new("dash").args(["-ec", command]).current_dir(directory).status().unwrap();
    assert!(done.success(), "{command}");
    let mode = file.metadata().unwrap().permissions().mode() & 0o7777;
    (u16::try_from(mode).unwrap(), is_capable(&file))
}

fn ours(command: &str, mode: u16, directory: &str) -> State {
    let mut tree = host::tree(directory);
    let origin = tree.first_origin();
    let mut files = TreeFiles::new(&mut tree, vmbake_disk::tree::Timestamp::default(), origin);
    let place = |name: &str| format!("{directory}/{name}").into_bytes();
    files.write(&place("g"), b"a\n".to_vec(), 0o644).unwrap();
    files.write(&place("f"), b"a\n".to_vec(), 0o644).unwrap();
    files.set_mode(&place("f"), mode).unwrap();
    let file = |tree: &Tree| tree.resolve(&place("f")).unwrap();
    let id = file(&tree);
    tree.meta_mut(id).xattrs.insert(ATTRIBUTE.to_vec(), vec![1]);
    let source = format!("set -e; {command}\n");
    let finished =
        host::interpret_with(&source, directory, &mut tree, &mut host::Nothing, Settings::default()).unwrap();
    assert_eq!(finished.status, 0, "{command}");
    let meta = &tree.inode(file(&tree)).meta;
    (meta.mode, meta.xattrs.contains_key(ATTRIBUTE))
}
