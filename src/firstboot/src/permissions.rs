//! Owners and modes: those of the plan in, those of the machine out.
//!
//! Directories that are missing are made; each after the one above it.

use std::collections::BTreeMap;

use crate::accounts::Accounts;
use crate::error::Error;
use crate::plan::{Ownership, Plan};
use crate::root::{Owner, Root};

/// Makes or corrects the directories of the plan, then corrects its files; of `optional_modes`, those that are there.
pub fn apply(root: &Root, plan: &Plan, accounts: &Accounts) -> Result<(), Error> {
    // Sorted by path, a directory comes before what is in it.
    for (path, owner) in owners(&plan.directories, accounts) {
        root.directory(path, &owner?)?;
    }
    for (path, owner) in owners(&plan.modes, accounts) {
        root.permit(path, &owner?, false)?;
    }
    for (path, ownership) in &plan.optional_modes {
        // What is missing may belong to a user that is missing.
        if root.find(path)?.is_some() {
            root.permit(path, &owner(ownership, accounts)?, true)?;
        }
    }
    Ok(())
}

fn owners<'a>(
    paths: &'a BTreeMap<String, Ownership>,
    accounts: &Accounts,
) -> impl Iterator<Item = (&'a str, Result<Owner, Error>)> {
    paths.iter().map(|(path, ownership)| (path.as_str(), owner(ownership, accounts)))
}

fn owner(ownership: &Ownership, accounts: &Accounts) -> Result<Owner, Error> {
    accounts.owner(ownership.mode, &ownership.owner, &ownership.group)
}
