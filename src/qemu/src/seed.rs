//! Data for cloud-init's datasource `NoCloud`: files in, a FAT volume labeled CIDATA out.
//!
//! The same files give the same bytes: serial number and times are fixed. Without meta data, the instance ID is derived from
//! the content, so that a second boot with the same data is the same instance.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Cursor, Read, Write};
use std::path::{Path, PathBuf};

use fatfs::{Date, DateTime, FileSystem, FormatVolumeOptions, FsOptions, Time, TimeProvider, format_volume};
use serde_json::json;

use super::scratch::{Scratch, ScratchError};
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::input;
use vmbake_common::message::FileError;

/// Maximum length of a file; providers accept less than a hundredth.
const MAX_FILE: u64 = 16 << 20;
/// The volume size is a multiple of this, which exceeds the size of tables and directory.
const STEP: usize = 1 << 20;
const VOLUME_ID: u32 = 0x766d_626b;
const CLOCK: &Epoch = &Epoch;
/// Prefixes of user data that cloud-init recognizes.
const KINDS: [&[u8]; 10] = [
    b"#cloud-config",
    b"#!",
    b"#include",
    b"#cloud-boothook",
    b"#part-handler",
    b"#cloud-config-archive",
    b"## template: jinja",
    b"Content-Type:",
    b"MIME-Version:",
    b"\x1f\x8b",
];

/// Error while creating the seed volume.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    #[error("{path}: {len} bytes, more than the limit of {MAX_FILE}")]
    TooLarge { path: PathBuf, len: u64 },
    #[error("{path}: cloud-init ignores user data that start with {found:?}")]
    Kind { path: PathBuf, found: String },
    #[error("cannot create the volume for cloud-init")]
    Volume { source: io::Error },
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    #[error(transparent)]
    File(#[from] FileError),
}

impl Hint for SeedError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Kind { .. } => {
                Some("the first line must specify the format, such as #cloud-config or #!/bin/sh".to_owned())
            }
            Self::Scratch(error) => error.hint(),
            _ => None,
        }
    }

    vmbake_common::causes!(Scratch, File; Volume);
}

#[derive(Debug, Default)]
pub struct SeedFiles {
    /// User data.
    pub user_data: Option<PathBuf>,
    /// Meta data.
    pub meta_data: Option<PathBuf>,
    /// Network configuration.
    pub network_config: Option<PathBuf>,
    /// Authorized public keys, if there are no user data.
    pub ssh_key: Option<PathBuf>,
}

impl SeedFiles {
    /// Creates the volume, with vendor data in addition to user data.
    pub fn write(&self, vendor_data: Option<String>, scratch: &Scratch) -> Result<File, SeedError> {
        let user_data = match (&self.user_data, &self.ssh_key) {
            (Some(path), _) => checked(path)?,
            (None, Some(path)) => keys(&String::from_utf8_lossy(&read(path)?)).into_bytes(),
            (None, None) => b"#cloud-config\n{}\n".to_vec(),
        };
        let network_config = self.network_config.as_deref().map(read).transpose()?;
        let meta_data = match &self.meta_data {
            Some(path) => read(path)?,
            None => meta_data(&user_data, network_config.as_deref()),
        };
        let mut files = vec![("user-data", user_data), ("meta-data", meta_data)];
        files.extend(network_config.map(|content| ("network-config", content)));
        files.extend(vendor_data.map(|content| ("vendor-data", content.into_bytes())));
        let volume = volume(&files).map_err(|source| SeedError::Volume { source })?;
        Ok(scratch.holding(&volume)?)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, SeedError> {
    let mut content = Vec::new();
    let fail = |source| SeedError::File(FileError::new(path, "read", source));
    let mut file = input::open(path).map_err(fail)?;
    // A pipe has no length: data beyond the limit are only counted.
    (&mut file).take(MAX_FILE).read_to_end(&mut content).map_err(fail)?;
    match io::copy(&mut file, &mut io::sink()).map_err(fail)? {
        0 => Ok(content),
        more => Err(SeedError::TooLarge { path: path.to_owned(), len: MAX_FILE + more }),
    }
}

/// Checks that cloud-init recognizes the user data.
fn checked(path: &Path) -> Result<Vec<u8>, SeedError> {
    let content = read(path)?;
    if !KINDS.iter().any(|kind| content.starts_with(kind)) {
        let line = content.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let found = String::from_utf8_lossy(&line[..line.len().min(40)]).into_owned();
        return Err(SeedError::Kind { path: path.to_owned(), found });
    }
    Ok(content)
}

/// User data that authorize public keys. JSON is YAML.
fn keys(text: &str) -> String {
    let keys: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    format!("#cloud-config\n{}\n", json!({ "ssh_authorized_keys": keys }))
}

fn meta_data(user_data: &[u8], network_config: Option<&[u8]>) -> Vec<u8> {
    let parts = [Digest::of(user_data), Digest::of(network_config.unwrap_or_default())];
    let mut all = String::new();
    for part in parts {
        // Writing to a string cannot fail.
        let _ = writeln!(all, "{part}");
    }
    let id = Digest::of(all.as_bytes()).hex();
    format!("instance-id: vmbake-{}\nlocal-hostname: vmbake\n", &id[..16]).into_bytes()
}

/// A FAT volume with these files.
fn volume(files: &[(&str, Vec<u8>)]) -> io::Result<Vec<u8>> {
    let content: usize = files.iter().map(|(_, content)| content.len()).sum();
    let mut disk = Cursor::new(vec![0; content.next_multiple_of(STEP) + STEP]);
    let options = FormatVolumeOptions::new().bytes_per_cluster(512).volume_id(VOLUME_ID).volume_label(*b"CIDATA     ");
    format_volume(&mut disk, options)?;
    disk.set_position(0);
    let volume = FileSystem::new(&mut disk, FsOptions::new().time_provider(CLOCK))?;
    for (name, content) in files {
        let mut file = volume.root_dir().create_file(name)?;
        file.write_all(content)?;
        file.flush()?;
    }
    volume.unmount()?;
    Ok(disk.into_inner())
}

/// A constant clock: the FAT epoch.
#[derive(Debug)]
struct Epoch;

impl TimeProvider for Epoch {
    fn get_current_date(&self) -> Date {
        Date { year: 1980, month: 1, day: 1 }
    }

    fn get_current_date_time(&self) -> DateTime {
        DateTime { date: self.get_current_date(), time: Time { hour: 0, min: 0, sec: 0, millis: 0 } }
    }
}
