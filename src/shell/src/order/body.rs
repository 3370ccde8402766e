//! Loop bodies whose iterations may run in any order.

use std::collections::{BTreeMap, BTreeSet};

use crate::shell::Shell;
use crate::syntax::{Assigned, Assignment, Condition, Node, Operation, Part, Redirect, Simple, Target, Word};

/// Builtins that change nothing that another round sees, except those that are programs as well.
const BUILTINS: [&[u8]; 2] = [b":", b"continue"];

/// Whether a body has only commands that are known to do something to the files of one round, or nothing.
pub(super) fn is_independent(shell: &Shell<'_>, node: &Node) -> bool {
    let all = |nodes: &[Node]| nodes.iter().all(|node| is_independent(shell, node));
    match node {
        Node::Simple(simple) => is_simple(shell, simple),
        Node::Pipe(nodes) | Node::Sequence(nodes) => all(nodes),
        Node::Not(inner) => is_independent(shell, inner),
        Node::AndOr(first, rest) => {
            is_independent(shell, first) && rest.iter().all(|(_, node)| is_independent(shell, node))
        }
        Node::Redirected(inner, redirects, _) => {
            is_independent(shell, inner) && redirects.iter().all(|redirect| is_redirect(shell, redirect))
        }
        Node::Subshell(inner, _) => is_independent(shell, inner),
        Node::If(branches, otherwise) => {
            branches.iter().all(|(test, body)| is_independent(shell, test) && is_independent(shell, body))
                && otherwise.as_ref().is_none_or(|body| is_independent(shell, body))
        }
        Node::For { words: Some(words), body, .. } => {
            words.iter().all(|word| is_word(shell, word)) && is_independent(shell, body)
        }
        Node::Case { subject, arms, .. } => {
            let fits = |body: &Node| is_independent(shell, body);
            let patterns = |words: &[Word]| words.iter().all(|word| is_word(shell, word));
            is_word(shell, subject)
                && arms.iter().all(|arm| patterns(&arm.patterns) && arm.body.as_ref().is_none_or(fits))
        }
        Node::Conditional(condition, _) => is_condition(shell, condition),
        _ => false,
    }
}

/// The variables whose values after a round depend on which one it was.
pub(super) fn variables(node: &Node) -> BTreeSet<Vec<u8>> {
    let mut found: BTreeMap<&[u8], Vec<Option<&[u8]>>> = BTreeMap::new();
    collect(node, &mut found);
    let is_constant = |values: &[Option<&[u8]>]| match values {
        [first, rest @ ..] => first.is_some() && rest.iter().all(|value| value == first),
        [] => true,
    };
    found.into_iter().filter(|(_, values)| !is_constant(values)).map(|(name, _)| name.to_vec()).collect()
}

/// Adds the values that a body gives to variables, as far as they are literal.
fn collect<'n>(node: &'n Node, found: &mut BTreeMap<&'n [u8], Vec<Option<&'n [u8]>>>) {
    match node {
        Node::Simple(simple) => {
            for Assignment { name, value, .. } in &simple.assignments {
                let literal = match value {
                    Assigned::Word(word) => word.literal(),
                    Assigned::Array(_) => None,
                };
                found.entry(name).or_default().push(literal);
            }
        }
        Node::Pipe(nodes) | Node::Sequence(nodes) => nodes.iter().for_each(|node| collect(node, found)),
        Node::Not(inner) | Node::Redirected(inner, ..) => collect(inner, found),
        Node::AndOr(first, rest) => {
            collect(first, found);
            rest.iter().for_each(|(_, node)| collect(node, found));
        }
        Node::If(branches, otherwise) => {
            for (test, body) in branches {
                collect(test, found);
                collect(body, found);
            }
            otherwise.iter().for_each(|body| collect(body, found));
        }
        Node::For { name, body, .. } => {
            found.entry(name).or_default().push(None);
            collect(body, found);
        }
        Node::Case { arms, .. } => {
            arms.iter().filter_map(|arm| arm.body.as_ref()).for_each(|body| collect(body, found))
        }
        _ => {}
    }
}

fn is_simple(shell: &Shell<'_>, simple: &Simple) -> bool {
    let known = match simple.words.first().map(Word::literal) {
        None => true,
        Some(None) => false,
        Some(Some(name)) => {
            !shell.state.functions.contains_key(name)
                && (super::is_independent(name) || BUILTINS.contains(&name))
                && (simple.assignments.is_empty() || !BUILTINS.contains(&name))
        }
    };
    known
        && simple.words.iter().all(|word| is_word(shell, word))
        && simple.redirects.iter().all(|redirect| is_redirect(shell, redirect))
        && simple.assignments.iter().all(|assignment| match &assignment.value {
            Assigned::Word(word) => assignment.index.is_none() && !assignment.append && is_word(shell, word),
            Assigned::Array(_) => false,
        })
}

/// Files that a round writes must have names that differ from round to round.
fn is_redirect(shell: &Shell<'_>, redirect: &Redirect) -> bool {
    let is_null = |word: &Word| word.literal() == Some(b"/dev/null");
    match &redirect.target {
        Target::Read(word) | Target::Duplicate(word) | Target::HereString(word) => is_word(shell, word),
        Target::Write(word, _) => is_null(word) || (is_word(shell, word) && word.parts.iter().any(has_parameter)),
        Target::Append(word) | Target::Both { word, .. } | Target::DuplicateOrBoth(word) => is_null(word),
        Target::ReadWrite(_) | Target::HereDocument(_) => false,
    }
}

fn has_parameter(part: &Part) -> bool {
    match part {
        Part::Parameter(_) => true,
        Part::DoubleQuoted(inner) => inner.iter().any(has_parameter),
        _ => false,
    }
}

fn is_word(shell: &Shell<'_>, word: &Word) -> bool {
    word.parts.iter().all(|part| is_part(shell, part))
}

fn is_part(shell: &Shell<'_>, part: &Part) -> bool {
    match part {
        Part::Literal(_) | Part::Quoted(_) => true,
        Part::DoubleQuoted(inner) => inner.iter().all(|part| is_part(shell, part)),
        Part::Command(node, _) => is_independent(shell, node),
        Part::Parameter(found) => match &found.operation {
            Operation::Value | Operation::Length => true,
            Operation::Default(_, parts)
            | Operation::Alternative(_, parts)
            | Operation::Trim { pattern: parts, .. } => parts.iter().all(|part| is_part(shell, part)),
            _ => false,
        },
        _ => false,
    }
}

fn is_condition(shell: &Shell<'_>, condition: &Condition) -> bool {
    match condition {
        Condition::Not(inner) => is_condition(shell, inner),
        Condition::All(parts) | Condition::Any(parts) => parts.iter().all(|part| is_condition(shell, part)),
        Condition::Unary(_, word) | Condition::Word(word) => is_word(shell, word),
        Condition::Binary(left, operator, right) => operator != b"=~" && is_word(shell, left) && is_word(shell, right),
    }
}
