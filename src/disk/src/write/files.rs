//! Several image files written at once: each chunk is passed to all of them.

use std::fs::File;

use super::chunk::Chunk;
use super::qcow2::{Plan, Qcow2Writer};
use super::raw::RawWriter;
use super::sink::{Needs, Sink};
use super::{KnownFile, Output, WriteError, Written, output_error};
use crate::disk::Disk;
use crate::image::Format;

/// The files, in the order of the outputs.
pub struct Files<'a>(Vec<ImageWriter<'a>>);

enum ImageWriter<'a> {
    Raw(Box<RawWriter<'a>>),
    Qcow2(Box<Qcow2Writer<'a>>),
}

impl<'a> Files<'a> {
    /// Starts all files, which must be empty; `plan` is for the first qcow2 one.
    pub fn begin(
        disk: &Disk,
        outputs: &[Output<'a>],
        known: impl Fn(Format) -> Option<KnownFile>,
        mut plan: Option<Plan>,
    ) -> Result<Self, WriteError> {
        let mut compressions =
            outputs.iter().filter(|output| output.format == Format::Qcow2).map(|one| one.compression);
        if let Some(first) = compressions.next()
            && compressions.any(|other| other != first)
        {
            return Err(WriteError::Compressions);
        }
        let begin = |Output { format, file, compression }: &Output<'a>| {
            check_empty(*format, file)?;
            Ok(match format {
                Format::Raw => ImageWriter::Raw(Box::new(RawWriter::new(file, disk.len(), known(*format))?)),
                Format::Qcow2 => {
                    let (known, plan) = (known(*format), plan.take());
                    ImageWriter::Qcow2(Box::new(Qcow2Writer::new(file, disk.len(), *compression, known, plan)?))
                }
            })
        };
        Ok(Self(outputs.iter().map(begin).collect::<Result<_, _>>()?))
    }
}

impl Sink for Files<'_> {
    type Written = Vec<Written>;
    type Error = WriteError;

    fn needs(&self) -> Needs {
        self.0.iter().map(Sink::needs).fold(Needs::default(), Needs::and)
    }

    fn append(&mut self, chunk: &Chunk) -> Result<(), WriteError> {
        self.0.iter_mut().try_for_each(|file| file.append(chunk))
    }

    /// Concurrently: hashing and syncing each takes some seconds.
    fn finish(self) -> Result<Vec<Written>, WriteError> {
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for file in self.0 {
                let thread = std::thread::Builder::new().spawn_scoped(scope, || file.finish());
                threads.push(thread.map_err(|source| WriteError::Thread { source })?);
            }
            threads.into_iter().map(|thread| thread.join().map_err(|_| WriteError::ThreadLost)?).collect()
        })
    }
}

impl Sink for ImageWriter<'_> {
    type Written = Written;
    type Error = WriteError;

    fn needs(&self) -> Needs {
        match self {
            Self::Raw(raw) => raw.needs(),
            Self::Qcow2(qcow2) => qcow2.needs(),
        }
    }

    fn append(&mut self, chunk: &Chunk) -> Result<(), WriteError> {
        match self {
            Self::Raw(raw) => raw.append(chunk),
            Self::Qcow2(qcow2) => qcow2.append(chunk),
        }
    }

    fn finish(self) -> Result<Written, WriteError> {
        match self {
            Self::Raw(raw) => raw.finish(),
            Self::Qcow2(qcow2) => qcow2.finish(),
        }
    }
}

pub(super) fn check_empty(format: Format, file: &File) -> Result<(), WriteError> {
    let found = file.metadata().map_err(|source| output_error(format, "examine", 0, source))?.len();
    if found == 0 { Ok(()) } else { Err(WriteError::NotEmpty { format, len: found }) }
}
