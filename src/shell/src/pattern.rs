//! Patterns of `case`, `${x#…}` and pathnames (POSIX XCU 2.13), over bytes.

use crate::expand::Unit;

/// A piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Byte(u8),
    Any,
    Star,
    Set { negated: bool, bytes: Box<[bool; 256]> },
}

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<Piece>);

/// Classes of POSIX, in its own locale.
pub(crate) fn in_class(class: &[u8], byte: u8) -> Option<bool> {
    Some(match class {
        b"alpha" => byte.is_ascii_alphabetic(),
        b"digit" => byte.is_ascii_digit(),
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"upper" => byte.is_ascii_uppercase(),
        b"lower" => byte.is_ascii_lowercase(),
        b"space" => byte.is_ascii_whitespace() || byte == 0x0b,
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"punct" => byte.is_ascii_punctuation(),
        b"print" => (0x20..0x7f).contains(&byte),
        b"graph" => byte.is_ascii_graphic(),
        b"cntrl" => byte.is_ascii_control(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => return None,
    })
}

impl Pattern {
    /// The pattern that a word expands to; what is quoted stands for itself.
    pub(crate) fn new(units: &[Unit]) -> Self {
        let units: Vec<Unit> = units.iter().copied().filter(|unit| unit.byte().is_some()).collect();
        let mut pieces = Vec::new();
        let mut at = 0;
        while let Some(unit) = units.get(at) {
            at += 1;
            let byte = unit.byte().unwrap_or_default();
            match byte {
                _ if unit.is_quoted() => pieces.push(Piece::Byte(byte)),
                b'*' if pieces.last() == Some(&Piece::Star) => {}
                b'*' => pieces.push(Piece::Star),
                b'?' => pieces.push(Piece::Any),
                b'[' => match set(&units[at..]) {
                    Some((piece, len)) => {
                        pieces.push(piece);
                        at += len;
                    }
                    None => pieces.push(Piece::Byte(b'[')),
                },
                b'\\' => match units.get(at) {
                    // dash marks what is quoted only where it could be special, and the mark takes the backslash.
                    Some(next) if next.is_quoted() && next.byte().is_some_and(|byte| b"!*?[]=~:/-".contains(&byte)) => {
                        pieces.push(Piece::Byte(b'\\'));
                    }
                    Some(next) => {
                        pieces.push(Piece::Byte(next.byte().unwrap_or_default()));
                        at += 1;
                    }
                    None => pieces.push(Piece::Byte(b'\\')),
                },
                byte => pieces.push(Piece::Byte(byte)),
            }
        }
        Self(pieces)
    }

    /// Whether it has a piece that stands for more than itself.
    pub(crate) fn is_special(&self) -> bool {
        self.0.iter().any(|piece| !matches!(piece, Piece::Byte(_)))
    }

    /// What it matches if it is not special.
    pub(crate) fn text(&self) -> Vec<u8> {
        self.0.iter().filter_map(|piece| if let Piece::Byte(byte) = piece { Some(*byte) } else { None }).collect()
    }

    /// Whether the pattern begins with a dot that stands for itself.
    pub(crate) fn begins_with_dot(&self) -> bool {
        self.0.first() == Some(&Piece::Byte(b'.'))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether all of `text` fits. Only the last `*` is ever taken back, so the time is bounded by the product of both lengths.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        let pieces = &self.0;
        let (mut at, mut piece) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        loop {
            match pieces.get(piece) {
                Some(Piece::Star) => {
                    star = Some((piece, at));
                    piece += 1;
                    continue;
                }
                Some(found) if text.get(at).is_some_and(|byte| found.takes(*byte)) => {
                    at += 1;
                    piece += 1;
                    continue;
                }
                None if at == text.len() => return true,
                _ => {}
            }
            match star {
                Some((begin, from)) if from < text.len() => {
                    star = Some((begin, from + 1));
                    (piece, at) = (begin + 1, from + 1);
                }
                _ => return false,
            }
        }
    }
}

impl Piece {
    fn takes(&self, byte: u8) -> bool {
        match self {
            Self::Byte(own) => *own == byte,
            Self::Any => true,
            Self::Star => false,
            Self::Set { negated, bytes } => bytes[usize::from(byte)] != *negated,
        }
    }
}

/// What follows `[`: the set and its length, unless there is no `]`.
fn set(units: &[Unit]) -> Option<(Piece, usize)> {
    let mut bytes = Box::new([false; 256]);
    let plain = |at: usize| units.get(at).filter(|unit| !unit.is_quoted()).and_then(|unit| unit.byte());
    let mut at = 0;
    let negated = plain(at) == Some(b'!');
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
            if plain(end) == Some(b':') && plain(end + 1) == Some(b']') && in_class(&class, 0).is_some() {
                (0..=u8::MAX)
                    .filter(|byte| in_class(&class, *byte) == Some(true))
                    .for_each(|byte| bytes[usize::from(byte)] = true);
                at = end + 2;
                continue;
            }
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
