//! Names available to templates, by location.

use std::collections::BTreeSet;

use crate::detect;
use crate::plan::{Assignment, Plan};

/// Defined names by location.
pub(super) struct Known<'a> {
    whole: &'a Plan,
    /// The variables of inputs.
    inputs: BTreeSet<String>,
    /// In checks of `bootstrap`.
    pub(super) detect: BTreeSet<String>,
    /// On every boot, after `values`.
    pub(super) all: BTreeSet<String>,
}

impl<'a> Known<'a> {
    pub(super) fn of(whole: &'a Plan) -> Self {
        let inputs: BTreeSet<String> = whole.variables.keys().cloned().collect();
        let names = |list: &[Assignment]| list.iter().map(|one| one.name.clone()).collect::<BTreeSet<_>>();
        let detected = &inputs | &names(&whole.detect);
        let facts: BTreeSet<String> = detect::NAMES.map(str::to_owned).into();
        Self { whole, detect: &detected | &facts, all: &detected | &names(&whole.values), inputs }
    }

    /// In an element of `detect`: earlier elements and facts.
    pub(super) fn detect_before(&self, assignment: &Assignment) -> BTreeSet<String> {
        let facts: BTreeSet<String> = detect::NAMES.map(str::to_owned).into();
        &(&self.inputs | &facts) | &before(&self.whole.detect, assignment)
    }

    /// In an element of `values`: earlier elements.
    pub(super) fn values_before(&self, assignment: &Assignment) -> BTreeSet<String> {
        let detected: BTreeSet<String> = self.whole.detect.iter().map(|one| one.name.clone()).collect();
        &(&self.inputs | &detected) | &before(&self.whole.values, assignment)
    }
}

fn before(list: &[Assignment], assignment: &Assignment) -> BTreeSet<String> {
    let is_it = |one: &&Assignment| one.name == assignment.name && one.value == assignment.value;
    list.iter().take_while(|one| !is_it(one)).map(|one| one.name.clone()).collect()
}
