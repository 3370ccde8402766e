//! The overlay disk for a machine's writes.

use super::*;

const TOOLS: [&str; 3] = ["sgdisk", "qemu-system-x86_64", "qemu-img"];

fn info(disk: &Path) -> Value {
    let disk = disk.to_str().unwrap();
    // A running machine has it locked; what qemu made of it is all in the file.
    assert!(run("qemu-img", &["check", "-U", disk]).contains("No errors were found"));
    serde_json::from_str(&run("qemu-img", &["info", "-U", "--output=json", disk])).unwrap()
}

#[test]
fn it_is_as_large_as_asked_and_on_top_of_the_image() {
    if !have(&TOOLS) {
        return;
    }
    let lab = Lab::new();
    run(
        "qemu-img",
        &["convert", "-O", "qcow2", lab.path("disk.raw").to_str().unwrap(), lab.path("disk.qcow2").to_str().unwrap()],
    );
    let cases: [(&str, &[&str], u64); 5] = [
        ("raw", &[], 8 << 20),
        ("qcow2", &["--size", "8M"], 8 << 20),
        ("raw", &["--size", "+1G"], (1 << 30) + (8 << 20)),
        ("qcow2", &["--size", "9G"], 9 << 30),
        ("raw", &["--size", "2048T"], 2 << 50),
    ];
    for (i, (format, args, size)) in cases.into_iter().enumerate() {
        let image = format!("disk.{format}");
        let before = state(&lab.path(&image));
        let anonymous = lab.machine(&[&[image.as_str()], args].concat());
        assert!(lab.nothing_left());
        let copy = lab.path("copy.qcow2");
        fs::copy(anonymous.file("disk"), &copy).unwrap();
        drop(anonymous);
        let name = format!("{i}.qcow2");
        let kept = lab.machine(&[&[image.as_str(), "--disk", &name], args].concat());
        let backing = &kept.node("disk")["backing"];
        assert_eq!(
            (&backing["driver"], backing.get("backing")),
            (&format.into(), (format == "qcow2").then_some(&Value::Null))
        );
        drop(kept);
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&lab.path(&name).metadata().unwrap()) & 0o777, 0o600);
        for disk in [&copy, &lab.path(&name)] {
            let info = info(disk);
            assert_eq!((&info["format"], info["virtual-size"].as_u64()), (&"qcow2".into(), Some(size)));
            assert_eq!(info["backing-filename-format"], format);
            assert_eq!(info["full-backing-filename"], lab.path(&image).canonicalize().unwrap().to_str().unwrap());
            if size < 1 << 40 {
                run("qemu-img", &["compare", disk.to_str().unwrap(), lab.path(&image).to_str().unwrap()]);
            }
        }
        assert_eq!(state(&lab.path(&image)), before);
    }
}

#[test]
fn one_that_is_kept_is_used_again_on_that_image_only() {
    if !have(&TOOLS) {
        return;
    }
    let lab = Lab::new();
    let machine = lab.machine(&["disk.raw", "--disk", "kept", "--size", "16M"]);
    let busy = lab.command(&["disk.raw", "--disk", "kept"]).output().unwrap();
    assert!(String::from_utf8_lossy(&busy.stderr).contains("kept: in use by a running machine"), "{busy:?}");
    drop(machine);
    run("qemu-io", &["-c", "write -P 7 4M 1M", lab.path("kept").to_str().unwrap()]);
    for args in [&[][..], &["--size", "16M"], &["--size", "+8M"]] {
        let machine = lab.machine(&[&["disk.raw", "--disk", "kept"], args].concat());
        assert!(fs::read(machine.file("disk")).unwrap() == fs::read(lab.path("kept")).unwrap());
    }
    run("qemu-io", &["-c", "read -P 7 4M 1M", lab.path("kept").to_str().unwrap()]);
    // Created by qemu-img, with a relative backing file.
    run("qemu-img", &["create", "-f", "qcow2", "-F", "raw", "-b", "disk.raw", lab.path("own").to_str().unwrap()]);
    drop(lab.machine(&["disk.raw", "--disk", "own"]));

    lab.disk("other.raw", AMD64);
    run("qemu-img", &["create", "-f", "qcow2", lab.path("whole").to_str().unwrap(), "8M"]);
    lab.write("short", &fs::read(lab.path("kept")).unwrap()[..40]);
    std::os::unix::fs::symlink("disk.raw", lab.path("link")).unwrap();
    let before = state(&lab.path("disk.raw"));
    let backing = lab.path("disk.raw").canonicalize().unwrap();
    let other = format!("kept: expected backing file other.raw, found {}\n", backing.display());
    for (image, disk, size, expected) in [
        ("disk.raw", "disk.raw", "8M", "disk.raw: refusing to write to the image itself"),
        ("disk.raw", "link", "8M", "link: refusing to write to the image itself"),
        ("disk.raw", "other.raw", "8M", "other.raw: not created by --disk: not qcow2"),
        ("disk.raw", "whole", "8M", "a qcow2 image without a backing file"),
        ("disk.raw", "short", "8M", "truncated qcow2 header"),
        ("disk.raw", "tmp", "8M", "tmp: not created by --disk: not a regular file"),
        ("other.raw", "kept", "16M", other.as_str()),
        ("disk.raw", "kept", "32M", "kept: expected 33554432 bytes, found 16777216"),
        ("disk.raw", "new", "4M", "disk size 4194304 is smaller than the image, which has 8388608 bytes"),
        ("disk.raw", "new", "9000001", "invalid disk size 9000001: not a multiple of 512"),
        ("disk.raw", "new", "2049T", "more than 2 PiB"),
        ("disk.raw", "nowhere/in/new", "9M", ""),
    ] {
        let output = lab.command(&[image, "--disk", disk, "--size", size, "--", "--version"]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(expected), "{image} {disk} {size}: {said}");
        assert_eq!(output.status.success(), expected.is_empty(), "{said}");
        assert!(!lab.path("new").exists());
    }
    assert_eq!(state(&lab.path("disk.raw")), before);
    // An image that was baked again is another one, though it has the same name.
    File::options().append(true).open(lab.path("disk.raw")).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let changed = lab.command(&["disk.raw", "--disk", "kept"]).output().unwrap();
    assert!(String::from_utf8_lossy(&changed.stderr).contains("disk.raw has changed"));
}
