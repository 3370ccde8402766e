//! debconf(7), as its noninteractive frontend serves packages: answers come from what a layer presets and from the templates' defaults.
//!
//! [`Debconf`] is the database: what enters are the base's files below `/var/cache/debconf`, what leaves are the same files as debconf
//! would write them. A package's templates ([`templates`]) are loaded and its scripts talk to a frontend ([`conversation`]) about questions
//! ([`questions`]). Nothing is ever asked, and no password that a script makes gets into an image.

mod conversation;
mod database;
mod fault;
mod questions;
mod record;
mod selections;
mod templates;
mod text;

pub(super) use conversation::Conversation;
pub(super) use database::Debconf;
pub use fault::{DebconfFault, PresetFault};
pub(super) use selections::select;
pub(super) use templates::MAX_TEMPLATES;
pub use templates::TemplateFault;
pub(super) use text::{escape, unescape};
