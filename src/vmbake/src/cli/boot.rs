//! `vmbake boot`: boots a disk image in QEMU.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory};
use serde_json::json;

use super::files::{print, show};
use super::{Cli, Failure, Outcome, READABLE, parse_size};
use vmbake_common::atomic_file::write_file;
use vmbake_common::escape;
use vmbake_common::progress::{Event, Progress, emit};
use vmbake_qemu::check::{self, Check, CheckOptions, CheckRun, Checks, State};
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
    #[arg(help = format!("Disk image, {READABLE}, for amd64 or arm64; opened read-only"))]
    image: PathBuf,
    /// User data for cloud-init [default: an empty cloud-config]
    #[arg(long, value_name = "FILE")]
    user_data: Option<PathBuf>,
    /// Meta data for cloud-init [default: host name vmbake, and an instance ID derived from the data]
    #[arg(long, value_name = "FILE")]
    meta_data: Option<PathBuf>,
    /// Network configuration for cloud-init
    #[arg(long, value_name = "FILE")]
    network_config: Option<PathBuf>,
    /// Authorized public keys for the image's default user, instead of user data
    #[arg(long, value_name = "FILE", conflicts_with = "user_data")]
    ssh_key: Option<PathBuf>,
    /// Firmware [default: bios for amd64, uefi for arm64]
    #[arg(long)]
    firmware: Option<Firmware>,
    /// Append to the kernel command line, with --firmware direct
    #[arg(long, value_name = "TEXT")]
    append: Option<String>,
    /// Number of the root partition, with --firmware direct, if it is ambiguous
    #[arg(long, value_name = "N")]
    partition: Option<u32>,
    /// Forward ports of 127.0.0.1 to the machine: 2222:22,udp:5353:53
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    forward: Vec<Forward>,
    /// Network access of the machine
    #[arg(long, default_value = "user")]
    network: Network,
    /// Memory size
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "1536M")]
    memory: u64,
    /// Number of CPUs
    #[arg(long, value_name = "N", default_value = "2")]
    cpus: NonZeroU32,
    /// Disk size: 8G, or +1G to add to the image's size [default: the image's size]
    #[arg(long, value_parser = disk_size)]
    size: Option<Size>,
    /// Keep the machine's writes in FILE, and resume from it next time
    #[arg(long, value_name = "FILE")]
    disk: Option<PathBuf>,
    /// Accelerator
    #[arg(long, default_value = "auto")]
    accel: Accel,
    /// Attach the terminal to the machine's console; Ctrl-A X quits, Ctrl-A H shows help
    #[arg(long)]
    console: bool,
    /// Wait until all checks pass, then stop the machine; exit 1 if one fails: unit=NAME, file=PATH, no-failed-units, tcp:PORT,
    /// http:PORT/PATH=STATUS, run=COMMAND
    #[arg(long, value_name = "CHECKS", conflicts_with = "console")]
    check: Vec<Checks>,
    /// Timeout of --check in seconds
    #[arg(long, value_name = "SECONDS", default_value = "300", requires = "check")]
    timeout: u64,
    /// Write the results of --check as JUnit XML
    #[arg(long, value_name = "FILE", requires = "check")]
    junit: Option<PathBuf>,
    /// Write the console output during --check to FILE
    #[arg(long, value_name = "FILE", requires = "check")]
    log: Option<PathBuf>,
    /// Print the results of --check as JSON
    #[arg(long, requires = "check")]
    json: bool,
    /// Additional QEMU arguments
    #[arg(last = true, value_name = "QEMU ARGUMENTS")]
    qemu: Vec<OsString>,
}

pub(super) fn run(args: BootArgs) -> Result<Outcome, Failure> {
    check_usage(&args);
    let checks: Vec<Check> = args.check.into_iter().flat_map(|Checks(checks)| checks).collect();
    let checks = CheckOptions { checks, timeout: Duration::from_secs(args.timeout), log: args.log };
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
        checks: (!checks.checks.is_empty()).then_some(checks),
        qemu: args.qemu,
    };
    let progress = Progress::new(false);
    let machine = machine::prepare(&options, &progress)?;
    let Some(checks) = &options.checks else { return Err(MachineError::from(machine.run()).into()) };
    let run = machine::run_checks(machine, &options, checks, &progress)?;
    let image = options.image.display().to_string();
    if let Some(path) = &args.junit {
        write_file(path, check::junit(&image, &run).as_bytes(), true)?;
    }
    print_results(&image, &run, args.json)?;
    Ok(if run.is_ok() { Outcome::Clean } else { Outcome::Findings })
}

/// Prints the results of the checks to stdout and, if one failed, the console output to stderr.
fn print_results(image: &str, run: &CheckRun, as_json: bool) -> Result<Outcome, Failure> {
    if let Some(ended) = &run.ended {
        emit(&Event::GaveUp { reason: ended.clone(), console: run.console.clone() });
    }
    if as_json {
        return print(&escape::json(&json!({
            "image": image, "ok": run.is_ok(), "ended": run.ended, "seconds": run.seconds, "checks": run.results,
        }))?);
    }
    let mut text = String::new();
    for result in &run.results {
        let check = escape::line(&result.check);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<5} {check}  ({:.1} s)", result.state, result.seconds);
        let said = result.said.lines().filter(|_| result.state != State::Ok);
        said.for_each(|line| text.push_str(&format!("      | {line}\n")));
    }
    show(&text)
}

/// An absolute size, or an increment.
fn disk_size(text: &str) -> Result<Size, String> {
    match text.strip_prefix('+') {
        Some(more) => parse_size(more).map(Size::More),
        None => parse_size(text).map(Size::Bytes),
    }
}

/// Exits with a usage error on conflicting options.
fn check_usage(args: &BootArgs) {
    let refuse = |text: &str| Cli::command().error(ErrorKind::ArgumentConflict, text).exit();
    if args.append.is_some() && args.firmware != Some(Firmware::Direct) {
        refuse("--append requires --firmware direct: otherwise the image's boot loader sets the command line");
    }
    if args.partition.is_some() && args.firmware != Some(Firmware::Direct) {
        refuse("--partition requires --firmware direct: otherwise the image's boot loader selects the root partition");
    }
    let asks = |check: &Check| check.port().is_some();
    if args.network == Network::None && args.check.iter().flat_map(|Checks(checks)| checks).any(asks) {
        refuse("--check of a port requires --network user or isolated");
    }
    if args.network == Network::None && !args.forward.is_empty() {
        refuse("--forward requires --network user or isolated");
    }
    for (i, forward) in args.forward.iter().enumerate() {
        let same = |other: &&Forward| (other.protocol, other.host) == (forward.protocol, forward.host);
        if args.forward[..i].iter().find(same).is_some() {
            refuse(&format!("duplicate host port {} in --forward", forward.host));
        }
    }
}
