//! Table of the files that need processing, and how a bake handles each. `docs/layer-files.md` has the same table.

mod certificates;

pub use certificates::certificates;

use vmbake_common::glob::matches;
use vmbake_common::paths::is_at_or_below;

/// Types of processing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// `/etc/ssl/certs`, by update-ca-certificates(8).
    Certificates,
    /// The boot menu, as grub-mkconfig(8) would write it.
    Menu,
    /// The locales that are named must be there.
    Locales,
    /// The tables of a mail server must be there, or unused.
    Mail,
    /// The indexes of kernel modules, as depmod(8) would write them.
    Modules,
    /// The initial RAM disks, as mkinitramfs(8) would write them.
    Initrd,
    /// The cache of the dynamic linker, which is made for every image.
    Libraries,
}

impl Work {
    /// The path that the processing changes; a bundle with such a file needs a grant for it.
    pub fn output(self) -> Option<&'static str> {
        match self {
            Self::Certificates => Some("/etc/ssl/certs"),
            Self::Menu => Some("/boot/grub/grub.cfg"),
            // Locales and tables are only read; indexes, RAM disks and names of libraries are compared with the grants when they are written.
            Self::Locales | Self::Mail | Self::Modules | Self::Initrd | Self::Libraries => None,
        }
    }
}

/// Processing of a path.
#[derive(Clone, Copy, Debug)]
pub enum Treatment {
    Done(Work),
    /// Nothing has to be done.
    Nothing,
    /// The bake goes on with a warning.
    Warned(&'static str),
    /// The bake stops.
    Refused {
        /// Why the file has no effect without processing.
        what: &'static str,
        /// Hint.
        hint: &'static str,
    },
}

/// A row of the table.
struct Row {
    /// As in [`fits`].
    paths: &'static [&'static str],
    treatment: Treatment,
}

/// What is said of a file that an initial RAM disk would contain, and does not.
pub const INITRD: &str = "the initial RAM disk keeps the base's version, since a bake does not rebuild it for this file; only programs on the \
                          root file system use this one";

const APT: &str = "cloud-init replaces or removes it on the first boot unless its settings have \
                   `apt: {generate_mirrorlists: false, preserve_sources_list: true}`";

/// In its order: the first row that fits counts.
const TABLE: [Row; 18] = [
    Row {
        paths: &["/usr/local/share/ca-certificates/**", "/usr/share/ca-certificates/**", "/etc/ca-certificates.conf"],
        treatment: Treatment::Done(Work::Certificates),
    },
    Row { paths: &["/etc/default/grub", "/etc/default/grub.d/*.cfg"], treatment: Treatment::Done(Work::Menu) },
    Row {
        paths: &["/etc/grub.d/*"],
        treatment: Treatment::Refused {
            what: "it takes effect only when `grub-mkconfig` runs",
            hint: "use the key `kernel_arguments`, or /boot/grub/custom.cfg, which GRUB reads at boot",
        },
    },
    Row { paths: &["/etc/locale.gen"], treatment: Treatment::Done(Work::Locales) },
    Row { paths: &["/etc/ld.so.conf", "/etc/ld.so.conf.d/*.conf"], treatment: Treatment::Done(Work::Libraries) },
    Row { paths: &["/etc/aliases", "/etc/postfix/**"], treatment: Treatment::Done(Work::Mail) },
    Row {
        paths: &[
            "/etc/modprobe.d/*.conf",
            "/etc/crypttab",
            "/etc/initramfs-tools/**",
            "/usr/share/initramfs-tools/**",
            "/etc/mdadm/mdadm.conf",
            "/etc/lvm/lvm.conf",
        ],
        treatment: Treatment::Done(Work::Initrd),
    },
    Row { paths: &["/etc/modules", "/etc/dracut.conf.d/*.conf"], treatment: Treatment::Warned(INITRD) },
    Row { paths: &["/etc/ssl/certs/ca-certificates.crt"], treatment: Treatment::Nothing },
    Row {
        paths: &["/etc/ssl/certs/**"],
        treatment: Treatment::Warned(
            "it is not trusted: only /usr/local/share/ca-certificates/*.crt are added to ca-certificates.crt",
        ),
    },
    Row {
        paths: &[
            "/usr/lib/modules/**/*.ko",
            "/usr/lib/modules/**/*.ko.gz",
            "/usr/lib/modules/**/*.ko.xz",
            "/usr/lib/modules/**/*.ko.zst",
        ],
        treatment: Treatment::Done(Work::Modules),
    },
    Row {
        paths: &["/usr/share/pam-configs/*"],
        treatment: Treatment::Refused {
            what: "it takes effect only when `pam-auth-update` runs",
            hint: "add the files of /etc/pam.d to the layer instead",
        },
    },
    Row {
        paths: &["/etc/dconf/db/**"],
        treatment: Treatment::Refused {
            what: "it takes effect only when `dconf update` runs",
            hint: "run `dconf update` in a unit, on a copy from another directory",
        },
    },
    Row { paths: &["/etc/udev/hwdb.d/*.hwdb"], treatment: Treatment::Nothing },
    Row { paths: &["/etc/sysusers.d/*.conf", "/usr/lib/sysusers.d/*.conf"], treatment: Treatment::Nothing },
    // What cc_apt_configure of cloud-init writes in Debian 13.
    Row {
        paths: &[
            "/etc/apt/sources.list",
            "/etc/apt/sources.list.d/debian.sources",
            "/etc/apt/mirrors/debian.list",
            "/etc/apt/mirrors/debian-security.list",
        ],
        treatment: Treatment::Warned(APT),
    },
    Row {
        paths: &["/etc/alternatives/*", "/etc/timezone", "/etc/localtime", "/etc/fstab", "/etc/environment"],
        treatment: Treatment::Nothing,
    },
    Row {
        paths: &[
            "/etc/systemd/**",
            "/etc/sysctl.d/*.conf",
            "/etc/modules-load.d/*.conf",
            "/etc/tmpfiles.d/*.conf",
            "/etc/udev/rules.d/*.rules",
            "/etc/apparmor.d/**",
            "/etc/default/keyboard",
        ],
        treatment: Treatment::Nothing,
    },
];

/// The processing of a path.
pub fn treatment(path: &[u8]) -> Option<Treatment> {
    let row = TABLE.iter().find(|row| row.paths.iter().any(|pattern| fits(pattern, path)));
    row.map(|row| row.treatment)
}

/// The error in a file that a program would have to process, according to its path and content, and a hint.
pub fn unprocessed(path: &str, content: &[u8]) -> Option<(String, &'static str)> {
    match treatment(path.as_bytes())? {
        Treatment::Refused { what, hint } => Some((what.to_owned(), hint)),
        Treatment::Done(Work::Certificates) => certificates::fault(path, content),
        _ => None,
    }
}

/// Whether a path matches a pattern: `*` in the last component matches any bytes; `**` before it, or as the last one, any directories.
pub(crate) fn fits(pattern: &str, path: &[u8]) -> bool {
    let Some(at) = path.iter().rposition(|byte| *byte == b'/') else { return false };
    let (dir, name) = (&path[..at], &path[at + 1..]);
    let (parents, last) = pattern.rsplit_once('/').unwrap_or_default();
    let is_below = |parents: &str| is_at_or_below(dir, parents);
    match (parents.strip_suffix("/**"), last) {
        (_, "**") => is_below(parents),
        (Some(parents), last) => is_below(parents) && matches(last.as_bytes(), name),
        (None, last) => parents.as_bytes() == dir && matches(last.as_bytes(), name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_find_their_rows() {
        let of = |path: &str| match treatment(path.as_bytes()) {
            None => "none",
            Some(Treatment::Done(..)) => "done",
            Some(Treatment::Nothing) => "nothing",
            Some(Treatment::Warned(_)) => "warned",
            Some(Treatment::Refused { .. }) => "refused",
        };
        for (path, expected) in [
            ("/usr/local/share/ca-certificates/a/b.crt", "done"),
            ("/usr/local/share/ca-certificates-of-mine/b.crt", "none"),
            ("/etc/default/grub", "done"),
            ("/etc/default/grub.d/50-x.cfg", "done"),
            ("/etc/default/grub.d/README", "none"),
            ("/etc/grub.d/50_mine", "refused"),
            ("/etc/modprobe.d/x.conf", "done"),
            ("/etc/ssl/certs/ca-certificates.crt", "nothing"),
            ("/etc/ssl/certs/mine.pem", "warned"),
            ("/usr/lib/modules/6.1/extra/x.ko.xz", "done"),
            ("/usr/share/pam-configs/mine", "refused"),
            ("/usr/lib/modules/6.1/extra/x.txt", "none"),
            ("/etc/sysctl.d/60-x.conf", "nothing"),
            ("/etc/apt/mirrors/debian.list", "warned"),
            ("/etc/apt/sources.list.d/mine.sources", "none"),
            ("/opt/x", "none"),
        ] {
            assert_eq!(of(path), expected, "{path}");
        }
    }

    /// The page has the same rows, with the texts of warnings and refusals.
    #[test]
    fn the_page_has_the_table() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/layer-files.md")).unwrap();
        let table = page.split("| path | what happens |\n|---|---|\n").nth(1).unwrap();
        let lines: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
        assert_eq!(lines.len(), TABLE.len());
        for (row, line) in TABLE.iter().zip(lines) {
            let paths: Vec<String> = row.paths.iter().map(|path| format!("`{path}`")).collect();
            let text = match row.treatment {
                Treatment::Done(_) => "done: ".to_owned(),
                Treatment::Nothing => "nothing: ".to_owned(),
                Treatment::Warned(text) => format!("warning: {text} |"),
                Treatment::Refused { what, hint } => format!("refused: {what}; {hint} |"),
            };
            let expected = format!("| {} | {text}", paths.join(", "));
            assert!(line.starts_with(&expected), "{expected}\n{line}");
        }
    }
}
