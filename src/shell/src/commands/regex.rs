//! Regular expressions of POSIX, basic and extended with the additions of GNU, over bytes. They are translated to those of the crate
//! `regex`, which takes linear time, and knows no back-references in patterns.

use regex::bytes::{Regex, RegexBuilder};

use crate::eval::Run;
use crate::pattern::in_class;
use crate::shell::Shell;

/// A compiled expression may have so many bytes.
const MAX_COMPILED: usize = 1 << 20;

/// What compiling counts for, in bytes of work: so that a loop of it stops within seconds, too.
const COMPILING: usize = 4 << 10;
const COMPILING_INTERVAL: usize = 128 << 10;

/// How an expression is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    Basic,
    Extended,
    /// The text itself.
    Fixed,
}

/// A compiled expression.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    regex: Regex,
    /// The same with an anchor at its end, where another way to match may be longer than the first one found.
    longest: Option<Regex>,
}

/// Places of a match and its groups.
pub(crate) type Places = Vec<Option<(usize, usize)>>;

impl Expression {
    /// Compiles an expression; `ignore_case` for letters.
    pub(crate) fn new(shell: &mut Shell<'_>, text: &[u8], syntax: Syntax, ignore_case: bool) -> Run<Self> {
        // Compiling takes time by the size of the result, which an interval multiplies.
        let cost = if text.contains(&b'{') { COMPILING_INTERVAL } else { COMPILING };
        shell.spend_size(text.len(), text.len().saturating_mul(16).saturating_add(cost))?;
        let mut translation = Translation {
            text,
            at: 0,
            extended: syntax == Syntax::Extended,
            out: String::new(),
            open: 0,
            ambiguous: false,
            repeated: false,
        };
        let translated = match syntax {
            Syntax::Fixed => {
                text.iter().for_each(|byte| translation.literal(*byte));
                Ok(())
            }
            _ => translation.translate(),
        };
        let unsupported =
            |why: &str| ["the regular expression “".as_bytes(), text, "”: ".as_bytes(), why.as_bytes()].concat();
        if let Err(why) = translated {
            return shell.unsupported(&unsupported(why));
        }
        let compile = |pattern: &str| {
            let mut builder = RegexBuilder::new(pattern);
            builder
                .unicode(false)
                .case_insensitive(ignore_case)
                .dot_matches_new_line(true)
                .size_limit(MAX_COMPILED)
                .nest_limit(100);
            builder.build()
        };
        let regex = match compile(&translation.out) {
            Ok(regex) => regex,
            Err(_) => return shell.unsupported(&unsupported("it is too large, or not valid")),
        };
        let longest = if translation.ambiguous { compile(&format!("(?:{})\\z", translation.out)).ok() } else { None };
        Ok(Self { regex, longest })
    }

    pub(super) fn is_match(&self, shell: &mut Shell<'_>, line: &[u8]) -> Run<bool> {
        shell.spend(line.len() + 16)?;
        Ok(self.regex.is_match(line))
    }

    /// The leftmost longest match that begins at `start` or later.
    pub(crate) fn find(&self, shell: &mut Shell<'_>, line: &[u8], start: usize) -> Run<Option<Places>> {
        shell.spend(line.len() - start + 16)?;
        let Some(captures) = self.regex.captures_at(line, start) else { return Ok(None) };
        let places = |captures: &regex::bytes::Captures<'_>| -> Places {
            captures.iter().map(|group| group.map(|group| (group.start(), group.end()))).collect()
        };
        let first = places(&captures);
        let (Some(Some((begin, end))), Some(longest)) = (first.first(), &self.longest) else { return Ok(Some(first)) };
        for to in (end + 1..=line.len()).rev() {
            shell.spend(to - begin + 16)?;
            if let Some(captures) = longest.captures_at(&line[..to], *begin)
                && captures.get(0).is_some_and(|whole| whole.start() == *begin)
            {
                return Ok(Some(places(&captures)));
            }
        }
        Ok(Some(first))
    }
}

struct Translation<'t> {
    text: &'t [u8],
    at: usize,
    extended: bool,
    out: String,
    open: u32,
    /// Alternatives, or a repeated group: the first match found need not be the longest.
    ambiguous: bool,
    /// The last piece was a repetition.
    repeated: bool,
}

impl Translation<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn literal(&mut self, byte: u8) {
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            self.out.push(char::from(byte));
        } else {
            self.out.push_str(&format!("\\x{byte:02x}"));
        }
    }

    fn translate(&mut self) -> Result<(), &'static str> {
        // Whether a `*` here stands for itself, and `^` for the start of the line.
        let mut start = true;
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            let operator = match byte {
                b'\\' => {
                    let Some(escaped) = self.peek(0) else { return Err("a backslash at its end") };
                    self.at += 1;
                    match escaped {
                        b'(' | b')' | b'{' | b'}' | b'|' | b'+' | b'?' if !self.extended => escaped,
                        other => {
                            self.escaped(other)?;
                            (start, self.repeated) = (false, false);
                            continue;
                        }
                    }
                }
                b'(' | b')' | b'{' | b'|' | b'+' | b'?' if !self.extended => {
                    self.literal(byte);
                    (start, self.repeated) = (false, false);
                    continue;
                }
                other => other,
            };
            let repeats = matches!(operator, b'*' | b'+' | b'?' | b'{') && !start;
            self.repeated &= repeats;
            start = self.operator(operator, start)?;
        }
        if self.open > 0 { Err("a group that is not closed") } else { Ok(()) }
    }

    /// What stands behind a backslash and is no operator.
    fn escaped(&mut self, byte: u8) -> Result<(), &'static str> {
        match byte {
            b'1'..=b'9' => return Err("a back-reference"),
            b'n' => self.out.push_str("\\n"),
            b't' => self.out.push_str("\\t"),
            b'w' => self.out.push_str("[0-9A-Za-z_]"),
            b'W' => self.out.push_str("[^0-9A-Za-z_]"),
            b's' => self.out.push_str("[ \\t\\n\\r\\x0b\\x0c]"),
            b'S' => self.out.push_str("[^ \\t\\n\\r\\x0b\\x0c]"),
            b'b' => self.out.push_str("\\b"),
            b'B' => self.out.push_str("\\B"),
            b'<' => self.out.push_str("\\b{start}"),
            b'>' => self.out.push_str("\\b{end}"),
            b'`' => self.out.push_str("\\A"),
            b'\'' => self.out.push_str("\\z"),
            byte if byte.is_ascii_alphanumeric() => return Err("an escape"),
            byte => self.literal(byte),
        }
        Ok(())
    }

    /// Whether what follows begins anew: behind `(`, `|` and `^`.
    fn operator(&mut self, byte: u8, start: bool) -> Result<bool, &'static str> {
        match byte {
            b'(' => {
                self.open += 1;
                self.out.push('(');
                return Ok(true);
            }
            b')' => {
                if self.open == 0 {
                    if self.extended {
                        self.literal(b')');
                        return Ok(false);
                    }
                    return Err("a group that is not open");
                }
                self.open -= 1;
                self.out.push(')');
                let repeated = match (self.extended, self.peek(0), self.peek(1)) {
                    (_, Some(b'*'), _) | (true, Some(b'+' | b'?' | b'{'), _) => true,
                    (false, Some(b'\\'), Some(next)) => b"+?{".contains(&next),
                    _ => false,
                };
                self.ambiguous |= repeated;
            }
            b'|' => {
                self.ambiguous = true;
                self.out.push('|');
                return Ok(true);
            }
            b'^' if start || self.extended => {
                self.out.push_str("\\A");
                return Ok(true);
            }
            b'$' if self.extended || self.at_end() => self.out.push_str("\\z"),
            b'*' | b'+' | b'?' | b'{' if start => match (self.extended, byte) {
                (false, b'*') | (true, b'{') => self.literal(byte),
                (true, b'*') => {}
                _ => return Err("a repetition of nothing"),
            },
            b'*' | b'+' | b'?' => self.repeat(&char::from(byte).to_string())?,
            b'{' => self.interval()?,
            b'[' => self.bracket()?,
            b'.' => self.out.push_str("(?s:.)"),
            byte => self.literal(byte),
        }
        Ok(false)
    }

    /// A repetition of a repetition would mean something else to the crate.
    fn repeat(&mut self, operator: &str) -> Result<(), &'static str> {
        if std::mem::replace(&mut self.repeated, true) {
            return Err("a repetition of a repetition");
        }
        self.out.push_str(operator);
        Ok(())
    }

    /// Whether a `$` of a basic expression stands at an end.
    fn at_end(&self) -> bool {
        let rest = &self.text[self.at..];
        rest.is_empty() || rest.starts_with(b"\\)") || rest.starts_with(b"\\|")
    }

    fn interval(&mut self) -> Result<(), &'static str> {
        let close: &[u8] = if self.extended { b"}" } else { b"\\}" };
        let rest = &self.text[self.at..];
        let len =
            rest.windows(close.len()).position(|window| window == close).ok_or("an interval that is not closed")?;
        let inner = &rest[..len];
        let (low, high) = match inner.iter().position(|byte| *byte == b',') {
            Some(at) => (&inner[..at], Some(&inner[at + 1..])),
            None => (inner, None),
        };
        let number = |text: &[u8]| crate::accounts::number(text).filter(|number| *number <= 255);
        let low = if low.is_empty() { 0 } else { number(low).ok_or("an interval")? };
        let text = match high {
            None => format!("{{{low}}}"),
            Some([]) => format!("{{{low},}}"),
            Some(high) => format!("{{{low},{}}}", number(high).ok_or("an interval")?),
        };
        self.at += len + close.len();
        self.repeat(&text)
    }

    fn bracket(&mut self) -> Result<(), &'static str> {
        let negated = self.peek(0) == Some(b'^');
        self.at += usize::from(negated);
        let mut bytes = [false; 256];
        let mut first = true;
        loop {
            let byte = self.peek(0).ok_or("a set that is not closed")?;
            if byte == b']' && !first {
                self.at += 1;
                break;
            }
            first = false;
            if byte == b'[' && matches!(self.peek(1), Some(b':')) {
                let rest = &self.text[self.at + 2..];
                let len = rest.windows(2).position(|window| window == b":]").ok_or("a class that is not closed")?;
                let class = &rest[..len];
                in_class(class, 0).ok_or("a class")?;
                (0..=u8::MAX)
                    .filter(|byte| in_class(class, *byte) == Some(true))
                    .for_each(|byte| bytes[usize::from(byte)] = true);
                self.at += len + 4;
                continue;
            }
            if byte == b'[' && matches!(self.peek(1), Some(b'.' | b'=')) {
                return Err("a collating element");
            }
            self.at += 1;
            let mut high = byte;
            if self.peek(0) == Some(b'-') && !matches!(self.peek(1), Some(b']') | None) {
                high = self.peek(1).unwrap_or(byte);
                self.at += 2;
                if high < byte {
                    return Err("a range that ends before it begins");
                }
            }
            (byte..=high).for_each(|byte| bytes[usize::from(byte)] = true);
        }
        self.set(&bytes, negated);
        Ok(())
    }

    fn set(&mut self, bytes: &[bool; 256], negated: bool) {
        let members: Vec<String> =
            (0..=u8::MAX).filter(|byte| bytes[usize::from(*byte)]).map(|byte| format!("\\x{byte:02x}")).collect();
        match (members.len(), negated) {
            (256, true) => self.out.push_str("[^\\x00-\\xff]"),
            (_, true) => self.out.push_str(&format!("[^{}]", members.concat())),
            _ => self.out.push_str(&format!("[{}]", members.concat())),
        }
    }
}
