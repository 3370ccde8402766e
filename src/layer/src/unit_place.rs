//! Classifies paths in unit directories: units, drop-ins, links of dependencies.

/// Directories of units: those of the system, and those of all users' own instances of systemd.
pub const UNIT_SCOPES: [&[&str]; 2] = [
    &[
        "/etc/systemd/system",
        "/etc/systemd/system.control",
        "/etc/systemd/system.attached",
        "/usr/local/lib/systemd/system",
        "/usr/lib/systemd/system",
    ],
    &[
        "/etc/systemd/user",
        "/usr/local/lib/systemd/user",
        "/usr/local/share/systemd/user",
        "/usr/share/systemd/user",
        "/usr/lib/systemd/user",
    ],
];

/// Types of units for a path, which is their name.
const OF_PATHS: [&str; 3] = ["mount", "automount", "swap"];
/// Types of units that only systemd creates.
const OF_SYSTEMD: [&str; 2] = ["device", "scope"];
/// Beginning of the names of units that are part of systemd; its generators create some of them.
const SYSTEMD: &str = "systemd-";

/// Ends of directories whose entries a unit wants.
const WANTS: [&str; 3] = [".wants", ".requires", ".upholds"];

/// A path in a directory of units.
pub struct UnitPlace<'a> {
    /// The directory.
    pub dir: &'static str,
    /// The unit that it is about.
    pub unit: &'a str,
    pub role: UnitRole,
}

/// Type of the path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum UnitRole {
    /// A unit, or another name of one.
    Unit,
    /// A setting of the unit.
    DropIn,
    /// A link by which another unit wants it.
    Wanted,
}

/// Classifies a path in a unit directory; `None` for the directory itself.
pub fn unit_place(path: &str) -> Option<UnitPlace<'_>> {
    let (dir, rest) = UNIT_SCOPES.iter().copied().flatten().find_map(|dir| {
        let rest = path.strip_prefix(dir)?.strip_prefix('/')?;
        Some((*dir, rest))
    })?;
    let (first, inner) = rest.split_once('/').map_or((rest, None), |(first, inner)| (first, Some(inner)));
    let (unit, role) = match (first.strip_suffix(".d"), inner) {
        (Some(unit), _) => (unit, UnitRole::DropIn),
        (None, None) => (first, UnitRole::Unit),
        (None, Some(inner)) if is_wants(first) => (inner, UnitRole::Wanted),
        (None, Some(_)) => return None,
    };
    Some(UnitPlace { dir, unit, role })
}

impl UnitPlace<'_> {
    /// Whether it sets something for units of other names too: those of a type (`service.d`), or those whose names begin alike
    /// (`system-.slice.d`).
    pub fn is_of_many(&self) -> bool {
        let stem = self.unit.rsplit_once('.').map(|(stem, _)| stem);
        self.role == UnitRole::DropIn && stem.is_none_or(|stem| stem.ends_with('-'))
    }

    /// Whether one of the granted paths names it: the path, or the directory of the settings of that unit.
    pub fn is_named<'g>(&self, path: &str, granted: impl IntoIterator<Item = &'g String>) -> bool {
        let drop_ins = format!("{}/{}.d", self.dir, self.unit);
        let is_drop_in = self.role == UnitRole::DropIn;
        granted.into_iter().any(|granted| granted == path || is_drop_in && *granted == drop_ins)
    }
}

/// Whether it is the name of a directory of wanted units, in whose place a link is.
pub fn is_wants(name: &str) -> bool {
    WANTS.iter().any(|end| name.ends_with(end))
}

/// Whether systemd itself creates or brings a unit of that name, perhaps only on the machine.
pub fn is_of_systemd(unit: &str) -> bool {
    let Some((stem, kind)) = unit.rsplit_once('.') else { return false };
    let is_implicit = match kind {
        "slice" => matches!(stem, "-" | "system" | "user") || stem.starts_with("system-") || stem.starts_with("user-"),
        "mount" => stem == "-",
        kind => OF_SYSTEMD.contains(&kind),
    };
    is_implicit || unit.starts_with(SYSTEMD)
}

/// The path that a mount, automount or swap unit is for, which its name stands for (systemd-escape(1) with `--path`). If the name stands for no
/// path, it is returned as it is; systemd refuses such a unit.
pub fn path_of_unit(unit: &str) -> Option<String> {
    let (stem, _) = unit.rsplit_once('.').filter(|(_, kind)| OF_PATHS.contains(kind))?;
    Some(unescape_path(stem).unwrap_or_else(|| unit.to_owned()))
}

/// Reverses `systemd-escape --path`.
fn unescape_path(stem: &str) -> Option<String> {
    if stem == "-" {
        return Some("/".to_owned());
    }
    let mut bytes = Vec::new();
    let mut rest = stem;
    while let Some(first) = rest.chars().next() {
        if let Some(escaped) = rest.strip_prefix("\\x") {
            let digits = escaped.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = escaped.get(2..)?;
            continue;
        }
        let char = if first == '-' { '/' } else { first };
        bytes.extend(char.encode_utf8(&mut [0; 4]).bytes());
        rest = rest.get(first.len_utf8()..)?;
    }
    let path = String::from_utf8(bytes).ok()?;
    path.split('/').all(|name| !matches!(name, "" | "." | "..")).then(|| format!("/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_for_paths_are_named_by_them() {
        for (unit, expected) in [
            ("-.mount", Some("/")),
            ("boot-efi.mount", Some("/boot/efi")),
            ("var-lib-a\\x2db.automount", Some("/var/lib/a-b")),
            ("opt-gr\\xc3\\xb6\\xc3\\x9fe.mount", Some("/opt/größe")),
            ("swapfile.swap", Some("/swapfile")),
            ("opt-..-etc.mount", Some("opt-..-etc.mount")),
            ("opt\\x2f..\\x2fetc.mount", Some("opt\\x2f..\\x2fetc.mount")),
            ("opt--x.mount", Some("opt--x.mount")),
            ("opt\\x2.mount", Some("opt\\x2.mount")),
            ("agent.service", None),
            ("mount", None),
        ] {
            assert_eq!(path_of_unit(unit).as_deref(), expected, "{unit}");
        }
    }

    #[test]
    fn some_drop_ins_are_for_many_units() {
        for (name, expected) in [
            ("systemd-.service.d", true),
            ("user-.slice.d", true),
            ("-.slice.d", true),
            ("service.d", true),
            ("x-a-.timer.d", true),
            ("agent.service.d", false),
            ("agent@.service.d", false),
            ("x-a.service.d", false),
            ("systemd-.service", false),
            ("systemd-.service.wants", false),
        ] {
            let path = format!("/etc/systemd/user/{name}/x.conf");
            assert_eq!(unit_place(&path).is_some_and(|place| place.is_of_many()), expected, "{name}");
        }
    }

    #[test]
    fn names_of_systemd_are_known_without_its_units() {
        for unit in
            ["systemd-cryptsetup@x.service", "dev-sda.device", "init.scope", "-.slice", "user-1000.slice", "-.mount"]
        {
            assert!(is_of_systemd(unit), "{unit}");
        }
        for unit in ["agent.service", "agent.slice", "systemd", "opt-tool.mount", "user-agent.service"] {
            assert!(!is_of_systemd(unit), "{unit}");
        }
    }
}
