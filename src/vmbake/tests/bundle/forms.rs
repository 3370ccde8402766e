//! Extensions in each format: contents as read by other tools, verification, and overwrite protection.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

use super::extensions::{USR, shop, sysext, write};
use super::shop::{Shop, files};
use crate::requested::yard::stated;
use crate::tools::have;

/// A bundle with files, a link and an archive.
fn filled() -> Option<Shop> {
    let tool = stated().replace("\"tool\":", "\"acme.tool\":").replace("/opt/tool", "/usr/lib/tool");
    shop(&format!(r#"{USR}, "directories": {{"/usr/share/agent": {{"mode": "0555"}}}}{tool}"#))
}

fn made(shop: &Shop, args: &[&str]) {
    let (ok, said) = sysext(shop, args);
    assert!(ok, "{said}");
}

fn tool(program: &str, args: &[&str], folder: &Path) -> Output {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    Command::new(program).args(args).env("PATH", path).current_dir(folder).output().unwrap()
}

/// Output of veritysetup for an image and its sidecars.
fn verified(shop: &Shop, name: &str) -> bool {
    let root = fs::read_to_string(shop.path(&format!("{name}.roothash"))).unwrap();
    let [image, tree] = ["raw", "verity"].map(|end| format!("{name}.{end}"));
    tool("veritysetup", &["verify", &image, &tree, root.trim()], &shop.path(".")).status.success()
}

#[test]
fn a_squashfs_has_the_same_files_and_the_same_bytes() {
    let Some(shop) = filled() else { return };
    made(&shop, &["--format=squashfs", "-o", "agent.raw", "-j1"]);
    made(&shop, &["--format=squashfs", "-o", "other/agent.raw", "-j2"]);
    let bytes = fs::read(shop.path("agent.raw")).unwrap();
    assert!(bytes == fs::read(shop.path("other/agent.raw")).unwrap());
    assert!(bytes.starts_with(b"hsqs") && bytes.len().is_multiple_of(4096), "{}", bytes.len());
    if !have(&["unsquashfs"]) {
        return;
    }
    made(&shop, &["--format=dir", "-o", "folder/agent"]);
    let unpacked = tool("unsquashfs", &["-q", "-n", "-d", "unpacked", "agent.raw"], &shop.path("."));
    assert!(unpacked.status.success(), "{unpacked:?}");
    assert_eq!(files(&shop.path("unpacked")), files(&shop.path("folder/agent")));
    let listed = String::from_utf8(tool("unsquashfs", &["-lls", "agent.raw"], &shop.path(".")).stdout).unwrap();
    for end in ["/usr/bin/say", "/multi-user.target.wants/agent.service -> ../agent.service"] {
        assert!(listed.lines().any(|line| line.contains("root/root") && line.ends_with(end)), "{listed}");
    }
}

#[test]
fn a_hash_tree_verifies_each_byte_of_an_image() {
    let Some(shop) = filled() else { return };
    for format in ["ext4", "squashfs"] {
        let [format, out, again] = [format!("--format={format}"), format!("{format}.raw"), format!("a/{format}.raw")];
        made(&shop, &[&format, "--verity", "-o", &out]);
        made(&shop, &[&format, "--verity", "-o", &again]);
        let name = out.trim_end_matches(".raw");
        for end in ["raw", "verity", "roothash"] {
            let [one, two] = ["", "a/"].map(|folder| fs::read(shop.path(&format!("{folder}{name}.{end}"))).unwrap());
            assert!(one == two, "{name}.{end}");
        }
        if have(&["veritysetup"]) {
            assert!(verified(&shop, name), "{name}");
            let mut bytes = fs::read(shop.path(&out)).unwrap();
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            fs::write(shop.path(&out), bytes).unwrap();
            assert!(!verified(&shop, name), "{name}");
        }
    }
}

#[test]
fn what_verifies_an_image_goes_with_it() {
    let Some(shop) = filled() else { return };
    shop.put("agent.roothash", "of another image\n");
    for more in [&["-o", "agent.raw"][..], &["-o", "agent.raw", "--verity"]] {
        let (ok, said) = sysext(&shop, more);
        assert!(!ok && said.contains("agent.roothash: already exists") && said.contains("--force"), "{said}");
        assert!(!shop.path("agent.raw").exists());
    }
    made(&shop, &["-o", "agent.raw", "--verity", "--force"]);
    assert!(!fs::read_to_string(shop.path("agent.roothash")).unwrap().contains("another"));
    made(&shop, &["-o", "agent.raw", "--force"]);
    assert!(!shop.path("agent.roothash").exists() && !shop.path("agent.verity").exists());
    let (ok, said) = sysext(&shop, &["-o", "agent", "--format=dir", "--verity"]);
    assert!(
        !ok && said.contains("a hash tree is not supported for a directory")
            && said.contains("hint: use --format squashfs"),
        "{said}"
    );
}

#[test]
fn a_directory_has_modes_and_times_and_appears_whole() {
    let Some(shop) = filled() else { return };
    made(&shop, &["--format=dir", "-o", "out/agent"]);
    let root = shop.path("out/agent");
    let meta = |name: &str| root.join(name).symlink_metadata().unwrap();
    for (name, mode) in [("", 0o755), ("usr", 0o755), ("usr/bin/say", 0o755), ("usr/share/agent", 0o555)] {
        assert_eq!((meta(name).permissions().mode() & 0o7777, meta(name).mtime()), (mode, 0), "{name}");
    }
    let link = "usr/lib/systemd/system/multi-user.target.wants/agent.service";
    assert_eq!((fs::read_link(root.join(link)).unwrap().to_str(), meta(link).mtime()), (Some("../agent.service"), 0));
    let release = fs::read_to_string(root.join("usr/lib/extension-release.d/extension-release.agent")).unwrap();
    assert!(release.starts_with("ID=o\n"), "{release}");
    let (ok, said) = sysext(&shop, &["--format=dir", "-o", "out/agent"]);
    assert!(!ok && said.contains("out/agent: already exists") && said.contains("--force"), "{said}");
    // Another one takes its place as a whole.
    write(&shop, r#", "files": {"/usr/bin/other": {"content": "other\n"}}"#);
    made(&shop, &["--format=dir", "-o", "out/agent", "--force"]);
    assert!(!root.join("usr/bin/say").exists() && root.join("usr/bin/other").exists());
    let left: Vec<_> = fs::read_dir(shop.path("out")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["agent"]);
}

#[test]
fn only_an_extension_of_that_name_is_replaced() {
    let Some(shop) = filled() else { return };
    fs::create_dir(shop.path("mine")).unwrap();
    shop.put("mine/precious", "precious");
    shop.put("file", "precious");
    symlink("mine", shop.path("link")).unwrap();
    made(&shop, &["--format=dir", "-o", "folder/agent"]);
    fs::rename(shop.path("folder/agent"), shop.path("renamed")).unwrap();
    for name in ["mine", "file", "link", "renamed"] {
        let (ok, said) = sysext(&shop, &["--format=dir", "-o", name, "--force"]);
        assert!(
            !ok && said.contains(&format!("{name}: refusing to replace a directory other than this extension")),
            "{name}: {said}"
        );
    }
    assert_eq!(fs::read_to_string(shop.path("link/precious")).unwrap(), "precious");
    let (ok, said) = sysext(&shop, &["--format=dir", "-o", "agent.raw"]);
    assert!(
        !ok && said.contains("does not end in .raw") && said.contains("hint: use a name such as -o acme-agent"),
        "{said}"
    );
}
