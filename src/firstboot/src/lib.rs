//! What the first-boot program does: a [plan](plan::Plan), made by the builder, in; files, users and units of the machine out.
//!
//! The builder uses the same code to check a plan, and to write what an image can have before its first boot.

pub mod accounts;
pub mod blocks;
pub mod bootstrap;
pub mod changes;
pub mod check;
pub mod configure;
pub mod connect;
pub mod detect;
pub mod env;
pub mod error;
pub mod exec;
pub mod facts;
pub mod files;
pub mod json;
pub mod machine;
pub mod mutable;
pub mod output;
pub mod permissions;
pub mod plan;
pub mod receive;
pub mod record;
pub mod root;
pub mod services;
pub mod settings;
pub mod status;
pub mod template;
pub mod users;

pub(crate) use output::{chain, print, report};
