//! Patterns of `case`, `${x#…}` and pathnames (POSIX XCU 2.13), over bytes, with the groups of bash.

mod bracket;
mod positions;

use crate::expand::Unit;

/// How a pattern is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Style {
    /// As bash does.
    pub(crate) bash: bool,
    /// Groups such as `@(a|b)`: `shopt -s extglob`.
    pub(crate) extended: bool,
    pub(crate) ignore_case: bool,
}

/// How often a group of bash matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeat {
    Optional,
    Any,
    Some,
    One,
    Not,
}

/// Most groups of a pattern, and so their deepest nesting.
pub(crate) const MAX_GROUPS: usize = 100;

/// A piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Byte(u8),
    Any,
    Star,
    Set { negated: bool, bytes: Box<[bool; 256]> },
    Group(Repeat, Vec<Pattern>),
}

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
    /// The pattern that a word expands to below dash; what is quoted stands for itself.
    pub(crate) fn new(units: &[Unit]) -> Self {
        Self::of(units, Style::default())
    }

    /// The pattern that a word expands to.
    pub(crate) fn of(units: &[Unit], style: Style) -> Self {
        let units: Vec<Unit> = units.iter().copied().filter(|unit| unit.byte().is_some()).collect();
        Self::parsed(&units, style, 0)
    }

    fn parsed(units: &[Unit], style: Style, depth: usize) -> Self {
        let mut pieces = Vec::new();
        let mut at = 0;
        while let Some(unit) = units.get(at) {
            at += 1;
            let byte = unit.byte().unwrap_or_default();
            if style.extended
                && depth <= MAX_GROUPS
                && let Some((group, len)) = group(&units[at - 1..], style, depth)
            {
                pieces.push(group);
                at += len - 1;
                continue;
            }
            match byte {
                _ if unit.is_quoted() => pieces.push(Piece::Byte(byte)),
                b'*' if pieces.last() == Some(&Piece::Star) => {}
                b'*' => pieces.push(Piece::Star),
                b'?' => pieces.push(Piece::Any),
                b'[' => match bracket::set(&units[at..], style) {
                    Some((piece, len)) => {
                        pieces.push(piece);
                        at += len;
                    }
                    None => pieces.push(Piece::Byte(b'[')),
                },
                b'\\' => match units.get(at) {
                    // dash marks what is quoted only where it could be special, and the mark takes the backslash.
                    Some(next)
                        if !style.bash
                            && next.is_quoted()
                            && next.byte().is_some_and(|byte| b"!*?[]=~:/-".contains(&byte)) =>
                    {
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
        if style.ignore_case {
            pieces.iter_mut().for_each(Piece::ignore_case);
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

    /// All bytes that stand for themselves, with a NUL for what is between them.
    pub(crate) fn literals(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Byte(byte) => text.push(*byte),
                Piece::Group(_, patterns) => {
                    for inner in patterns {
                        text.push(0);
                        text.extend(inner.literals());
                    }
                    text.push(0);
                }
                _ => text.push(0),
            }
        }
        text
    }

    /// The pattern with other texts in place of those that stand for themselves.
    pub(crate) fn mapped(&self, other: &impl Fn(&[u8]) -> Vec<u8>) -> Self {
        let (mut pieces, mut text) = (Vec::new(), Vec::new());
        let end = |text: &mut Vec<u8>, pieces: &mut Vec<Piece>| {
            pieces.extend(other(&std::mem::take(text)).into_iter().map(Piece::Byte));
        };
        for piece in &self.0 {
            match piece {
                Piece::Byte(byte) => text.push(*byte),
                Piece::Group(repeat, patterns) => {
                    end(&mut text, &mut pieces);
                    pieces.push(Piece::Group(*repeat, patterns.iter().map(|inner| inner.mapped(other)).collect()));
                }
                piece => {
                    end(&mut text, &mut pieces);
                    pieces.push(piece.clone());
                }
            }
        }
        end(&mut text, &mut pieces);
        Self(pieces)
    }

    /// Whether the pattern begins with a dot that stands for itself.
    pub(crate) fn begins_with_dot(&self) -> bool {
        self.0.first() == Some(&Piece::Byte(b'.'))
    }

    /// Whether a group of bash comes first.
    pub(crate) fn begins_with_group(&self) -> bool {
        matches!(self.0.first(), Some(Piece::Group(..)))
    }

    pub(crate) fn len(&self) -> usize {
        let inner = |piece: &Piece| match piece {
            Piece::Group(_, patterns) => patterns.iter().map(Self::len).sum::<usize>() + 1,
            _ => 1,
        };
        self.0.iter().map(inner).sum()
    }

    /// What matching a text of so many bytes costs, in bytes of work.
    pub(crate) fn work(&self, len: usize) -> usize {
        if self.has_groups() { self.search_work(len) } else { len.saturating_mul(self.len()) / 8 + 1 }
    }

    /// What [`Pattern::ends`] costs: a set of places takes more than a byte that is compared.
    pub(crate) fn search_work(&self, len: usize) -> usize {
        const PLACE: usize = 16;
        if !self.has_groups() && !self.0.contains(&Piece::Star) {
            return self.len() + 1;
        }
        let negated = if self.has_negation() { len.saturating_add(1) } else { 1 };
        len.saturating_add(1).saturating_mul(self.len()).saturating_mul(PLACE).saturating_mul(negated)
    }

    pub(crate) fn has_groups(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Group(..)))
    }

    fn has_negation(&self) -> bool {
        self.0.iter().any(|piece| match piece {
            Piece::Group(repeat, patterns) => *repeat == Repeat::Not || patterns.iter().any(Self::has_negation),
            _ => false,
        })
    }

    /// Whether a `*` is directly before a group that may match nothing: bash then wants something to be left for the group.
    pub(crate) fn is_irregular(&self) -> bool {
        let empty = |piece: &Piece| match piece {
            Piece::Group(Repeat::One | Repeat::Some, patterns) => patterns.iter().any(Self::may_be_empty),
            piece => matches!(piece, Piece::Group(Repeat::Not, _)),
        };
        self.0.windows(2).any(|pair| pair[0] == Piece::Star && empty(&pair[1]))
            || self.0.iter().any(|piece| match piece {
                Piece::Group(_, patterns) => patterns.iter().any(Self::is_irregular),
                _ => false,
            })
    }

    fn may_be_empty(&self) -> bool {
        self.0.iter().all(|piece| match piece {
            Piece::Star | Piece::Group(Repeat::Optional | Repeat::Any | Repeat::Not, _) => true,
            Piece::Group(_, patterns) => patterns.iter().any(Self::may_be_empty),
            _ => false,
        })
    }

    /// Whether all of `text` fits. Only the last `*` is ever taken back, so the time is bounded by the product of both lengths.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        let pieces = &self.0;
        if self.has_groups() {
            return self.ends(text, 0).contains(&text.len());
        }
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

/// A group of bash at the start of the units, and its length.
fn group(units: &[Unit], style: Style, depth: usize) -> Option<(Piece, usize)> {
    let plain = |at: usize| units.get(at).filter(|unit| !unit.is_quoted()).and_then(|unit| unit.byte());
    let repeat = match (plain(0)?, plain(1)?) {
        (b'?', b'(') => Repeat::Optional,
        (b'*', b'(') => Repeat::Any,
        (b'+', b'(') => Repeat::Some,
        (b'@', b'(') => Repeat::One,
        (b'!', b'(') => Repeat::Not,
        _ => return None,
    };
    let (mut at, mut start, mut open) = (2, 2, 1_u32);
    let mut patterns = Vec::new();
    while at < units.len() {
        match plain(at) {
            Some(b'\\') => at += 1,
            Some(b'[') => at += bracket::set(&units[at + 1..], style).map_or(0, |(_, len)| len),
            Some(b'(') => open += 1,
            Some(b')') if open == 1 => {
                patterns.push(Pattern::parsed(&units[start..at], style, depth + 1));
                return Some((Piece::Group(repeat, patterns), at + 1));
            }
            Some(b')') => open -= 1,
            Some(b'|') if open == 1 => {
                patterns.push(Pattern::parsed(&units[start..at], style, depth + 1));
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

impl Piece {
    /// Lets letters of both cases match.
    fn ignore_case(&mut self) {
        match self {
            Self::Byte(byte) if byte.is_ascii_alphabetic() => {
                let mut bytes = Box::new([false; 256]);
                bytes[usize::from(byte.to_ascii_lowercase())] = true;
                bytes[usize::from(byte.to_ascii_uppercase())] = true;
                *self = Self::Set { negated: false, bytes };
            }
            Self::Set { bytes, .. } => {
                for upper in b'A'..=b'Z' {
                    let (upper, lower) = (usize::from(upper), usize::from(upper.to_ascii_lowercase()));
                    let either = bytes[upper] || bytes[lower];
                    (bytes[upper], bytes[lower]) = (either, either);
                }
            }
            _ => {}
        }
    }

    fn takes(&self, byte: u8) -> bool {
        match self {
            Self::Byte(own) => *own == byte,
            Self::Any => true,
            Self::Star | Self::Group(..) => false,
            Self::Set { negated, bytes } => bytes[usize::from(byte)] != *negated,
        }
    }
}
