//! Runs maintainer scripts (Debian Policy 6): interprets the scripts that dpkg would run over the tree. Nothing runs on the host.
//!
//! `vmbake_shell` interprets a script. Debian's commands ([`commands`]) are functions on the tree and on dpkg's database ([`system`]). If a
//! script needs the machine (keys, random numbers, the clock, running services), it is deferred to the first boot, and its changes so far
//! are reverted.

mod commands;
mod deferred;
mod fault;
mod files;
mod foreign;
mod makes;
mod system;

use std::cell::RefCell;
use std::collections::BTreeMap;

use vmbake_shell::{ErrorKind, Files, Host, Limits, Script, Settings};

pub(super) use commands::has_catalog;
pub(super) use deferred::check as check_deferred;
pub use fault::ScriptFault;
pub use makes::Makes;

use super::MergeError;
use super::database::Database;
use super::place::Target;
use crate::stage::Control;
use files::TargetFiles;
use system::System;
use vmbake_common::digest::Digest;

/// The search path of scripts, during a bake and on the first boot.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs mkinitramfs as a file that another package than its own could have replaced.
const MKINITRAMFS: &str = "#!/bin/sh\nexec sh /usr/sbin/mkinitramfs \"$@\"\n";
/// The output of mkinitramfs.
const INITRD: &str = "/var/tmp/initrd.img";
/// Longest initial RAM disk, in bytes.
const MAX_INITRD: u64 = 1 << 30;

/// A script, and how dpkg calls it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    /// Name of the package.
    pub(super) package: &'a str,
    /// Stem of its files below `info`.
    pub(super) stem: &'a str,
    /// Its architecture.
    pub(super) arch: &'a str,
    /// `preinst`, `postinst`, `prerm`, `postrm` or `config`.
    pub(super) script: &'static str,
    /// Its bytes.
    pub(super) source: &'a [u8],
    /// Its arguments, such as `configure` and the version that was configured last.
    pub(super) args: &'a [&'a str],
    /// The package's control files, where they are not below `info` yet.
    pub(super) control: Option<&'a BTreeMap<String, Vec<u8>>>,
}

/// What a script is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// Also for a trigger.
    Install,
    Upgrade,
    Removal,
}

/// How a script ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// What it does is done.
    Done,
    /// It can only run on the machine, for this reason; nothing is done.
    Waits(String),
}

impl Call<'_> {
    /// The error about this script.
    pub(super) fn error(&self, fault: ScriptFault) -> MergeError {
        MergeError::Script {
            package: self.package.to_owned(),
            script: self.script,
            sha256: Digest::of(self.source).hex(),
            occasion: self.occasion(),
            makes: Box::new(Makes::of(self.source)),
            fault: Box::new(fault),
        }
    }

    /// What the script is called for: it is an upgrade if another version was there before.
    pub(super) fn occasion(&self) -> Occasion {
        match self.args {
            ["remove" | "purge", ..] => Occasion::Removal,
            ["triggered", ..] | [_, "", ..] | [_] | [] => Occasion::Install,
            _ => Occasion::Upgrade,
        }
    }

    fn settings(&self, database: &Database) -> Settings {
        let is_other = |control: &&Control| control.get("Architecture") != Some(self.arch);
        let instances = database.status.named(self.package).filter(is_other).count() + 1;
        let instances = instances.to_string();
        let set: [(&str, &str); 12] = [
            ("PATH", PATH),
            ("HOME", "/root"),
            ("LC_ALL", "C.UTF-8"),
            ("DEBIAN_FRONTEND", "noninteractive"),
            ("DPKG_ADMINDIR", "/var/lib/dpkg"),
            ("DPKG_ROOT", ""),
            // A bake is a call of dpkg with `--force-confold`; ucf looks for it here.
            ("DPKG_FORCE", "security-mac,downgrade,confold"),
            ("DPKG_MAINTSCRIPT_PACKAGE", self.package),
            ("DPKG_MAINTSCRIPT_PACKAGE_REFCOUNT", &instances),
            ("DPKG_MAINTSCRIPT_ARCH", self.arch),
            ("DPKG_MAINTSCRIPT_NAME", self.script),
            ("DPKG_MAINTSCRIPT_DEBUG", "0"),
        ];
        let mut environment: BTreeMap<Vec<u8>, Vec<u8>> = set.map(|(name, value)| (name.into(), value.into())).into();
        if self.script == "config" {
            environment.insert(commands::HAS_FRONTEND.into(), b"1".to_vec());
        }
        // Both fit on one stack, for a script may run its package's config at any depth.
        let levels = if self.script == "config" { Limits::LEVELS / 3 } else { Limits::LEVELS / 3 * 2 };
        Settings { environment, limits: Limits { levels, ..Limits::default() }, ..Settings::default() }
    }
}

/// Runs a script as dpkg would. Only a `postinst` can wait; for another script that is an error.
pub(super) fn run(target: &mut Target, database: &mut Database, call: &Call<'_>) -> Result<Ran, MergeError> {
    let mut ran = attempt(target, database, call)?;
    if let (Ran::Waits(_), Some(control)) = (&ran, call.control)
        && control.contains_key("config")
    {
        // A config that has to wait for the first boot runs there for the postinst; the preinst goes without its answers.
        let others = control.iter().filter(|(name, _)| *name != "config");
        let control = others.map(|(name, content)| (name.clone(), content.clone())).collect();
        ran = attempt(target, database, &Call { control: Some(&control), ..*call })?;
    }
    match ran {
        Ran::Waits(reason) if call.script != "postinst" => Err(call.error(ScriptFault::CannotWait { reason })),
        ran => Ok(ran),
    }
}

/// Runs a script, and takes back what it did if it cannot be run to its end.
fn attempt(target: &mut Target, database: &mut Database, call: &Call<'_>) -> Result<Ran, MergeError> {
    let before = database.changeable();
    target.tree.begin();
    let ran = interpret(target, database, call);
    match ran {
        Ok(Ran::Done) => target.tree.commit(),
        Ok(Ran::Waits(_)) | Err(_) => {
            target.tree.rollback();
            database.restore(before);
        }
    }
    ran
}

fn interpret(target: &mut Target, database: &mut Database, call: &Call<'_>) -> Result<Ran, MergeError> {
    let target = RefCell::new(target);
    let files_fault = RefCell::new(None);
    let mut files = TargetFiles::new(&target, &files_fault);
    let mut system = System::new(&target, database, call);
    let ran = on_system(&mut system, &mut files, call);
    system.database.debconf.end();
    if let Some(error) = system.fault.take().or(files_fault.take()) {
        return Err(error);
    }
    match files.reads_id() {
        true => Ok(Ran::Waits("it reads /etc/machine-id, which the first boot generates".to_owned())),
        false => ran,
    }
}

/// Runs a script on a machine on which perhaps another one of the package runs.
fn on_system(system: &mut System<'_, '_>, files: &mut dyn Files, call: &Call<'_>) -> Result<Ran, MergeError> {
    foreign::check_script(&system.target(), call)?;
    if let Some(what) = vmbake_shell::foreign(call.source) {
        return Ok(Ran::Waits(format!("it is {what}")));
    }
    let settings = call.settings(system.database);
    interpreted(system, files, call, &settings)
}

fn interpreted(
    system: &mut System<'_, '_>,
    files: &mut dyn Files,
    call: &Call<'_>,
    settings: &Settings,
) -> Result<Ran, MergeError> {
    let name = format!("{}.{}", call.package, call.script);
    let args: Vec<Vec<u8>> = call.args.iter().map(|arg| arg.as_bytes().to_vec()).collect();
    let script = Script { name: &name, source: call.source, args: &args };
    let finished = vmbake_shell::run(&script, &mut Host { files, commands: system }, settings);
    match finished {
        Ok(finished) if finished.status == 0 => Ok(Ran::Done),
        Ok(finished) => {
            let stderr = vmbake_common::escape::lines(&String::from_utf8_lossy(&finished.stderr));
            Err(call.error(ScriptFault::Failed { status: finished.status, stderr: stderr.trim_end().to_owned() }))
        }
        Err(error) => match error.kind {
            ErrorKind::Foreign { .. }
            | ErrorKind::Deferred { .. }
            | ErrorKind::Random { .. }
            | ErrorKind::Clock { .. }
            | ErrorKind::Machine { .. } => Ok(Ran::Waits(error.to_string())),
            _ => {
                let text = line(call.source, &name, &error);
                Err(call.error(ScriptFault::Unknown { error, text }))
            }
        },
    }
}

/// Runs mkinitramfs(8) for a kernel. Returns the mode and content of the initial RAM disk, or the reason why there is none. The tree is not
/// changed.
pub(super) fn mkinitramfs(
    target: &mut Target,
    database: &mut Database,
    version: &str,
) -> Result<Result<(u16, Vec<u8>), String>, MergeError> {
    let args = ["-o", INITRD, version];
    let call = Call {
        package: "initramfs-tools",
        stem: "initramfs-tools",
        arch: "all",
        script: "mkinitramfs",
        source: MKINITRAMFS.as_bytes(),
        args: &args,
        control: None,
    };
    let before = database.changeable();
    target.tree.begin();
    let ran = build(target, database, &call);
    let made = target.tree.resolve(INITRD.as_bytes()).map(|id| target.tree.inode(id).meta.mode);
    let content = target.tree.read(INITRD.as_bytes(), MAX_INITRD);
    target.tree.rollback();
    database.restore(before);
    match ran {
        Ok(Ran::Done) => Ok(made.and_then(|mode| Ok((mode, content?))).map_err(|error| error.to_string())),
        Ok(Ran::Waits(reason)) => Ok(Err(reason)),
        Err(MergeError::Script { fault, .. }) => Ok(Err(fault.to_string())),
        Err(error) => Err(error),
    }
}

fn build(target: &mut Target, database: &mut Database, call: &Call<'_>) -> Result<Ran, MergeError> {
    let mut settings = call.settings(database);
    let epoch = target.epoch().secs.to_string();
    settings.environment.insert(b"SOURCE_DATE_EPOCH".to_vec(), epoch.into_bytes());
    // What it finds goes through `sort`, or becomes members of archives, whose names are sorted.
    settings.any_order = true;
    // The kernel command line of a machine would set it.
    settings.absent = vec![b"/sys/module/firmware_class/parameters/path".to_vec()];
    settings.limits =
        Limits { steps: 20_000_000, work_bytes: 16 << 30, size_bytes: 1 << 30, file_bytes: 1 << 30, ..settings.limits };
    let target = RefCell::new(target);
    let files_fault = RefCell::new(None);
    let mut files = TargetFiles::new(&target, &files_fault);
    let mut system = System::new(&target, database, call);
    system.initrd = Some(commands::Building::default());
    let ran = interpreted(&mut system, &mut files, call, &settings);
    match system.fault.take().or(files_fault.take()) {
        Some(error) => Err(error),
        None => ran,
    }
}

/// The line that an error is about, where it is one of the script itself.
fn line(source: &[u8], name: &str, error: &vmbake_shell::ShellError) -> String {
    let number = usize::try_from(error.line).unwrap_or_default();
    let mut lines = source.split(|byte| *byte == b'\n');
    let found = lines.nth(number.saturating_sub(1)).filter(|_| number > 0 && error.script == name);
    vmbake_common::escape::lines(String::from_utf8_lossy(found.unwrap_or_default()).trim())
}

/// Runs a script in every way in which dpkg runs one, over a tree with nothing in it. For fuzzers, which know no packages.
pub(super) fn run_without_packages(source: &[u8]) {
    use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};

    for (script, args) in [
        ("preinst", &["install"][..]),
        ("prerm", &["upgrade", "2.0-1"]),
        ("postinst", &["configure", ""]),
        ("postinst", &["configure", "1.0-1"]),
        ("postinst", &["triggered", "/usr/share/x y"]),
    ] {
        let tree = Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default());
        let mut target = Target::new(tree, Timestamp::default());
        let Ok(mut database) = Database::read(&target, "amd64") else { return };
        let call = Call { package: "x", stem: "x", arch: "amd64", script, source, args, control: None };
        let _ = run(&mut target, &mut database, &call);
    }
}
