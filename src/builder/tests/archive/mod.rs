//! `vmbake archive`: what a site without a network gets, and everything that somebody may put in its place.

mod hostile;
mod lab;
mod sites;
