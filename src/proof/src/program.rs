//! The identity of a program, where the proof of its digest does not determine which program it is.
//!
//! A signature over a file covers neither name, version nor architecture: it exists for old versions and for other
//! programs of the same signer, too. A verified file is therefore refused unless its ELF header states the right
//! architecture, and the build information of Go's linker states the main package and version required in
//! `sources.json`. Both are covered by the signature, so they are as trustworthy as the digest, and worthless without
//! it.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_disk::source::{FileSource, Map, ReadAt, Sources};

use vmbake_common::hint::Hint;
use vmbake_image::elf::{BuildInfo, Elf, ElfError, Machine};
use vmbake_manifest::ArtifactType;
use vmbake_manifest::upstream::{Program, Undefined, Upstream};

/// Why a file is not the expected program.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("cannot parse the program")]
    Elf(#[source] ElfError),
    #[error("main package is {found}, expected {expected}")]
    Package { found: String, expected: String },
    #[error("{package} has version {found}, expected {expected}")]
    Version { package: String, found: String, expected: String },
    #[error("cannot evaluate `program` of its source")]
    Template(#[source] Undefined),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for ProgramError {
    fn hint(&self) -> Option<String> {
        let text = "the signature does not cover name and version, so this may be a substituted file: report it to \
            upstream; if its releases have changed, correct `program` in sources.json";
        matches!(self, Self::Package { .. } | Self::Version { .. }).then(|| text.to_owned())
    }

    vmbake_common::causes!(Elf, Template, Message);
}

/// Fails unless `file`, an artifact of `upstream` with a verified digest, is the program of this version and
/// architecture.
///
/// Checks artifacts of type `binary` only. A file other than ELF, such as a script, matches every architecture; it is
/// refused if the source requires a program.
pub fn check(upstream: &Upstream, version: &str, arch: &str, file: &File) -> Result<(), ProgramError> {
    if upstream.kind != ArtifactType::Binary {
        return Ok(());
    }
    let source = file
        .try_clone()
        .and_then(FileSource::new)
        .map_err(|error| ProgramError::Message(Message::new("cannot read the program").by(error)))?;
    let mut sources = Sources::default();
    let len = source.len();
    let map = Map::whole(sources.add(Arc::new(source)), 0, len);
    let elf = Elf::read(&map, &sources).map_err(ProgramError::Elf)?;
    if let (Some(elf), Some(expected)) = (elf, Machine::of_arch(arch))
        && elf.machine != expected
    {
        return Err(ProgramError::Message(message!("program for {}, expected {expected}", elf.machine)));
    }
    match &upstream.program {
        Some(program) => {
            let info = BuildInfo::read(&map, &sources).map_err(ProgramError::Elf)?;
            is_that_program(program, version, arch, info)
        }
        None => Ok(()),
    }
}

fn is_that_program(program: &Program, version: &str, arch: &str, info: Option<BuildInfo>) -> Result<(), ProgramError> {
    let expected = program.package.clone();
    let info = info.ok_or_else(|| {
        ProgramError::Message(message!("not a Go program, so its identity cannot be checked: expected {expected}"))
    })?;
    if info.package != expected {
        return Err(ProgramError::Package { found: info.package, expected });
    }
    let Some(template) = &program.version else { return Ok(()) };
    let values = [("version", version), ("arch", arch)].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let expected = template.render(&BTreeMap::from(values)).map_err(ProgramError::Template)?;
    let found = info.module.map_or_else(|| "(none)".to_owned(), |module| module.version);
    match found == expected {
        true => Ok(()),
        false => Err(ProgramError::Version { package: info.package, found, expected }),
    }
}
