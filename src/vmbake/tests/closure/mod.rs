//! Packages that layers ask for: which are chosen beside what the base has, how they are pinned and installed, and what is refused.

mod archive;
mod bake;
mod flat;
mod hold;
mod local;
mod refusals;
mod rules;
mod snapshot;
mod swap;
