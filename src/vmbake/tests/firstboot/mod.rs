//! Results of the first boot: the static program runs on prepared machines of each kind, provider and combination of
//! settings, and the results are compared with a snapshot, with a second run, with the other architecture, and with
//! Jinja and parsers of the formats.

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
