//! Names of settings: unknown ones with suggestions, and values that cannot be represented.

use std::collections::{BTreeMap, BTreeSet};

use vmbake_firstboot::env;
use vmbake_firstboot::plan::{Content, Format, Plan, Variable};
use vmbake_firstboot::template::{Condition, Text};

use super::Problem;
use vmbake_common::spelling::near;

/// The settings that the plan does not have.
pub(super) fn unknown(plan: &Plan, settings: &BTreeMap<String, String>) -> Vec<Problem> {
    let known: BTreeSet<&str> = plan
        .variables
        .iter()
        .flat_map(|(name, variable)| std::iter::once(name).chain(&variable.aliases))
        .map(String::as_str)
        .collect();
    let wrong = settings.keys().filter(|name| !known.contains(name.as_str()));
    wrong.map(|name| Problem::Unknown { name: name.clone(), near: near(name, known.iter().copied()) }).collect()
}

/// The variable with that name or alias.
pub(super) fn variable<'a>(plan: &'a Plan, name: &str) -> Option<&'a Variable> {
    let is_named =
        |(known, variable): &(&String, &Variable)| *known == name || variable.aliases.iter().any(|alias| alias == name);
    plan.variables.iter().find(is_named).map(|(_, variable)| variable)
}

/// Suggestion for a misspelled name.
pub(super) fn suggestion(near: &[String]) -> String {
    match near {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(", ")),
    }
}

/// Settings with values that a shell and systemd would parse differently.
pub(super) fn unwritable(plan: &Plan, settings: &BTreeMap<String, String>) -> Vec<Problem> {
    let several = of_several_lines(plan);
    let problem = |(name, value): (&String, &String)| {
        let lines = several.contains(name);
        let expected = if value.chars().any(|other| other.is_control() && !(lines && other == '\n')) {
            if lines { "lines without control characters" } else { "one line without control characters" }
        } else {
            env::unfit(value)?
        };
        Some(Problem::Text { name: name.clone(), expected })
    };
    settings.iter().filter_map(problem).collect()
}

/// Variables that can have several lines: base64, and lists that the plan splits by lines.
fn of_several_lines(plan: &Plan) -> BTreeSet<String> {
    let by_lines = |text: &&str| text.contains("|lines");
    let conditions = plan.users.iter().map(|(_, user)| user.when.as_str());
    let conditions = conditions.chain(plan.files.iter().filter_map(|rule| rule.when.as_deref())).filter(by_lines);
    let mut names: BTreeSet<String> =
        conditions.filter_map(|text| Condition::parse(text).ok()).flat_map(|condition| condition.names()).collect();
    let texts = plan.files.iter().filter_map(|rule| match &rule.content {
        Content::Text(text) => Some(text.as_str()),
        _ => None,
    });
    names.extend(texts.filter(by_lines).filter_map(|text| Text::parse(text).ok()).flat_map(|text| text.names()));
    for (name, variable) in &plan.variables {
        if variable.format == Some(Format::Base64) || names.contains(name) {
            names.insert(name.clone());
            names.extend(variable.aliases.iter().cloned());
        }
    }
    names
}
