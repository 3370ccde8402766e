//! The first-boot program: a [plan](plan::Plan) of the builder in; files, users and units of the machine out.
//!
//! The builder uses the same code to check a plan, and to write files that an image can have before its first boot.
//!
//! A dry run tells what a machine would become, and changes nothing:
//!
//! ```
//! use vmbake_firstboot::plan::Plan;
//! use vmbake_firstboot::record::Record;
//! use vmbake_firstboot::root::Root;
//! use vmbake_firstboot::{changes, configure};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let machine = tempfile::tempdir()?;
//! let share = machine.path().join("opt/podplane/share");
//! std::fs::create_dir_all(&share)?;
//! let manifest = r#"{"kind": "demo", "os": {"name": "debian-13", "arch": "amd64"}}"#;
//! std::fs::write(share.join("vmconfig-installed.json"), manifest)?;
//!
//! let plan: Plan = serde_json::from_str(
//!     r#"{
//!         "values": [{"name": "WHOM", "value": "world"}],
//!         "files": [{"path": "/greeting", "mode": "0644", "content": {"text": "hello {{ WHOM }}\n"}}]
//!     }"#,
//! )?;
//! let root = Root::open(machine.path(), true)?;
//! configure::run(&root, &plan, &mut Record::read(&root)?)?;
//!
//! assert_eq!(changes::lines(&root), ["write /greeting (0644 root:root)"]);
//! assert_eq!(root.read("/greeting", 100)?.unwrap_or_default(), b"hello world\n");
//! assert!(!machine.path().join("greeting").exists());
//! # Ok(())
//! # }
//! ```

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
pub mod install;
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
