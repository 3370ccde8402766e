//! The first run: what the machine is, found out once. The file of detected variables and that of mutable ones appear, then
//! the marker that says so.

use crate::detect;
use crate::env;
use crate::error::Error;
use crate::machine::Here;
use crate::mutable;
use crate::plan::{Inputs, Plan, Stage};
use crate::root::{Owner, Root};
use crate::settings;
use crate::template::Scope;

/// Mode and owner of the files: they have secrets.
const PRIVATE: Owner = Owner { mode: 0o600, uid: 0, gid: 0 };

/// Whether it was done. A marker without its files means that somebody removed what cannot be found out again.
pub fn is_done(root: &Root, inputs: &Inputs) -> Result<bool, Error> {
    if root.find(&inputs.marker)?.is_none() {
        return Ok(false);
    }
    for path in [&inputs.detected, &inputs.mutable] {
        if root.find(path)?.is_none_or(|found| found.size == 0) {
            return Err(Error::Lost { path: root.shown(path), marker: root.shown(&inputs.marker) });
        }
    }
    Ok(true)
}

/// Does it, unless it was done.
pub fn run(root: &Root, plan: &Plan, inputs: &Inputs) -> Result<bool, Error> {
    if is_done(root, inputs)? {
        return Ok(false);
    }
    let user_data = settings::user_data(root, inputs)?;
    let mut variables = settings::combine(plan, &[&user_data])?;
    variables.extend(detect::variables(root)?);
    let machine = Here::new(root);
    settings::assign(&plan.detect, &mut variables, &machine)?;
    settings::check(&plan.checks, Some(Stage::Bootstrap), &Scope { variables: &variables, machine: &machine })?;
    let detected = plan.detect.iter().map(|assignment| {
        let value = variables.get(&assignment.name).map_or("", String::as_str);
        (assignment.name.as_str(), value)
    });
    root.write(&inputs.detected, env::render(detected)?.as_bytes(), &PRIVATE)?;
    // A machine without its marker keeps the settings that it received since, unless user data are younger. An unlisted
    // variable is not copied from user data: these count, whatever they change to, until a delivery says otherwise.
    let present = settings::read(root, &inputs.mutable)?.unwrap_or_default();
    let written = |path: &str| root.find(path).map(|found| found.map(|found| found.modified));
    let seeds = settings::without_unlisted(plan, &user_data);
    let mut maps = [&present, &seeds];
    if written(&inputs.user_data)? > written(&inputs.mutable)? {
        maps.reverse();
    }
    let mutable = mutable::merged(plan, &maps)?;
    root.write(&inputs.mutable, mutable.as_bytes(), &PRIVATE)?;
    // With the marker there, nobody writes the user data again.
    root.settle();
    root.write(&inputs.marker, b"", &PRIVATE)
}
