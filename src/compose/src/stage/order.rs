//! The installation order of the packages of a layer: dependencies first, as dpkg configures packages.

use std::collections::HashMap;

use super::{Control, StagedArtifact, StagedContent};
use vmbake_manifest::relation;

/// Puts artifacts of one layer, which are sorted by name, in that order. Packages that need each other keep theirs.
pub(super) fn by_needs(artifacts: Vec<StagedArtifact>) -> Vec<StagedArtifact> {
    let controls: Vec<Option<&Control>> = artifacts
        .iter()
        .map(|artifact| match &artifact.content {
            StagedContent::Deb(deb) => Some(&deb.control),
            _ => None,
        })
        .collect();
    let mut names: HashMap<String, Vec<usize>> = HashMap::new();
    for (number, control) in controls.iter().enumerate() {
        for name in control.iter().flat_map(|control| known_as(control)) {
            names.entry(name).or_default().push(number);
        }
    }
    let needs = |number: usize| {
        let control = controls.get(number).copied().flatten();
        let groups =
            control.into_iter().flat_map(|control| ["Pre-Depends", "Depends"].map(|field| groups(control, field)));
        let relations = groups.flatten().flatten();
        relations.filter_map(|relation| names.get(&relation.name)).flatten().copied().collect::<Vec<_>>()
    };
    let order = order(controls.len(), needs);
    let mut slots: Vec<Option<StagedArtifact>> = artifacts.into_iter().map(Some).collect();
    order.into_iter().filter_map(|number| slots.get_mut(number).and_then(Option::take)).collect()
}

/// Numbers below `count`, each behind those that it needs.
fn order(count: usize, needs: impl Fn(usize) -> Vec<usize>) -> Vec<usize> {
    let mut order = Vec::with_capacity(count);
    let mut is_met = vec![false; count];
    for start in 0..count {
        // What is being looked at, and what of its needs is left; no recursion, since a chain may be as long as the list.
        let mut stack = Vec::new();
        let mut next = Some(start);
        loop {
            if let Some(number) = next.take()
                && let Some(met) = is_met.get_mut(number).filter(|met| !**met)
            {
                *met = true;
                stack.push((number, needs(number).into_iter()));
            }
            let Some((number, left)) = stack.last_mut() else { break };
            match left.next() {
                Some(needed) => next = Some(needed),
                None => {
                    order.push(*number);
                    stack.pop();
                }
            }
        }
    }
    order
}

fn known_as(control: &Control) -> Vec<String> {
    let provided = groups(control, "Provides").into_iter().flatten().map(|relation| relation.name);
    control.get("Package").map(str::to_owned).into_iter().chain(provided).collect()
}

/// What cannot be read is refused where relations are checked.
fn groups(control: &Control, field: &str) -> Vec<Vec<relation::Relation>> {
    control.get(field).and_then(relation::groups).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn what_is_needed_comes_first_and_circles_end() {
        let cases: [(&[&[usize]], &[usize]); 4] = [
            (&[&[], &[], &[]], &[0, 1, 2]),
            (&[&[2], &[0], &[]], &[2, 0, 1]),
            (&[&[1], &[2], &[0]], &[2, 1, 0]),
            (&[&[0, 3], &[0], &[3, 1], &[]], &[3, 0, 1, 2]),
        ];
        for (needs, expected) in cases {
            assert_eq!(order(needs.len(), |number| needs[number].to_vec()), expected, "{needs:?}");
        }
    }
}
