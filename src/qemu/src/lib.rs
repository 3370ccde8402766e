//! Boots a disk image in QEMU: options in, and this process becomes QEMU. The image is not modified.
//!
//! Everything is prepared first: properties of the image (`guest`), the disk for writes
//! (`overlay`), cloud-init's data (`seed`), firmware, accelerator, forwarded ports. Temporary files have no
//! name; QEMU inherits them as descriptors and opens `/proc/self/fd/N`. So nothing is left behind however the machine
//! ends, QEMU has the process id of the command, and its exit status is the command's. Only a checked machine (`check`) runs as a child.

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

use check::{CheckOptions, CheckRun, CheckRunError};
use guest::Guest;
use overlay::Overlay;
use scratch::Scratch;
use vmbake_common::hint::Hint;
use vmbake_common::progress::{Event, Progress};

/// Options of a boot.
#[derive(Debug)]
pub struct Options {
    /// Disk image, opened read-only.
    pub image: PathBuf,
    pub seed: SeedFiles,
    /// Firmware; by default that of the architecture.
    pub firmware: Option<Firmware>,
    /// Appended to the kernel command line of a direct boot.
    pub append: Option<String>,
    /// Number of the root partition for a direct boot, if it is ambiguous.
    pub partition: Option<u32>,
    /// Forwarded ports.
    pub forwards: Vec<Forward>,
    /// Network access of the machine.
    pub network: Network,
    /// Memory in bytes.
    pub memory: u64,
    /// Number of CPUs.
    pub cpus: NonZeroU32,
    /// Disk size; by default the image's.
    pub size: Option<Size>,
    /// File that keeps the machine's writes.
    pub disk: Option<PathBuf>,
    /// Accelerator.
    pub accel: Accel,
    /// Whether to attach the terminal.
    pub console: bool,
    /// Checks, for a checked run.
    pub checks: Option<CheckOptions>,
    /// Additional QEMU arguments.
    pub qemu: Vec<OsString>,
}

/// Error while starting a machine.
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
    CheckRun(#[from] CheckRunError),
}

/// Prepares a machine, and reports its properties.
pub fn prepare(options: &Options, progress: &Progress) -> Result<VirtualMachine, MachineError> {
    let guest = Guest::open(&options.image)?;
    let program = qemu::find(guest.arch)?;
    let firmware = options.firmware.unwrap_or(Firmware::usual(guest.arch));
    let started = firmware::load(firmware, guest.arch)?;
    options.forwards.iter().try_for_each(Forward::check)?;
    let scratch = Scratch::open();
    let vendor_data = options.checks.as_ref().and_then(|checked| check::vendor_data(&checked.checks));
    let seed = options.seed.write(vendor_data, &scratch)?;
    let kernel = match firmware {
        Firmware::Direct => Some(guest.kernel(options, &scratch)?),
        Firmware::Bios | Firmware::Uefi => None,
    };
    let accel = accel::choose(options.accel, guest.arch, &program)?;
    // Last, so that no disk is created if anything else fails.
    let disk = match &options.disk {
        Some(path) => Overlay::keep(path, &guest, options.size)?,
        None => Overlay::anonymous(&scratch, &guest, options.size)?,
    };

    progress.emit(Event::Machine {
        arch: guest.arch.name().to_owned(),
        firmware: firmware.to_string(),
        cpus: options.cpus.get(),
        memory_bytes: options.memory,
        disk_bytes: disk.size,
    });
    progress.emit(accel.event());
    options.forwards.iter().for_each(|forward| progress.emit(forward.event()));
    let parts = qemu::Parts { guest, started, kernel, disk, seed, accel };
    Ok(VirtualMachine::assemble(program, parts, options, &scratch)?)
}

impl Hint for MachineError {
    vmbake_common::causes!(Guest, Qemu, Firmware, Network, Accel, Seed, Overlay, Scratch, CheckRun);
}

/// Runs a machine until its checks have results, reports these, and stops it.
pub fn run_checks(
    machine: VirtualMachine,
    options: &Options,
    checks: &CheckOptions,
    progress: &Progress,
) -> Result<CheckRun, MachineError> {
    let (child, line) = machine.spawn()?;
    Ok(check::watch(child, line, checks, options.disk.is_some(), progress)?)
}

/// QEMU's name of an architecture, as in program names.
fn qemu_arch(arch: Arch) -> &'static str {
    match arch {
        Arch::Amd64 => "x86_64",
        Arch::Arm64 => "aarch64",
    }
}

#[cfg(test)]
#[path = "../../disk/tests/skip.rs"]
mod skip;
