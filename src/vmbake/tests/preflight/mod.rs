//! `vmbake preflight aws`: a small valid disk, and for each check disks with one flaw that only this check must detect.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::release::lab::{stderr, text, vmbake};
use crate::tools::have;

const TOOLS: [&str; 5] = ["mke2fs", "mkfs.vfat", "mmd", "mcopy", "sgdisk"];
const MIB: usize = 1 << 20;
/// Where the partitions begin: root, BIOS boot, EFI system.
const STARTS: [usize; 3] = [4, 1, 20];
const ROOT_UUID: &str = "11111111-2222-4333-8444-555555555555";
const ROOT_PARTUUID: &str = "AAAAAAAA-BBBB-4CCC-8DDD-EEEEEEEEEEEE";
const AMD64: u16 = 0x8664;
const ARM64: u16 = 0xaa64;

/// A disk that is to be made.
struct Disk {
    files: BTreeMap<String, Vec<u8>>,
    /// Files of the EFI system partition.
    esp: Vec<(&'static str, Vec<u8>)>,
    /// What the BIOS boot partition and the first sector begin with.
    bios: [&'static [u8]; 2],
    /// Type of the root partition, as sgdisk calls it.
    root_type: &'static str,
    /// What is damaged when all is done: an offset, counted from the end if it is negative, where a sector becomes zeros.
    damage: Option<i64>,
}

/// A program that EFI starts.
fn pe(machine: u16) -> Vec<u8> {
    let mut bytes = vec![0; 600];
    bytes[..2].copy_from_slice(b"MZ");
    bytes[0x3c] = 0x80;
    bytes[0x80..0x84].copy_from_slice(b"PE\0\0");
    bytes[0x84..0x86].copy_from_slice(&machine.to_le_bytes());
    bytes
}

fn elf(machine: u8) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(64, 0);
    bytes[18] = machine;
    bytes
}

/// A cpio archive with empty files.
fn cpio(names: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for name in names.iter().chain(&["TRAILER!!!"]) {
        let numbers = [1, 0o100_644, 0, 0, 1, 0, 0, 0, 0, 0, 0, name.len() + 1, 0];
        bytes.extend_from_slice(b"070701");
        numbers.iter().for_each(|number| bytes.extend(format!("{number:08X}").bytes()));
        bytes.extend(name.bytes().chain([0]));
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

fn menu(arguments: &str) -> String {
    format!("menuentry 'Linux' {{\n\tlinux /boot/vmlinuz-6.1 {arguments}\n\tinitrd /boot/initrd.img-6.1\n}}\n")
}

impl Disk {
    /// One that passes.
    fn good() -> Self {
        let fstab = format!(
            "# file systems\nUUID={ROOT_UUID} / ext4 defaults 0 1\nLABEL=EFI /boot/efi vfat defaults 0 0\ntmpfs /x tmpfs\n"
        );
        let arguments = format!("root=PARTUUID={} ro console=tty0 console=ttyS0,115200", ROOT_PARTUUID.to_lowercase());
        let texts = [
            ("etc/fstab", fstab.as_str()),
            ("etc/machine-id", ""),
            ("etc/os-release", "IMAGE_ID=a\nIMAGE_VERSION=1\n"),
            ("boot/grub/grub.cfg", &menu(&arguments)),
            ("lib/modules/6.1/modules.builtin", "kernel/fs/ext4/ext4.ko\nkernel/fs/fat/fat.ko\n"),
            ("lib/modules/6.1/kernel/ena/ena.ko.xz", "x"),
            ("usr/bin/cloud-init", "x"),
            ("usr/bin/growpart", "x"),
            ("usr/lib/systemd/system/cloud-init.target", "x"),
            ("etc/cloud/cloud.cfg", "cloud_init_modules:\n - growpart\n"),
            ("etc/systemd/network/50-all.network", "[Match]\nName=en*\n[Network]\nDHCP=yes\n"),
        ];
        let mut disk = Self {
            files: texts.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).into(),
            esp: vec![("BOOTX64.EFI", pe(AMD64))],
            bios: [b"core", b"boot"],
            root_type: "8304",
            damage: None,
        };
        disk.put("bin/sh", elf(62));
        disk.put("boot/vmlinuz-6.1", pe(AMD64));
        disk.put("boot/initrd.img-6.1", cpio(&["lib/nvme.ko", "lib/xen-blkfront.ko.zst"]));
        disk
    }

    fn put(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        self.files.insert(path.to_owned(), content.into());
    }

    fn remove(&mut self, path: &str) {
        assert!(self.files.remove(path).is_some(), "{path}");
    }

    /// Changes the text of a file, which must have the old words.
    fn replace(&mut self, path: &str, old: &str, new: &str) {
        let text = String::from_utf8(self.files[path].clone()).unwrap();
        assert!(text.contains(old), "{path}: {text}");
        self.put(path, text.replace(old, new));
    }

    /// For the other architecture.
    fn arm64(&mut self) {
        (self.esp, self.root_type) = (vec![("BOOTAA64.EFI", pe(ARM64))], "8305");
        self.put("bin/sh", elf(183));
        self.put("boot/vmlinuz-6.1", pe(ARM64));
    }

    fn write(&self, lab: &Lab) -> PathBuf {
        let path = lab.path("disk.raw");
        let _old = fs::remove_file(&path);
        let file = File::create_new(&path).unwrap();
        file.set_len(30 * MIB as u64).unwrap();
        let mut args = Vec::new();
        let kinds = [(self.root_type, 16), ("ef02", 3), ("ef00", 8)];
        for ((number, (kind, len)), start) in (1..).zip(kinds).zip(STARTS) {
            args.push(format!("--new={number}:{}:{}", start * 2048, (start + len) * 2048 - 1));
            args.push(format!("--typecode={number}:{kind}"));
        }
        args.extend([format!("--partition-guid=1:{ROOT_PARTUUID}"), text(&path).to_owned()]);
        run("sgdisk", &args.iter().map(String::as_str).collect::<Vec<_>>());
        let put = |bytes: &[u8], at: usize| file.write_all_at(bytes, at as u64).unwrap();
        put(&lab.ext4(&self.files), STARTS[0] * MIB);
        put(self.bios[0], STARTS[1] * MIB);
        put(&lab.fat(&self.esp), STARTS[2] * MIB);
        put(self.bios[1], 0);
        if let Some(at) = self.damage {
            // A negative place is counted from the end.
            let end = i64::try_from(30 * MIB).unwrap();
            put(&[0; 512], usize::try_from(if at < 0 { end + at } else { at }).unwrap());
        }
        path
    }
}

struct Lab(tempfile::TempDir);

impl Lab {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn ext4(&self, files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
        let (tree, image) = (self.path("tree"), self.path("ext4"));
        let _old = (fs::remove_dir_all(&tree), fs::remove_file(&image));
        for (path, content) in files {
            let path = tree.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let options = ["-q", "-t", "ext4", "-b", "4096", "-O", "^has_journal", "-U", ROOT_UUID];
        run("mke2fs", &[&options[..], &["-d", text(&tree), text(&image), "16M"]].concat());
        fs::read(&image).unwrap()
    }

    fn fat(&self, files: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let image = self.path("fat");
        File::create(&image).unwrap().set_len(8 * MIB as u64).unwrap();
        run("mkfs.vfat", &["-n", "EFI", text(&image)]);
        run("mmd", &["-i", text(&image), "::/EFI", "::/EFI/Boot"]);
        for (name, content) in files {
            fs::write(self.path("file"), content).unwrap();
            run("mcopy", &["-i", text(&image), text(&self.path("file")), &format!("::/EFI/Boot/{name}")]);
        }
        fs::read(&image).unwrap()
    }
}

fn run(program: &str, args: &[&str]) {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = Command::new(program).args(args).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What `--json` says, and the exit code.
fn preflight(disk: &Disk, lab: &Lab) -> (Value, i32) {
    let output = vmbake(&["preflight", "aws", text(&disk.write(lab)), "--json"], &[]);
    let said = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    (said, output.status.code().unwrap())
}

/// The checks that do not hold: name, status, evidence.
fn bad(said: &Value) -> Vec<[&str; 3]> {
    let checks = said["checks"].as_array().unwrap().iter();
    let all = checks.map(|check| ["check", "status", "evidence"].map(|key| check[key].as_str().unwrap()));
    all.filter(|[_, status, _]| *status != "ok").collect()
}

/// A change, and the architecture and boot mode that are derived then.
type Form = (fn(&mut Disk), &'static str, &'static str);
/// A check, what breaks it, and what is said.
type Case = (&'static str, fn(&mut Disk), &'static str);

const CASES: &[Case] = &[
    ("partition-table", |disk| disk.damage = Some(512), "the primary GPT is corrupt"),
    ("partition-table", |disk| disk.damage = Some(-512), "the backup GPT is corrupt"),
    (
        "boot-mode",
        |disk| {
            disk.esp.clear();
            disk.bios = [&[], &[]];
        },
        "no EFI/BOOT/BOOTX64.EFI; the BIOS boot partition is empty",
    ),
    (
        "boot-mode",
        |disk| (disk.esp[0].1, disk.bios[1]) = (pe(ARM64), &[]),
        "BOOTX64.EFI is for arm64; no boot code in the first sector",
    ),
    ("architecture", |disk| disk.put("bin/sh", elf(183)), "the kernel is for x86_64, /bin/sh for arm64"),
    (
        "architecture",
        |disk| disk.root_type = "8305",
        "the kernel is for x86_64, the type of the root partition for arm64",
    ),
    ("architecture", |disk| disk.remove("bin/sh"), "expected a program of a known architecture"),
    (
        "nvme",
        |disk| disk.put("boot/initrd.img-6.1", cpio(&["a/xen-blkfront.ko", "a/nvme-core.ko"])),
        "nor in the initramfs",
    ),
    ("ext4", |disk| disk.replace("lib/modules/6.1/modules.builtin", "ext4.ko", "ext2.ko"), "nor in the initramfs"),
    ("ena", |disk| disk.remove("lib/modules/6.1/kernel/ena/ena.ko.xz"), "neither built in nor in /lib/modules/6.1"),
    ("xen-blkfront", |disk| disk.put("boot/initrd.img-6.1", cpio(&["lib/nvme.ko"])), "Xen instances do not boot"),
    ("fstab", |disk| disk.replace("etc/fstab", "LABEL=EFI", "/dev/vda3"), "/boot/efi is /dev/vda3, a device name"),
    ("fstab", |disk| disk.replace("etc/fstab", "LABEL=EFI", "LABEL=DATA"), "is LABEL=DATA, which is not in the image"),
    (
        "root-argument",
        |disk| disk.replace("boot/grub/grub.cfg", " ro ", " root=/dev/xvda1 "),
        "root=/dev/xvda1 is not by UUID",
    ),
    ("root-argument", |disk| disk.replace("boot/grub/grub.cfg", "aaaaaaaa", "baaaaaaa"), "which is not in the image"),
    ("root-argument", |disk| disk.put("boot/grub/grub.cfg", menu("console=ttyS0")), "no root="),
    ("cloud-init", |disk| disk.remove("usr/bin/cloud-init"), "/usr/bin/cloud-init is missing"),
    ("cloud-init", |disk| disk.put("etc/cloud/cloud-init.disabled", ""), "disabled by"),
    ("cloud-init", |disk| disk.replace("boot/grub/grub.cfg", " ro ", " cloud-init=disabled "), "cloud-init=disabled"),
    (
        "datasource",
        |disk| disk.put("etc/cloud/cloud.cfg.d/90.cfg", "datasource_list: [NoCloud, None]\n"),
        "/etc/cloud/cloud.cfg.d/90.cfg: expected Ec2, found NoCloud, None",
    ),
    (
        "network",
        |disk| disk.replace("etc/systemd/network/50-all.network", "en*", "eth0"),
        "50-all.network is for an interface called eth0",
    ),
    (
        "network",
        |disk| disk.put("etc/systemd/network/10.link", "[Match]\nMACAddress=02:00:00:00:00:01\n"),
        "10.link is for the hardware address 02:00:00:00:00:01",
    ),
    (
        "network",
        |disk| {
            disk.remove("etc/systemd/network/50-all.network");
            disk.put("etc/cloud/cloud.cfg.d/99.cfg", "network: {config: disabled}\n");
        },
        "DHCP is not enabled",
    ),
    ("console", |disk| disk.replace("boot/grub/grub.cfg", "ttyS0", "ttyS1"), "no console=ttyS0"),
    ("grow-root", |disk| disk.remove("usr/bin/growpart"), "the root partition does not grow"),
    ("lint", |disk| disk.put("etc/ssh/ssh_host_rsa_key", "secret"), "ssh-host-keys: /etc/ssh/ssh_host_rsa_key"),
    ("image-name", |disk| disk.replace("etc/os-release", "IMAGE_ID=a\n", ""), "needs --family and --name"),
];

#[test]
fn each_check_notices_what_is_missing_and_no_other_does() {
    if !have(&TOOLS) {
        return;
    }
    let lab = Lab::new();
    let (good, code) = preflight(&Disk::good(), &lab);
    assert_eq!((bad(&good), code), (vec![], 0));
    for (check, change, evidence) in CASES {
        let mut disk = Disk::good();
        change(&mut disk);
        let (said, code) = preflight(&disk, &lab);
        let is_warning = ["xen-blkfront", "console", "grow-root", "image-name"].contains(check);
        let status = if is_warning { "warning" } else { "error" };
        let found = bad(&said);
        assert!(
            matches!(found[..], [[name, as_what, text]] if name == *check && as_what == status && text.contains(evidence)),
            "{check}: {evidence}: {found:?}"
        );
        assert_eq!(code, i32::from(!is_warning), "{check}");
    }
    for check in good["checks"].as_array().unwrap() {
        assert!(CASES.iter().any(|(name, ..)| check["check"] == *name), "{check} has no case");
    }
}

#[test]
fn what_is_there_in_another_form_passes() {
    if !have(&TOOLS) {
        return;
    }
    let changes: [Form; 9] = [
        (|disk| disk.esp.clear(), "x86_64", "legacy-bios"),
        (|disk| disk.bios = [&[], &[]], "x86_64", "uefi"),
        (|disk| disk.esp[0].0 = "bootx64.efi", "x86_64", "uefi-preferred"),
        (Disk::arm64, "arm64", "uefi"),
        (
            |disk| {
                disk.put("boot/initrd.img-6.1", cpio(&[]));
                disk.replace("lib/modules/6.1/modules.builtin", "fat.ko", "a/nvme.ko\nb/xen-blkfront.ko\nb/ena.ko");
            },
            "x86_64",
            "uefi-preferred",
        ),
        (|disk| disk.replace("etc/fstab", "tmpfs /x tmpfs", "/dev/sdb1 /x ext4 noauto"), "x86_64", "uefi-preferred"),
        (|disk| disk.replace("etc/fstab", "tmpfs /x tmpfs", "LABEL=x /x ext4 nofail"), "x86_64", "uefi-preferred"),
        (|disk| disk.remove("etc/systemd/network/50-all.network"), "x86_64", "uefi-preferred"),
        (
            |disk| {
                disk.remove("usr/bin/growpart");
                disk.put(
                    "boot/initrd.img-6.1",
                    cpio(&["scripts/local-bottom/growroot", "lib/nvme.ko", "lib/xen-blkfront.ko"]),
                );
            },
            "x86_64",
            "uefi-preferred",
        ),
    ];
    let lab = Lab::new();
    for (number, (change, arch, mode)) in changes.into_iter().enumerate() {
        let mut disk = Disk::good();
        change(&mut disk);
        let (said, code) = preflight(&disk, &lab);
        assert_eq!((bad(&said), code), (vec![], 0), "{number}");
        assert_eq!((&said["architecture"], &said["boot_mode"]), (&arch.into(), &mode.into()), "{number}");
    }
}

#[test]
fn what_cannot_be_read_is_not_good() {
    if !have(&TOOLS) {
        return;
    }
    let lab = Lab::new();
    let mut disk = Disk::good();
    disk.put("boot/initrd.img-6.1", &cpio(&["lib/nvme.ko", "lib/xen-blkfront.ko"])[..200]);
    let (said, code) = preflight(&disk, &lab);
    let names: Vec<&str> = bad(&said).iter().map(|[name, ..]| *name).collect();
    assert_eq!((&names[..], code), (&["nvme", "xen-blkfront"][..], 1), "{said}");
    assert!(bad(&said)[0][2].contains("/boot/initrd.img-6.1: cannot read the initramfs"), "{said}");

    let mut disk = Disk::good();
    disk.remove("boot/grub/grub.cfg");
    let (said, _) = preflight(&disk, &lab);
    let names: Vec<&str> = bad(&said).iter().map(|[name, ..]| *name).collect();
    let all = ["boot-mode", "architecture", "nvme", "ext4", "ena", "xen-blkfront", "root-argument", "console"];
    assert_eq!(names, all);
    assert_eq!((&said["architecture"], &said["boot_mode"]), (&Value::Null, &Value::Null));
}
