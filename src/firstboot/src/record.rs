//! Result of the last run of `configure`: `/var/lib/vmbake/firstboot.json`. It has no time: a run without changes
//! writes nothing.

use serde_json::{Value, json};

use crate::error::Error;
use crate::facts::Facts;
use crate::json;
use crate::root::{Owner, Root};

/// Its path.
pub const PATH: &str = "/var/lib/vmbake/firstboot.json";

const PRIVATE: Owner = Owner { mode: 0o600, uid: 0, gid: 0 };

/// The record on disk.
pub struct Record {
    value: Option<Value>,
}

impl Record {
    /// Reads it. One that is truncated by a power cut counts as missing; anything but a record is refused.
    pub fn read(root: &Root) -> Result<Self, Error> {
        match json::object(root, PATH) {
            Ok(value) => Ok(Self { value }),
            Err(Error::Corrupt { .. }) => Ok(Self { value: None }),
            Err(error) => Err(error),
        }
    }

    pub fn value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    /// Paths that depended on variables when they were written.
    pub fn placed(&self) -> Vec<String> {
        let paths = self.value.as_ref().and_then(|value| value["placed"].as_array());
        paths.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Records those paths.
    pub fn set_placed(&mut self, root: &Root, placed: Vec<String>) -> Result<(), Error> {
        if self.placed() == placed {
            return Ok(());
        }
        let mut value = self.value.clone().unwrap_or_else(|| json!({ "schema": 2, "state": "unfinished" }));
        value["placed"] = json!(placed);
        self.write(root, value)
    }

    /// Records what the machine is, and that it is configured.
    pub fn configured(&mut self, root: &Root) -> Result<(), Error> {
        let mut value = Facts::gather(root)?.json();
        value["state"] = json!("configured");
        value["placed"] = json!(self.placed());
        self.write(root, value)
    }

    /// Records why the machine is not configured.
    pub fn failed(&mut self, root: &Root, reason: &str) -> Result<(), Error> {
        let value = json!({ "schema": 2, "state": "failed", "error": reason, "placed": self.placed() });
        self.write(root, value)
    }

    fn write(&mut self, root: &Root, value: Value) -> Result<(), Error> {
        // A dry run does not write the record. If nothing is new, this removes the temporary file of a killed run.
        if !root.dry_run() {
            root.write(PATH, format!("{value:#}\n").as_bytes(), &PRIVATE)?;
        }
        self.value = Some(value);
        Ok(())
    }
}
