//! Debian binary packages (deb(5), format 2.0): a package in; its control files, and its entries, whose contents are ranges of the
//! decompressed data archive, out.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use super::archive::{self, ArchiveError, ArchiveLimits, Member, MemberKind, spool, spool_kept};
use super::control::{Control, ControlFault};
use vmbake_common::hint::Hint;
use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_fetch::verify::Artifact;
use vmbake_store::store::{DecodedForm, Store};

/// Largest control archive, in bytes: the largest of Debian has 2 MB, in its list of symbols.
const MAX_CONTROL: u64 = 32 << 20;

/// Why a package is refused.
#[derive(Debug, thiserror::Error)]
pub enum DebError {
    #[error("cannot read")]
    Read { source: std::io::Error },
    #[error("expected member {expected}, found {found}")]
    Member { expected: &'static str, found: String },
    #[error("archive {member}")]
    Archive { member: String, source: ArchiveError },
    #[error("control file: {0}")]
    Control(ControlFault),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for DebError {
    vmbake_common::causes!(Message; Read, Archive);
}

/// A package, with the names that dpkg gives its files.
#[derive(Clone, Debug)]
pub struct Deb {
    /// The control file.
    pub control: Control,
    /// Other control files, by name: scripts, `conffiles`, `md5sums`, `triggers`, ...
    pub info: BTreeMap<String, Vec<u8>>,
    /// What the package installs, in its order.
    pub entries: Vec<Member>,
    name: String,
    version: String,
    arch: String,
}

impl Deb {
    /// Reads the package in `file` for an image of `arch`; also returns the data archive, decompressed.
    pub fn open(file: &File, arch: &str) -> Result<(File, Self), DebError> {
        read_with(file, arch, |entry, format, len| spool(entry, format, len, &ArchiveLimits::ARTIFACT))
    }

    /// Name of the package.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Version of the package.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Architecture of the package: the image's, or `all`.
    pub fn arch(&self) -> &str {
        &self.arch
    }

    /// Stem of its files below `/var/lib/dpkg/info`: with the architecture where several may be installed.
    pub fn info_stem(&self) -> String {
        match self.control.get("Multi-Arch") {
            Some("same") => format!("{}:{}", self.name, self.arch),
            _ => self.name.clone(),
        }
    }

    /// Absolute paths of its configuration files.
    pub fn conffiles(&self) -> Vec<String> {
        let text = self.info.get("conffiles").map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        text.unwrap_or_default()
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with('/'))
            .map(str::to_owned)
            .collect()
    }
}

/// Reads a package for an image of `arch`; also returns the data archive, decompressed once and then kept in `store`.
pub(super) fn read(artifact: &Artifact, arch: &str, store: &Store) -> Result<(File, Deb), DebError> {
    read_with(artifact.file(), arch, |entry, format, len| {
        spool_kept(
            entry,
            format,
            len,
            &ArchiveLimits::ARTIFACT,
            (store, &artifact.dependency().digest, DecodedForm::DebData),
        )
    })
}

/// Reads the package in `file`; `spool_data` decompresses the data archive, given its format and length.
fn read_with(
    file: &File,
    arch: &str,
    spool_data: impl FnOnce(&mut ar::Entry<'_, File>, &str, u64) -> Result<File, ArchiveError>,
) -> Result<(File, Deb), DebError> {
    let read = |source| DebError::Read { source };
    let mut input = file.try_clone().map_err(read)?;
    check_members(&mut input)?;
    input.seek(SeekFrom::Start(0)).map_err(read)?;
    let mut members = ar::Archive::new(input);

    let mut version = String::new();
    member(&mut members, "debian-binary", |entry, _| {
        entry.take(64).read_to_string(&mut version).map(|_| ()).map_err(read)
    })?;
    if version != "2.0\n" {
        return Err(DebError::Message(message!("format version {version:?} is not 2.0")));
    }
    let plain = member(&mut members, "control.tar", |entry, name| {
        let limits = ArchiveLimits { floor: MAX_CONTROL, ratio: 0, ..ArchiveLimits::ARTIFACT };
        let len = entry.header().size();
        spool(entry, compression(name), len, &limits)
            .map_err(|source| DebError::Archive { member: name.to_owned(), source })
    })?;
    let (control, info) = control_files(&plain)?;
    let (data, entries) = member(&mut members, "data.tar", |entry, name| {
        let failed = |source| DebError::Archive { member: name.to_owned(), source };
        let len = entry.header().size();
        let data = spool_data(entry, compression(name), len).map_err(failed)?;
        let entries = archive::read(&data, &ArchiveLimits::ARTIFACT).map_err(failed)?;
        Ok((data, entries))
    })?;
    let [name, version, found] = ["Package", "Version", "Architecture"]
        .map(|field| control.required(field).map(str::to_owned).map_err(DebError::Control));
    let deb = Deb { name: name?, version: version?, arch: found?, control, info, entries };
    check(&deb, arch)?;
    Ok((data, deb))
}

/// Walks the headers of the archive (60 bytes each, after 8 bytes of magic; members start at even offsets) before the
/// library does: it takes the lengths of long-name members at their word and allocates that much.
fn check_members(input: &mut File) -> Result<(), DebError> {
    let read = |source| DebError::Read { source };
    let len = input.metadata().map_err(read)?.len();
    let mut magic = [0; 8];
    input.seek(SeekFrom::Start(0)).map_err(read)?;
    input.read_exact(&mut magic).map_err(read)?;
    // The library names a wrong magic itself.
    let mut at = if magic == *b"!<arch>\n" { 8 } else { len };
    while at < len {
        let mut header = [0; 60];
        input.seek(SeekFrom::Start(at)).map_err(read)?;
        input.read_exact(&mut header).map_err(read)?;
        let name = String::from_utf8_lossy(&header[..16]).trim().to_owned();
        let size = std::str::from_utf8(&header[48..58]).ok().and_then(|text| text.trim().parse::<u64>().ok());
        let end = size.and_then(|size| at.checked_add(60)?.checked_add(size)).filter(|end| *end <= len);
        match end {
            _ if name.starts_with('/') || name.starts_with("#1/") => {
                return Err(DebError::Member { expected: "with a short name", found: name });
            }
            Some(end) => at = end + end % 2,
            None => {
                return Err(DebError::Message(message!(
                    "member {name} at byte {at} ends after the file's {len} bytes"
                )));
            }
        }
    }
    Ok(())
}

/// The next member, whose name must be `expected`, or start with it and a dot.
fn member<T>(
    members: &mut ar::Archive<File>,
    expected: &'static str,
    read: impl FnOnce(&mut ar::Entry<'_, File>, &str) -> Result<T, DebError>,
) -> Result<T, DebError> {
    match members.next_entry() {
        None => Err(DebError::Member { expected, found: "the end".to_owned() }),
        Some(Err(source)) => Err(DebError::Read { source }),
        Some(Ok(mut entry)) => {
            let name = String::from_utf8_lossy(entry.header().identifier()).into_owned();
            let name = name.trim_end_matches('/');
            let rest = name.strip_prefix(expected);
            if !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) {
                return Err(DebError::Member { expected, found: name.to_owned() });
            }
            read(&mut entry, name)
        }
    }
}

/// The extension behind `.tar`, without its dot.
fn compression(member: &str) -> &str {
    member.split_once(".tar").map_or("", |(_, rest)| rest.trim_start_matches('.'))
}

fn control_files(plain: &File) -> Result<(Control, BTreeMap<String, Vec<u8>>), DebError> {
    let failed = |source| DebError::Archive { member: "control.tar".to_owned(), source };
    let mut info = BTreeMap::new();
    for entry in archive::read(plain, &ArchiveLimits::ARTIFACT).map_err(failed)? {
        let name = String::from_utf8_lossy(&entry.path).into_owned();
        let bytes = match &entry.kind {
            MemberKind::Directory if name.is_empty() => continue,
            _ if name.contains('/') => None,
            MemberKind::File { offset, len } => {
                let mut bytes = Vec::new();
                let mut input = plain;
                input.seek(SeekFrom::Start(*offset)).map_err(|source| DebError::Read { source })?;
                input.take(*len).read_to_end(&mut bytes).map_err(|source| DebError::Read { source })?;
                Some(bytes)
            }
            // dpkg-deb packs scripts that are one file with two names so.
            MemberKind::HardLink(to) => info.get(String::from_utf8_lossy(to).as_ref()).cloned(),
            _ => None,
        };
        let bytes = bytes.ok_or_else(|| DebError::Control(ControlFault::NotRegular { name: name.to_string() }))?;
        info.insert(name, bytes);
    }
    // dpkg writes the list itself, and leaves out names with a dot.
    info.retain(|name, _| name != "list" && !name.contains('.'));
    let text = info.remove("control").ok_or(DebError::Control(ControlFault::Missing))?;
    let text = String::from_utf8(text).map_err(|_| DebError::Control(ControlFault::NotUtf8))?;
    Ok((Control::parse(&text).map_err(DebError::Control)?, info))
}

fn check(deb: &Deb, arch: &str) -> Result<(), DebError> {
    if deb.arch != arch && deb.arch != "all" {
        return Err(DebError::Message(message!("is for {}, but the image is for {arch}", deb.arch)));
    }
    deb.control.check_names().map_err(DebError::Control)?;
    // The name becomes a file name, and both become part of a stanza.
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.~:_".contains(&b));
    if deb.name.is_empty() || !plain(&deb.name) || deb.name.contains(':') || !plain(&deb.version) {
        let (name, version) = (deb.name.clone(), deb.version.clone());
        return Err(DebError::Control(ControlFault::Name { name, version }));
    }
    Ok(())
}
