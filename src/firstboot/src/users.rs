//! Creates users by the machine's settings, and restores users of the image. useradd(8) and related tools
//! are used, and can have been killed halfway.

use crate::accounts::Accounts;
use crate::error::Error;
use crate::plan::Plan;
use crate::root::Root;
use crate::services;
use crate::template::{self, Scope};

/// Creates requested users, and their missing groups and homes. Returns all users.
pub fn make(root: &Root, plan: &Plan, scope: &Scope) -> Result<Accounts, Error> {
    let mut accounts = Accounts::read(root)?;
    for (name, user) in &plan.users {
        if !template::holds(Some(&user.when), scope).map_err(Error::fault(name))? {
            continue;
        }
        if !accounts.has_user(name) {
            let arguments = ["--create-home", "--user-group", "--shell", &user.shell, "--", name];
            run(root, &mut accounts, "/usr/sbin/useradd", &arguments, name)?;
        } else if !accounts.has_group(name) {
            // useradd writes the users, then the groups.
            run(root, &mut accounts, "/usr/sbin/groupadd", &["--", name], name)?;
        }
        // Finally it creates the home, which is inaccessible until it has its owner.
        let home = format!("/home/{name}");
        if root.find(&home)?.is_none_or(|home| home.mode == 0) {
            root.directory(&home, &accounts.owner(0o700, name, name)?)?;
        }
    }
    Ok(accounts)
}

/// Restores users of the image: user, group, shell and exact secondary groups. Returns all users.
pub fn restore(root: &Root, plan: &Plan) -> Result<Accounts, Error> {
    let mut accounts = Accounts::read(root)?;
    let missing: Vec<&str> = plan.accounts.keys().map(String::as_str).filter(|name| !accounts.has_user(name)).collect();
    for (name, account) in &plan.accounts {
        if !accounts.has_group(name) {
            run(root, &mut accounts, "/usr/sbin/groupadd", &["--gid", &account.id.to_string(), "--", name], name)?;
        }
    }
    for (name, account) in &plan.accounts {
        let optional = account.optional_groups.iter().filter(|group| accounts.has_group(group));
        let groups: Vec<&str> = account.groups.iter().chain(optional).map(String::as_str).collect();
        let common = ["--groups", &groups.join(","), "--shell", &account.shell, "--", name];
        if missing.contains(&name.as_str()) {
            // Its home can still exist; subordinate ids are not assigned.
            let id = account.id.to_string();
            let keys = ["--key", "SUB_UID_COUNT=0", "--key", "SUB_GID_COUNT=0"];
            let new = ["--uid", &id, "--gid", name, "--home-dir", &account.home, "--no-create-home"];
            run(root, &mut accounts, "/usr/sbin/useradd", &[&new[..], &keys, &common].concat(), name)?;
            if root.find(&account.home)?.is_none() {
                root.directory(&account.home, &accounts.owner(0o700, name, name)?)?;
            }
            if root.dry_run() {
                continue;
            }
        }
        // Also for a user that was just created: groups can have the name from before.
        if !accounts.is_in(name, &account.shell, &groups) {
            run(root, &mut accounts, "/usr/sbin/usermod", &common, name)?;
        }
    }
    Ok(accounts)
}

fn run(root: &Root, accounts: &mut Accounts, program: &str, arguments: &[&str], name: &str) -> Result<(), Error> {
    if root.dry_run() {
        accounts.assume(name);
        return services::run(root, program, arguments);
    }
    let prefix = root.shown("/").display().to_string();
    let arguments = if root.is_system() { arguments.to_vec() } else { [&["--prefix", &prefix], arguments].concat() };
    services::execute(program, &arguments)?;
    *accounts = Accounts::read(root)?;
    Ok(())
}
