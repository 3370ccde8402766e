//! Image hygiene: a file tree enters, a [`Finding`] for each rule leaves. Nothing that belongs to one machine, person or
//! build may be in a golden image. Evidence names files and accounts but never shows a secret.

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

/// How one rule stands, or one violation of it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// Short name of the rule.
    pub rule: &'static str,
    /// Path in the image; what the rule looks at when it holds.
    pub path: String,
    /// What was found there.
    pub evidence: String,
    /// Whether the rule holds.
    pub status: LintStatus,
}

/// Whether a rule holds, and how bad it is if not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LintStatus {
    /// It holds.
    Ok,
    /// It is not met by images that other tools make, and does no harm.
    Warning,
    /// It does not hold.
    Error,
}

impl LintStatus {
    /// As text output and pages show it.
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

/// One rule of the table.
struct Rule {
    name: &'static str,
    /// What to say when the rule holds.
    good: &'static str,
    check: Check,
}

/// The rule that only images of vmbake meet: every bake names its images.
pub const IMAGE_NAME: &str = "image-name";

/// The rule that `setuid` of a layer makes exceptions from.
const PRIVILEGED: &str = "privileged-files";

/// Rules for images of which only the tree is known: a bake compares privileges with those in the packages, and layers list owners.
const SHIPPED_MODES: &str = "shipped-modes";
const SYSTEM_FILES: &str = "system-files";

/// A rule that `users` of a layer makes exceptions from.
const PASSWORDS: &str = "passwords";

/// The rules that `keep` of a layer makes exceptions from.
const LOGS: &str = "logs";
const AUTHORIZED_KEYS: &str = "authorized-keys";

/// All rules, in the order in which they are reported. `*` stands for any part of one name.
const RULES: &[Rule] = &[
    Rule { name: "machine-id", good: "empty", check: Check::Custom("/etc/machine-id", check::machine_id) },
    Rule {
        name: "dbus-machine-id",
        good: "absent or a link to /etc/machine-id",
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
            // Leases, and what a server knows the machine by: `duid`, `secret`.
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
        good: "no file, no directory without the sticky bit",
        check: Check::Custom("/", modes::world_writable),
    },
    Rule {
        name: PRIVILEGED,
        good: "only files of packages have set-uid or set-gid bits or capabilities",
        check: Check::Custom("/", modes::privileged),
    },
    Rule {
        name: SHIPPED_MODES,
        good: "only programs that Debian ships so have set-uid or set-gid bits or capabilities",
        check: Check::Custom("/usr", system::privileges),
    },
    Rule { name: SYSTEM_FILES, good: "only root writes", check: Check::Custom("/usr /boot /etc", system::writable) },
    Rule { name: "private-keys", good: "none is world-readable", check: Check::Custom("/etc", modes::keys) },
];

/// Judges a root file system by every rule: one good finding for a rule that holds, else one for each violation.
pub fn lint(tree: &Tree) -> Vec<Finding> {
    lint_with(tree, &BTreeMap::new())
}

/// Judges the root file system of an image, or of that `partition`. Users that may log in since a layer says so, by the record of
/// origins in the image or next to it, are no violations; their findings name the layer.
pub fn lint_image(image: &Path, partition: Option<u32>) -> Result<Vec<Finding>, InspectError> {
    Ok(lint_root(image, &open_tree(image, partition)?))
}

/// The same for the root file system of the image at `image`.
pub(super) fn lint_root(image: &Path, tree: &Tree) -> Vec<Finding> {
    let record = own_record(image, tree).ok().flatten();
    lint_with(tree, &record.map(|record| record.logins).unwrap_or_default())
}

/// The same, with users that may log in.
pub fn lint_with(tree: &Tree, logins: &BTreeMap<String, Login>) -> Vec<Finding> {
    RULES.iter().flat_map(|rule| findings(tree, rule)).map(|finding| accepted(finding, logins)).collect()
}

/// The same finding, as a good one if it is about a user that a layer lets log in.
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

/// The first violation that stops a bake, warnings included. Files that layers list in `setuid` may have privileges, logs and authorized keys
/// may be there if layers list them in `keep`, and users may log in as layers say.
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
