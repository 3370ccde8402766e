//! Images that are refused.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};

use super::*;

#[test]
fn a_bad_image_is_told_before_qemu_is_looked_for() {
    if !have(&["sgdisk", "qemu-img"]) {
        return;
    }
    let lab = Lab::new();
    lab.disk("linux.raw", LINUX);
    lab.disk("esp.raw", "EF00");
    lab.write("text", "no image at all\n");
    lab.write("zeros", vec![0; 8 << 20]);
    let whole = fs::read(lab.path("disk.raw")).unwrap();
    lab.write("half.raw", &whole[..4 << 20]);
    let (raw, qcow2) = (lab.path("disk.raw"), lab.path("disk.qcow2"));
    run("qemu-img", &["convert", "-O", "qcow2", raw.to_str().unwrap(), qcow2.to_str().unwrap()]);
    lab.write("half.qcow2", &fs::read(&qcow2).unwrap()[..1 << 16]);
    run("qemu-img", &["create", "-f", "qcow2", "-F", "raw", "-b", "disk.raw", lab.path("top.qcow2").to_str().unwrap()]);
    for (image, reason, hint) in [
        ("absent", "absent: cannot open the image", ""),
        ("tmp", "tmp: expected a disk image, found a directory", "use the path of an image file"),
        ("text", "text: a text file; only raw and qcow2", "`head text` shows its start"),
        ("zeros", "zeros: not an image of a bootable disk", "raw or qcow2"),
        ("half.raw", "half.raw: not an image of a bootable disk", "raw or qcow2"),
        ("half.qcow2", "half.qcow2: corrupt qcow2 image", "corrupt or incomplete"),
        ("top.qcow2", "backing file", ""),
        ("esp.raw", "esp.raw: unknown architecture", "sgdisk --typecode=1:8304"),
        ("linux.raw", "linux.raw: unknown architecture", "sgdisk --typecode=1:8304"),
    ] {
        let said = lab.refused(&[image]);
        assert!(said.starts_with("error: ") && said.contains(reason), "{said}");
        let told = said.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap_or_default();
        assert!(told.contains(hint), "{said}");
    }
}

#[test]
fn what_is_missing_is_named_with_its_package() {
    if !have(&["sgdisk", "qemu-system-x86_64", "qemu-system-aarch64"]) {
        return;
    }
    let lab = Lab::new();
    lab.disk("arm.raw", ARM64);
    lab.disk("two.raw", AMD64);
    let two = lab.path("two.raw");
    run(
        "sgdisk",
        &[
            "--delete=1",
            "--new=1:2048:4095",
            "--typecode=1:8304",
            "--new=2:4096:0",
            "--typecode=2:8304",
            two.to_str().unwrap(),
        ],
    );
    for (image, program, package) in [
        ("disk.raw", "qemu-system-x86_64 not found in PATH", "hint: run `apt-get install qemu-system-x86`\n"),
        ("arm.raw", "qemu-system-aarch64 not found in PATH", "hint: run `apt-get install qemu-system-arm`\n"),
    ] {
        let said = lab.refused(&[image]);
        assert!(said.contains(program) && said.ends_with(package), "{said}");
    }
    for (args, expected) in [
        (&["arm.raw", "--firmware", "bios"][..], "no BIOS exists for arm64"),
        (&["arm.raw", "--accel", "kvm", "--firmware", "direct"], "cannot read the image"),
        (&["disk.raw", "--firmware", "direct"], "cannot read the image"),
        (&["two.raw", "--firmware", "direct"], "several partitions can be the root file system: 1 ("),
        (&["two.raw", "--firmware", "direct", "--partition", "3"], "no partition 3 on the disk, it has 1, 2"),
        (&["disk.raw", "--user-data", "absent"], "absent: cannot read"),
    ] {
        let output = lab.command(args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && said.contains(expected), "{args:?}: {said}");
        assert!(lab.nothing_left());
    }
}

#[test]
fn a_port_that_is_taken_is_told_before_the_start() {
    if !have(&["sgdisk", "qemu-system-x86_64"]) {
        return;
    }
    let lab = Lab::new();
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    for (name, port) in [("tcp", tcp.local_addr().unwrap().port()), ("udp", udp.local_addr().unwrap().port())] {
        let output = lab.command(&["disk.raw", "--forward", &format!("{name}:{port}:22")]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(said.contains(&format!("error: cannot forward port {port} of 127.0.0.1 ({name})")), "{said}");
        assert!(said.contains("hint: the port is in use on this host"), "{said}");
    }
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let dir = tempfile::tempdir().unwrap();
    for args in [
        &[][..],
        &["--firmware", "coreboot", "x"],
        &["--append", "quiet", "x"],
        &["--append", "quiet", "--firmware", "uefi", "x"],
        &["--network", "none", "--forward", "2222:22", "x"],
        &["--forward", "2222:22,tcp:2222:23", "x"],
        &["--forward", "22", "x"],
        &["--size", "+", "x"],
        &["--size", "-1G", "x"],
        &["--memory", "0", "x"],
        &["--cpus", "0", "x"],
        &["--user-data", "a", "--ssh-key", "b", "x"],
        &["--json", "x"],
        &["x", "-no-reboot"],
    ] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_vmbake")).arg("boot").args(args).current_dir(&dir).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
    }
}
