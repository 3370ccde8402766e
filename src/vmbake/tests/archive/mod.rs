//! `vmbake archive`: what a site without a network gets, and everything that somebody may put in its place.

mod hostile;
pub mod lab;
mod sites;
mod whole;
