//! Image hygiene: a file tree in, a [`Finding`] per rule out. A golden image must not contain anything specific to a machine, person or
//! build. Evidence names files and accounts, but never contains secrets.

mod check;
mod modes;
mod system;

use std::collections::BTreeMap;
use std::path::Path;

use vmbake_disk::tree::Tree;

use super::explain::own_record;
use check::{Check, Violation};
use vmbake_common::escape;
use vmbake_compose::merge::{Login, Merged};
use vmbake_image::disk::InspectError;
use vmbake_image::inspect::open_tree;

/// Result of a rule, or one violation of it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// Name of the rule.
    pub rule: &'static str,
    /// Path of the violation, or the paths that the rule checks if it holds.
    pub path: String,
    pub evidence: String,
    pub status: LintStatus,
}

/// Status of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LintStatus {
    Ok,
    /// A harmless violation, which images of other tools have.
    Warning,
    Error,
}

impl LintStatus {
    /// Label in text output and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warn",
            Self::Error => "FAIL",
        }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let status = self.status.name();
        write!(f, "{status:<4}  {:<17}  {}: {}", self.rule, escape::line(&self.path), escape::line(&self.evidence))
    }
}

struct Rule {
    name: &'static str,
    /// Evidence if the rule holds.
    good: &'static str,
    check: Check,
}

/// A rule that only vmbake's images fulfill, since every bake sets these names.
pub const IMAGE_NAME: &str = "image-name";

/// The rule to which `setuid` of a layer adds exceptions.
const PRIVILEGED: &str = "privileged-files";

/// Rules for images without a bake's inputs: a bake compares privileges with those in the packages, and layers list owners.
const SHIPPED_MODES: &str = "shipped-modes";
const SYSTEM_FILES: &str = "system-files";

/// A rule to which `users` of a layer adds exceptions.
const PASSWORDS: &str = "passwords";

/// Rules to which `keep` of a layer adds exceptions.
const LOGS: &str = "logs";
const AUTHORIZED_KEYS: &str = "authorized-keys";

/// All rules in output order. `*` matches any part of one name.
const RULES: &[Rule] = &[
    Rule { name: "machine-id", good: "empty", check: Check::Custom("/etc/machine-id", check::machine_id) },
    Rule {
        name: "dbus-machine-id",
        good: "missing or a link to /etc/machine-id",
        check: Check::Custom("/var/lib/dbus/machine-id", check::dbus_machine_id),
    },
    Rule { name: "ssh-host-keys", good: "absent", check: Check::Absent(&["/etc/ssh/ssh_host_*"]) },
    Rule {
        name: "random-seed",
        good: "absent",
        check: Check::Absent(&[
            "/var/lib/systemd/random-seed",
            "/var/lib/urandom/random-seed",
            "/loader/random-seed",
            "/efi/loader/random-seed",
            "/boot/loader/random-seed",
            "/boot/efi/loader/random-seed",
        ]),
    },
    Rule { name: "credential-secret", good: "absent", check: Check::Absent(&["/var/lib/systemd/credential.secret"]) },
    Rule {
        name: LOGS,
        good: "no file with content",
        check: Check::NoContent(&["/var/log/*", "/var/lib/lastlog/*", "/var/lib/wtmpdb/*"]),
    },
    Rule { name: "journal", good: "absent", check: Check::Absent(&["/var/log/journal/*", "/run/log/journal/*"]) },
    Rule { name: "apt-lists", good: "empty", check: Check::Custom("/var/lib/apt/lists", check::apt_lists) },
    Rule {
        name: "apt-cache",
        good: "absent",
        check: Check::Absent(&[
            "/var/cache/apt/*.bin",
            "/var/cache/apt/archives/*.deb",
            "/var/cache/apt/archives/partial/*",
        ]),
    },
    Rule { name: "tmp", good: "empty", check: Check::Absent(&["/tmp/*", "/var/tmp/*"]) },
    Rule { name: "shell-history", good: "absent", check: Check::Absent(&["/root/.*_history", "/home/*/.*_history"]) },
    Rule {
        name: AUTHORIZED_KEYS,
        good: "absent",
        check: Check::Absent(&["/root/.ssh/authorized_keys*", "/home/*/.ssh/authorized_keys*"]),
    },
    Rule {
        name: "cloud-init-state",
        good: "no file",
        check: Check::NoFiles(&["/var/lib/cloud/instance*", "/var/lib/cloud/data", "/var/lib/cloud/sem"]),
    },
    Rule {
        name: "dhcp-leases",
        good: "absent",
        check: Check::Absent(&[
            "/var/lib/dhcp/*",
            // Leases, and identifiers of the machine at servers: `duid`, `secret`.
            "/var/lib/dhcpcd/*",
            "/var/lib/NetworkManager/*.lease",
            "/var/lib/NetworkManager/secret_key",
            "/var/lib/NetworkManager/timestamps",
            "/run/dhclient*.leases",
            "/run/systemd/netif/leases/*",
        ]),
    },
    Rule {
        name: IMAGE_NAME,
        good: "IMAGE_ID and IMAGE_VERSION are set",
        check: Check::Custom("/etc/os-release", check::image_name),
    },
    Rule { name: PASSWORDS, good: "no account has one", check: Check::Custom("/etc/shadow", check::passwords) },
    Rule {
        name: "password-files",
        good: "only root writes, only group shadow reads",
        check: Check::Custom("/etc/shadow /etc/gshadow", modes::shadow),
    },
    Rule { name: "sudoers", good: "only root writes", check: Check::Custom("/etc/sudoers.d", modes::sudoers) },
    Rule {
        name: "world-writable",
        good: "no files, and no directories without the sticky bit",
        check: Check::Custom("/", modes::world_writable),
    },
    Rule {
        name: PRIVILEGED,
        good: "only files of packages have set-uid or set-gid bits or capabilities",
        check: Check::Custom("/", modes::privileged),
    },
    Rule {
        name: SHIPPED_MODES,
        good: "only programs with set-uid or set-gid bits or capabilities in Debian have them",
        check: Check::Custom("/usr", system::privileges),
    },
    Rule { name: SYSTEM_FILES, good: "only root writes", check: Check::Custom("/usr /boot /etc", system::writable) },
    Rule { name: "private-keys", good: "none is world-readable", check: Check::Custom("/etc", modes::keys) },
];

/// Checks a root file system: one positive finding for each rule that holds, otherwise one per violation.
pub fn lint(tree: &Tree) -> Vec<Finding> {
    lint_with(tree, &BTreeMap::new())
}

/// Checks the root file system of an image, or of `partition`. Logins that a layer allows, by the record of
/// origins in the image or next to it, are not violations; their findings name the layer.
pub fn lint_image(image: &Path, partition: Option<u32>) -> Result<Vec<Finding>, InspectError> {
    Ok(lint_root(image, &open_tree(image, partition)?))
}

pub(super) fn lint_root(image: &Path, tree: &Tree) -> Vec<Finding> {
    let record = own_record(image, tree).ok().flatten();
    lint_with(tree, &record.map(|record| record.logins).unwrap_or_default())
}

/// The same, with allowed logins.
pub fn lint_with(tree: &Tree, logins: &BTreeMap<String, Login>) -> Vec<Finding> {
    RULES.iter().flat_map(|rule| findings(tree, rule)).map(|finding| accepted(finding, logins)).collect()
}

/// Turns a finding about a user that a layer allows to log in into a positive one.
fn accepted(finding: Finding, logins: &BTreeMap<String, Login>) -> Finding {
    let asked = logins.iter().find(|(user, login)| match finding.rule {
        PASSWORDS => login.password && finding.path == "/etc/shadow" && finding.evidence == check::has_hash(user),
        AUTHORIZED_KEYS => login.keys.as_ref() == Some(&finding.path),
        _ => false,
    });
    match asked.filter(|_| finding.status != LintStatus::Ok) {
        Some((_, Login { layer, .. })) => {
            Finding { evidence: format!("{}, by layer {layer}", finding.evidence), status: LintStatus::Ok, ..finding }
        }
        None => finding,
    }
}

/// The first violation that stops a bake, including warnings. Files that layers list in `setuid` can have privileges, logs and authorized keys
/// can exist if layers list them in `keep`, and users can log in if layers allow it.
pub fn unclean(merged: &Merged) -> Option<Finding> {
    let is_meant = |finding: &Finding| match finding.rule {
        PRIVILEGED => merged.setuid.contains(&finding.path),
        SHIPPED_MODES | SYSTEM_FILES => true,
        LOGS | AUTHORIZED_KEYS => merged.keep.contains(&finding.path),
        _ => false,
    };
    let found = lint_with(&merged.tree, &merged.logins);
    found.into_iter().find(|finding| finding.status != LintStatus::Ok && !is_meant(finding))
}

fn findings(tree: &Tree, rule: &Rule) -> Vec<Finding> {
    let violations = rule.check.run(tree);
    if violations.is_empty() {
        let (path, evidence) = (rule.check.subject(), rule.good.to_owned());
        return vec![Finding { rule: rule.name, path, evidence, status: LintStatus::Ok }];
    }
    let status = if rule.name == IMAGE_NAME { LintStatus::Warning } else { LintStatus::Error };
    let bad = |Violation { path, evidence }| Finding { rule: rule.name, path, evidence, status };
    violations.into_iter().map(bad).collect()
}

#[cfg(test)]
mod tests;
