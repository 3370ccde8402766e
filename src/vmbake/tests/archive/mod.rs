//! `vmbake archive`: archives for offline sites, and attacks on them.

mod hostile;
pub mod lab;
mod sites;
mod whole;
