//! What commands of Debian act on: the tree, dpkg's database, and the package whose script runs.

use std::cell::{RefCell, RefMut};

use vmbake_shell::{Call, Commands, Outcome};

use super::commands;
use crate::compose::merge::MergeError;
use crate::compose::merge::database::Database;
use crate::compose::merge::place::Target;

/// What a command leaves: how it ended, or why the bake stops.
pub(super) type Done = Result<Outcome, MergeError>;

/// A command of Debian.
pub(super) type Command = fn(&mut System<'_, '_>, &mut Call<'_>) -> Done;

/// The machine that a script believes to run on.
pub(super) struct System<'a, 't> {
    target: &'a RefCell<&'t mut Target>,
    pub(super) database: &'a mut Database,
    /// The script of dpkg's that runs, perhaps by way of others.
    pub(super) script: &'a super::Call<'a>,
    /// The first error that stops the bake.
    pub(super) fault: Option<MergeError>,
}

impl<'a, 't> System<'a, 't> {
    pub(super) fn new(
        target: &'a RefCell<&'t mut Target>,
        database: &'a mut Database,
        script: &'a super::Call<'a>,
    ) -> Self {
        Self { target, database, script, fault: None }
    }

    /// The tree. A command has it for itself as long as it does not use `call.files`.
    pub(super) fn target(&self) -> RefMut<'a, &'t mut Target> {
        self.target.borrow_mut()
    }

    fn end(&mut self, done: Done) -> Outcome {
        done.unwrap_or_else(|error| {
            let reason = error.to_string();
            self.fault.get_or_insert(error);
            Outcome::Refused(reason)
        })
    }
}

impl Commands for System<'_, '_> {
    fn run(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
        let command = commands::find(call)?;
        let done = command(self, call);
        Some(self.end(done))
    }

    fn source(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
        let command = commands::find_sourced(call)?;
        let done = command(self, call);
        Some(self.end(done))
    }

    fn machine(&self) -> Option<&'static str> {
        match self.database.arch.as_str() {
            "amd64" => Some("x86_64"),
            "arm64" => Some("aarch64"),
            _ => None,
        }
    }
}
