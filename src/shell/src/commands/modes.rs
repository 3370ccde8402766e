//! Modes in the formats of chmod(1): octal and symbolic.

use std::iter::Peekable;

const ALL: u16 = 0o7777;

/// One operation on the bits of a mode.
#[derive(Debug, Clone, Copy)]
struct Change {
    operator: u8,
    /// The bits of `ugoa`; none where the umask decides.
    affected: u16,
    value: Value,
    /// Set-id bits of a directory change only if they are among these.
    mentioned: u16,
}

#[derive(Debug, Clone, Copy)]
enum Value {
    Bits(u16),
    /// `X` with other bits: execution for directories, and where any execution is allowed.
    OrExecute(u16),
    /// The bits that one of `ugo` has.
    Copy(u16),
}

/// A compiled mode.
#[derive(Debug, Clone)]
pub(super) struct Mode(Vec<Change>);

/// The mode that a text makes of `old`; `None` where it is invalid. A symbolic mode without `ugoa` spares the bits of the umask.
pub(super) fn parse(text: &[u8], old: u16, directory: bool, umask: u16) -> Option<u16> {
    Mode::new(text).map(|mode| mode.apply(old, directory, umask))
}

impl Mode {
    pub(super) fn new(text: &[u8]) -> Option<Self> {
        if text.first().is_some_and(|first| (b'0'..=b'7').contains(first)) {
            let value = octal(text)?;
            // Four digits or fewer do not take set-id bits from a directory.
            let mentioned = if text.len() < 5 { (value & 0o6000) | 0o1777 } else { ALL };
            return Some(Self(vec![Change { operator: b'=', affected: ALL, value: Value::Bits(value), mentioned }]));
        }
        let mut changes = Vec::new();
        for clause in text.split(|byte| *byte == b',') {
            changes.extend(self::clause(clause)?);
        }
        Some(Self(changes))
    }

    pub(super) fn apply(&self, old: u16, directory: bool, umask: u16) -> u16 {
        self.apply_with_bits(old, directory, umask).0
    }

    /// The new mode, and the bits that it decides; the others are those of an existing directory.
    pub(super) fn apply_with_bits(&self, old: u16, directory: bool, umask: u16) -> (u16, u16) {
        let (mut mode, mut decided) = (old & ALL, 0);
        for change in &self.0 {
            let spared = if directory { 0o6000 & !change.mentioned } else { 0 };
            let value = match change.value {
                Value::Bits(bits) => bits,
                Value::OrExecute(bits) if directory || mode & 0o111 != 0 => bits | 0o111,
                Value::OrExecute(bits) => bits,
                Value::Copy(who) => spread(mode & who),
            };
            let limit = if change.affected == 0 { !umask } else { change.affected };
            let value = value & limit & !spared & ALL;
            match change.operator {
                b'+' => (mode, decided) = (mode | value, decided | value),
                b'-' => (mode, decided) = (mode & !value, decided | value),
                _ => {
                    let kept = (if change.affected == 0 { 0 } else { !change.affected }) | spared;
                    decided |= ALL & !kept;
                    mode = (mode & kept) | value;
                }
            }
        }
        (mode, decided)
    }
}

/// The bits of one of `ugo`, for all three.
fn spread(bits: u16) -> u16 {
    let any = |mask: u16| if bits & mask != 0 { mask } else { 0 };
    any(0o444) | any(0o222) | any(0o111)
}

fn octal(text: &[u8]) -> Option<u16> {
    let digits = text.iter().all(|digit| (b'0'..=b'7').contains(digit));
    let value = u32::from_str_radix(std::str::from_utf8(text).ok().filter(|_| digits)?, 8).ok()?;
    u16::try_from(value).ok().filter(|value| *value <= ALL)
}

/// `ugoa` and one operation or more.
fn clause(clause: &[u8]) -> Option<Vec<Change>> {
    let operator = clause.iter().position(|byte| matches!(byte, b'+' | b'-' | b'='))?;
    let mut affected = 0;
    for letter in &clause[..operator] {
        affected |= match letter {
            b'u' => 0o4700,
            b'g' => 0o2070,
            b'o' => 0o1007,
            b'a' => ALL,
            _ => return None,
        };
    }
    let mut changes = Vec::new();
    let mut rest = clause[operator..].iter().copied().peekable();
    while let Some(operator) = rest.next() {
        changes.push(change(operator, affected, &mut rest)?);
    }
    Some(changes)
}

fn change(operator: u8, affected: u16, rest: &mut Peekable<impl Iterator<Item = u8>>) -> Option<Change> {
    let is_end = |byte: &u8| matches!(byte, b'+' | b'-' | b'=');
    let mut letters = Vec::new();
    while let Some(letter) = rest.next_if(|byte| !is_end(byte)) {
        letters.push(letter);
    }
    let value = match &letters[..] {
        [b'0'..=b'7', ..] => {
            let bits = octal(&letters).filter(|_| affected == 0 && rest.peek().is_none())?;
            return Some(Change { operator, affected: ALL, value: Value::Bits(bits), mentioned: ALL });
        }
        [who @ (b'u' | b'g' | b'o')] => Value::Copy(match who {
            b'u' => 0o700,
            b'g' => 0o070,
            _ => 0o007,
        }),
        _ => permissions(&letters)?,
    };
    let bits = match value {
        Value::Bits(bits) | Value::OrExecute(bits) | Value::Copy(bits) => bits,
    };
    let mentioned = if affected == 0 { bits } else { affected & bits };
    Some(Change { operator, affected, value, mentioned })
}

fn permissions(letters: &[u8]) -> Option<Value> {
    let mut bits = 0;
    for letter in letters {
        bits |= match letter {
            b'r' => 0o444,
            b'w' => 0o222,
            b'x' => 0o111,
            b'X' => 0,
            b's' => 0o6000,
            b't' => 0o1000,
            _ => return None,
        };
    }
    Some(if letters.contains(&b'X') { Value::OrExecute(bits) } else { Value::Bits(bits) })
}
