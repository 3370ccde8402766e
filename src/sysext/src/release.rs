//! The extension-release file: a name, a system and an architecture in, a text in os-release(5) format out, by which systemd matches an
//! extension to a machine.

use std::path::Path;

use super::error::ExtensionError;
use super::form::ExtensionFormat;

/// Maximum length of a name, so that it is a file name with its suffix.
const MAX_NAME: usize = 128;

/// Type of extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionKind {
    /// `/usr`, by systemd-sysext(8).
    Sysext,
    /// `/etc`, by systemd-confext(8).
    Confext,
}

impl ExtensionKind {
    /// The directory with all files of such an extension.
    pub fn root(self) -> &'static str {
        match self {
            Self::Sysext => "/usr",
            Self::Confext => "/etc",
        }
    }

    /// The directory of extension-release files.
    fn releases(self) -> &'static str {
        match self {
            Self::Sysext => "/usr/lib/extension-release.d",
            Self::Confext => "/etc/extension-release.d",
        }
    }
}

/// Identity of an extension to systemd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionIdentity {
    /// Name of its directory, or of its file without `.raw`.
    pub name: String,
    pub kind: ExtensionKind,
    /// Operating system, such as `debian-13`.
    pub os: String,
    /// Debian architecture.
    pub arch: String,
}

impl ExtensionIdentity {
    /// The identity of an extension that is written to `out`.
    pub fn of_path(
        out: &Path,
        format: ExtensionFormat,
        kind: ExtensionKind,
        os: &str,
        arch: &str,
    ) -> Result<Self, ExtensionError> {
        let last = out.file_name().and_then(|name| name.to_str());
        let is_plain = |name: &&str| {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            (1..=MAX_NAME).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(fits)
        };
        let path = || out.to_owned();
        let name = match format {
            ExtensionFormat::Dir => {
                let name = last.filter(|name| !name.ends_with(".raw")).filter(is_plain);
                name.ok_or_else(|| ExtensionError::FolderName { path: path() })?
            }
            ExtensionFormat::Ext4 | ExtensionFormat::Squashfs => {
                let name = last.and_then(|last| last.strip_suffix(".raw")).filter(is_plain);
                name.ok_or_else(|| ExtensionError::Name { path: path() })?
            }
        };
        Ok(Self { name: name.to_owned(), kind, os: os.to_owned(), arch: arch.to_owned() })
    }

    /// Path of the extension-release file. systemd ignores an extension if that file has another name.
    pub fn path(&self) -> String {
        format!("{}/extension-release.{}", self.kind.releases(), self.name)
    }

    /// The extension-release file. systemd loads the units of an extension only with `EXTENSION_RELOAD_MANAGER`.
    pub fn text(&self) -> String {
        let (id, version) = self.os.rsplit_once('-').unwrap_or((&self.os, ""));
        let version = if version.is_empty() { String::new() } else { format!("VERSION_ID={version}\n") };
        let arch = match self.arch.as_str() {
            "amd64" => "x86-64",
            other => other,
        };
        format!("ID={id}\n{version}ARCHITECTURE={arch}\nEXTENSION_RELOAD_MANAGER=1\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(file: &str, kind: ExtensionKind, arch: &str) -> Result<ExtensionIdentity, ExtensionError> {
        ExtensionIdentity::of_path(Path::new(file), ExtensionFormat::Ext4, kind, "debian-13", arch)
    }

    #[test]
    fn systemd_finds_itself_in_the_release_file() {
        let usr = of("out/acme-agent.raw", ExtensionKind::Sysext, "amd64").unwrap();
        assert_eq!(usr.path(), "/usr/lib/extension-release.d/extension-release.acme-agent");
        assert_eq!(usr.text(), "ID=debian\nVERSION_ID=13\nARCHITECTURE=x86-64\nEXTENSION_RELOAD_MANAGER=1\n");
        let etc = of("a_1.2.raw", ExtensionKind::Confext, "arm64").unwrap();
        assert_eq!(etc.path(), "/etc/extension-release.d/extension-release.a_1.2");
        assert!(etc.text().contains("ARCHITECTURE=arm64\n"));
    }

    #[test]
    fn names_are_those_of_files() {
        let long = format!("{}.raw", "a".repeat(MAX_NAME + 1));
        for file in ["agent", "agent.img", ".raw", "..raw", "a b.raw", "a\n.raw", "\u{e4}.raw", "a.raw/..", &long] {
            let refused = of(file, ExtensionKind::Sysext, "amd64");
            assert!(matches!(refused, Err(ExtensionError::Name { .. })), "{file}");
        }
        let folder = |name: &str| {
            ExtensionIdentity::of_path(
                Path::new(name),
                ExtensionFormat::Dir,
                ExtensionKind::Sysext,
                "debian-13",
                "amd64",
            )
        };
        for name in ["agent.raw", ".raw", "..", "a b", ".a", "/"] {
            assert!(matches!(folder(name), Err(ExtensionError::FolderName { .. })), "{name}");
        }
        assert_eq!(folder("out/agent-1.2/").unwrap().name, "agent-1.2");
    }
}
