//! Users that a machine gets by its settings, made by useradd(8).

use crate::accounts::Accounts;
use crate::error::Error;
use crate::plan::Plan;
use crate::root::Root;
use crate::services;
use crate::template::{self, Scope};

const USERADD: &str = "/usr/sbin/useradd";

/// Makes the users that are wanted and missing; all users of the machine are returned.
pub fn make(root: &Root, plan: &Plan, scope: &Scope) -> Result<Accounts, Error> {
    let mut accounts = Accounts::read(root)?;
    let mut made = false;
    for (name, user) in &plan.users {
        let wanted = template::holds(Some(&user.when), scope).map_err(Error::fault(name))?;
        if !wanted || accounts.has_user(name) {
            continue;
        }
        let arguments = ["--create-home", "--user-group", "--shell", &user.shell, "--", name];
        if root.dry_run() {
            services::run(root, USERADD, &arguments)?;
            accounts.assume(name);
            continue;
        }
        let prefix = root.shown("/").display().to_string();
        let arguments =
            if root.is_system() { arguments.to_vec() } else { [&["--prefix", &prefix], &arguments[..]].concat() };
        services::execute(USERADD, &arguments)?;
        made = true;
    }
    if made { Accounts::read(root) } else { Ok(accounts) }
}
