//! Brace expansion of bash: textual, before all other expansions, over unquoted bytes.

use super::reader::Reader;
use super::{Part, SyntaxError, Word};

/// Most words that one word becomes.
const MAX_WORDS: usize = 10_000;

/// A byte without quotes, or a part that braces do not look into.
#[derive(Debug, Clone)]
enum Atom {
    Byte(u8),
    Part(Part),
}

type Text = Vec<Atom>;

/// Why braces cannot be expanded.
enum Refusal {
    TooMany,
    /// A range of letters over the specials between `Z` and `a`.
    Specials,
    /// A `$` or `$name` at the end of an alternative, which bash joins with the name that follows the braces.
    JoinedName,
}

fn is(text: &[Atom], at: usize, wanted: u8) -> bool {
    matches!(text.get(at), Some(Atom::Byte(byte)) if *byte == wanted)
}

impl Reader<'_> {
    /// The words that a word becomes.
    pub(super) fn expand_braces(&self, word: Word) -> Result<Vec<Word>, SyntaxError> {
        let has_brace = |part: &Part| matches!(part, Part::Literal(bytes) if bytes.contains(&b'{'));
        if !self.language.is_bash() || !word.parts.iter().any(has_brace) {
            return Ok(vec![word]);
        }
        let mut text = Text::new();
        for part in &word.parts {
            match part {
                Part::Literal(bytes) => text.extend(bytes.iter().map(|byte| Atom::Byte(*byte))),
                part => text.push(Atom::Part(part.clone())),
            }
        }
        let expanded = match expand(&text, 0) {
            Ok(expanded) => expanded,
            Err(Refusal::TooMany) => return Err(self.unsupported("a brace expansion to so many words")),
            Err(Refusal::JoinedName) => {
                return Err(self.unsupported("a name directly after a brace expansion that ends with an expansion"));
            }
            Err(Refusal::Specials) => return Err(self.unsupported("a brace expansion over letters of both cases")),
        };
        if expanded.len() > 1 && self.name_before_brace {
            return Err(self.unsupported("a brace expansion directly after $name, without braces around the name"));
        }
        if expanded.len() == 1 {
            return Ok(vec![word]);
        }
        Ok(expanded.into_iter().map(joined).collect())
    }
}

/// The word of a text.
fn joined(text: Text) -> Word {
    let mut parts: Vec<Part> = Vec::new();
    for atom in text {
        match (atom, parts.last_mut()) {
            (Atom::Byte(byte), Some(Part::Literal(bytes))) => bytes.push(byte),
            (Atom::Byte(byte), _) => parts.push(Part::Literal(vec![byte])),
            (Atom::Part(part), _) => parts.push(part),
        }
    }
    Word { parts, from_braces: true }
}

/// `brace_expand` of bash.
fn expand(text: &[Atom], depth: u32) -> Result<Vec<Text>, Refusal> {
    if depth > super::MAX_DEPTH {
        return Err(Refusal::TooMany);
    }
    let mut from = 0;
    let (open, close) = loop {
        let Some(open) = gobble(text, from, b'{') else { return Ok(vec![text.to_vec()]) };
        match gobble(text, open + 1, b'}') {
            Some(close) => break (open, close),
            None => from = open + 1,
        }
    };
    let inner = &text[open + 1..close];
    let rest = &text[close + 1..];
    let middle = if inner.iter().any(|atom| matches!(atom, Atom::Byte(b','))) {
        let mut words = Vec::new();
        let mut from = 0;
        loop {
            let comma = gobble(inner, from, b',');
            words.extend(expand(&inner[from..comma.unwrap_or(inner.len())], depth + 1)?);
            match comma {
                Some(comma) => from = comma + 1,
                None => break,
            }
        }
        words
    } else {
        match sequence(inner)? {
            Some(words) => words,
            None if rest.is_empty() => return Ok(vec![text.to_vec()]),
            None => vec![text[open..=close].to_vec()],
        }
    };
    let rest = if rest.is_empty() { vec![Text::new()] } else { expand(rest, depth + 1)? };
    if middle.len().saturating_mul(rest.len()) > MAX_WORDS {
        return Err(Refusal::TooMany);
    }
    if middle.iter().any(|middle| rest.iter().any(|rest| joins(middle, rest))) {
        return Err(Refusal::JoinedName);
    }
    let mut words = Vec::new();
    for middle in &middle {
        words.extend(rest.iter().map(|rest| [&text[..open], middle, rest].concat()));
    }
    Ok(words)
}

/// Whether `$` or `$name` at the end of one text would take a byte of the next one. `${name}` would not, but is not told apart here.
fn joins(middle: &[Atom], rest: &[Atom]) -> bool {
    let opens = matches!(middle.last(), Some(Atom::Byte(b'$') | Atom::Part(Part::Parameter(_))));
    let takes = |byte: u8| byte == b'_' || byte == b'[' || byte.is_ascii_alphanumeric();
    opens && matches!(rest.first(), Some(Atom::Byte(byte)) if takes(*byte))
}

/// Where `wanted` comes at the level of `from`, as `brace_gobble_text` of bash finds it: a `}` only after a comma or two dots.
fn gobble(text: &[Atom], from: usize, wanted: u8) -> Option<usize> {
    let mut level = 0_u32;
    let mut divided = wanted != b'}';
    let mut at = from;
    while at < text.len() {
        let Atom::Byte(byte) = text[at] else {
            at += 1;
            continue;
        };
        if byte == wanted && level == 0 && divided {
            // An open brace that is a word, or that an empty pair follows, stands for itself.
            let alone = wanted == b'{' && at == 0 && (at + 1 == text.len() || is(text, at + 1, b'}'));
            if !alone {
                return Some(at);
            }
            at += 1;
            continue;
        }
        match byte {
            b'{' => level = level.saturating_add(1),
            b'}' => level = level.saturating_sub(1),
            b',' if level == 0 => divided = true,
            b'.' if level == 0 && is(text, at + 1, b'.') && !is(text, at + 2, wanted) => divided = true,
            _ => {}
        }
        at += 1;
    }
    None
}

/// `1..10`, `01..10..2`, `a..e`.
fn sequence(inner: &[Atom]) -> Result<Option<Vec<Text>>, Refusal> {
    let bytes: Option<Vec<u8>> =
        inner.iter().map(|atom| if let Atom::Byte(byte) = atom { Some(*byte) } else { None }).collect();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    let Some((first, rest)) = text.split_once("..") else { return Ok(None) };
    let (last, step) = match rest.split_once("..") {
        Some((last, step)) => (last, step.parse::<i64>().ok()),
        None => (rest, Some(1)),
    };
    let Some(step) = step else { return Ok(None) };
    let step = i128::from(if step == 0 { 1 } else { step }).abs();
    let letter = |text: &str| match text.as_bytes() {
        [byte] if byte.is_ascii_alphabetic() => Some(*byte),
        _ => None,
    };
    if let (Some(first), Some(last)) = (letter(first), letter(last)) {
        if first.is_ascii_uppercase() != last.is_ascii_uppercase() {
            return Err(Refusal::Specials);
        }
        let letters = numbers(i128::from(first), i128::from(last), step)?;
        let letters = letters.into_iter().filter_map(|number| u8::try_from(number).ok());
        return Ok(Some(letters.map(|letter| vec![Atom::Byte(letter)]).collect()));
    }
    let (Ok(from), Ok(to)) = (first.parse::<i64>(), last.parse::<i64>()) else { return Ok(None) };
    let padded = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        digits.len() > 1 && digits.starts_with('0')
    };
    let width = if padded(first) || padded(last) { first.len().max(last.len()) } else { 0 };
    let numbers = numbers(i128::from(from), i128::from(to), step)?;
    let shown = numbers.into_iter().map(|number| format!("{number:0width$}"));
    Ok(Some(shown.map(|text| text.bytes().map(Atom::Byte).collect()).collect()))
}

fn numbers(from: i128, to: i128, step: i128) -> Result<Vec<i128>, Refusal> {
    let count = (to - from).abs() / step;
    if count >= MAX_WORDS as i128 {
        return Err(Refusal::TooMany);
    }
    let step = if from > to { -step } else { step };
    Ok((0..=count).map(|at| from + at * step).collect())
}
