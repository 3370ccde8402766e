//! Checks offline whether a disk image would work in a cloud: an image in, results and registration parameters out.
//!
//! Nothing of the image runs. A check fails if its subject cannot be read.

mod subject;
mod drivers;
mod initramfs;
mod disk;
mod mounts;
mod cloud_init;
mod network;
mod yaml;
mod system;

use std::fmt;
use std::path::Path;

use serde::Serialize;

use subject::Subject;
use vmbake_common::escape;
use vmbake_image::disk::{DiskImage, InspectError};

/// Results for an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Preflight {
    /// Architecture of the kernel in AWS terms: `x86_64` or `arm64`.
    pub architecture: Option<&'static str>,
    /// Boot mode in AWS terms: `legacy-bios`, `uefi` or `uefi-preferred`.
    pub boot_mode: Option<&'static str>,
    pub checks: Vec<PreflightCheck>,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PreflightCheck {
    pub check: &'static str,
    pub status: PreflightStatus,
    pub evidence: String,
}

/// Status of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PreflightStatus {
    Ok,
    /// Failed, with a problem on some machines or for some uses.
    Warning,
    /// Failed; the image is unusable in that cloud.
    Error,
}

/// Evidence for or against.
type CheckResult = Result<String, String>;

/// A check: name, status on failure, and function.
type Row = (&'static str, PreflightStatus, fn(&Subject<'_>) -> CheckResult);

const AWS: &[Row] = &[
    ("partition-table", PreflightStatus::Error, disk::partition_table),
    ("boot-mode", PreflightStatus::Error, disk::boot),
    ("architecture", PreflightStatus::Error, drivers::architecture),
    ("nvme", PreflightStatus::Error, drivers::nvme),
    ("ext4", PreflightStatus::Error, drivers::ext4),
    ("ena", PreflightStatus::Error, drivers::ena),
    ("xen-blkfront", PreflightStatus::Warning, drivers::xen),
    ("fstab", PreflightStatus::Error, mounts::fstab),
    ("root-argument", PreflightStatus::Error, mounts::root_argument),
    ("cloud-init", PreflightStatus::Error, cloud_init::enabled),
    ("datasource", PreflightStatus::Error, cloud_init::datasource),
    ("network", PreflightStatus::Error, network::check),
    ("console", PreflightStatus::Warning, system::console),
    ("grow-root", PreflightStatus::Warning, system::grow_root),
    ("lint", PreflightStatus::Error, system::lint),
    ("image-name", PreflightStatus::Warning, system::image_name),
];

/// Checks the image at `path` for AWS; `partition` is the number of its root partition, if it is ambiguous.
pub fn aws(path: &Path, partition: Option<u32>) -> Result<Preflight, InspectError> {
    aws_of(&DiskImage::open(path)?, partition)
}

/// The same for an open image.
pub fn aws_of(image: &DiskImage, partition: Option<u32>) -> Result<Preflight, InspectError> {
    let subject = Subject::read(image, partition)?;
    let check = |(check, severity, look): &Row| match look(&subject) {
        Ok(evidence) => PreflightCheck { check, status: PreflightStatus::Ok, evidence },
        Err(evidence) => PreflightCheck { check, status: *severity, evidence },
    };
    Ok(Preflight {
        architecture: subject.kernel_arch().ok().map(subject::aws_name),
        boot_mode: disk::boot_mode(&subject).ok(),
        checks: AWS.iter().map(check).collect(),
    })
}

impl Preflight {
    /// Whether there are no errors.
    pub fn passes(&self) -> bool {
        self.checks.iter().all(|check| check.status != PreflightStatus::Error)
    }
}

impl fmt::Display for Preflight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "architecture     {}", self.architecture.unwrap_or("unknown"))?;
        writeln!(f, "boot mode        {}", self.boot_mode.unwrap_or("unknown"))?;
        self.checks.iter().try_for_each(|check| writeln!(f, "{check}"))
    }
}

impl fmt::Display for PreflightCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = match self.status {
            PreflightStatus::Ok => "ok",
            PreflightStatus::Warning => "warn",
            PreflightStatus::Error => "FAIL",
        };
        write!(f, "{status:<4}  {:<15}  {}", self.check, escape::line(&self.evidence))
    }
}
