//! Console, growth of the root partition, and hygiene.

use super::CheckResult;
use super::subject::Subject;
use crate::lint::{Finding, IMAGE_NAME, LintStatus, lint as findings, lint_root};

/// EC2 shows the output of the first serial port.
pub(super) fn console(subject: &Subject<'_>) -> CheckResult {
    let mut consoles = subject.arguments()?.filter_map(|word| word.strip_prefix("console="));
    let serial = consoles.find(|name| name.split(',').next() == Some("ttyS0"));
    match serial {
        Some(name) => Ok(format!("console={name}")),
        None => Err("no console=ttyS0 on the kernel command line: the EC2 console stays empty".to_owned()),
    }
}

/// The root partition grows to the volume size: by cloud-init's growpart, growroot in the initramfs, or systemd-repart.
pub(super) fn grow_root(subject: &Subject<'_>) -> CheckResult {
    let config = subject.text("/etc/cloud/cloud.cfg").unwrap_or_default();
    let is_asked_for = config.lines().any(|line| line.trim().strip_prefix('-').map(str::trim) == Some("growpart"));
    if is_asked_for && subject.has("/usr/bin/growpart") {
        return Ok("cloud-init's growpart".to_owned());
    }
    if subject.initramfs.as_ref().is_ok_and(|initramfs| initramfs.grows_root) {
        return Ok("growroot of the initramfs".to_owned());
    }
    let has_rules = ["/etc/repart.d", "/usr/lib/repart.d"].iter().any(|dir| !subject.texts(dir, &[".conf"]).is_empty());
    if has_rules && subject.has("/usr/bin/systemd-repart") {
        return Ok("systemd-repart".to_owned());
    }
    Err("the root partition does not grow with the volume".to_owned())
}

/// The image passes `vmbake lint`.
pub(super) fn lint(subject: &Subject<'_>) -> CheckResult {
    let bad: Vec<_> = lint_root(subject.image.path(), &subject.tree)
        .into_iter()
        .filter(|finding| finding.status == LintStatus::Error)
        .collect();
    let Some(first) = bad.first() else { return Ok("no finding".to_owned()) };
    let more = if bad.len() > 1 { format!(", and {} more of `vmbake lint`", bad.len() - 1) } else { String::new() };
    Err(format!("{}: {}: {}{more}", first.rule, first.path, first.evidence))
}

/// The image has a name, which `vmbake publish` uses.
pub(super) fn image_name(subject: &Subject<'_>) -> CheckResult {
    let mut found = findings(&subject.tree).into_iter().filter(|finding| finding.rule == IMAGE_NAME);
    match found.find(|finding| finding.status != LintStatus::Ok) {
        Some(Finding { path, evidence, .. }) => {
            Err(format!("{path}: {evidence}: `vmbake publish aws` needs --family and --name"))
        }
        None => Ok("IMAGE_ID and IMAGE_VERSION are set".to_owned()),
    }
}
