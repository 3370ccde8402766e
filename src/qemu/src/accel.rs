//! Selects the accelerator: KVM if it works, otherwise emulation.

mod guest;

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::ValueEnum;
use rustix::fs::Access;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use vmbake_common::hint::Hint;
use vmbake_disk::disk::Arch;

use super::scratch::{Scratch, ScratchError};
use vmbake_common::progress::{Event, emit};

const KVM: &str = "/dev/kvm";
/// Timeout of the KVM test in seconds. Working KVM needs a tenth of one.
const PATIENCE: &str = "4";

/// Accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Accel {
    /// KVM if it works, otherwise TCG
    Auto,
    /// KVM of the host's kernel
    Kvm,
    /// Emulation (TCG)
    Tcg,
}

/// Error while selecting an accelerator.
#[derive(Debug, thiserror::Error)]
pub enum AccelError {
    #[error("no KVM: {why}")]
    NoKvm {
        /// Reason.
        why: String,
    },
    #[error(transparent)]
    Scratch(#[from] ScratchError),
}

impl Hint for AccelError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoKvm { .. } => Some("use --accel tcg for emulation, which is about ten times slower".to_owned()),
            Self::Scratch(_) => None,
        }
    }

    vmbake_common::causes!(Scratch);
}

/// The selected accelerator, and why.
#[derive(Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Whether it is KVM; else TCG.
    pub kvm: bool,
    why: String,
}

impl Chosen {
    /// The event to report.
    pub(super) fn event(&self) -> Event {
        Event::Accel { kvm: self.kvm, reason: self.why.clone() }
    }
}

/// Selects the accelerator. On some hosts /dev/kvm opens but cannot run guests, so it is tested.
pub fn choose(wanted: Accel, arch: Arch, qemu: &Path) -> Result<Chosen, AccelError> {
    let chosen = |kvm, why: &str| Ok(Chosen { kvm, why: why.to_owned() });
    if wanted == Accel::Tcg {
        return chosen(false, "requested");
    }
    match (wanted, unusable(arch)) {
        (Accel::Kvm, Some(why)) => Err(AccelError::NoKvm { why }),
        (Accel::Kvm, None) => chosen(true, "requested"),
        (_, Some(why)) => chosen(false, &why),
        (_, None) if runs(qemu, arch, "kvm", "host")? => chosen(true, "a test guest ran"),
        (_, None) => chosen(false, "/dev/kvm exists, but cannot run 64-bit guests"),
    }
}

/// Why KVM cannot be tested.
fn unusable(arch: Arch) -> Option<String> {
    let host = std::env::consts::ARCH;
    if host != super::qemu_arch(arch) {
        return Some(format!("this host is {host}, but the image is for {}", arch.name()));
    }
    let denied = rustix::fs::access(KVM, Access::READ_OK | Access::WRITE_OK).err()?;
    Some(match denied {
        rustix::io::Errno::NOENT => format!("{KVM} does not exist"),
        _ => format!("cannot open {KVM}: is this user in the group kvm?"),
    })
}

/// Whether a test guest runs and shuts down. `timeout` kills one that hangs, even if this process is killed.
fn runs(qemu: &Path, arch: Arch, accel: &str, cpu: &str) -> Result<bool, ScratchError> {
    let program: File = Scratch::open().holding(&guest::program(arch))?;
    let mut command = Command::new("timeout");
    command.args(["--foreground", "--signal=KILL", PATIENCE]).arg(qemu);
    command.args(["-no-user-config", "-nodefaults", "-display", "none", "-no-reboot", "-chardev", "stdio,id=word"]);
    command.args(["-accel", accel, "-cpu", cpu]).args(guest::machine(arch));
    command.stdin(Stdio::from(program)).stderr(Stdio::null());
    let output = without_core_dumps(|| command.output());
    Ok(output.is_ok_and(|output| output.stdout == guest::WORD))
}

/// QEMU aborts if KVM refuses a request: that is an expected result, for which no core dump is needed.
fn without_core_dumps<T>(run: impl FnOnce() -> T) -> T {
    let before = getrlimit(Resource::Core);
    // A soft limit can be lowered, and raised again up to the hard limit.
    let lowered = setrlimit(Resource::Core, Rlimit { current: Some(0), ..before }).is_ok();
    let result = run();
    if lowered && setrlimit(Resource::Core, before).is_err() {
        emit(&Event::Note { path: None, note: "disabled core dumps of QEMU".to_owned() });
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qemu;
    use crate::skip::skip;

    #[test]
    fn a_guest_says_its_word() {
        for (arch, cpu) in [(Arch::Amd64, "max"), (Arch::Arm64, "cortex-a53")] {
            let Ok(program) = qemu::find(arch) else {
                skip(&format!("no qemu for {} is installed", arch.name()));
                continue;
            };
            assert!(runs(&program, arch, "tcg", cpu).unwrap(), "{}", arch.name());
            assert!(!runs(&program, arch, "none", cpu).unwrap());
        }
        assert!(!runs(Path::new("/nowhere/qemu"), Arch::Amd64, "tcg", "max").unwrap());
    }

    #[test]
    fn emulation_says_why() {
        let nowhere = Path::new("/nowhere/qemu");
        let foreign = if cfg!(target_arch = "x86_64") { Arch::Arm64 } else { Arch::Amd64 };
        let chosen = choose(Accel::Auto, foreign, nowhere).unwrap();
        assert!(!chosen.kvm && chosen.why.starts_with("this host is "), "{chosen:?}");
        let refused = choose(Accel::Kvm, foreign, nowhere).unwrap_err();
        assert!(refused.to_string().starts_with("no KVM: this host is "), "{refused}");
        let requested = Event::Accel { kvm: false, reason: "requested".to_owned() };
        assert_eq!(choose(Accel::Tcg, foreign, nowhere).unwrap().event(), requested);
    }
}
