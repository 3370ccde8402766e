//! Names of settings: which there are, which are near a wrong one, and which values can be written down.

use std::collections::{BTreeMap, BTreeSet};

use vmbake_firstboot::env;
use vmbake_firstboot::plan::{Content, Format, Plan};
use vmbake_firstboot::template::{Condition, Text};

use super::Problem;

/// Most names that are suggested.
const SUGGESTED: usize = 3;

/// The settings that the plan does not have.
pub(super) fn unknown(plan: &Plan, settings: &BTreeMap<String, String>) -> Vec<Problem> {
    let known: BTreeSet<&str> = plan
        .variables
        .iter()
        .flat_map(|(name, variable)| std::iter::once(name).chain(&variable.aliases))
        .map(String::as_str)
        .collect();
    let wrong = settings.keys().filter(|name| !known.contains(name.as_str()));
    wrong.map(|name| Problem::Unknown { name: name.clone(), near: near(name, &known) }).collect()
}

/// What a wrong name may have been meant to be.
pub(super) fn suggestion(near: &[String]) -> String {
    match near {
        [] => String::new(),
        names => format!("; there is {}", names.join(", ")),
    }
}

/// Known names in which a third of the characters or less are different, the nearest first.
fn near(name: &str, known: &BTreeSet<&str>) -> Vec<String> {
    let name = name.to_ascii_uppercase();
    let distances = known.iter().map(|other| (distance(name.as_bytes(), other.as_bytes()), *other));
    let mut near: Vec<(usize, &str)> = distances.filter(|(distance, other)| distance * 3 <= other.len()).collect();
    near.sort_unstable();
    near.into_iter().take(SUGGESTED).map(|(_, other)| other.to_owned()).collect()
}

/// How many bytes must be replaced, added and removed (Levenshtein).
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (line, from) in (1..).zip(a) {
        // The value above to the left.
        let mut corner = std::mem::replace(&mut row[0], line);
        for (column, to) in (1..).zip(b) {
            let replaced = corner + usize::from(from != to);
            corner = row[column];
            row[column] = replaced.min(corner + 1).min(row[column - 1] + 1);
        }
    }
    row[b.len()]
}

/// The settings whose values cannot be written down so that everybody reads them alike.
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

/// Variables that may have several lines: base64, and what the plan takes apart by lines.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in
            [("", "", 0), ("", "AB", 2), ("KUBE", "CUBE", 1), ("KITTEN", "SITTING", 3), ("AB", "BA", 2)]
        {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), expected, "{a} {b}");
            assert_eq!(distance(b.as_bytes(), a.as_bytes()), expected, "{b} {a}");
        }
    }

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let known = BTreeSet::from(["KUBE_API_PORT", "NETSY_BUCKET", "REGISTRY_BUCKET"]);
        assert_eq!(near("KUBE_APIPORT", &known), ["KUBE_API_PORT"]);
        assert_eq!(near("netsy_bucket", &known), ["NETSY_BUCKET", "REGISTRY_BUCKET"]);
        assert!(near("HOME", &known).is_empty());
    }
}
