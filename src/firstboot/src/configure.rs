//! Every boot: converges the machine to its settings, from any state.

use crate::blocks;
use crate::bootstrap;
use crate::connect;
use crate::error::Error;
use crate::facts;
use crate::files;
use crate::machine::Here;
use crate::permissions;
use crate::plan::{Plan, Stage};
use crate::record::Record;
use crate::root::Root;
use crate::services;
use crate::settings::{self, Variables};
use crate::template::{Fault, Scope};
use crate::users;

/// Runs everything under a lock that the caller holds. A failure is recorded for `status`.
pub fn run(root: &Root, plan: &Plan, record: &mut Record) -> Result<(), Error> {
    let done = steps(root, plan, record);
    match &done {
        // Not an error: the machine waits.
        Err(Error::NotReady { .. }) => {}
        Err(error) => {
            if let Err(second) = record.failed(root, &crate::chain(error)) {
                crate::report(&format!("warning: {}", crate::chain(&second)));
            }
        }
        Ok(()) => record.configured(root)?,
    }
    done
}

fn steps(root: &Root, plan: &Plan, record: &mut Record) -> Result<(), Error> {
    facts::installed(root)?;
    if let Some(inputs) = &plan.inputs {
        bootstrap::is_done(root, inputs)?;
        settings::report_unknown(plan, inputs, &settings::user_data(root, inputs)?);
    }
    permissions::apply(root, plan, &users::restore(root, plan)?)?;
    let first = match &plan.inputs {
        Some(inputs) => bootstrap::run(root, plan, inputs)?,
        None => false,
    };
    let valid = valid(root, plan);
    if let (Some(inputs), true, Err(_)) = (&plan.inputs, first, &valid) {
        // Nothing was written yet: corrected user data are read as if they were first.
        root.remove(&inputs.marker)?;
    }
    let variables = valid?;
    let machine = Here::new(root);
    let scope = Scope { variables: &variables, machine: &machine };
    write_files(root, plan, &variables, record)?;
    for fault in blocks::write(root, &plan.blocks, &scope)? {
        // A timer retries the lookup: a temporarily unavailable name server does not block the machine.
        crate::report(&format!("warning: {fault}"));
    }
    settings::check(&plan.checks, Some(Stage::After), &scope)?;
    for command in &plan.commands {
        if let [program, arguments @ ..] = &command[..] {
            // A failure concerns only this record: services are started nevertheless.
            if let Err(error) = services::run(root, program, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
            {
                crate::report(&format!("warning: {}", crate::chain(&error)));
            }
        }
    }
    Ok(())
}

/// The variables, checked.
fn valid(root: &Root, plan: &Plan) -> Result<Variables, Error> {
    let variables = variables(root, plan)?;
    let machine = Here::new(root);
    let scope = Scope { variables: &variables, machine: &machine };
    settings::check(&plan.checks, Some(Stage::Before), &scope)?;
    for address in &plan.connect {
        let address = crate::template::render(address, &scope, crate::template::Writing::Raw);
        let address = address.map_err(Error::fault("connect"))?;
        match root.dry_run() {
            true => crate::print(&format!("connect to {address}\n"))?,
            false => connect::check(&address, &machine)?,
        }
    }
    Ok(variables)
}

fn write_files(root: &Root, plan: &Plan, variables: &Variables, record: &mut Record) -> Result<(), Error> {
    let machine = Here::new(root);
    let accounts = users::make(root, plan, &Scope { variables, machine: &machine })?;
    let outcome = files::evaluate(&plan.files, variables, &machine, &|path| files::template_of(root, path))?;
    // Paths that depend on variables are recorded before the files are written, so that files of a killed run are found.
    let earlier = record.placed();
    let mut both = earlier.clone();
    both.extend(outcome.placed.iter().filter(|path| !earlier.contains(path)).cloned());
    record.set_placed(root, both)?;
    files::write(root, &accounts, &outcome)?;
    files::remove_stale(root, &earlier, &outcome)?;
    record.set_placed(root, outcome.placed)
}

/// All variables of a machine after `bootstrap`; without inputs, their defaults.
pub fn variables(root: &Root, plan: &Plan) -> Result<Variables, Error> {
    let mut variables = match &plan.inputs {
        None => settings::combine(plan, &[])?,
        Some(inputs) => {
            let read =
                |path: &str| settings::read(root, path)?.ok_or_else(|| Error::NotReady { path: root.shown(path) });
            let user_data = settings::user_data(root, inputs)?;
            settings::combine(plan, &[&user_data, &read(&inputs.detected)?, &read(&inputs.mutable)?])?
        }
    };
    settings::assign(&plan.values, &mut variables, &Here::new(root))?;
    Ok(variables)
}

/// Updates only the blocks; an unresolvable host is an error here, since it is run interactively.
pub fn hosts(root: &Root, plan: &Plan) -> Result<(), Error> {
    let variables = variables(root, plan)?;
    let faults = blocks::write(root, &plan.blocks, &Scope { variables: &variables, machine: &Here::new(root) })?;
    faults.into_iter().next().map_or(Ok(()), |fault: Fault| Err(Error::fault("hosts")(fault)))
}

/// Enables, starts and stops the services.
pub fn restart(root: &Root, plan: &Plan, no_block: bool) -> Result<(), Error> {
    let variables = variables(root, plan)?;
    let scope = Scope { variables: &variables, machine: &Here::new(root) };
    services::handle(root, plan, &scope, services::Occasion::Restart, &[], no_block)
}
