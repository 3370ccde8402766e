//! Files in directories of settings whose names keep programs from reading them.

use super::super::findings::Findings;
use super::super::unit_install::unit_form;
use super::super::{Layer, UNIT_SCOPES};
use super::pointer;
use super::syntax::has_name_of_apt;

/// A directory, or the end of one after `/etc`, `/usr/lib` and `/usr/local/lib`, with the ends of the names that count there.
type Row = (&'static [&'static str], &'static [&'static str], &'static str);

const ROWS: [Row; 25] = [
    (&["sysctl.d"], &[".conf"], "systemd-sysctl"),
    (&["modules-load.d"], &[".conf"], "systemd-modules-load"),
    (&["tmpfiles.d"], &[".conf"], "systemd-tmpfiles"),
    (&["sysusers.d"], &[".conf"], "systemd-sysusers"),
    (&["modprobe.d"], &[".conf"], "modprobe"),
    (&["udev/rules.d"], &[".rules"], "udev"),
    (&["polkit-1/rules.d"], &[".rules"], "polkit"),
    (&["binfmt.d"], &[".conf"], "systemd-binfmt"),
    (&["environment.d"], &[".conf"], "the user manager of systemd"),
    (&["systemd/network"], &[".network", ".netdev", ".link"], "systemd-networkd"),
    (&["systemd/system-preset", "systemd/user-preset"], &[".preset"], "systemd"),
    (
        &[
            "systemd/coredump.conf.d",
            "systemd/journald.conf.d",
            "systemd/logind.conf.d",
            "systemd/networkd.conf.d",
            "systemd/resolved.conf.d",
            "systemd/sleep.conf.d",
            "systemd/system.conf.d",
            "systemd/timesyncd.conf.d",
            "systemd/user.conf.d",
        ],
        &[".conf"],
        "systemd",
    ),
    (&["depmod.d"], &[".conf"], "depmod"),
    (&["rsyslog.d"], &[".conf"], "rsyslogd"),
    (&["chrony/conf.d"], &[".conf"], "chronyd"),
    (&["chrony/sources.d"], &[".sources"], "chronyd"),
    (&["dbus-1/system.d", "dbus-1/session.d"], &[".conf"], "dbus-daemon"),
    (&["nginx/conf.d"], &[".conf"], "nginx"),
    (&["netplan"], &[".yaml"], "netplan"),
    (&["profile.d"], &[".sh", ".csh"], "the shell"),
    (&["ssh/sshd_config.d", "ssh/ssh_config.d"], &[".conf"], "ssh"),
    (&["security/limits.d"], &[".conf"], "pam_limits"),
    (&["ld.so.conf.d"], &[".conf"], "ldconfig"),
    (&["apt/sources.list.d"], &[".list", ".sources"], "apt"),
    (&["cloud/cloud.cfg.d"], &[".cfg"], "cloud-init"),
];

/// Where programs look for directories of settings.
pub(super) const ROOTS: [&str; 3] = ["/etc/", "/usr/lib/", "/usr/local/lib/"];

/// Ends of names that are meant not to be read.
const UNREAD: [&str; 9] = ["~", ".bak", ".disabled", ".dpkg-dist", ".dpkg-old", ".example", ".md", ".old", ".orig"];

pub(super) fn check(found: &mut Findings, layer: &Layer) {
    for path in layer.files.keys() {
        let Some((dir, name)) = path.rsplit_once('/') else { continue };
        // Their names are checked as those of units.
        if layer.schema.units.files.contains_key(name) {
            continue;
        }
        if is_left_out(name) {
            continue;
        }
        found.key(pointer(layer, path), fault(dir, name).map(|reason| format!("{path:?} is not read: {reason}")));
    }
}

/// Whether a name shows that no program is meant to read the file.
pub(super) fn is_left_out(name: &str) -> bool {
    name.starts_with('.') || name.starts_with("README") || UNREAD.iter().any(|end| name.ends_with(end))
}

/// Directories of apt, which reads no name with other characters there.
const OF_APT: [&str; 3] = ["/etc/apt/apt.conf.d", "/etc/apt/preferences.d", "/etc/apt/sources.list.d"];

fn fault(dir: &str, name: &str) -> Option<String> {
    if OF_APT.contains(&dir) && !has_name_of_apt(name) {
        return Some("apt reads only names of letters, digits, `_`, `-`, `.` and `:`".to_owned());
    }
    let inner = ROOTS.iter().find_map(|root| dir.strip_prefix(root));
    let row = ROWS.iter().find(|(dirs, ..)| inner.is_some_and(|inner| dirs.contains(&inner)));
    if let Some((_, ends, program)) = row {
        let is_read = ends.iter().any(|end| name.ends_with(end));
        return (!is_read).then(|| format!("{program} reads only names that end with {}", ends.join(" or ")));
    }
    // Names without an extension count as well (apt.conf(5), apt_preferences(5)).
    for (settings, end) in [("/etc/apt/apt.conf.d", ".conf"), ("/etc/apt/preferences.d", ".pref")] {
        let is_read = !name.contains('.') || name.ends_with(end);
        if dir == settings && !is_read {
            return Some(format!("apt reads only names that end with {end} or have no extension"));
        }
    }
    if dir == "/etc/sudoers.d" {
        return name.contains('.').then(|| "sudo skips names with a dot".to_owned());
    }
    let is_units = |dir: &str| UNIT_SCOPES.iter().any(|scope| scope.contains(&dir));
    if is_units(dir) {
        return unit_form(name).is_none().then(|| "it is not the name of a unit, such as NAME.service".to_owned());
    }
    let (units, drop_ins) = dir.rsplit_once('/')?;
    let is_drop_in = is_units(units) && drop_ins.ends_with(".d");
    (is_drop_in && !name.ends_with(".conf")).then(|| "systemd reads only drop-ins that end with .conf".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{fault, is_left_out};

    #[test]
    fn names_that_are_meant_to_be_skipped() {
        for (name, expected) in [
            (".placeholder", true),
            ("README", true),
            ("x.bak", true),
            ("x.dpkg-old", true),
            ("x~", true),
            ("x.conf", false),
            ("backup", false),
        ] {
            assert_eq!(is_left_out(name), expected, "{name}");
        }
    }

    #[test]
    fn names_that_programs_skip() {
        for (path, is_read) in [
            ("/etc/sysctl.d/60-x.conf", true),
            ("/etc/sysctl.d/60-x", false),
            ("/usr/lib/tmpfiles.d/x.txt", false),
            ("/etc/netplan/10-x.yml", false),
            ("/etc/netplan/10-x.yaml", true),
            ("/etc/apt/sources.list.d/x.sources", true),
            ("/etc/apt/sources.list.d/x", false),
            ("/etc/apt/apt.conf.d/90x", true),
            ("/etc/apt/apt.conf.d/90x.conf", true),
            ("/etc/apt/apt.conf.d/90x.txt", false),
            ("/etc/apt/apt.conf.d/90 x", false),
            ("/etc/apt/apt.conf.d/9:x_y-z.a.conf", true),
            ("/etc/apt/preferences.d/a+b", false),
            ("/etc/apt/sources.list.d/a+b.sources", false),
            ("/etc/apt/preferences.d/x.pref", true),
            ("/etc/apt/preferences.d/x.conf", false),
            ("/etc/systemd/network/10-x.network", true),
            ("/etc/systemd/network/10-x.conf", false),
            ("/etc/systemd/network/10-x.network.d/y.conf", true),
            ("/etc/systemd/journald.conf.d/x", false),
            ("/etc/polkit-1/rules.d/x.js", false),
            ("/etc/chrony/sources.d/x.conf", false),
            ("/etc/sudoers.d/ops.conf", false),
            ("/etc/sudoers.d/ops", true),
            ("/etc/systemd/system/x", false),
            ("/etc/systemd/system/x@.service", true),
            ("/etc/systemd/system/x.service.d/override", false),
            ("/etc/systemd/system/x.service.d/override.conf", true),
            ("/etc/systemd/system/x.target.wants/y", true),
            ("/etc/systemd/user/x.timer", true),
            ("/etc/profile.d/x.csh", true),
            ("/etc/profile.d/x.bash", false),
            ("/opt/sysctl.d/x", true),
        ] {
            let (dir, name) = path.rsplit_once('/').unwrap();
            assert_eq!(fault(dir, name).is_none(), is_read, "{path}");
        }
    }
}
