//! Users that a machine gets by its settings, made by useradd(8), which may have been killed half-way.

use crate::accounts::Accounts;
use crate::error::Error;
use crate::plan::Plan;
use crate::root::Root;
use crate::services;
use crate::template::{self, Scope};

/// Makes the users that are wanted, and what they lack: a group of their name and a home. All users are returned.
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
        // At the end it makes the home, which nobody may enter until it has its owner.
        let home = format!("/home/{name}");
        if root.find(&home)?.is_none_or(|home| home.mode == 0) {
            root.directory(&home, &accounts.owner(0o700, name, name)?)?;
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
