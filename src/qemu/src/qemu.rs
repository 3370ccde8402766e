//! QEMU's command line, and exec.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::{Value, json};
use vmbake_common::hint::Hint;
use vmbake_common::message::Message;
use vmbake_disk::disk::Arch;

use super::accel::Chosen;
use super::check::{CheckOptions, Line, PORT};
use super::firmware::Uefi;
use super::guest::{Guest, Kernel};
use super::network::Network;
use super::overlay::Overlay;
use super::scratch::{Scratch, ScratchError, name};
use super::{Options, qemu_arch};

/// Error while starting QEMU.
#[derive(Debug, thiserror::Error)]
pub enum QemuError {
    #[error("{program} not found in PATH")]
    Missing {
        program: String,
        /// Debian package with the firmware.
        package: &'static str,
    },
    #[error("{program}: cannot run")]
    Run { program: PathBuf, source: io::Error },
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for QemuError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { package, .. } => Some(format!("run `apt-get install {package}`")),
            Self::Scratch(error) => error.hint(),
            _ => None,
        }
    }

    vmbake_common::causes!(Scratch, Message; Run);
}

/// Finds QEMU for an architecture in PATH.
pub fn find(arch: Arch) -> Result<PathBuf, QemuError> {
    let program = format!("qemu-system-{}", qemu_arch(arch));
    on_path(&program).ok_or(QemuError::Missing {
        program,
        package: match arch {
            Arch::Amd64 => "qemu-system-x86",
            Arch::Arm64 => "qemu-system-arm",
        },
    })
}

/// Finds a program in PATH.
fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let runs =
        |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    // An empty entry would mean the current directory.
    let folders = std::env::split_paths(&path).filter(|folder| !folder.as_os_str().is_empty());
    folders.map(|folder| folder.join(program)).find(runs)
}

/// Parts of a machine.
pub struct Parts {
    /// The image.
    pub guest: Guest,
    /// UEFI firmware, if used.
    pub started: Option<Uefi>,
    /// The kernel of a direct boot.
    pub kernel: Option<Kernel>,
    /// Overlay.
    pub disk: Overlay,
    pub seed: File,
    /// Accelerator.
    pub accel: Chosen,
}

#[derive(Debug)]
pub struct VirtualMachine {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// Files that the arguments refer to by descriptor.
    files: Vec<OwnedFd>,
    console: bool,
}

impl VirtualMachine {
    pub(super) fn assemble(
        program: PathBuf,
        parts: Parts,
        options: &Options,
        scratch: &Scratch,
    ) -> Result<Self, QemuError> {
        let mut machine = Self { program, arguments: Vec::new(), files: Vec::new(), console: options.console };
        machine.processors(parts.guest.arch, &parts.accel, options);
        if parts.started.is_none() && parts.kernel.is_none() {
            // Debian's GRUB menu uses `gfxterm`, and hangs if the BIOS has no display.
            machine.add(["-device", "VGA"]);
        }
        if let Some(uefi) = parts.started {
            machine.uefi(&uefi, scratch)?;
        }
        if let Some(Kernel { kernel, initrd, cmdline }) = parts.kernel {
            let [kernel, initrd] = [kernel, initrd].map(|file| machine.pass(file));
            // On a busy host the emulated timer is late, which makes the kernel panic over a broken timer.
            let emulated = parts.guest.arch == Arch::Amd64 && !parts.accel.kvm;
            let cmdline = cmdline + if emulated { " no_timer_check" } else { "" };
            machine.add(["-kernel", &kernel, "-initrd", &initrd, "-append", &cmdline]);
        }
        machine.disks(parts.guest, parts.disk, parts.seed);
        machine.network(options);
        machine.terminal(options.console);
        machine.arguments.extend_from_slice(&options.qemu);
        Ok(machine)
    }

    /// Executes QEMU. Returns only on failure.
    pub fn run(self) -> QemuError {
        if let Err(error) = self.pass_on() {
            return error;
        }
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        if !self.console {
            command.stdin(Stdio::null());
        }
        let source = command.exec();
        QemuError::Run { program: self.program, source }
    }

    /// Starts QEMU as a child with a pipe for stdout, and returns its channels. QEMU ends with this process,
    /// if setpriv(1) is available.
    pub fn spawn(mut self) -> Result<(Child, Line), QemuError> {
        let line = self.line()?;
        self.pass_on()?;
        let mut command = match on_path("setpriv") {
            Some(setpriv) => {
                let mut command = Command::new(setpriv);
                command.args(["--pdeathsig", "KILL"]).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command.args(&self.arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        let child = command.spawn().map_err(|source| QemuError::Run { program: self.program, source })?;
        Ok((child, line))
    }

    /// Has a child inherit the files.
    fn pass_on(&self) -> Result<(), QemuError> {
        let passed = self.files.iter().try_for_each(|file| fcntl_setfd(file, FdFlags::empty()));
        passed.map_err(|source| {
            QemuError::Message(Message::new("cannot pass a descriptor to QEMU").by(std::io::Error::from(source)))
        })
    }

    fn processors(&mut self, arch: Arch, accel: &Chosen, options: &Options) {
        let machine = match arch {
            Arch::Amd64 => "q35",
            Arch::Arm64 => "virt",
        };
        let cpu = match (accel.kvm, arch) {
            (true, _) => "host",
            // QEMU 7.2 sometimes emulates cmpxchg16b wrongly, and the kernel's allocator panics.
            (false, Arch::Amd64) => "max,-cx16",
            // The architected pointer authentication cipher is slow to emulate.
            (false, Arch::Arm64) => "max,pauth-impdef=on",
        };
        let accel = if accel.kvm { "kvm" } else { "tcg,thread=multi" };
        let memory = format!("size={}K", options.memory.div_ceil(1024));
        let cpus = options.cpus.to_string();
        self.add(["-no-user-config", "-nodefaults", "-display", "none"]);
        self.add(["-machine", machine, "-accel", accel, "-cpu", cpu, "-m", &memory, "-smp", &cpus]);
        self.add(["-device", "virtio-rng-pci"]);
    }

    fn uefi(&mut self, uefi: &Uefi, scratch: &Scratch) -> Result<(), QemuError> {
        let variables = self.pass(scratch.holding(&uefi.variables)?);
        // Commas in values are doubled.
        let code = uefi.code.to_string_lossy().replace(',', ",,");
        self.add(["-drive", &format!("if=pflash,format=raw,readonly=on,file={code}")]);
        self.add(["-drive", &format!("if=pflash,format=raw,file={variables}")]);
        Ok(())
    }

    fn disks(&mut self, guest: Guest, disk: Overlay, seed: File) {
        let [image, overlay, seed] = [guest.file, disk.file, seed].map(|file| self.pass(file));
        // Data need not survive a crash of the host; crashes and flushes of the guest are honored in any case.
        let cache = json!({ "no-flush": !disk.kept });
        let file = json!({ "driver": "file", "filename": image, "read-only": true });
        let mut backing = json!({ "driver": guest.format.name(), "read-only": true, "file": file });
        if guest.format.can_have_backing() {
            // QEMU opens no other file, even if the image's header changes in the meantime.
            backing["backing"] = serde_json::Value::Null;
        }
        self.block(&json!({
            "node-name": "disk", "driver": "qcow2", "discard": "unmap", "cache": cache,
            "file": { "driver": "file", "filename": overlay, "discard": "unmap", "cache": cache },
            "backing": backing,
        }));
        self.block(&json!({
            "node-name": "seed", "driver": "raw", "read-only": true,
            "file": { "driver": "file", "filename": seed, "read-only": true },
        }));
        self.add(["-device", "virtio-blk-pci,drive=disk,bootindex=1", "-device", "virtio-blk-pci,drive=seed"]);
    }

    fn network(&mut self, options: &Options) {
        let restrict = match options.network {
            Network::None => return,
            Network::User => "restrict=off",
            Network::Isolated => "restrict=on",
        };
        let mut netdev = format!("user,id=net0,{restrict}");
        for forward in &options.forwards {
            netdev = format!("{netdev},{}", forward.option());
        }
        for port in options.checks.iter().flat_map(CheckOptions::ports) {
            // Any free port of this host; the monitor reports which one.
            netdev = format!("{netdev},hostfwd=tcp:127.0.0.1:0-:{port}");
        }
        // Without an option ROM, which would try to boot from the network.
        self.add(["-netdev", &netdev, "-device", "virtio-net-pci,netdev=net0,romfile="]);
    }

    fn terminal(&mut self, console: bool) {
        if console {
            self.add(["-chardev", "stdio,id=console,mux=on,signal=off", "-mon", "chardev=console,mode=readline"]);
        } else {
            self.add(["-chardev", "stdio,id=console"]);
        }
        self.add(["-serial", "chardev:console"]);
    }

    /// Creates the monitor and the port for reports.
    fn line(&mut self) -> Result<Line, QemuError> {
        let mut socket = |id: &str| -> Result<UnixStream, QemuError> {
            let (ours, its) = UnixStream::pair()
                .map_err(|source| QemuError::Message(Message::new("cannot create a socket for QEMU").by(source)))?;
            let its = OwnedFd::from(its);
            self.add(["-chardev", &format!("socket,id={id},fd={}", its.as_raw_fd())]);
            self.files.push(its);
            Ok(ours)
        };
        let line = Line { monitor: socket("monitor")?, port: socket("check")? };
        self.add(["-mon", "chardev=monitor,mode=control"]);
        self.add(["-device", "virtio-serial-pci", "-device", &format!("virtserialport,chardev=check,name={PORT}")]);
        Ok(line)
    }

    fn block(&mut self, node: &Value) {
        self.add(["-blockdev", &node.to_string()]);
    }

    /// Lets QEMU inherit a file; returns its path there.
    fn pass(&mut self, file: File) -> String {
        let name = name(&file);
        self.files.push(file.into());
        name
    }

    fn add<const N: usize>(&mut self, arguments: [&str; N]) {
        self.arguments.extend(arguments.map(|argument| OsStr::new(argument).to_owned()));
    }
}
