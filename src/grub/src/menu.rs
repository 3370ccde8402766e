//! GRUB's menu: the tree's own grub-mkconfig(8), interpreted over the tree, with the programs that look at the machine's disks replaced by
//! functions that know the new disk.
//!
//! The kernel's `root=` is a PARTUUID, which a kernel resolves without an initrd, too.

use debversion::Version;
use vmbake_shell::{Call, Commands, Files, Follow, Host, Outcome, Script, Settings};

use crate::error::GrubError;
use crate::ids::DiskIds;

/// The script that writes the menu.
pub const MKCONFIG: &str = "/usr/sbin/grub-mkconfig";
const MAX_SCRIPT: usize = 1 << 20;
/// The firmware, and the variable of UEFI that says whether it can show its settings.
const FIRMWARE: [&str; 2] =
    ["/sys/firmware/efi", "/sys/firmware/efi/efivars/OsIndicationsSupported-8be4df61-93ca-11d2-aa0d-00e098032b8c"];

/// The menu for a system whose kernels are in `/boot` of the tree.
pub fn menu(files: &mut dyn Files, arch: &str, ids: &DiskIds) -> Result<Vec<u8>, GrubError> {
    let failed = |what: String| GrubError::Menu { what };
    let source = files.read(MKCONFIG.as_bytes(), MAX_SCRIPT);
    let source = source.map_err(|error| failed(format!("{MKCONFIG} cannot be read: {error:?}")))?;
    let script = Script { name: MKCONFIG, source: &source, args: &[] };
    let mut programs = Programs { arch, ids };
    let settings = Settings { absent: absent(files), ..Settings::default() };
    let mut host = Host { files, commands: &mut programs };
    match vmbake_shell::run(&script, &mut host, &settings) {
        Ok(finished) if finished.status == 0 => Ok(finished.stdout),
        Ok(finished) => {
            let stderr = vmbake_common::escape::line(String::from_utf8_lossy(&finished.stderr).trim());
            Err(failed(format!("status {}: {stderr}", finished.status)))
        }
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Paths below `/sys` that the scripts of GRUB 2.06 look for, and that count as missing. Without the variable of UEFI, the menu of a new disk
/// has no entry for the settings of the firmware. With `/sys/firmware/efi`, only kernels named `NAME.efi.signed` would be preferred; if there
/// are such kernels, the answer is not known.
fn absent(files: &dyn Files) -> Vec<Vec<u8>> {
    let names = files.list(b"/boot").unwrap_or_default();
    let has_signed = names.iter().any(|name| name.ends_with(b".efi.signed"));
    let asked = if has_signed { &FIRMWARE[1..] } else { &FIRMWARE[..] };
    asked.iter().map(|path| path.as_bytes().to_vec()).collect()
}

/// The programs that grub-mkconfig and its scripts call.
struct Programs<'a> {
    arch: &'a str,
    ids: &'a DiskIds,
}

impl Commands for Programs<'_> {
    fn run(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
        let words: Vec<String> = call.args.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if !call.is_system() {
            return None;
        }
        Some(match call.base_name() {
            b"grub-probe" => self.probe(call, &words),
            b"grub-mkrelpath" => relative(call, &words),
            // Without a catalog of translations.
            b"gettext" => match words[..] {
                [text] if !text.starts_with('-') => print(call, text),
                _ => unsupported(&words),
            },
            b"lsb_release" if is_there(call) => match words[..] {
                ["-i", "-s"] => print(call, "Debian\n"),
                _ => unsupported(&words),
            },
            b"dpkg" => match words[..] {
                ["--compare-versions", one, relation, other] => compare(one, relation, other),
                _ => unsupported(&words),
            },
            // The environment block of a new disk is empty.
            b"grub-editenv" => match words[..] {
                ["-", "list"] => Outcome::Status(0),
                _ => unsupported(&words),
            },
            _ => return None,
        })
    }

    fn machine(&self) -> Option<&'static str> {
        match self.arch {
            "amd64" => Some("x86_64"),
            "arm64" => Some("aarch64"),
            _ => None,
        }
    }
}

impl Programs<'_> {
    /// grub-probe(8): one partition has all files that GRUB reads.
    fn probe(&self, call: &mut Call<'_>, words: &[&str]) -> Outcome {
        let device = format!("PARTUUID={}", self.ids.root_partuuid());
        let (mut target, mut named, mut operands) = (None, false, Vec::new());
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            match (*word, word.strip_prefix("--target=")) {
                (_, Some(name)) => target = Some(name),
                ("-t" | "--target", _) => target = rest.next().copied(),
                ("-d" | "--device", _) => named = true,
                (option, _) if option.starts_with('-') => return unsupported(words),
                (operand, _) => operands.push(operand),
            }
        }
        let [operand] = operands[..] else { return unsupported(words) };
        let is_known = match named {
            true => operand == device,
            false => call.files.lookup(&call.path(operand.as_bytes()), Follow::Yes).is_ok(),
        };
        if !is_known {
            call.stderr.extend(format!("grub-probe: error: cannot find {operand:?}.\n").bytes());
            return Outcome::Status(1);
        }
        match target {
            Some("device") => print(call, &format!("{device}\n")),
            Some("fs_uuid") => print(call, &format!("{}\n", self.ids.root_uuid_text())),
            Some("partuuid") => print(call, &format!("{}\n", self.ids.root_partuuid())),
            Some("fs") => print(call, "ext2\n"),
            Some("partmap") => print(call, "gpt\n"),
            // No RAID or LVM, and the drive number on the machine is not known.
            Some("abstraction" | "compatibility_hint" | "hints_string") => Outcome::Status(0),
            _ => unsupported(words),
        }
    }
}

/// The order of two versions of kernels, for GRUB 2.06.
fn compare(one: &str, relation: &str, other: &str) -> Outcome {
    let (Ok(left), Ok(right)) = (one.parse::<Version>(), other.parse::<Version>()) else {
        return unsupported(&[one, relation, other]);
    };
    let holds = match relation {
        "gt" => left > right,
        "ge" => left >= right,
        _ => return unsupported(&[one, relation, other]),
    };
    Outcome::Status(u8::from(!holds))
}

/// grub-mkrelpath(1): the root file system is not mounted below another directory of its partition.
fn relative(call: &mut Call<'_>, words: &[&str]) -> Outcome {
    match words {
        [path] if path.starts_with('/') => match call.files.lookup(path.as_bytes(), Follow::Yes) {
            // Like the real one, an empty line for the root.
            Ok(_) => print(call, &format!("{}\n", path.trim_end_matches('/'))),
            Err(_) => Outcome::Status(1),
        },
        _ => unsupported(words),
    }
}

fn is_there(call: &Call<'_>) -> bool {
    call.files.lookup(&[b"/usr/bin/", call.base_name()].concat(), Follow::Yes).is_ok()
}

fn print(call: &mut Call<'_>, text: &str) -> Outcome {
    call.stdout.extend(text.bytes());
    Outcome::Status(0)
}

fn unsupported(words: &[&str]) -> Outcome {
    Outcome::Unsupported(format!("{:?}", words.join(" ")))
}
