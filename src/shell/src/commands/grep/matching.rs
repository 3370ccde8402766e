//! Selects lines and matches for `grep`.

use super::super::options::Options;
use super::super::regex::{Expression, Syntax};
use crate::eval::Run;
use crate::shell::Shell;

/// Whether one of the expressions matches a line.
pub(super) fn any_matches(shell: &mut Shell<'_>, expressions: &[Expression], line: &[u8]) -> Run<bool> {
    for expression in expressions {
        if expression.is_match(shell, line)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The pattern between what may surround a word: the way grep selects lines for `-w`, where an empty match counts, too.
pub(super) fn as_word(pattern: &[u8], syntax: Syntax) -> Option<Vec<u8>> {
    match syntax {
        Syntax::Fixed => None,
        Syntax::Egrep => Some([b"(^|[^[:alnum:]_])(", pattern, b")([^[:alnum:]_]|$)"].concat()),
        _ => Some([br"\(^\|[^[:alnum:]_]\)\(", pattern, br"\)\([^[:alnum:]_]\|$\)"].concat()),
    }
}

/// Places of the line that match: all with `-o`, else one is enough.
pub(super) fn places(
    shell: &mut Shell<'_>,
    options: &Options,
    expressions: &[Expression],
    line: &[u8],
) -> Run<Vec<(usize, usize)>> {
    let mut places = Vec::new();
    let mut from = 0;
    while from <= line.len() {
        let mut best: Option<(usize, usize)> = None;
        for expression in expressions {
            if let Some(found) = place(shell, options, expression, line, from)? {
                let better = best.is_none_or(|(start, end)| found.0 < start || (found.0 == start && found.1 > end));
                best = if better { Some(found) } else { best };
            }
        }
        let Some((start, end)) = best else { break };
        places.push((start, end));
        if !options.has(b'o') {
            break;
        }
        from = if end > start { end } else { end + 1 };
    }
    Ok(places)
}

/// The first match from a place on that `-x` and `-w` take.
fn place(
    shell: &mut Shell<'_>,
    options: &Options,
    expression: &Expression,
    line: &[u8],
    from: usize,
) -> Run<Option<(usize, usize)>> {
    let word = |at: Option<&u8>| at.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let mut from = from;
    while from <= line.len() {
        let Some(places) = expression.find(shell, line, from)? else { return Ok(None) };
        let Some(Some((start, end))) = places.first().copied() else { return Ok(None) };
        let fits = if options.has(b'x') {
            start == 0 && end == line.len()
        } else {
            !options.has(b'w') || !(start.checked_sub(1).is_some_and(|at| word(line.get(at))) || word(line.get(end)))
        };
        if fits {
            return Ok(Some((start, end)));
        }
        if options.has(b'w')
            && let Some(end) = shorter(shell, expression, line, (start, end))?
        {
            return Ok(Some((start, end)));
        }
        from = start + 1;
    }
    Ok(None)
}

/// The end of a shorter match at the same place that is a word, as grep looks for it: an empty one does not count.
fn shorter(
    shell: &mut Shell<'_>,
    expression: &Expression,
    line: &[u8],
    (start, end): (usize, usize),
) -> Run<Option<usize>> {
    let word = |at: Option<&u8>| at.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    if start.checked_sub(1).is_some_and(|at| word(line.get(at))) {
        return Ok(None);
    }
    let mut end = end;
    while end > start + 1 {
        let Some(places) = expression.find(shell, &line[..end - 1], start)? else { return Ok(None) };
        match places.first().copied().flatten() {
            Some((from, to)) if from == start && to > start => end = to,
            _ => return Ok(None),
        }
        if !word(line.get(end)) {
            return Ok(Some(end));
        }
    }
    Ok(None)
}
