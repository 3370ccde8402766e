//! Menus compared with those that dash makes of the same scripts, with the same answers about the disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use vmbake_disk::tree::{Timestamp, Tree};
use vmbake_grub::{DiskIds, GrubError, MKCONFIG, menu};
use vmbake_shell::TreeFiles;

use crate::tools::{have, run};
use crate::trees::{add, empty};

const SETTINGS: &str = "GRUB_DEFAULT=0\nGRUB_TIMEOUT=3\nGRUB_DISTRIBUTOR=`lsb_release -i -s 2> /dev/null || echo Debian`\n\
    GRUB_CMDLINE_LINUX_DEFAULT=\"quiet a='b c'\"\nGRUB_CMDLINE_LINUX=\"console=tty0 console=ttyS0,115200\"\n";
const KERNELS: [&str; 3] = ["6.1.0-9-amd64", "6.1.0-31-amd64", "6.12.118+deb13-cloud-amd64"];

/// The scripts of `grub-common`, as installed here, with kernels; none where the package is not.
fn system(ids: &DiskIds) -> Option<Tree> {
    if !have("grub-mkconfig") {
        return None;
    }
    let mut tree = empty();
    let mut paths =
        vec![MKCONFIG.into(), "/usr/share/grub/grub-mkconfig_lib".into(), "/usr/share/grub/unicode.pf2".into()];
    let scripts = fs::read_dir("/etc/grub.d").unwrap().map(|entry| entry.unwrap().path());
    paths.extend(scripts);
    for path in paths {
        let path: &Path = &path;
        add(&mut tree, path.to_str().unwrap(), fs::read(path).unwrap());
        let id = tree.resolve(path.to_str().unwrap().as_bytes()).unwrap();
        tree.meta_mut(id).mode = u16::try_from(fs::metadata(path).unwrap().permissions().mode() & 0o7777).unwrap();
    }
    for name in ["grub-probe", "grub-mkrelpath"] {
        let dir = if name == "grub-probe" { "/usr/sbin" } else { "/usr/bin" };
        add(&mut tree, &format!("{dir}/{name}"), stub(name, ids).into_bytes());
    }
    add(&mut tree, "/etc/default/grub", SETTINGS.into());
    add(&mut tree, "/boot/grub/grubenv", vec![b'#'; 1024]);
    for kernel in KERNELS {
        add(&mut tree, &format!("/boot/vmlinuz-{kernel}"), b"kernel".to_vec());
        add(&mut tree, &format!("/boot/initrd.img-{kernel}"), b"initrd".to_vec());
        add(&mut tree, &format!("/boot/config-{kernel}"), b"CONFIG_X=y\n".to_vec());
    }
    Some(tree)
}

/// What answers dash.
fn stub(name: &str, ids: &DiskIds) -> String {
    let (uuid, partuuid) = (ids.root_uuid_text(), ids.root_partuuid());
    match name {
        "grub-probe" => format!(
            "#!/bin/sh\ncase \"$*\" in\n*fs_uuid) echo {uuid};;\n*target=partuuid) echo {partuuid};;\n*target=fs|-t\\ fs\\ *) echo ext2;;\n\
             *partmap) echo gpt;;\n*target=device*) echo PARTUUID={partuuid};;\nesac\n"
        ),
        _ => "#!/bin/sh\necho \"${1#@ROOT@}\"\n".to_owned(),
    }
}

/// Writes the tree below a directory; paths in scripts lead there.
fn below(dir: &Path, tree: &Tree) {
    for (path, _, inode) in tree.walk() {
        let path = String::from_utf8(path).unwrap();
        let place = dir.join(path.trim_start_matches('/'));
        if !matches!(inode.kind, vmbake_disk::tree::Kind::File(_)) {
            fs::create_dir_all(place).unwrap();
            continue;
        }
        let content = tree.read(path.as_bytes(), 1 << 24).unwrap();
        let is_script = path.starts_with("/usr") && !path.ends_with(".pf2") || path.starts_with("/etc");
        let content = match String::from_utf8(content) {
            Ok(text) if is_script => moved(&text, dir.to_str().unwrap()).into_bytes(),
            Ok(text) => text.into_bytes(),
            Err(error) => error.into_bytes(),
        };
        fs::write(&place, content).unwrap();
        let mode = if path.contains("/grub-") { 0o755 } else { u32::from(inode.meta.mode) };
        fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
    }
}

fn moved(text: &str, dir: &str) -> String {
    let mut text = text.to_owned();
    for top in ["usr", "etc", "boot", "lib"] {
        for before in ["\"", " ", "=", "'", "(", "$"] {
            text = text.replace(&format!("{before}/{top}"), &format!("{before}{dir}/{top}"));
        }
    }
    // dash would look at the firmware of this machine.
    text.replace("/sys/firmware/efi", "/nowhere").replace("@ROOT@", dir)
}

fn made(tree: &mut Tree, ids: &DiskIds) -> Result<String, GrubError> {
    let origin = tree.first_origin();
    let mut files = TreeFiles::new(tree, Timestamp::default(), origin);
    menu(&mut files, "amd64", ids).map(|menu| String::from_utf8(menu).unwrap())
}

#[test]
fn menu_is_that_of_dash() {
    let ids = DiskIds::of("test");
    let Some(mut tree) = system(&ids) else { return };
    let ours = made(&mut tree, &ids).unwrap();
    let dir = tempfile::tempdir().unwrap();
    below(dir.path(), &tree);
    let root = dir.path().to_str().unwrap();
    let path = format!("PATH={root}/usr/sbin:{root}/usr/bin:/usr/bin:/bin");
    let out = format!("{root}/out");
    run("env", &["-i", &path, "sh", "-c", "cd / && sh \"$1\" >\"$2\"", "sh", &format!("{root}{MKCONFIG}"), &out]);
    let theirs = fs::read_to_string(&out).unwrap().replace(root, "");
    assert_eq!(ours, theirs);
    for kernel in KERNELS {
        let line = format!(
            "linux\t/boot/vmlinuz-{kernel} root=PARTUUID={} ro console=tty0 console=ttyS0,115200 quiet a='b c'",
            ids.root_partuuid()
        );
        assert!(ours.contains(&line), "{line}: {ours}");
    }
    let checked = format!("{root}/menu");
    fs::write(&checked, &ours).unwrap();
    run("grub-script-check", &[&checked]);
}

#[test]
fn what_is_not_known_is_refused() {
    let ids = DiskIds::of("test");
    let Some(original) = system(&ids) else { return };
    for (script, expected) in [
        ("#!/bin/sh\ngrub-probe --target=bios_hint /\n", "grub-probe"),
        ("#!/bin/sh\ncat /proc/cpuinfo\n", "/proc/cpuinfo"),
        ("#!/bin/sh\nexit 3\n", "status 3"),
    ] {
        let mut tree = original.clone();
        add(&mut tree, "/etc/grub.d/09_own", script.into());
        let id = tree.resolve(b"/etc/grub.d/09_own").unwrap();
        tree.meta_mut(id).mode = 0o755;
        let error = made(&mut tree, &ids).unwrap_err().to_string();
        assert!(error.starts_with("cannot write GRUB's menu") && error.contains(expected), "{error}");
    }
}
