//! ELF files: reading them, checking those of an image, and the dynamic linker's cache, with binutils and glibc as judges.

pub mod parts;
mod reader;
mod programs;
mod loader;
mod ldcache;
pub mod go;
