//! `vmbake boot`: a disk image in a machine of qemu.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory};
use serde_json::json;

use super::files::{print, show};
use super::{Cli, Failure, Outcome, parse_size};
use vmbake_common::atomic_file::write_file;
use vmbake_common::escape;
use vmbake_common::progress::{Event, Progress, tell};
use vmbake_qemu::check::{self, Check, Checks, Judge, State, Trial};
use vmbake_qemu::{self as machine, Accel, Firmware, Forward, MachineError, Network, Options, SeedFiles, Size};

const EXAMPLES: &str = "\
Examples:
  vmbake boot dist/node.debian-13.amd64.qcow2 --ssh-key ~/.ssh/id_ed25519.pub --forward 2222:22
  vmbake boot dist/knd.debian-13.amd64.qcow2 --user-data user-data --disk machine.qcow2
  vmbake boot dist/node.debian-13.amd64.raw --firmware direct --append systemd.log_level=debug --console
  vmbake boot dist/node.debian-13.amd64.qcow2 --check unit=containerd.service,tcp:22,no-failed-units --timeout 600
  vmbake boot debian-13-genericcloud-arm64.qcow2 -- -device virtio-rng-pci";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
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
    /// End the machine once all this holds in it; exit 1 if it does not: unit=NAME, file=PATH, no-failed-units, tcp:PORT,
    /// http:PORT/PATH=STATUS, run=COMMAND
    #[arg(long, value_name = "CHECKS", conflicts_with = "console")]
    check: Vec<Checks>,
    /// Seconds after which --check gives up
    #[arg(long, value_name = "SECONDS", default_value = "300", requires = "check")]
    timeout: u64,
    /// Write what --check found as JUnit XML
    #[arg(long, value_name = "FILE", requires = "check")]
    junit: Option<PathBuf>,
    /// Write all that the console shows during --check
    #[arg(long, value_name = "FILE", requires = "check")]
    log: Option<PathBuf>,
    /// Print what --check found as JSON
    #[arg(long, requires = "check")]
    json: bool,
    /// More arguments for qemu
    #[arg(last = true, value_name = "QEMU ARGUMENTS")]
    qemu: Vec<OsString>,
}

pub(super) fn run(args: BootArgs) -> Result<Outcome, Failure> {
    check_usage(&args);
    let checks: Vec<Check> = args.check.into_iter().flat_map(|Checks(checks)| checks).collect();
    let judge = Judge { checks, timeout: Duration::from_secs(args.timeout), log: args.log };
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
        judge: (!judge.checks.is_empty()).then_some(judge),
        qemu: args.qemu,
    };
    let progress = Progress::new(false);
    let machine = machine::prepare(&options, &progress)?;
    let Some(judge) = &options.judge else { return Err(MachineError::from(machine.run()).into()) };
    let trial = machine::judge(machine, &options, judge, &progress)?;
    let image = options.image.display().to_string();
    if let Some(path) = &args.junit {
        write_file(path, check::junit(&image, &trial).as_bytes(), true)?;
    }
    print_trial(&image, &trial, args.json)?;
    Ok(if trial.is_ok() { Outcome::Clean } else { Outcome::Findings })
}

/// What became of the checks goes to stdout, and to stderr what the console showed where they do not hold.
fn print_trial(image: &str, trial: &Trial, as_json: bool) -> Result<Outcome, Failure> {
    if let Some(ended) = &trial.ended {
        tell(&Event::GaveUp { reason: ended.clone(), console: trial.console.clone() });
    }
    if as_json {
        return print(&escape::json(&json!({
            "image": image, "ok": trial.is_ok(), "ended": trial.ended, "seconds": trial.seconds, "checks": trial.verdicts,
        }))?);
    }
    let mut text = String::new();
    for verdict in &trial.verdicts {
        let check = escape::line(&verdict.check);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<5} {check}  ({:.1} s)", verdict.state, verdict.seconds);
        let said = verdict.said.lines().filter(|_| verdict.state != State::Ok);
        said.for_each(|line| text.push_str(&format!("      | {line}\n")));
    }
    show(&text)
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
    let asks = |check: &Check| check.port().is_some();
    if args.network == Network::None && args.check.iter().flat_map(|Checks(checks)| checks).any(asks) {
        refuse("--check of a port needs a network: --network user or isolated");
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
