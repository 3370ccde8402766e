//! Firmware: SeaBIOS of QEMU, UEFI firmware of the host, or direct boot.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use vmbake_common::hint::Hint;
use vmbake_disk::disk::Arch;

use vmbake_common::input;

/// Firmware of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Firmware {
    /// SeaBIOS (amd64 only)
    Bios,
    /// OVMF or AAVMF
    Uefi,
    /// Direct boot of the image's kernel by QEMU
    Direct,
}

impl Firmware {
    /// The default of an architecture.
    pub fn usual(arch: Arch) -> Self {
        match arch {
            Arch::Amd64 => Self::Bios,
            Arch::Arm64 => Self::Uefi,
        }
    }
}

impl fmt::Display for Firmware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bios => "BIOS",
            Self::Uefi => "UEFI",
            Self::Direct => "direct boot",
        })
    }
}

/// Error while looking for firmware.
#[derive(Debug, thiserror::Error)]
pub enum FirmwareError {
    #[error("no BIOS exists for arm64")]
    NoBios,
    #[error("no UEFI firmware for {arch} found in {looked}")]
    Missing {
        arch: &'static str,
        /// Searched directories.
        looked: String,
        /// Debian package with the firmware.
        package: &'static str,
    },
    #[error("{path}: cannot read the UEFI variables")]
    Read { path: PathBuf, source: io::Error },
}

impl Hint for FirmwareError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoBios => Some("use --firmware uefi or direct".to_owned()),
            Self::Missing { package, .. } => Some(format!("run `apt-get install {package}`, or use --firmware direct")),
            Self::Read { .. } => None,
        }
    }

    vmbake_common::causes!(; Read);
}

/// UEFI firmware.
#[derive(Debug)]
pub struct Uefi {
    /// Path of the firmware code.
    pub code: PathBuf,
    /// Path of the variable template.
    pub variables: Vec<u8>,
}

/// Directory, code and variables, in order of preference. 4M: Debian 12 and later; earlier ones differ.
const OVMF: &[[&str; 3]] =
    &[["usr/share/OVMF", "OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"], ["usr/share/OVMF", "OVMF_CODE.fd", "OVMF_VARS.fd"]];
const AAVMF: &[[&str; 3]] = &[["usr/share/AAVMF", "AAVMF_CODE.fd", "AAVMF_VARS.fd"]];

/// Finds the firmware for a machine, unless QEMU includes it.
pub fn load(firmware: Firmware, arch: Arch) -> Result<Option<Uefi>, FirmwareError> {
    match (firmware, arch) {
        (Firmware::Bios, Arch::Arm64) => Err(FirmwareError::NoBios),
        (Firmware::Bios | Firmware::Direct, _) => Ok(None),
        (Firmware::Uefi, _) => uefi(Path::new("/"), arch).map(Some),
    }
}

fn uefi(root: &Path, arch: Arch) -> Result<Uefi, FirmwareError> {
    let (known, package) = match arch {
        Arch::Amd64 => (OVMF, "ovmf"),
        Arch::Arm64 => (AAVMF, "qemu-efi-aarch64"),
    };
    for [folder, code, variables] in known {
        let [code, path] = [code, variables].map(|name| root.join(folder).join(name));
        if code.is_file() && path.is_file() {
            let variables = match input::read(&path, input::MAX_INPUT) {
                Ok(variables) => variables,
                Err(source) => return Err(FirmwareError::Read { path, source }),
            };
            return Ok(Uefi { code, variables });
        }
    }
    let mut looked: Vec<String> = known.iter().map(|[folder, ..]| format!("/{folder}")).collect();
    looked.dedup();
    Err(FirmwareError::Missing { arch: arch.name(), looked: looked.join(", "), package })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_firmware_is_taken_and_only_with_its_variables() {
        let root = tempfile::tempdir().unwrap();
        let missing = uefi(root.path(), Arch::Amd64).unwrap_err();
        assert!(missing.to_string().ends_with("in /usr/share/OVMF"), "{missing}");
        assert!(missing.hint().unwrap().contains("apt-get install ovmf"));
        let dir = root.path().join("usr/share/OVMF");
        std::fs::create_dir_all(&dir).unwrap();
        for (name, expected) in [
            ("OVMF_CODE.fd", None),
            ("OVMF_VARS.fd", Some("OVMF_CODE.fd")),
            ("OVMF_CODE_4M.fd", Some("OVMF_CODE.fd")),
            ("OVMF_VARS_4M.fd", Some("OVMF_CODE_4M.fd")),
        ] {
            std::fs::write(dir.join(name), name).unwrap();
            let found = uefi(root.path(), Arch::Amd64).ok();
            assert_eq!(found.as_ref().map(|found| found.code.clone()), expected.map(|name| dir.join(name)));
            if let Some(found) = found {
                let code = found.code.file_name().unwrap().to_str().unwrap().to_owned();
                assert_eq!(found.variables, code.replace("CODE", "VARS").as_bytes());
            }
        }
    }

    #[test]
    fn every_firmware_exists_for_amd64_only() {
        assert!(matches!(load(Firmware::Bios, Arch::Arm64), Err(FirmwareError::NoBios)));
        assert!(matches!(load(Firmware::Bios, Arch::Amd64), Ok(None)));
        assert!(matches!(load(Firmware::Direct, Arch::Arm64), Ok(None)));
        let missing = uefi(Path::new("/nowhere"), Arch::Arm64).unwrap_err();
        assert!(missing.hint().unwrap().contains("apt-get install qemu-efi-aarch64"));
    }
}
