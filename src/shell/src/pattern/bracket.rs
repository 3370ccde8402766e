//! Sets of bytes: `[…]`.

use super::{Piece, Style, in_class};
use crate::expand::Unit;

/// Classes of POSIX, and those that bash adds.
fn class_of(style: Style, class: &[u8], byte: u8) -> Option<bool> {
    match class {
        b"word" if style.bash => Some(byte.is_ascii_alphanumeric() || byte == b'_'),
        b"ascii" if style.bash => Some(byte.is_ascii()),
        class => in_class(class, byte),
    }
}

/// `[.x.]` or `[=x=]` of one byte, absent for an unknown name, and the place after it.
fn symbol(units: &[Unit], at: usize) -> Option<(Option<u8>, usize)> {
    let plain = |at: usize| units.get(at).filter(|unit| !unit.is_quoted()).and_then(|unit| unit.byte());
    let mark = plain(at + 1).filter(|mark| plain(at) == Some(b'[') && matches!(mark, b'.' | b'='))?;
    let len = (at + 2..units.len()).take_while(|at| plain(*at) != Some(mark) || plain(at + 1) != Some(b']')).count();
    let end = at + 2 + len;
    units.get(end)?;
    Some((units.get(at + 2).filter(|_| len == 1).and_then(|unit| unit.byte()), end + 2))
}

/// What follows `[`: the set and its length, unless there is no `]`.
pub(super) fn set(units: &[Unit], style: Style) -> Option<(Piece, usize)> {
    let mut bytes = Box::new([false; 256]);
    let plain = |at: usize| units.get(at).filter(|unit| !unit.is_quoted()).and_then(|unit| unit.byte());
    let mut at = 0;
    let negated = plain(at) == Some(b'!') || (style.bash && plain(at) == Some(b'^'));
    at += usize::from(negated);
    let first = at;
    loop {
        let byte = units.get(at)?.byte()?;
        if plain(at) == Some(b']') && at > first {
            return Some((Piece::Set { negated, bytes }, at + 1));
        }
        if plain(at) == Some(b'[') && plain(at + 1) == Some(b':') {
            let class: Vec<u8> = (at + 2..).map_while(|at| plain(at).filter(|byte| *byte != b':')).collect();
            let end = at + 2 + class.len();
            let known = class_of(style, &class, 0).is_some() || style.bash;
            if plain(end) == Some(b':') && plain(end + 1) == Some(b']') && known {
                (0..=u8::MAX)
                    .filter(|byte| class_of(style, &class, *byte) == Some(true))
                    .for_each(|byte| bytes[usize::from(byte)] = true);
                at = end + 2;
                continue;
            }
        }
        if style.bash
            && let Some((symbol, next)) = symbol(units, at)
        {
            symbol.into_iter().for_each(|byte| bytes[usize::from(byte)] = true);
            at = next;
            continue;
        }
        let (low, next) = member(units, at, byte)?;
        at = next;
        let mut high = low;
        if plain(at) == Some(b'-') && plain(at + 1) != Some(b']') && units.get(at + 1).is_some() {
            (high, at) = member(units, at + 1, units.get(at + 1)?.byte()?)?;
        }
        (low..=high).for_each(|byte| bytes[usize::from(byte)] = true);
    }
}

/// One byte of a set, perhaps behind a backslash, and the place after it.
fn member(units: &[Unit], at: usize, byte: u8) -> Option<(u8, usize)> {
    if byte == b'\\' && !units.get(at)?.is_quoted() {
        return Some((units.get(at + 1)?.byte()?, at + 2));
    }
    Some((byte, at + 1))
}
