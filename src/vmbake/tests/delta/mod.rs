//! `vmbake delta` and `vmbake apply`: two disks, what lies between them, and everything that somebody may put in its place.

mod hostile;
mod lab;
mod records;
mod ways;
