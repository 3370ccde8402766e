//! The first run: detects properties of the machine once. Writes the files of detected and mutable variables, then
//! a marker.

use crate::detect;
use crate::env;
use crate::error::Error;
use crate::machine::Here;
use crate::mutable;
use crate::plan::{Inputs, Plan, Stage};
use crate::root::{Owner, Root};
use crate::settings;
use crate::template::Scope;

/// Mode and owner of the files, which contain secrets.
const PRIVATE: Owner = Owner { mode: 0o600, uid: 0, gid: 0 };

/// Whether it is done. A marker without its files is an error, since the detected values are lost.
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

/// Runs it, unless it is done.
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
    // A machine without its marker keeps settings that were delivered since, unless user data are newer. An unlisted
    // variable is not copied from user data: these apply, even if they change, until a delivery sets it.
    let present = settings::read(root, &inputs.mutable)?.unwrap_or_default();
    let written = |path: &str| root.find(path).map(|found| found.map(|found| found.modified));
    let seeds = settings::without_unlisted(plan, &user_data);
    let mut maps = [&present, &seeds];
    if written(&inputs.user_data)? > written(&inputs.mutable)? {
        maps.reverse();
    }
    let mutable = mutable::merged(plan, &maps)?;
    root.write(&inputs.mutable, mutable.as_bytes(), &PRIVATE)?;
    // After the marker exists, user data are not written again.
    root.sync_all();
    root.write(&inputs.marker, b"", &PRIVATE)
}
