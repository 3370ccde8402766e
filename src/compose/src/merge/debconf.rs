//! debconf(7) with the noninteractive frontend: answers come from the layer or from the defaults of the templates.
//!
//! [`Debconf`] is the database: files of the base below `/var/cache/debconf` in, the files that debconf would write out. The templates of a
//! package ([`templates`]) are loaded, and its scripts access questions ([`questions`]) through the protocol ([`conversation`]). Passwords
//! never become part of an image.

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
