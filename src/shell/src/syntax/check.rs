//! Finds syntax of bash that the evaluator does not support, before a script runs.

use std::collections::BTreeSet;

use super::literal::{MAX_TEXTS, Text};
use super::{
    Assigned, Assignment, Condition, Node, Operation, Part, Redirect, Simple, Subscript, SyntaxError, Target, Word,
};
use crate::builtins::refused_operand;

/// Builtins of bash for people at a terminal, for background processes, or that change the shell itself.
const REFUSED: [&[u8]; 12] = [
    b"bind",
    b"compgen",
    b"complete",
    b"compopt",
    b"disown",
    b"enable",
    b"fc",
    b"history",
    b"logout",
    b"suspend",
    b"bg",
    b"fg",
];

/// The function that bash calls in place of a program that it does not find.
const NOT_FOUND: &[u8] = b"command_not_found_handle";

/// Refuses a script that has more than the evaluator.
pub(super) fn check(nodes: &[Node], texts: u32) -> Result<(), SyntaxError> {
    let mut functions = BTreeSet::new();
    nodes.iter().for_each(|node| defined(node, &mut functions));
    let mut check = Check { functions, line: 1, texts };
    nodes.iter().try_for_each(|node| check.top(node))
}

/// Names of functions that a script defines outside of substitutions.
fn defined(node: &Node, functions: &mut BTreeSet<Vec<u8>>) {
    match node {
        Node::Function { name, body, .. } => {
            functions.insert(name.clone());
            defined(body, functions);
        }
        other => children(other, &mut |child| defined(child, functions)),
    }
}

/// The commands directly inside of another one.
fn children<'n>(node: &'n Node, visit: &mut dyn FnMut(&'n Node)) {
    match node {
        Node::Simple(_) | Node::Conditional(..) | Node::Arithmetic(..) => {}
        Node::Pipe(nodes) | Node::Sequence(nodes) => nodes.iter().for_each(visit),
        Node::Not(inner) | Node::Background(inner) | Node::Redirected(inner, ..) => visit(inner),
        Node::AndOr(first, rest) => {
            visit(first);
            rest.iter().for_each(|(_, node)| visit(node));
        }
        Node::Subshell(body, _) | Node::Function { body, .. } => visit(body),
        Node::If(branches, otherwise) => {
            for (condition, body) in branches {
                visit(condition);
                visit(body);
            }
            otherwise.iter().for_each(|node| visit(node));
        }
        Node::Loop { condition, body, .. } => {
            visit(condition);
            visit(body);
        }
        Node::For { body, .. } | Node::ForArithmetic { body, .. } => visit(body),
        Node::Case { arms, .. } => arms.iter().filter_map(|arm| arm.body.as_ref()).for_each(visit),
    }
}

struct Check {
    functions: BTreeSet<Vec<u8>>,
    /// The last line that was seen.
    line: u32,
    /// Texts around these commands.
    texts: u32,
}

type Checked = Result<(), SyntaxError>;

impl Check {
    fn refuse<T>(&self, what: impl Into<String>) -> Result<T, SyntaxError> {
        Err(SyntaxError::Unsupported { line: self.line, what: what.into() })
    }

    /// A command outside of all others: only there may `shopt` change how the next lines are read.
    fn top(&mut self, node: &Node) -> Checked {
        match node {
            Node::Sequence(nodes) => nodes.iter().try_for_each(|node| self.top(node)),
            Node::Simple(simple) => self.simple(simple, true),
            node => self.node(node),
        }
    }

    fn node(&mut self, node: &Node) -> Checked {
        match node {
            Node::Simple(simple) => return self.simple(simple, false),
            Node::Background(inner) => {
                self.node(inner)?;
                return self.refuse("a command in the background");
            }
            Node::Redirected(_, redirects, line) => {
                self.line = (*line).max(self.line);
                self.redirects(redirects)?;
            }
            Node::For { words, line, .. } => {
                self.line = *line;
                words.iter().flatten().try_for_each(|word| self.parts(&word.parts))?;
            }
            Node::ForArithmetic { init, condition, step, line, .. } => {
                self.line = *line;
                [init, condition, step].into_iter().try_for_each(|parts| self.parts(parts))?;
            }
            Node::Case { subject, arms, line } => {
                self.line = *line;
                self.parts(&subject.parts)?;
                arms.iter().flat_map(|arm| &arm.patterns).try_for_each(|word| self.parts(&word.parts))?;
            }
            Node::Conditional(condition, lines) => {
                self.line = lines.first;
                self.condition(condition)?;
            }
            Node::Arithmetic(parts, lines) => {
                self.line = lines.first;
                self.parts(parts)?;
            }
            Node::Subshell(_, lines) => self.line = lines.first,
            Node::Function { name, line, .. } => {
                self.line = *line;
                if name == NOT_FOUND {
                    return self.refuse("command_not_found_handle");
                }
            }
            _ => {}
        }
        let mut result = Ok(());
        children(node, &mut |child| {
            if result.is_ok() {
                result = self.node(child);
            }
        });
        result
    }

    fn simple(&mut self, simple: &Simple, top: bool) -> Checked {
        self.line = simple.line;
        simple.assignments.iter().try_for_each(|assignment| self.assignment(assignment))?;
        self.redirects(&simple.redirects)?;
        simple.words.iter().try_for_each(|word| self.parts(&word.parts))?;
        self.line = simple.line;
        let mut words = &simple.words[..];
        while let [first, rest @ ..] = words
            && matches!(first.literal(), Some(b"builtin" | b"command"))
            && !rest.is_empty()
        {
            words = rest;
        }
        let Some(name) = words.first().and_then(Word::literal) else { return Ok(()) };
        if self.functions.contains(name) {
            return Ok(());
        }
        let shown = String::from_utf8_lossy(name).into_owned();
        if REFUSED.contains(&name) {
            return self.refuse(shown);
        }
        self.text(name, &words[1..])?;
        let operands: Vec<Option<&[u8]>> = words[1..].iter().map(Word::literal).collect();
        if !top && super::script::changes_extglob(simple).is_some() {
            return self.refuse("shopt for extglob inside of another command");
        }
        match refused_operand(name, &operands) {
            Some(what) => self.refuse(format!("{shown} {what}")),
            None => Ok(()),
        }
    }

    /// Commands in the text of an operand.
    fn text(&mut self, name: &[u8], operands: &[Word]) -> Checked {
        let Some(text) = Text::of(name, operands).filter(|_| self.texts < MAX_TEXTS) else { return Ok(()) };
        let at = |line: u32| self.line.saturating_add(line.saturating_sub(1));
        text.check(self.texts + 1).map_err(|error| match error {
            SyntaxError::Unexpected { line, reason } => SyntaxError::Unexpected { line: at(line), reason },
            SyntaxError::Unsupported { line, what } => SyntaxError::Unsupported { line: at(line), what },
            SyntaxError::TooDeep { line } => SyntaxError::TooDeep { line: at(line) },
        })
    }

    fn redirects(&mut self, redirects: &[Redirect]) -> Checked {
        redirects.iter().try_for_each(|redirect| match &redirect.target {
            Target::HereDocument(text) => text.get().map_or(Ok(()), |parts| self.document(parts)),
            Target::Read(word)
            | Target::Write(word, _)
            | Target::Append(word)
            | Target::ReadWrite(word)
            | Target::Duplicate(word)
            | Target::DuplicateOrBoth(word)
            | Target::Both { word, .. }
            | Target::HereString(word) => self.parts(&word.parts),
        })
    }

    /// The text of a here-document. Releases of bash 5.2 differ in command substitutions inside its other expansions.
    fn document(&mut self, parts: &[Part]) -> Checked {
        let changes = |operation: &Operation| match operation {
            Operation::Trim { pattern, .. } | Operation::Case { pattern, .. } => substitutes(pattern),
            Operation::Replace { pattern, replacement, .. } => substitutes(pattern) || substitutes(replacement),
            Operation::Substring { offset, length } => {
                substitutes(offset) || length.as_ref().is_some_and(|parts| substitutes(parts))
            }
            _ => false,
        };
        if parts.iter().any(|part| matches!(part, Part::Parameter(found) if changes(&found.operation))) {
            return self.refuse("a command substitution inside ${ } in a here-document");
        }
        self.parts(parts)
    }

    fn assignment(&mut self, assignment: &Assignment) -> Checked {
        assignment.index.iter().try_for_each(|parts| self.parts(parts))?;
        match &assignment.value {
            Assigned::Word(word) => self.parts(&word.parts),
            Assigned::Array(elements) => elements.iter().try_for_each(|element| {
                element.index.iter().try_for_each(|parts| self.parts(parts))?;
                self.parts(&element.value.parts)
            }),
        }
    }

    fn condition(&mut self, condition: &Condition) -> Checked {
        match condition {
            Condition::Not(inner) => self.condition(inner),
            Condition::All(parts) | Condition::Any(parts) => parts.iter().try_for_each(|part| self.condition(part)),
            Condition::Unary(_, word) | Condition::Word(word) => self.parts(&word.parts),
            Condition::Binary(left, _, right) => {
                self.parts(&left.parts)?;
                self.parts(&right.parts)
            }
        }
    }

    fn parts(&mut self, parts: &[Part]) -> Checked {
        parts.iter().try_for_each(|part| match part {
            Part::Literal(_) | Part::Quoted(_) => Ok(()),
            Part::DoubleQuoted(inner) | Part::Arithmetic(inner) => self.parts(inner),
            Part::Command(node, _) | Part::Process { input: true, node } => self.node(node),
            Part::Process { input: false, .. } => self.refuse(">( )"),
            Part::Assignment(assignment) => self.assignment(assignment),
            Part::Parameter(parameter) => {
                if let Some(Subscript::Expression(parts)) = &parameter.index {
                    self.parts(parts)?;
                }
                self.operation(&parameter.operation)
            }
        })
    }

    fn operation(&mut self, operation: &Operation) -> Checked {
        match operation {
            Operation::Default(_, parts)
            | Operation::Assign(_, parts)
            | Operation::Error(_, parts)
            | Operation::Alternative(_, parts)
            | Operation::Trim { pattern: parts, .. }
            | Operation::Case { pattern: parts, .. } => self.parts(parts),
            Operation::Substring { offset, length } => {
                self.parts(offset)?;
                length.iter().try_for_each(|parts| self.parts(parts))
            }
            Operation::Replace { pattern, replacement, .. } => {
                self.parts(pattern)?;
                self.parts(replacement)
            }
            Operation::Value
            | Operation::Length
            | Operation::Transform(_)
            | Operation::Names { .. }
            | Operation::Keys
            | Operation::Bad => Ok(()),
        }
    }
}

/// Whether parts of a word have a command substitution.
fn substitutes(parts: &[Part]) -> bool {
    parts.iter().any(|part| match part {
        Part::Command(..) => true,
        Part::DoubleQuoted(inner) | Part::Arithmetic(inner) => substitutes(inner),
        Part::Parameter(found) => match &found.operation {
            Operation::Default(_, word)
            | Operation::Assign(_, word)
            | Operation::Error(_, word)
            | Operation::Alternative(_, word)
            | Operation::Trim { pattern: word, .. }
            | Operation::Case { pattern: word, .. } => substitutes(word),
            Operation::Replace { pattern, replacement, .. } => substitutes(pattern) || substitutes(replacement),
            Operation::Substring { offset, length } => {
                substitutes(offset) || length.as_ref().is_some_and(|parts| substitutes(parts))
            }
            _ => false,
        },
        _ => false,
    })
}
