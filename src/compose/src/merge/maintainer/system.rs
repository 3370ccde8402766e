//! The state that Debian's commands work on: the tree, dpkg's database, and the package whose script runs.

use std::cell::{RefCell, RefMut};

use vmbake_shell::{Call, Outcome};

use super::commands::Building;
use crate::merge::MergeError;
use crate::merge::database::Database;
use crate::merge::debconf::Conversation;
use crate::merge::place::Target;

/// Result of a command: its exit status, or why the bake stops.
pub(super) type Done = Result<Outcome, MergeError>;

/// A command of Debian.
pub(super) type Command = fn(&mut System<'_, '_>, &mut Call<'_>) -> Done;

/// The machine that a script believes to run on.
pub(super) struct System<'a, 't> {
    target: &'a RefCell<&'t mut Target>,
    pub(super) database: &'a mut Database,
    /// The script of dpkg's that runs, perhaps by way of others.
    pub(super) script: &'a super::Call<'a>,
    /// What runs under debconf's frontend talks to it.
    pub(super) conversation: Option<Conversation>,
    /// What is known while mkinitramfs runs.
    pub(super) initrd: Option<Building>,
    /// The first error that stops the bake.
    pub(super) fault: Option<MergeError>,
}

impl<'a, 't> System<'a, 't> {
    pub(super) fn new(
        target: &'a RefCell<&'t mut Target>,
        database: &'a mut Database,
        script: &'a super::Call<'a>,
    ) -> Self {
        Self { target, database, script, conversation: None, initrd: None, fault: None }
    }

    /// The tree. A command has it for itself as long as it does not use `call.files`.
    pub(super) fn target(&self) -> RefMut<'a, &'t mut Target> {
        self.target.borrow_mut()
    }

    /// How a command ended; an error stops the bake.
    pub(super) fn end(&mut self, done: Done) -> Outcome {
        done.unwrap_or_else(|error| {
            let reason = error.to_string();
            self.fault.get_or_insert(error);
            Outcome::Refused(reason)
        })
    }
}
