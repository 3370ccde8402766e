//! What a program says of itself, where the proof of its digest leaves open which program it is.
//!
//! A signature over a file by itself binds neither name, nor version, nor architecture: an old program, or another one of the same
//! signer, has one too. A file whose digest is proven enters; it is refused unless it is made for the architecture, as its ELF header
//! says, and is the main package of the version that `sources.json` demands, as Go's linker noted. Nobody but the signer could have
//! written either of them, so both are as good as the proof of the digest, and worth nothing without it.

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

/// Why a file is not the program that was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("no readable program")]
    Elf(#[source] ElfError),
    #[error("its main package is {found}, not {expected}")]
    Package { found: String, expected: String },
    #[error("{package} of version {found}, not {expected}")]
    Version { package: String, found: String, expected: String },
    #[error("`program` of its source cannot be applied")]
    Template(#[source] Undefined),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for ProgramError {
    fn hint(&self) -> Option<String> {
        let text = "a signature does not say for which program and version it is, so that somebody may have put another one there: \
                    tell upstream; if its releases have changed, correct `program` in sources.json";
        matches!(self, Self::Package { .. } | Self::Version { .. }).then(|| text.to_owned())
    }

    vmbake_common::causes!(Elf, Template, Message);
}

/// Fails unless `file`, an artifact of `upstream` whose digest is proven, is the program of this version and architecture.
///
/// Only artifacts of type `binary` are looked at. One that is no ELF file, such as a script, is for every architecture; it is refused
/// where the source demands a program.
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
        return Err(ProgramError::Message(message!("a program for {}, not for {expected}", elf.machine)));
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
        ProgramError::Message(message!("no program of Go, so that nothing says that it is {expected}"))
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
