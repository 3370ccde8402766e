//! ELF files: parsing, checks of an image, and the dynamic linker's cache, compared with binutils and glibc.

pub mod parts;
mod reader;
mod programs;
mod loader;
mod ldcache;
pub mod go;
