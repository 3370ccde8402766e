//! `vmbake boot`: a disk image in a machine of qemu.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory};

use super::{Cli, Failure, Outcome, examples, parse_size};
use crate::machine::{self, Accel, Firmware, Forward, MachineError, Network, Options, SeedFiles, Size};
use crate::progress::Progress;

#[derive(Debug, Args)]
#[command(after_help = examples::BOOT)]
pub(super) struct BootArgs {
    /// Disk image, qcow2 or raw, for amd64 or arm64; it is only read
    image: PathBuf,
    /// User data for cloud-init [default: none that do anything]
    #[arg(long, value_name = "FILE")]
    user_data: Option<PathBuf>,
    /// Meta data for cloud-init [default: an instance id made of the content, host name vmbake]
    #[arg(long, value_name = "FILE")]
    meta_data: Option<PathBuf>,
    /// Network configuration for cloud-init
    #[arg(long, value_name = "FILE")]
    network_config: Option<PathBuf>,
    /// Public keys that may log in as the image's user, in place of user data
    #[arg(long, value_name = "FILE", conflicts_with = "user_data")]
    ssh_key: Option<PathBuf>,
    /// What starts the system [default: bios for amd64, uefi for arm64]
    #[arg(long)]
    firmware: Option<Firmware>,
    /// Add to the kernel command line, with --firmware direct
    #[arg(long, value_name = "TEXT")]
    append: Option<String>,
    /// Number of the root partition, with --firmware direct, where more than one could be
    #[arg(long, value_name = "N")]
    partition: Option<u32>,
    /// Ports of 127.0.0.1 that lead into the machine: 2222:22,udp:5353:53
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    forward: Vec<Forward>,
    /// What the machine can reach
    #[arg(long, default_value = "user")]
    network: Network,
    /// Memory
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "1536M")]
    memory: u64,
    /// Processors
    #[arg(long, value_name = "N", default_value = "2")]
    cpus: NonZeroU32,
    /// Size of the disk: 8G, or +1G for so much more than the image has [default: the image's]
    #[arg(long, value_parser = disk_size)]
    size: Option<Size>,
    /// Keep what the machine writes in FILE, and go on from it the next time
    #[arg(long, value_name = "FILE")]
    disk: Option<PathBuf>,
    /// What runs the machine's processors
    #[arg(long, default_value = "auto")]
    accel: Accel,
    /// Give the terminal to the machine; Ctrl-A X ends it, Ctrl-A H tells more
    #[arg(long)]
    console: bool,
    /// More arguments for qemu
    #[arg(last = true, value_name = "QEMU ARGUMENTS")]
    qemu: Vec<OsString>,
}

pub(super) fn run(args: BootArgs) -> Result<Outcome, Failure> {
    check_usage(&args);
    let options = Options {
        image: args.image,
        seed: SeedFiles {
            user_data: args.user_data,
            meta_data: args.meta_data,
            network_config: args.network_config,
            ssh_key: args.ssh_key,
        },
        firmware: args.firmware,
        append: args.append,
        partition: args.partition,
        forwards: args.forward,
        network: args.network,
        memory: args.memory,
        cpus: args.cpus,
        size: args.size,
        disk: args.disk,
        accel: args.accel,
        console: args.console,
        qemu: args.qemu,
    };
    let progress = Progress::new(false);
    let machine = machine::prepare(&options, &|name, detail| progress.step(name, detail))?;
    Err(MachineError::from(machine.run()).into())
}

/// A size, or how much more than the image has.
fn disk_size(text: &str) -> Result<Size, String> {
    match text.strip_prefix('+') {
        Some(more) => parse_size(more).map(Size::More),
        None => parse_size(text).map(Size::Bytes),
    }
}

/// Ends the program when options do not go together.
fn check_usage(args: &BootArgs) {
    let refuse = |text: &str| Cli::command().error(ErrorKind::ArgumentConflict, text).exit();
    if args.append.is_some() && args.firmware != Some(Firmware::Direct) {
        refuse("--append is for --firmware direct: else the image's boot loader has the command line");
    }
    if args.partition.is_some() && args.firmware != Some(Firmware::Direct) {
        refuse("--partition is for --firmware direct: else the image's boot loader has chosen");
    }
    if args.network == Network::None && !args.forward.is_empty() {
        refuse("--forward needs a network: --network user or isolated");
    }
    for (i, forward) in args.forward.iter().enumerate() {
        let same = |other: &&Forward| (other.protocol, other.host) == (forward.protocol, forward.host);
        if args.forward[..i].iter().find(same).is_some() {
            refuse(&format!("--forward names port {} of this host twice", forward.host));
        }
    }
}
