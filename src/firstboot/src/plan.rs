//! The plan: what is left to do on the machine, as data. `/opt/podplane/share/firstboot.json` in, [`Plan`] out.
//!
//! Every layer has a part of it, the key `first_boot` of `layer.json`; the builder joins the parts of a kind in the order of
//! its layers. Texts named "template" and "condition" are in the language of [`template`](crate::template).

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
pub use receive::{KeyPlace, Place, Receive};
pub use services::{Action, Exec, Service};
pub use short::{Argument, Assignment};
pub use variables::{Check, Format, Inputs, Stage, Variable};

/// Where a machine has its plan.
pub const PATH: &str = "/opt/podplane/share/firstboot.json";

/// All that is done on the machine, or one layer's part of it. Lists are done in their order.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Plan {
    /// Files with variables that others write, and the marker of `bootstrap`; at most one layer has it. Without it nothing
    /// is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Inputs>,
    /// Variables that the inputs may have, by name.
    pub variables: Named<Variable>,
    /// What `bootstrap` finds out once, written to the file of detected variables. Beside variables, templates see the facts
    /// `kind`, `device`, `ipv4`, `ipv6`, `hostname`, `fqdn` and `instance_id`, and may ask `cloud('v1.region')`.
    pub detect: Vec<Assignment>,
    /// Variables made of others on every boot, each after those before it in the list.
    pub values: Vec<Assignment>,
    /// What must hold.
    pub checks: Vec<Check>,
    /// Addresses, `host:port` or `[v6]:port`, that must take a TCP connection within 5 seconds; empty ones fail.
    pub connect: Vec<String>,
    /// Users that are made where the condition holds, as useradd does, and stay.
    pub users: Named<BootUser>,
    /// Users that the image has, which get back what they lost; the builder adds those of the layer itself.
    pub accounts: Named<Account>,
    /// Directories by path; the builder adds those of the layer itself.
    pub directories: Named<Ownership>,
    /// Mode and owner of files that are there already; the builder adds those of the layer itself.
    pub modes: Named<Ownership>,
    /// Mode and owner of files that may be missing; `/*` at the end stands for every file of a directory.
    pub optional_modes: Named<Ownership>,
    /// Files that are written.
    pub files: Vec<FileRule>,
    /// Parts of files that others write too.
    pub blocks: Vec<Block>,
    /// Programs that `configure` runs when all files are written: absolute path and arguments.
    pub commands: Vec<Vec<String>>,
    /// Units that `restart` enables, starts and stops.
    pub services: Vec<Service>,
    /// Programs that `exec` becomes, by name.
    pub exec: Named<Exec>,
    /// Where files for this machine arrive; at most one layer has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive: Option<Receive>,
    /// Files that may arrive, by name, and where they go.
    pub received: Named<Place>,
    /// Private keys that were made on the machine, by name, and where they go.
    pub keys: Named<KeyPlace>,
}

fn is_false(value: &bool) -> bool {
    !value
}
