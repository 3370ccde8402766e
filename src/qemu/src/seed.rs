//! Data for cloud-init as its data source `NoCloud` takes it: files enter, a FAT volume labelled CIDATA leaves.
//!
//! The same files give the same bytes: serial number and times are fixed. Without meta data the id of the instance is made of
//! the content, so that a second start with the same data is the same instance.

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

/// Largest file. No provider takes a hundredth of it.
const MAX_FILE: u64 = 16 << 20;
/// The volume's size is a multiple of this, and of tables and directory there is less.
const STEP: usize = 1 << 20;
const VOLUME_ID: u32 = 0x766d_626b;
const CLOCK: &Epoch = &Epoch;
/// What user data begin with, for cloud-init to do anything with them.
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

/// Why there is no seed.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    #[error("{path}: has {len} bytes, cloud-init's volume takes {MAX_FILE} of one file")]
    TooLarge {
        path: PathBuf,
        /// Its length in bytes.
        len: u64,
    },
    #[error("{path}: cloud-init does nothing with user data that begin with {found:?}")]
    Kind { path: PathBuf, found: String },
    #[error("cannot lay out the volume for cloud-init")]
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
                Some("the first line says what they are, mostly #cloud-config or #!/bin/sh".to_owned())
            }
            Self::Scratch(error) => error.hint(),
            _ => None,
        }
    }

    vmbake_common::causes!(Scratch, File; Volume);
}

/// Files for cloud-init.
#[derive(Debug, Default)]
pub struct SeedFiles {
    /// What the machine is to do.
    pub user_data: Option<PathBuf>,
    /// What the machine is.
    pub meta_data: Option<PathBuf>,
    /// How the machine's network is set up.
    pub network_config: Option<PathBuf>,
    /// Public keys that may log in, where there are no user data.
    pub ssh_key: Option<PathBuf>,
}

impl SeedFiles {
    /// Makes the volume, with data that cloud-init takes beside the user's.
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
    // A pipe has no length: what is behind the limit is only counted.
    (&mut file).take(MAX_FILE).read_to_end(&mut content).map_err(fail)?;
    match io::copy(&mut file, &mut io::sink()).map_err(fail)? {
        0 => Ok(content),
        more => Err(SeedError::TooLarge { path: path.to_owned(), len: MAX_FILE + more }),
    }
}

/// User data of which cloud-init can make something.
fn checked(path: &Path) -> Result<Vec<u8>, SeedError> {
    let content = read(path)?;
    if !KINDS.iter().any(|kind| content.starts_with(kind)) {
        let line = content.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let found = String::from_utf8_lossy(&line[..line.len().min(40)]).into_owned();
        return Err(SeedError::Kind { path: path.to_owned(), found });
    }
    Ok(content)
}

/// User data that let the owners of public keys in. JSON is YAML.
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

/// A FAT volume with these files, as large as need be.
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

/// A clock that stands: the first moment of FAT.
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
