//! Programs in scripts that `vmbake_shell` does not interpret: the result of each.

use vmbake_shell::{Call, Follow, Outcome};

use super::sudo::sudo;
use super::{Machine, arguments, first, text};
use crate::import::report::StatementClass;
use crate::import::runtime::machine_name;

/// Compiled programs that scripts start.
const COMPILED: [&str; 10] =
    ["apt", "apt-get", "bash", "cloud-init", "dpkg", "hostnamectl", "netplan", "networkctl", "sysctl", "systemctl"];
/// Most rounds of one `sleep`: a script that waits for something that failed here would never end.
const MAX_SLEEPS: u32 = 3;

impl Machine<'_> {
    /// The result of a program; `None` if it is unknown.
    pub(super) fn known(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
        let name = String::from_utf8_lossy(call.base_name()).into_owned();
        Some(match name.as_str() {
            "apt" | "apt-get" => self.apt(call),
            "apt-mark" => self.apt_mark(call),
            "curl" | "wget" => self.fetch(&name, call),
            "jq" => self.jq(call),
            "base64" => return self.base64(call),
            "sha256sum" | "sha512sum" => return self.check_sums(&name, call),
            "tar" => self.tar(call),
            "chown" => return self.chown(call),
            "systemctl" => self.systemctl(call),
            "cloud-init" if call.args == [b"--version".to_vec()] => {
                call.stdout.extend_from_slice(b"/usr/bin/cloud-init 25.1.4\n");
                self.dropped("the image does not depend on the version of cloud-init")
            }
            "cloud-init" if self.begins(call) => self.begin(call),
            "cloud-init" if call.args == [b"clean".to_vec()] || call.args.iter().any(|arg| arg == b"init") => {
                self.dropped("the image already contains its result")
            }
            "cloud-init" if first(call) == Some(b"status") && !call.is_observed => {
                self.dropped("the import does not wait")
            }
            "dpkg" if call.args == [b"--print-architecture".to_vec()] => {
                let arch = if self.machine == "aarch64" { "arm64" } else { "amd64" };
                call.stdout.extend_from_slice(format!("{arch}\n").as_bytes());
                Outcome::Status(0)
            }
            "hostnamectl" if matches!(call.args, [verb, name] if is_renaming(verb, name)) => {
                self.note(StatementClass::UserData, "cloud-init sets the host name")
            }
            "hostnamectl" => Outcome::Unsupported("a name other than that in /etc/machine-name".to_owned()),
            "lsb_release" => return self.lsb_release(call),
            "modprobe" => self.modprobe(call),
            "netplan" if matches!(first(call), Some(b"apply" | b"generate")) => {
                self.dropped("each boot configures the network")
            }
            "sysctl" => self.sysctl(call),
            "sudo" => return sudo(call),
            "update-ca-certificates" => {
                let args = call.args.iter().map(|arg| text(arg));
                let words = std::iter::once("/usr/sbin/update-ca-certificates".to_owned()).chain(args).collect();
                self.effects.commands.push(words);
                self.note(StatementClass::FirstBoot, "it processes all certificates of the image")
            }
            "sleep" => return self.sleep(call),
            "touch" if arguments::sets_time(call.args) => {
                Outcome::Refused("layers do not store file times: remove -d, -r or -t".to_owned())
            }
            "ip"
            | "modinfo"
            | "journalctl"
            | "swapon"
            | "swapoff"
            | "udevadm"
            | "lsmod"
            | "free"
            | "nproc"
            | "ss"
            | "hostname"
            | "systemd-detect-virt"
            | "lsblk"
            | "mount"
            | "umount"
            | "blkid" => Outcome::Deferred("it queries or changes the running machine".to_owned()),
            "reboot" | "shutdown" | "poweroff" => {
                Outcome::Refused("no machine runs during the import: remove the command".to_owned())
            }
            name if COMPILED.contains(&name) => {
                Outcome::Deferred(format!("{name} is a compiled program, which only a machine can run"))
            }
            _ => return None,
        })
    }

    fn lsb_release(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
        let text = match call.args {
            [option] if option == b"-cs" => "trixie\n",
            [option] if option == b"-is" || option == b"-si" => "Debian\n",
            [option] if option == b"-rs" => "13\n",
            _ => return Some(Outcome::Unsupported("this call".to_owned())),
        };
        call.stdout.extend_from_slice(text.as_bytes());
        Some(Outcome::Status(0))
    }

    fn modprobe(&mut self, call: &Call<'_>) -> Outcome {
        let is_name = |name: &Vec<u8>| name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte));
        if call.args.is_empty() || !call.args.iter().all(|name| is_name(name) && !name.starts_with(b"-")) {
            return Outcome::Unsupported("modprobe with options".to_owned());
        }
        if call.is_observed && !call.is_tolerated {
            return Outcome::Deferred("its exit status depends on the kernel".to_owned());
        }
        self.effects.modules.extend(call.args.iter().map(|name| String::from_utf8_lossy(name).into_owned()));
        self.note(StatementClass::Baked, "each boot loads it");
        Outcome::Assumed
    }

    /// `sysctl` that sets what each boot does: systemd-sysctl reads `/etc/sysctl.d`, and not `/etc/sysctl.conf`.
    fn sysctl(&mut self, call: &Call<'_>) -> Outcome {
        let is_quiet = |arg: &&Vec<u8>| matches!(&arg[..], b"-q" | b"--quiet" | b"-e" | b"--ignore");
        let args: Vec<String> = call.args.iter().filter(|arg| !is_quiet(arg)).map(|arg| text(arg)).collect();
        let is_read = |path: &String| {
            let name = path.strip_prefix("/etc/sysctl.d/").and_then(|name| name.strip_suffix(".conf"));
            name.is_some_and(|name| !name.contains('/')) && call.files.lookup(path.as_bytes(), Follow::Yes).is_ok()
        };
        match args.split_first() {
            Some((option, [])) if option == "--system" => self.dropped("each boot applies /etc/sysctl.d"),
            Some((option, paths)) if option == "-p" && !paths.is_empty() && paths.iter().all(is_read) => {
                self.dropped("each boot applies /etc/sysctl.d")
            }
            Some((option, _)) if option == "-p" => {
                Outcome::Unsupported("-p with a file outside /etc/sysctl.d, which boots do not read,".to_owned())
            }
            _ => Outcome::Deferred("sysctl is a compiled program, which only a machine can run".to_owned()),
        }
    }

    fn sleep(&mut self, call: &Call<'_>) -> Option<Outcome> {
        let count = self.sleeps.entry((call.script.to_owned(), call.line)).or_default();
        *count = count.saturating_add(1);
        if *count > MAX_SLEEPS {
            self.is_broken = self.failed.is_some();
            return Some(Outcome::Refused("it waits for an event that does not occur during the import".to_owned()));
        }
        if self.is_limited {
            return Some(Outcome::Refused(
                "it waits in a unit with TimeoutStartSec=, which may end before: remove the setting".to_owned(),
            ));
        }
        Some(self.dropped("the import does not wait"))
    }
}

/// Whether `hostnamectl` gives a machine the name that its file has.
fn is_renaming(verb: &[u8], name: &[u8]) -> bool {
    matches!(verb, b"set-hostname" | b"hostname") && name == machine_name().as_bytes()
}
