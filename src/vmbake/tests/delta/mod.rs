//! `vmbake delta` and `vmbake apply`: two disks, the delta between them, and attacks on it.

mod hostile;
mod lab;
mod records;
mod ways;
