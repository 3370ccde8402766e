//! The chain of an apt repository: repositories signed by gpg, a real archive, and what gpg and apt say of the same files; signatures over other files.

mod command;
mod detached;
mod indexes;
pub mod lab;
mod real;
mod releases;
mod signatures;
