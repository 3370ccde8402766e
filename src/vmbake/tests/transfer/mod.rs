//! Releases in a real registry: pushed and pulled, once, again, interrupted, and forged.

mod yard;
mod ways;
mod forged;
mod signers;
mod rollback;
