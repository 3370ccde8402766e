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
