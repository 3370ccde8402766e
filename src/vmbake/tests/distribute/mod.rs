//! Releases on their way: pushed to a real registry and pulled from it, once, again, halfway, and by those who lie.

mod yard;
mod ways;
mod forged;
mod signers;
mod rollback;
