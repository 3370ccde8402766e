//! Dependencies between modules, and the order in which they are listed.

use std::collections::HashSet;

use super::{Kmod, Symbols};
use crate::error::{KmodError, unsupported};

/// kmod numbers modules with 16 bits.
const MAX_MODULES: usize = 65_534;

/// Dependencies of all modules, by number.
#[derive(Debug)]
pub struct Graph {
    /// The modules that export what a module needs, in the order of its symbols.
    direct: Vec<Vec<usize>>,
    /// Positions in a topological order: users before what they use.
    positions: Vec<usize>,
}

impl Graph {
    pub fn new(modules: &[Kmod], symbols: &Symbols<'_>, directory: &str) -> Result<Self, KmodError> {
        if modules.len() > MAX_MODULES {
            return Err(unsupported(directory, format!("{} modules, more than {MAX_MODULES}", modules.len())));
        }
        let direct: Vec<Vec<usize>> = modules.iter().map(|module| unique(module, symbols)).collect();
        let mut users = vec![0_usize; modules.len()];
        direct.iter().flatten().for_each(|used| users[*used] += 1);
        let mut ready: Vec<usize> = (0..modules.len()).filter(|number| users[*number] == 0).collect();
        let mut positions = vec![usize::MAX; modules.len()];
        let mut count = 0;
        // The last module without users comes first.
        while let Some(number) = ready.pop() {
            positions[number] = count;
            count += 1;
            for &used in &direct[number] {
                users[used] -= 1;
                if users[used] == 0 {
                    ready.push(used);
                }
            }
        }
        if count < modules.len() {
            let names = cycle(&direct, &positions).into_iter().map(|number| modules[number].name.clone());
            return Err(KmodError::Cycle { path: directory.to_owned(), modules: names.collect() });
        }
        Ok(Self { direct, positions })
    }

    /// All that a module depends on, users before what they use.
    pub fn dependencies(&self, number: usize) -> Vec<usize> {
        let (mut found, mut stack) = (Vec::new(), self.direct[number].clone());
        let mut seen = HashSet::new();
        while let Some(used) = stack.pop() {
            if seen.insert(used) {
                found.push(used);
                stack.extend(&self.direct[used]);
            }
        }
        found.sort_by_key(|used| self.positions[*used]);
        found
    }
}

fn unique(module: &Kmod, symbols: &Symbols<'_>) -> Vec<usize> {
    let mut seen = HashSet::new();
    let owners = module.content.needs.iter().filter_map(|needed| symbols.owner(needed));
    owners.filter(|owner| seen.insert(*owner)).collect()
}

/// A cycle among the modules without a position. Each has a user without one, so a walk from user to user ends in a cycle.
fn cycle(direct: &[Vec<usize>], positions: &[usize]) -> Vec<usize> {
    let left: Vec<usize> = (0..direct.len()).filter(|number| positions[*number] == usize::MAX).collect();
    let (mut walk, mut next) = (Vec::new(), left.first().copied());
    while let Some(number) = next {
        if let Some(start) = walk.iter().position(|seen| *seen == number) {
            let mut found = walk.split_off(start);
            found.push(number);
            found.reverse();
            return found;
        }
        walk.push(number);
        next = left.iter().copied().find(|user| direct[*user].contains(&number));
    }
    walk
}
