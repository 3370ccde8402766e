//! Mounts by stable names: device names differ between machine types, UUIDs and labels do not.

use super::CheckResult;
use super::subject::Subject;
use vmbake_image::grub::is_meant;

/// Prefixes of stable names.
const TAGS: [&str; 4] = ["UUID", "PARTUUID", "LABEL", "PARTLABEL"];

/// All file systems of fstab exist, and none is specified by device name.
pub(super) fn fstab(subject: &Subject<'_>) -> CheckResult {
    let Some(text) = subject.text("/etc/fstab") else { return Ok("no /etc/fstab".to_owned()) };
    let mut count = 0;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut fields = line.split_whitespace();
        let (Some(spec), Some(at)) = (fields.next(), fields.next()) else { continue };
        let options = fields.nth(1).unwrap_or_default();
        if options.split(',').any(|option| option == "noauto") {
            continue;
        }
        let may_be_missing = options.split(',').any(|option| option == "nofail");
        count += 1;
        match named(subject, spec) {
            Named::There | Named::NoDisk => {}
            Named::Missing if may_be_missing => {}
            Named::Missing => return Err(format!("{at} is {spec}, which is not in the image")),
            Named::Device => return Err(format!("{at} is {spec}, a device name")),
        }
    }
    Ok(format!("{count} mounts, none by device name"))
}

/// The kernel finds its root file system.
pub(super) fn root_argument(subject: &Subject<'_>) -> CheckResult {
    // The kernel uses the last one.
    let root = subject.arguments()?.filter_map(|word| word.strip_prefix("root=")).last();
    let Some(spec) = root else { return Err("no root= on the kernel command line".to_owned()) };
    match named(subject, spec) {
        Named::There => Ok(format!("root={spec}")),
        Named::Missing => Err(format!("root={spec}, which is not in the image")),
        Named::Device | Named::NoDisk => Err(format!("root={spec} is not by UUID, PARTUUID or LABEL")),
    }
}

/// Meaning of a file system specification.
enum Named {
    /// A UUID or label that exists.
    There,
    /// A UUID or label that does not exist.
    Missing,
    Device,
    /// Something else, such as `tmpfs`.
    NoDisk,
}

fn named(subject: &Subject<'_>, spec: &str) -> Named {
    let is_tagged = TAGS.iter().any(|tag| {
        let rest = spec.strip_prefix(tag);
        rest.is_some_and(|rest| rest.starts_with('='))
            || spec.starts_with(&format!("/dev/disk/by-{}/", tag.to_lowercase()))
    });
    if is_tagged {
        let mut parts = subject.image.layout().parts().iter();
        return if parts.any(|part| is_meant(subject.image, part, spec)) { Named::There } else { Named::Missing };
    }
    if spec.starts_with("/dev/") { Named::Device } else { Named::NoDisk }
}
