//! Settings that would be in an image without any effect on its machines: each stops the bake, or goes where it counts.

use vmbake_disk::tree::{Inode, Kind, Metadata, Timestamp, Tree};

use super::parts::{bake_onto, base_with, link, text};

/// A file system mounted by fstab(5), and links and locales as in Debian 13.
fn base() -> Tree {
    let mut tree = base_with(&[
        (
            "/etc/fstab",
            "# none\nPARTUUID=a / ext4 rw 0 1\nPARTUUID=b /boot/efi vfat defaults 0 0\nLABEL=s none swap sw 0 0\n",
        ),
        ("/boot/efi/EFI/a", ""),
        ("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
        ("/etc/locale.conf", "LANG=C.UTF-8\n"),
        ("/usr/lib/locale/de_DE.utf8/x", ""),
        ("/usr/share/zoneinfo/UTC", "TZif2"),
        ("/usr/share/zoneinfo/Etc/UTC", "TZif2"),
        ("/usr/share/zoneinfo/leapseconds", "#"),
        ("/usr/bin/nano", ""),
        ("/var/lib/dpkg/alternatives/editor", "auto\n/usr/bin/editor\n\n/usr/bin/nano\n40\n\n"),
    ]);
    let origin = tree.inode(tree.lookup(b"/etc/locale.conf").unwrap()).origin;
    let meta = Metadata::root(0o777, Timestamp::default());
    tree.make_dirs(b"/etc/default", &Metadata::root(0o755, meta.mtime), origin).unwrap();
    let inode = Inode { meta, kind: Kind::Symlink(b"../locale.conf".to_vec()), origin };
    tree.place(b"/etc/default/locale", inode).unwrap();
    tree
}

fn bake(keys: &str) -> Result<Tree, String> {
    bake_onto(base(), &[], keys)
}

#[test]
fn a_locale_is_written_through_the_link_to_what_systemd_reads() {
    let tree = bake(r#", "locale": ["de_DE.UTF-8"]"#).unwrap();
    assert_eq!(link(&tree, "/etc/default/locale"), "../locale.conf");
    assert_eq!(text(&tree, "/etc/locale.conf"), "LANG=de_DE.UTF-8\n");
}

#[test]
fn what_a_mounted_file_system_hides_is_refused() {
    for (keys, path) in [
        (r#", "files": {"/boot/efi/EFI/x.cfg": {"content": "x"}}"#, "/boot/efi/EFI/x.cfg"),
        (r#", "directories": {"/boot/efi/d": {}}"#, "/boot/efi/d"),
        (r#", "swap": {"size": "1M", "path": "/boot/efi/swap"}"#, "/boot/efi/swap"),
    ] {
        let error = bake(keys).map(|_| ()).unwrap_err();
        assert!(error.contains(path) && error.contains("mount another file system at /boot/efi"), "{error}");
    }
    assert!(bake(r#", "files": {"/boot/efivars": {"content": "x"}}"#).is_ok());
}

#[test]
fn a_swap_file_takes_the_place_of_no_other_file() {
    let error = bake(r#", "swap": {"size": "1M", "path": "/etc/passwd"}"#).map(|_| ()).unwrap_err();
    assert!(error.contains("/etc/passwd: `swap` of layer k needs a"), "{error}");
    let tree = bake(r#", "swap": {"size": "1M"}"#).unwrap();
    assert!(bake_onto(tree, &[], r#", "swap": {"size": "2M"}"#).is_ok(), "an image that is baked anew");
}

#[test]
fn a_time_zone_is_a_file_of_one() {
    assert!(bake(r#", "timezone": "Etc/UTC""#).is_ok());
    for zone in ["Etc", "leapseconds", "Nowhere"] {
        let error = bake(&format!(r#", "timezone": "{zone}""#)).map(|_| ()).unwrap_err();
        assert!(error.contains("time zone") && error.contains(zone), "{error}");
    }
}

#[test]
fn a_chosen_alternative_is_not_removed() {
    let error = bake(r#", "alternatives": {"editor": "/usr/bin/nano"}, "remove": ["/usr/bin/nano"]"#).map(|_| ());
    let error = error.unwrap_err();
    assert!(error.contains("the new choice /usr/bin/nano is not in the image"), "{error}");
}

#[test]
fn jobs_that_cron_skips_are_named() {
    for (name, rest, expected) in [
        ("job.x", r#""content": "* * * * * root true\n""#, "only names of letters"),
        ("job", r#""content": "* * * * * root true""#, "does not end with a newline"),
        ("job", r#""content": "* * * * * root true\n", "mode": "0664""#, "can write it, mode 0664"),
    ] {
        let error = bake(&format!(r#", "files": {{"/etc/cron.d/{name}": {{{rest}}}}}"#)).map(|_| ()).unwrap_err();
        assert!(error.contains("is skipped by cron") && error.contains(expected), "{error}");
    }
    assert!(bake(r#", "files": {"/etc/cron.d/job": {"content": "* * * * * root true\n"}}"#).is_ok());
}
