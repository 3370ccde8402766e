//! The plan: remaining work on the machine, as data. `/opt/podplane/share/firstboot.json` in, [`Plan`] out.
//!
//! Each layer has a part of it, the key `first_boot` of `layer.json`; the builder joins the parts of a kind in the order of
//! its layers. Texts named "template" and "condition" are in the [template language](crate::template).

mod variables;
mod short;
mod ownership;
mod files;
mod services;
mod receive;
mod named;
mod read;

use serde::{Deserialize, Serialize};

pub use files::{Block, Content, FileRule, Notation, Template};
pub use named::Named;
pub use ownership::{Account, BootUser, Ownership, octal};
pub use read::Wrong;
pub use receive::{FileDestination, KeyDestination, Receive};
pub use services::{Action, Exec, Service};
pub use short::{Argument, Assignment};
pub use variables::{Check, Format, Inputs, Stage, Variable};

/// Path of the plan.
pub const PATH: &str = "/opt/podplane/share/firstboot.json";

/// All actions on the machine, or one layer's part of them. Lists are processed in order.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Plan {
    /// Input files with variables, and the marker of `bootstrap`; at most one layer has it. Without it, nothing
    /// is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Inputs>,
    /// Variables that the inputs can have, by name.
    pub variables: Named<Variable>,
    /// Values that `bootstrap` detects once and writes to the file of detected variables. In addition to variables, templates can use the facts
    /// `kind`, `device`, `ipv4`, `ipv6`, `hostname`, `fqdn` and `instance_id`, and the function `cloud('v1.region')`.
    pub detect: Vec<Assignment>,
    /// Variables that are derived on every boot; each can use earlier ones.
    pub values: Vec<Assignment>,
    /// Conditions that must hold.
    pub checks: Vec<Check>,
    /// Addresses, `host:port` or `[v6]:port`, that must accept a TCP connection within 5 seconds; empty ones fail.
    pub connect: Vec<String>,
    /// Users to create permanently if the condition holds, as useradd does.
    pub users: Named<BootUser>,
    /// Users of the image to restore; the builder adds those of the layer itself.
    pub accounts: Named<Account>,
    /// Directories by path; the builder adds those of the layer itself.
    pub directories: Named<Ownership>,
    /// Modes and owners of existing files; the builder adds those of the layer itself.
    pub modes: Named<Ownership>,
    /// Modes and owners of files that can be missing; a trailing `/*` matches every file of a directory.
    pub optional_modes: Named<Ownership>,
    /// Files to write.
    pub files: Vec<FileRule>,
    /// Blocks in files that other programs also write.
    pub blocks: Vec<Block>,
    /// Programs that `configure` runs after writing all files: absolute path and arguments.
    pub commands: Vec<Vec<String>>,
    /// Units that `restart` enables, starts and stops.
    pub services: Vec<Service>,
    /// Programs that `exec` executes, by name.
    pub exec: Named<Exec>,
    /// Delivery of files to this machine; at most one layer has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive: Option<Receive>,
    /// Files that can be delivered, by name, with their destinations.
    pub received: Named<FileDestination>,
    /// Private keys that were generated on the machine, by name, with their destinations.
    pub keys: Named<KeyDestination>,
}

fn is_false(value: &bool) -> bool {
    !value
}
