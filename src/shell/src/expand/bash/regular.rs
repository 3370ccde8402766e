//! `[[ text =~ expression ]]` and `BASH_REMATCH`.

use crate::commands::regex::{Expression, Syntax};
use crate::eval::{Run, Stop};
use crate::expand::{Mode, Tilde, Unit};
use crate::shell::Shell;
use crate::syntax::Part;

/// The variable that has what matched.
const REMATCH: &[u8] = b"BASH_REMATCH";

impl Shell<'_> {
    /// Whether an extended expression matches a part of a text. What is quoted in it stands for itself.
    pub(crate) fn regular_match(&mut self, subject: &[u8], parts: &[Part]) -> Run<bool> {
        let units = self.units(parts, Mode::ONE, Tilde::Start)?;
        self.ascii_only(subject)?;
        let Some(text) = expression(&units) else { return self.unsupported(b"quotes in a set of =~") };
        self.ascii_only(&text)?;
        if repeats_nothing(&text) {
            return self.unsupported(b"a regular expression that repeats nothing");
        }
        let ignore_case = self.shopt("nocasematch");
        let expression = match Expression::new(self, &text, Syntax::Extended, ignore_case) {
            Err(Stop::Error) => return self.unsupported(b"an expression of =~ that is not valid"),
            compiled => compiled?,
        };
        let found = expression.find(self, subject, 0)?;
        let places = format!("{}", found.is_some()).into_bytes();
        self.require_alike_texts(&[subject.to_vec(), text.clone()], &places, |shell, texts| {
            let [subject, text] = texts else { return Ok(Vec::new()) };
            let expression = Expression::new(shell, text, Syntax::Extended, ignore_case)?;
            Ok(format!("{}", expression.find(shell, subject, 0)?.is_some()).into_bytes())
        })?;
        let groups: Vec<Vec<u8>> = match &found {
            None => Vec::new(),
            Some(places) => {
                places.iter().map(|place| place.map_or(Vec::new(), |(from, to)| subject[from..to].to_vec())).collect()
            }
        };
        if groups.len() > 1 && !is_certain(&text) {
            return self.unsupported(b"groups of =~ that may match in more than one way");
        }
        self.set_indexed(REMATCH, groups)?;
        Ok(found.is_some())
    }
}

/// The text of an expression, with backslashes before what is quoted; `None` if quotes change a set.
fn expression(units: &[Unit]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut in_set = 0_usize;
    let bytes: Vec<(u8, bool)> = units.iter().filter_map(|unit| Some((unit.byte()?, unit.is_quoted()))).collect();
    for (byte, quoted) in bytes {
        if in_set > 0 {
            if quoted && b"]^-[:".contains(&byte) {
                return None;
            }
            let ends = byte == b']' && in_set > 1 && !text.ends_with(b"[^");
            in_set = if ends && !is_class_end(&text) { 0 } else { in_set + 1 };
            text.push(byte);
            continue;
        }
        if quoted && b"\\.[]()*+?{}^$|".contains(&byte) {
            text.push(b'\\');
        }
        in_set = usize::from(byte == b'[' && !quoted && !is_escaped(&text));
        text.push(byte);
    }
    Some(text)
}

/// Whether a set so far ends in a class, such as `[:alpha:`.
fn is_class_end(text: &[u8]) -> bool {
    let open = text.windows(2).rposition(|window| window == b"[:");
    text.ends_with(b":") && open.is_some_and(|open| !text[open + 2..text.len() - 1].contains(&b']'))
}

/// Whether a repetition has nothing before it, which is an error.
fn repeats_nothing(text: &[u8]) -> bool {
    let begins = |at: usize| match at.checked_sub(1).map(|before| text[before]) {
        None => true,
        Some(b'(' | b'|' | b'^') => !is_escaped(&text[..at - 1]),
        Some(_) => false,
    };
    (0..text.len()).any(|at| matches!(text[at], b'*' | b'+' | b'?' | b'{') && begins(at))
}

fn is_escaped(text: &[u8]) -> bool {
    text.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// A group that is read.
#[derive(Default)]
struct Group {
    /// Alternatives so far; `None` for one that is more than text.
    alternatives: Vec<Option<Vec<u8>>>,
    current: Option<Vec<u8>>,
    has_groups: bool,
    /// Whether a piece always takes a byte.
    takes: bool,
}

impl Group {
    fn new() -> Self {
        Self { current: Some(Vec::new()), ..Self::default() }
    }

    fn end_alternative(&mut self) {
        let current = self.current.replace(Vec::new());
        self.alternatives.push(current);
    }

    /// Whether at most one alternative fits at any place.
    fn is_distinct(&self) -> bool {
        let all: Option<Vec<&Vec<u8>>> = self.alternatives.iter().map(Option::as_ref).collect();
        let Some(all) = all else { return self.alternatives.len() == 1 };
        let clashes = |at: usize, text: &Vec<u8>| {
            all.iter().enumerate().any(|(other, found)| other != at && found.starts_with(text))
        };
        !all.iter().enumerate().any(|(at, text)| clashes(at, text))
    }
}

/// Whether groups have only one way to match, so that all rules to choose one agree.
fn is_certain(text: &[u8]) -> bool {
    let mut groups = vec![Group::new()];
    let mut at = 0;
    while let Some(byte) = text.get(at).copied() {
        at += 1;
        let Some(group) = groups.last_mut() else { return false };
        match byte {
            b'(' => groups.push(Group::new()),
            b'|' => group.end_alternative(),
            b')' => {
                let Some(mut ended) = groups.pop() else { return false };
                ended.end_alternative();
                let repeated = matches!(text.get(at), Some(b'*' | b'+' | b'{'));
                if !ended.is_distinct()
                    || (repeated && (ended.has_groups || !ended.takes || ended.alternatives.len() > 1))
                {
                    return false;
                }
                let Some(outer) = groups.last_mut() else { return false };
                outer.has_groups = true;
                outer.current = None;
                outer.takes |= ended.takes && !matches!(text.get(at), Some(b'*' | b'?' | b'{'));
            }
            b'*' | b'+' | b'?' | b'{' | b'^' | b'$' => group.current = None,
            b'.' | b'[' => {
                group.current = None;
                if byte == b'[' {
                    at = set_end(text, at);
                }
                group.takes |= !matches!(text.get(at), Some(b'*' | b'?' | b'{'));
            }
            mut byte => {
                if byte == b'\\' {
                    byte = text.get(at).copied().unwrap_or(byte);
                    at += 1;
                }
                group.takes |= !matches!(text.get(at), Some(b'*' | b'?' | b'{'));
                group.current.iter_mut().for_each(|current| current.push(byte));
            }
        }
    }
    let Some(mut whole) = groups.pop().filter(|_| groups.is_empty()) else { return false };
    whole.end_alternative();
    whole.is_distinct()
}

/// The place after a set whose `[` is before `at`.
fn set_end(text: &[u8], at: usize) -> usize {
    let mut at = at;
    at += usize::from(text.get(at) == Some(&b'^'));
    at += usize::from(text.get(at) == Some(&b']'));
    while let Some(byte) = text.get(at) {
        if *byte == b'[' && text.get(at + 1) == Some(&b':') {
            let rest = &text[at + 2..];
            at += rest.windows(2).position(|window| window == b":]").map_or(2, |len| len + 4);
        } else if *byte == b']' {
            return at + 1;
        } else {
            at += 1;
        }
    }
    at
}
