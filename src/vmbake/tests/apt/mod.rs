//! The chain of trust of an apt repository: repositories signed by gpg and a real archive, compared with gpg and apt; detached signatures.

mod command;
mod detached;
mod indexes;
pub mod lab;
mod real;
mod releases;
mod signatures;
