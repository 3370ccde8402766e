//! Rehearses the first boot: runs the code of `bootstrap` and `configure` on user data, with placeholder facts for
//! machine-specific values. The plan and user data in; all failures out.
//!
//! Not rehearsed: responses of servers, addresses of hosts, and files that are delivered in another way.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use vmbake_firstboot::error::Error;
use vmbake_firstboot::plan::{Check, Plan, Stage, Variable};
use vmbake_firstboot::settings::{self, Variables};
use vmbake_firstboot::template::{self, Condition, Fault, Machine, Scope, Text, Writing};
use vmbake_firstboot::{detect, env, files, mutable};

use vmbake_layer::Layer;

/// Result of a rehearsal.
struct Imagined {
    /// Resulting files.
    paths: Vec<String>,
}

impl Machine for Imagined {
    fn exists(&self, path: &str) -> Result<bool, Fault> {
        Ok(self.paths.iter().any(|there| there == path))
    }

    fn addresses(&self, _host: &str) -> Result<Vec<String>, Fault> {
        Ok(vec!["192.0.2.1".to_owned()])
    }

    fn cloud(&self, _path: &str) -> Result<String, Fault> {
        Ok(String::new())
    }
}

/// Rehearses a first boot with `user_data` and files at the paths `brought`. Missing files are returned as
/// messages; failures are errors, as many at once as possible.
pub(super) fn rehearse(
    plan: &Plan,
    layers: &[Layer],
    kind: &str,
    user_data: &BTreeMap<String, String>,
    brought: &[&str],
) -> Result<Vec<String>, Vec<Error>> {
    let mut stopping = Vec::new();
    let (plan, user_data) = without_misfits(plan, user_data, &mut stopping);
    let one = |error| vec![error];
    let mut machine = Imagined { paths: brought.iter().map(|path| (*path).to_owned()).collect() };
    let variables = variables(&plan, kind, &user_data, &machine, &mut stopping).map_err(one)?;
    stopping.extend(failing(&plan, Stage::Before, &Scope { variables: &variables, machine: &machine }));
    if !stopping.is_empty() {
        return Err(stopping);
    }
    connect(&plan, &Scope { variables: &variables, machine: &machine }).map_err(one)?;
    let text = |path: &str| {
        let file = layers.iter().rev().find_map(|layer| layer.files.get(path));
        let text = file.and_then(|file| String::from_utf8(file.content.clone()).ok());
        text.ok_or_else(|| Error::missing(Path::new(path)))
    };
    let outcome = files::evaluate(&plan.files, &variables, &machine, &text).map_err(one)?;
    machine.paths.extend(outcome.present.into_iter().map(|(_, path, _)| path));
    let lacking = failing(&plan, Stage::After, &Scope { variables: &variables, machine: &machine });
    Ok(lacking.iter().map(|error| vmbake_firstboot::output::chain(error)).collect())
}

/// Plan and user data without invalid variables and their checks, so that the rest can
/// be checked as well.
fn without_misfits(plan: &Plan, user_data: &BTreeMap<String, String>, stopping: &mut Vec<Error>) -> (Plan, Variables) {
    let (mut rest, mut user_data) = (plan.clone(), user_data.clone());
    for (name, variable) in &plan.variables {
        let alone = Plan { variables: [(name.clone(), variable.clone())].into_iter().collect(), ..Plan::default() };
        if let Err(error) = settings::combine(&alone, &[&user_data]) {
            stopping.push(error);
            rest.variables.insert(name.clone(), Variable { required: false, ..variable.clone() });
            rest.checks.retain(|check| !names(check).contains(name));
            user_data.retain(|other, _| other != name && !variable.aliases.contains(other));
        }
    }
    (rest, user_data)
}

/// The variables of a check.
fn names(check: &Check) -> BTreeSet<String> {
    let conditions = check.when.iter().chain([&check.that]);
    conditions.filter_map(|text| Condition::parse(text).ok()).flat_map(|condition| condition.names()).collect()
}

/// The variables of a machine after `bootstrap`.
fn variables(
    plan: &Plan,
    kind: &str,
    user_data: &Variables,
    machine: &Imagined,
    stopping: &mut Vec<Error>,
) -> Result<Variables, Error> {
    let facts = [kind, "eth0", "192.0.2.1", "2001:db8::1", "machine", "machine.localdomain", "instance"];
    let mut variables = settings::combine(plan, &[user_data])?;
    variables.extend(detect::NAMES.iter().zip(facts).map(|(name, fact)| ((*name).to_owned(), fact.to_owned())));
    settings::assign(&plan.detect, &mut variables, machine)?;
    stopping.extend(failing(plan, Stage::Bootstrap, &Scope { variables: &variables, machine }));
    let detected = plan.detect.iter().filter_map(|assignment| variables.get_key_value(&assignment.name));
    let detected: Variables = detected.map(|(name, value)| (name.clone(), value.clone())).collect();
    let written = mutable::merged(plan, &[&settings::without_unlisted(plan, user_data)])?;
    let mutable = env::parse(Path::new("mutable.env"), written.as_bytes())?;
    let mut variables = settings::combine(plan, &[user_data, &detected, &mutable])?;
    settings::assign(&plan.values, &mut variables, machine)?;
    Ok(variables)
}

/// Failed checks of a stage.
fn failing(plan: &Plan, stage: Stage, scope: &Scope) -> Vec<Error> {
    let checks = plan.checks.iter();
    checks.filter_map(|check| settings::check(std::iter::once(check), Some(stage), scope).err()).collect()
}

/// Checks the syntax of addresses to connect to.
fn connect(plan: &Plan, scope: &Scope) -> Result<(), Error> {
    for address in &plan.connect {
        let value = template::render(address, scope, Writing::Raw).map_err(Error::fault("connect"))?;
        if !settings::is_host_port(&value) {
            let names = Text::parse(address).map(|text| text.names()).unwrap_or_default();
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Error::Check {
                message: format!("{names}: expected host:port or [address]:port, found {value:?}"),
            });
        }
    }
    Ok(())
}
