//! A disk image boots in qemu: options enter, and this process becomes qemu. The image stays as it is.
//!
//! All that qemu needs is prepared first: what the image says about itself (`guest`), the disk that takes the writes
//! (`overlay`), cloud-init's data (`seed`), firmware, acceleration, forwarded ports. What is made on the way are files without
//! a name, which qemu inherits as descriptors and opens as `/proc/self/fd/N`. So nothing is left behind however the machine
//! ends, qemu has the process id of the command that started it, and its exit status is the command's. Only a machine that is judged (`check`) runs as a child.

mod accel;
pub mod check;
mod firmware;
mod guest;
mod network;
mod overlay;
mod qemu;
mod scratch;
mod seed;

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;

use vmbake_disk::disk::Arch;

pub use accel::{Accel, AccelError};
pub use firmware::{Firmware, FirmwareError};
pub use guest::GuestError;
pub use network::{Forward, Network, NetworkError, Protocol};
pub use overlay::{OverlayError, Size, SizeFault};
pub use qemu::{QemuError, VirtualMachine};
pub use scratch::ScratchError;
pub use seed::{SeedError, SeedFiles};

use check::{Judge, Trial, TrialError};
use guest::Guest;
use overlay::Overlay;
use scratch::Scratch;
use vmbake_common::hint::Hint;
use vmbake_common::progress::{Event, Progress};

/// What to boot, and in which machine.
#[derive(Debug)]
pub struct Options {
    /// The disk image, which is only read.
    pub image: PathBuf,
    /// Data for cloud-init.
    pub seed: SeedFiles,
    /// What starts the system; by default what every machine of the architecture has.
    pub firmware: Option<Firmware>,
    /// Added to the kernel command line of a direct boot.
    pub append: Option<String>,
    /// Number of the root partition whose kernel a direct boot takes, where that is not obvious.
    pub partition: Option<u32>,
    /// Ports of this host that lead into the machine.
    pub forwards: Vec<Forward>,
    /// What the machine can reach.
    pub network: Network,
    /// Bytes of memory.
    pub memory: u64,
    /// Processors.
    pub cpus: NonZeroU32,
    /// Size of the disk, by default the image's.
    pub size: Option<Size>,
    /// File that keeps what the machine writes to its disk.
    pub disk: Option<PathBuf>,
    /// How the machine's processors are had.
    pub accel: Accel,
    /// Whether the terminal is the machine's.
    pub console: bool,
    /// What must hold in the machine, if it is judged.
    pub judge: Option<Judge>,
    /// More arguments of qemu.
    pub qemu: Vec<OsString>,
}

/// Why a machine was not started.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    #[error(transparent)]
    Guest(#[from] GuestError),
    #[error(transparent)]
    Qemu(#[from] QemuError),
    #[error(transparent)]
    Firmware(#[from] FirmwareError),
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error(transparent)]
    Accel(#[from] AccelError),
    #[error(transparent)]
    Seed(#[from] SeedError),
    #[error(transparent)]
    Overlay(#[from] OverlayError),
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    #[error(transparent)]
    Trial(#[from] TrialError),
}

/// Prepares a machine, and tells what it is.
pub fn prepare(options: &Options, progress: &Progress) -> Result<VirtualMachine, MachineError> {
    let guest = Guest::open(&options.image)?;
    let program = qemu::find(guest.arch)?;
    let firmware = options.firmware.unwrap_or(Firmware::usual(guest.arch));
    let started = firmware::load(firmware, guest.arch)?;
    options.forwards.iter().try_for_each(Forward::check)?;
    let scratch = Scratch::open();
    let vendor_data = options.judge.as_ref().and_then(|judge| check::vendor_data(&judge.checks));
    let seed = options.seed.write(vendor_data, &scratch)?;
    let kernel = match firmware {
        Firmware::Direct => Some(guest.kernel(options, &scratch)?),
        Firmware::Bios | Firmware::Uefi => None,
    };
    let accel = accel::choose(options.accel, guest.arch, &program)?;
    // Last, so that no disk is made for a machine that cannot be.
    let disk = match &options.disk {
        Some(path) => Overlay::keep(path, &guest, options.size)?,
        None => Overlay::anonymous(&scratch, &guest, options.size)?,
    };

    progress.tell(Event::Machine {
        arch: guest.arch.name().to_owned(),
        firmware: firmware.to_string(),
        cpus: options.cpus.get(),
        memory_bytes: options.memory,
        disk_bytes: disk.size,
    });
    progress.tell(accel.event());
    options.forwards.iter().for_each(|forward| progress.tell(forward.event()));
    let parts = qemu::Parts { guest, started, kernel, disk, seed, accel };
    Ok(VirtualMachine::assemble(program, parts, options, &scratch)?)
}

impl Hint for MachineError {
    vmbake_common::causes!(Guest, Qemu, Firmware, Network, Accel, Seed, Overlay, Scratch, Trial);
}

/// Runs a machine until it is judged, and ends it; tells what becomes of the checks.
pub fn judge(
    machine: VirtualMachine,
    options: &Options,
    judge: &Judge,
    progress: &Progress,
) -> Result<Trial, MachineError> {
    let (child, line) = machine.spawn()?;
    Ok(check::watch(child, line, judge, options.disk.is_some(), progress)?)
}

/// qemu's name of an architecture, as in the names of its programs.
fn qemu_arch(arch: Arch) -> &'static str {
    match arch {
        Arch::Amd64 => "x86_64",
        Arch::Arm64 => "aarch64",
    }
}

#[cfg(test)]
#[path = "../../disk/tests/skip.rs"]
mod skip;
