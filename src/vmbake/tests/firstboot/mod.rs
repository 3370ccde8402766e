//! What the first boot makes of a node: the static program is run on prepared machines of each kind, provider and choice of
//! settings, and what it leaves is compared with a snapshot, with a second run, with the other architecture, and with what
//! Jinja and parsers of the formats make of the same plan.

mod image;
mod machine;
pub mod settings;
mod snapshot;
mod trees;
mod life;
mod restored;
mod changes;
mod hostile;
mod refusals;
