//! A kernel module: what depmod and modinfo need of it.
//!
//! Reads the bytes of a file, plain or compressed; returns its symbols and the fields of `.modinfo`. The decompressed bytes are not kept.

mod decompress;
mod elf;
mod names;

use crate::error::KmodError;
use crate::files::{Files, read};
use decompress::decompress;
use elf::Elf;
pub use names::Names;

/// A field of `.modinfo`: key and value.
pub type Field = (Vec<u8>, Vec<u8>);

/// What a module defines and needs.
#[derive(Debug, Default)]
pub struct Module {
    /// The symbols that it exports.
    pub exports: Names,
    /// The undefined symbols, in the order of the symbol table; then those of `__versions` alone.
    pub needs: Names,
    /// Those of `needs` that may stay undefined.
    pub weak: Names,
    /// In the order of the section.
    pub fields: Vec<Field>,
    /// The architecture, as Debian calls it: `amd64` or `arm64`.
    pub arch: &'static str,
}

impl Module {
    pub fn read(files: &impl Files, path: &str) -> Result<Self, KmodError> {
        let Some(bytes) = read(files, path)? else {
            let source = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(KmodError::Read { path: path.to_owned(), source });
        };
        let bytes = decompress(bytes, path)?;
        let parse = || {
            let elf = Elf::new(&bytes)?;
            let (needs, weak) = elf.needs()?;
            Ok(Self { exports: elf.exports()?, needs, weak, fields: elf.fields()?, arch: elf.arch })
        };
        parse().map_err(|fault: crate::error::Fault| fault.at(path))
    }

    /// Values of the fields `key`.
    pub fn values<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.fields.iter().filter(move |(found, _)| found == key.as_bytes()).map(|(_, value)| &value[..])
    }
}
