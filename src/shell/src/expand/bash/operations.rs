//! Operations on each value of a parameter: prefixes and suffixes, replacements, letters.

use super::Value;
use crate::eval::Run;
use crate::expand::{Mode, Tilde, Unit, Units};
use crate::pattern::Pattern;
use crate::shell::Shell;
use crate::syntax::{Anchor, CaseChange, Operation};

impl Shell<'_> {
    /// A value after an operation with a pattern; several values are changed one by one.
    pub(super) fn each(&mut self, value: Value, operation: &Operation) -> Run<Value> {
        let (pattern, replacement) = match operation {
            Operation::Trim { pattern, .. } | Operation::Case { pattern, .. } => {
                (self.exact_pattern(pattern)?, Units::new())
            }
            Operation::Replace { pattern, replacement, .. } => {
                let pattern = self.pattern(pattern)?;
                (pattern, self.units(replacement, Mode::ONE, Tilde::Start)?)
            }
            _ => return self.unsupported(b"this expansion"),
        };
        let mut change = |text: &[u8]| -> Run<Vec<u8>> {
            self.ascii_only(text)?;
            let new = self.operated(text, operation, &pattern, &replacement)?;
            self.require_alike(text, &[&pattern], &replacement, &new, |shell, text, patterns, replacement| {
                patterns
                    .iter()
                    .try_fold(text.to_vec(), |text, pattern| shell.operated(&text, operation, pattern, replacement))
            })?;
            Ok(new)
        };
        Ok(match value {
            Value::Unset => Value::Unset,
            Value::One(text) => Value::One(change(&text)?),
            Value::All(values, star) => {
                Value::All(values.iter().map(|text| change(text)).collect::<Run<Vec<_>>>()?, star)
            }
        })
    }

    /// A text after an operation.
    fn operated(
        &mut self,
        text: &[u8],
        operation: &Operation,
        pattern: &Pattern,
        replacement: &[Unit],
    ) -> Run<Vec<u8>> {
        match operation {
            Operation::Trim { suffix, longest, .. } if pattern.has_groups() => {
                self.trim_group(text, pattern, *suffix, *longest)
            }
            Operation::Trim { suffix, longest, .. } => self.trim(text, pattern, *suffix, *longest),
            Operation::Replace { anchor, all, .. } => self.replace(text, pattern, replacement, *anchor, *all),
            Operation::Case { change, all, .. } => self.change_case(text, pattern, *change, *all),
            _ => Ok(text.to_vec()),
        }
    }

    /// A value without the prefix or suffix that a pattern with groups matches.
    fn trim_group(&mut self, text: &[u8], pattern: &Pattern, suffix: bool, longest: bool) -> Run<Vec<u8>> {
        if !suffix {
            self.spend(pattern.search_work(text.len()))?;
            let ends = pattern.ends(text, 0);
            let end = if longest { ends.last() } else { ends.first() };
            return Ok(text[end.copied().unwrap_or(0)..].to_vec());
        }
        let mut found = None;
        for start in 0..=text.len() {
            self.spend(pattern.search_work(text.len() - start))?;
            if pattern.matches(&text[start..]) {
                found = Some(start);
                if longest {
                    break;
                }
            }
        }
        Ok(text[..found.unwrap_or(text.len())].to_vec())
    }

    fn replace(
        &mut self,
        text: &[u8],
        pattern: &Pattern,
        replacement: &[Unit],
        anchor: Anchor,
        all: bool,
    ) -> Run<Vec<u8>> {
        if pattern.len() == 0 {
            let new = expanded(replacement, b"");
            return Ok(match anchor {
                _ if text.is_empty() && anchor == Anchor::None => Vec::new(),
                Anchor::None => text.to_vec(),
                Anchor::Prefix => [&new, text].concat(),
                Anchor::Suffix => [text, &new].concat(),
            });
        }
        let mut out = Vec::new();
        let mut at = 0;
        while let Some((start, end)) = self.find_match(text, at, pattern, anchor)? {
            out.extend_from_slice(&text[at..start]);
            out.extend(expanded(replacement, &text[start..end]));
            self.spend_size(out.len(), replacement.len())?;
            at = end;
            if !all || anchor != Anchor::None {
                break;
            }
            if start == end {
                out.extend(text.get(at));
                at += 1;
            }
            if at >= text.len() {
                break;
            }
        }
        out.extend_from_slice(text.get(at..).unwrap_or_default());
        Ok(out)
    }

    /// The first match from a place on, as long as it can be.
    fn find_match(
        &mut self,
        text: &[u8],
        from: usize,
        pattern: &Pattern,
        anchor: Anchor,
    ) -> Run<Option<(usize, usize)>> {
        let quick = !pattern.is_special();
        let literal = pattern.text();
        let starts = if anchor == Anchor::Prefix { from..=from } else { from..=text.len() };
        for start in starts {
            let rest = &text[start..];
            self.spend(if quick { 1 + pattern.len().min(rest.len()) / 8 } else { pattern.search_work(rest.len()) })?;
            let ends = match quick {
                true => rest.starts_with(&literal).then(|| start + pattern.len()).into_iter().collect(),
                false => pattern.ends(text, start),
            };
            let end = ends.last().copied().filter(|end| anchor != Anchor::Suffix || *end == text.len());
            if let Some(end) = end {
                return Ok(Some((start, end)));
            }
        }
        Ok(None)
    }

    fn change_case(&mut self, text: &[u8], pattern: &Pattern, change: CaseChange, all: bool) -> Run<Vec<u8>> {
        self.spend(text.len().saturating_mul(pattern.len().max(1)) / 8 + 1)?;
        let any = pattern.len() == 0;
        let changed = |(at, byte): (usize, &u8)| {
            if !(all || at == 0) || !(any || pattern.matches(&[*byte])) {
                return *byte;
            }
            match change {
                CaseChange::Upper => byte.to_ascii_uppercase(),
                CaseChange::Lower => byte.to_ascii_lowercase(),
                CaseChange::Toggle if byte.is_ascii_lowercase() => byte.to_ascii_uppercase(),
                CaseChange::Toggle => byte.to_ascii_lowercase(),
            }
        };
        Ok(text.iter().enumerate().map(changed).collect())
    }
}

/// A replacement for one match: `&` without quotes is the match, and a backslash keeps it.
fn expanded(replacement: &[Unit], found: &[u8]) -> Vec<u8> {
    let units: Vec<(u8, bool)> = replacement.iter().filter_map(|unit| Some((unit.byte()?, unit.is_quoted()))).collect();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some((byte, quoted)) = units.get(at).copied() {
        match (byte, quoted, units.get(at + 1)) {
            (b'&', false, _) => out.extend_from_slice(found),
            (b'\\', false, Some((next @ (b'&' | b'\\'), _))) => {
                out.push(*next);
                at += 1;
            }
            _ => out.push(byte),
        }
        at += 1;
    }
    out
}
