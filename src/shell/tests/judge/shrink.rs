//! Reduces a program while it still differs.

use std::collections::BTreeSet;

use super::Verdict;
use super::program::Node;
use super::report::Difference;

/// Candidates of one round.
const CANDIDATES: usize = 40;
const ROUNDS: usize = 40;

/// The smallest program found that differs; `run` judges programs.
pub fn shrink(program: &Node, mut run: impl FnMut(&[String]) -> Vec<Verdict>, first: Difference) -> Difference {
    let mut best = program.clone();
    let mut difference = first;
    let mut skipped = 0;
    for _ in 0..ROUNDS {
        let reductions = best.reductions();
        let round: Vec<(usize, Node)> = reductions.iter().skip(skipped).take(CANDIDATES).cloned().collect();
        if round.is_empty() {
            break;
        }
        let texts: Vec<String> = round.iter().map(|(_, program)| program.text()).collect();
        let mut differing: Vec<(usize, Node)> = Vec::new();
        for ((place, candidate), verdict) in round.into_iter().zip(run(&texts)) {
            if let Some(found) = as_difference(&candidate, &verdict, &difference) {
                if differing.is_empty() {
                    difference = found;
                }
                differing.push((place, candidate));
            }
        }
        let Some((_, largest)) = differing.first().cloned() else {
            skipped += CANDIDATES;
            continue;
        };
        skipped = 0;
        let places: BTreeSet<usize> = differing.iter().map(|(place, _)| *place).collect();
        let together = best.without(&places);
        best = largest;
        if let [verdict] = &run(&[together.text()])[..]
            && let Some(found) = as_difference(&together, verdict, &difference)
        {
            (best, difference) = (together, found);
        }
    }
    difference.labels = best.labels();
    difference.is_reduced = true;
    tidy(difference, run)
}

/// The difference of a smaller program, unless a refusal takes the place of a result.
fn as_difference(program: &Node, verdict: &Verdict, of: &Difference) -> Option<Difference> {
    let Verdict::Different { expected, found, parts } = verdict else { return None };
    if found.is_ok() != of.found.is_ok() {
        return None;
    }
    let (expected, found, name) = (expected.clone(), found.clone(), of.name.clone());
    Some(Difference {
        name,
        text: program.text(),
        labels: BTreeSet::new(),
        is_reduced: false,
        expected,
        found,
        parts: *parts,
    })
}

/// Without empty lines, where these make no difference.
fn tidy(difference: Difference, mut run: impl FnMut(&[String]) -> Vec<Verdict>) -> Difference {
    let text: String =
        difference.text.lines().filter(|line| !line.trim().is_empty()).map(|line| format!("{line}\n")).collect();
    match &run(std::slice::from_ref(&text))[..] {
        [Verdict::Different { parts, .. }] if *parts == difference.parts => Difference { text, ..difference },
        _ => difference,
    }
}
