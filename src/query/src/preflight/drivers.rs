//! Kernel and drivers that a machine needs to mount its root file system, and for its network.

use std::collections::BTreeSet;

use vmbake_disk::disk::Arch;

use super::CheckResult;
use super::initramfs::module;
use super::subject::{Subject, aws_name};

/// Kernel, system and partition table have the same architecture.
pub(super) fn architecture(subject: &Subject<'_>) -> CheckResult {
    let kernel = subject.kernel_arch()?;
    let (system, program) = subject.system_arch()?;
    let name = aws_name(kernel);
    if system != kernel {
        return Err(format!("the kernel is for {name}, {program} for {}", aws_name(system)));
    }
    match Arch::of(subject.root.kind) {
        Some(table) if table != kernel => {
            Err(format!("the kernel is for {name}, the type of the root partition for {}", aws_name(table)))
        }
        _ => Ok(format!("kernel and system are for {name}")),
    }
}

pub(super) fn nvme(subject: &Subject<'_>) -> CheckResult {
    early(subject, "nvme")
}

pub(super) fn ext4(subject: &Subject<'_>) -> CheckResult {
    early(subject, "ext4")
}

/// Old generations of instances have Xen, all of them x86-64.
pub(super) fn xen(subject: &Subject<'_>) -> CheckResult {
    match subject.kernel_arch() {
        Ok(Arch::Arm64) => Ok("not required on arm64".to_owned()),
        _ => early(subject, "xen_blkfront").map_err(|why| format!("{why}; Xen instances do not boot")),
    }
}

pub(super) fn ena(subject: &Subject<'_>) -> CheckResult {
    let dir = subject.modules_dir()?;
    if builtin(subject, &dir)?.contains("ena") {
        return Ok("built in".to_owned());
    }
    let found = subject.tree.resolve(dir.as_bytes()).map_err(|error| error.to_string())?;
    let mut files = subject.tree.walk_from(found);
    let is_ena = |path: &[u8]| module(path).as_deref() == Some("ena");
    match files.find(|(path, ..)| is_ena(path)) {
        Some(_) => Ok(format!("in {dir}")),
        None => Err(format!("neither built in nor in {dir}")),
    }
}

/// Drivers that are required to mount the root file system.
fn early(subject: &Subject<'_>, name: &str) -> CheckResult {
    if builtin(subject, &subject.modules_dir()?)?.contains(name) {
        return Ok("built in".to_owned());
    }
    match &subject.initramfs {
        Ok(initramfs) if initramfs.modules.contains(name) => Ok("in the initramfs".to_owned()),
        Ok(_) => Err("neither built in nor in the initramfs".to_owned()),
        Err(error) => Err(format!("not built in, and {error}")),
    }
}

fn builtin(subject: &Subject<'_>, dir: &str) -> Result<BTreeSet<String>, String> {
    let path = format!("{dir}/modules.builtin");
    let list = subject.text(&path).ok_or_else(|| format!("{path}: cannot be read"))?;
    Ok(list.lines().filter_map(|line| module(line.as_bytes())).collect())
}
