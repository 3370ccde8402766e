//! `tsort`: a total order of words, from pairs of a word and one that follows it.

use std::collections::{BTreeMap, VecDeque};

use super::options::{Accepted, parse};
use super::{complain, inputs};
use crate::eval::Run;
use crate::shell::Shell;

/// A word of the input.
#[derive(Default)]
struct Item<'a> {
    /// In how many pairs it is the second word.
    predecessors: usize,
    /// In the order of the input.
    successors: Vec<&'a [u8]>,
}

pub(super) fn tsort(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &Accepted { letters: b"", long: &[], strict: false })?;
    if options.operands.len() > 1 {
        return complain(shell, "tsort", b"extra operand");
    }
    let (contents, failed) = inputs(shell, "tsort", &options.operands)?;
    if failed {
        return Ok(1);
    }
    let text = contents.into_iter().map(|(_, content)| content).next().unwrap_or_default();
    shell.spend(text.len())?;
    let words: Vec<&[u8]> = text.split(|byte| b" \t\n".contains(byte)).filter(|word| !word.is_empty()).collect();
    let (pairs, rest) = words.as_chunks::<2>();
    if !rest.is_empty() {
        return complain(shell, "tsort", b"-: input contains an odd number of tokens");
    }
    match sorted(pairs) {
        Some(sorted) => {
            sorted.iter().try_for_each(|word| shell.out(&[word, &b"\n"[..]].concat()))?;
            Ok(0)
        }
        None => shell.unsupported(b"words that follow each other in a loop"),
    }
}

/// All words in the order of GNU tsort. First are those without predecessors, in the order of their bytes. Each other word comes as soon as all
/// of its predecessors are there; of several, the one that was named last. `None` for a loop.
fn sorted<'a>(pairs: &[[&'a [u8]; 2]]) -> Option<Vec<&'a [u8]>> {
    let mut items: BTreeMap<&[u8], Item<'a>> = BTreeMap::new();
    for [first, second] in pairs {
        let item = items.entry(first).or_default();
        if first != second {
            item.successors.push(second);
            items.entry(second).or_default().predecessors += 1;
        }
    }
    let free = items.iter().filter(|(_, item)| item.predecessors == 0);
    let mut queue: VecDeque<&[u8]> = free.map(|(word, _)| *word).collect();
    let mut sorted = Vec::with_capacity(items.len());
    while let Some(word) = queue.pop_front() {
        sorted.push(word);
        let successors = items.get_mut(word).map(|item| std::mem::take(&mut item.successors)).unwrap_or_default();
        for next in successors.into_iter().rev() {
            let Some(item) = items.get_mut(next) else { continue };
            item.predecessors -= 1;
            if item.predecessors == 0 {
                queue.push_back(next);
            }
        }
    }
    (sorted.len() == items.len()).then_some(sorted)
}
