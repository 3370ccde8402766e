//! A swap file, checked with mkswap, swaplabel and debugfs.

use std::fs;
use std::process::Command;

use super::archive::{Workshop, file, said};
use crate::tools::have;

/// Where the root partition of the base begins, in bytes.
const ROOT: u64 = 8192 * 512;

fn output(command: &mut Command) -> String {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = command.env("PATH", path).env("LC_ALL", "C").output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_swap_file_is_that_of_mkswap() {
    let Some(workshop) = Workshop::new().filter(|_| have(&["mkswap", "swaplabel", "debugfs"])) else { return };
    workshop.layer("web", r#", "swap": {"size": "4M"}"#);
    assert!(workshop.update(&[]).status.success());
    let baked = workshop.bake();
    assert!(baked.status.success(), "{}", said(&baked));
    let image = workshop.path("dist/web.o.amd64.raw");
    let unit = file(&image, "/etc/systemd/system/swapfile.swap");
    assert!(unit.contains("[Swap]\nWhat=/swapfile\n"), "{unit}");
    assert_eq!(file(&image, "/etc/systemd/system/swap.target.wants/swapfile.swap"), unit);

    // All 1,024 pages have blocks, which stat counts in sectors.
    let disk = format!("{}?offset={ROOT}", image.display());
    let found = output(Command::new("debugfs").args(["-R", "stat /swapfile", &disk]));
    for expected in ["Mode:  0600", "User:     0   Group:     0", "Size: 4194304", "Blockcount: 8192"] {
        assert!(found.contains(expected), "{expected}: {found}");
    }
    let ours = workshop.path("ours");
    output(Command::new("debugfs").arg("-R").arg(format!("dump /swapfile {}", ours.display())).arg(&disk));
    let label = output(Command::new("swaplabel").arg(&ours));
    let uuid = label.trim().strip_prefix("UUID:").unwrap().trim();
    let theirs = workshop.path("theirs");
    fs::write(&theirs, vec![0; 4 << 20]).unwrap();
    fs::set_permissions(&theirs, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    output(Command::new("mkswap").args(["--pagesize", "4096", "--uuid", uuid]).arg(&theirs));
    assert!(fs::read(&ours).unwrap() == fs::read(&theirs).unwrap());

    let before = fs::read(&image).unwrap();
    assert!(workshop.bake().status.success());
    assert!(fs::read(&image).unwrap() == before);
}

#[test]
fn what_is_not_a_swap_file_is_refused() {
    let Some(workshop) = Workshop::new() else { return };
    for (keys, expected) in [
        (r#""swap": {"size": "4"}"#, "size \"4\" is not between 1M and 1024G"),
        (r#""swap": {"size": "4M", "path": "/tmp/swap"}"#, "is below /tmp"),
        (r#""swap": {"size": "4M", "path": "/swap-1"}"#, "is invalid: expected letters, digits"),
        (
            r#""swap": {"size": "4M"}, "files": {"/swapfile": {"content": ""}}"#,
            "\"/swapfile\" is also a file, directory or link of the layer",
        ),
    ] {
        workshop.layer("web", &format!(", {keys}"));
        let updated = workshop.update(&[]);
        assert!(said(&updated).contains(expected), "{keys}: {}", said(&updated));
    }
    workshop.layer("more", r#", "swap": {"size": "1M"}"#);
    workshop.layer("web", r#", "requires": ["more"], "swap": {"size": "2M"}"#);
    let updated = workshop.update(&[]);
    assert!(said(&updated).contains("/swapfile: conflicting values in `swap` of the layers more and web"));
    workshop.layer("more", "");
    workshop.layer("web", r#", "swap": {"size": "1G"}"#);
    assert!(workshop.update(&[]).status.success());
    let baked = workshop.bake();
    assert!(said(&baked).contains("hint: use --size to enlarge the disk"), "{}", said(&baked));
}
