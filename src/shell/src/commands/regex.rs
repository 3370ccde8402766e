//! Regular expressions of POSIX, basic and extended, with GNU's extensions, over bytes. They are translated for the crate `regex`, which
//! takes linear time and does not support back-references in patterns.

use regex::bytes::{Regex, RegexBuilder};

use crate::eval::{Run, Stop};
use crate::pattern::in_class;
use crate::shell::Shell;

/// A compiled expression may have so many bytes.
const MAX_COMPILED: usize = 1 << 20;

/// What compiling counts for, in bytes of work: so that a loop of it stops within seconds, too.
const COMPILING: usize = 4 << 10;
const COMPILING_INTERVAL: usize = 128 << 10;

/// Deepest nesting of groups.
const MAX_GROUPS: usize = 90;

/// How an expression is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// That of sed and expr, which refuse `a**`.
    Basic,
    Grep,
    /// That of sed -E and find, which refuse what cannot be repeated.
    Extended,
    /// That of awk: awks do not agree about a repetition of a repetition.
    Awk,
    /// That of grep -E.
    Egrep,
    /// The text itself.
    Fixed,
}

/// A compiled expression.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    regex: Regex,
    /// Whether it has a set such as `[:space:]`, which grep and sed refuse.
    lone_class: bool,
    /// Whether grep warns of a repetition of nothing.
    warned: bool,
    /// The same with an anchor at its end, where another way to match may be longer than the first one found.
    longest: Option<Regex>,
}

/// Places of a match and its groups.
pub(crate) type Places = Vec<Option<(usize, usize)>>;

impl Expression {
    /// Compiles an expression; `ignore_case` for letters. An invalid one is written, and ends the program.
    pub(crate) fn new(shell: &mut Shell<'_>, text: &[u8], syntax: Syntax, ignore_case: bool) -> Run<Self> {
        Self::with_lines(shell, text, syntax, ignore_case, false)
    }

    /// Compiles an expression; with `lines`, `^` and `$` also match at the lines in a text.
    pub(crate) fn with_lines(
        shell: &mut Shell<'_>,
        text: &[u8],
        syntax: Syntax,
        ignore_case: bool,
        lines: bool,
    ) -> Run<Self> {
        // Compiling takes time by the size of the result, which an interval multiplies.
        let cost = if text.contains(&b'{') { COMPILING_INTERVAL } else { COMPILING };
        shell.spend_size(text.len(), text.len().saturating_mul(16).saturating_add(cost))?;
        let mut translation = Translation {
            text,
            at: 0,
            lone_class: false,
            warned: false,
            extended: matches!(syntax, Syntax::Extended | Syntax::Awk | Syntax::Egrep),
            strict: matches!(syntax, Syntax::Basic | Syntax::Extended | Syntax::Awk),
            single: syntax == Syntax::Awk,
            caret: true,
            lines,
            out: String::new(),
            open: Vec::new(),
            groups: 0,
            atom: 0,
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
        match translated {
            Ok(()) => {}
            Err(Fault::Unsupported(why)) => return shell.unsupported(&unsupported(why)),
            Err(Fault::Invalid(why)) => {
                if shell.is_captured(2) && shell.writes_errors() {
                    return shell
                        .unsupported(&[b"a file or value with a message such as: ", &unsupported(why)[..]].concat());
                }
                shell.err(&[&unsupported(why)[..], b"\n"].concat())?;
                return Err(Stop::Error);
            }
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
        Ok(Self { regex, lone_class: translation.lone_class, warned: translation.warned, longest })
    }

    /// Refuses a set such as `[:space:]` as grep and sed do. Says whether there is one.
    pub(super) fn complains_of_class(&self, shell: &mut Shell<'_>, program: &str) -> Run<bool> {
        if self.lone_class {
            super::complain(shell, program, b"character class syntax is [[:space:]], not [:space:]")?;
        }
        Ok(self.lone_class)
    }

    /// Whether grep warns of an operator that repeats nothing.
    pub(super) fn warns(&self) -> bool {
        self.warned
    }

    /// The number of its groups.
    pub(super) fn groups(&self) -> usize {
        self.regex.captures_len().saturating_sub(1)
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

/// Why an expression is not compiled.
enum Fault {
    /// It is wrong for the real program, too.
    Invalid(&'static str),
    Unsupported(&'static str),
}

use Fault::{Invalid, Unsupported};

struct Translation<'t> {
    text: &'t [u8],
    at: usize,
    /// Whether there is a set such as `[:space:]`, which only looks like a class.
    lone_class: bool,
    /// Whether there is a repetition of nothing.
    warned: bool,
    extended: bool,
    /// An operator with nothing to repeat is an error.
    strict: bool,
    /// A repetition of a repetition is refused.
    single: bool,
    lines: bool,
    /// Whether a `^` here is an anchor.
    caret: bool,
    out: String,
    /// Where the open groups begin in `out`.
    open: Vec<usize>,
    groups: u8,
    /// Where the last piece begins in `out`.
    atom: usize,
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

    fn translate(&mut self) -> Result<(), Fault> {
        // Whether a `*` here stands for itself, and `^` for the start of the line.
        let mut start = true;
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            let operator = match byte {
                b'\\' => {
                    let Some(escaped) = self.peek(0) else { return Err(Invalid("a backslash at its end")) };
                    self.at += 1;
                    match escaped {
                        b'(' | b')' | b'{' | b'}' | b'|' | b'+' | b'?' if !self.extended => escaped,
                        other => {
                            self.atom = self.out.len();
                            self.escaped(other)?;
                            let anchor = matches!(other, b'b' | b'B' | b'<' | b'>' | b'`' | b'\'');
                            if anchor && self.extended && !self.strict && self.peek(0).is_some_and(is_repetition) {
                                return Err(Unsupported("a repetition of an anchor"));
                            }
                            (start, self.repeated, self.caret) = (anchor, false, false);
                            continue;
                        }
                    }
                }
                b'(' | b')' | b'{' | b'|' | b'+' | b'?' if !self.extended => {
                    self.atom = self.out.len();
                    self.literal(byte);
                    (start, self.repeated, self.caret) = (false, false, false);
                    continue;
                }
                other => other,
            };
            let repeats = matches!(operator, b'*' | b'+' | b'?' | b'{') && !start;
            self.repeated &= repeats;
            start = self.operator(operator, start)?;
        }
        if self.open.is_empty() { Ok(()) } else { Err(Invalid("a group that is not closed")) }
    }

    /// A character after a backslash that is not an operator.
    fn escaped(&mut self, byte: u8) -> Result<(), Fault> {
        match byte {
            b'1'..=b'9' if byte - b'0' > self.groups => return Err(Invalid("a reference to a group that is missing")),
            b'1'..=b'9' => return Err(Unsupported("a back-reference")),
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
            byte if byte.is_ascii_alphanumeric() => return Err(Unsupported("an escape")),
            byte => self.literal(byte),
        }
        Ok(())
    }

    /// Whether what follows begins anew: behind `(`, `|` and `^`.
    fn operator(&mut self, byte: u8, start: bool) -> Result<bool, Fault> {
        let piece = self.out.len();
        let caret = std::mem::replace(&mut self.caret, matches!(byte, b'(' | b'|'));
        if !matches!(byte, b'*' | b'+' | b'?' | b'{') || start {
            self.atom = piece;
        }
        match byte {
            b'(' => {
                if self.open.len() >= MAX_GROUPS {
                    return Err(Unsupported("such deep nesting of groups"));
                }
                self.open.push(piece);
                self.groups = self.groups.saturating_add(1);
                self.out.push('(');
                return Ok(true);
            }
            b')' => {
                let Some(begin) = self.open.pop() else {
                    if self.extended && !self.strict {
                        self.literal(b')');
                        return Ok(false);
                    }
                    return Err(Invalid("a group that is not open"));
                };
                self.atom = begin;
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
            b'^' if caret || self.extended => {
                self.out.push_str(if self.lines { "(?m:^)" } else { "\\A" });
                if self.extended && !self.strict && self.peek(0).is_some_and(is_repetition) {
                    return Err(Unsupported("a repetition of an anchor"));
                }
                return Ok(true);
            }
            b'$' if self.extended || self.at_end() => {
                self.out.push_str(if self.lines { "(?m:$)" } else { "\\z" });
                // What follows an anchor cannot repeat it.
                if self.peek(0).is_some_and(is_repetition) && self.extended {
                    return Err(Unsupported("a repetition of an anchor"));
                }
            }
            b'*' | b'+' | b'?' | b'{' if start => match (self.extended, byte) {
                (true, _) if self.strict => return Err(Invalid("a repetition of nothing")),
                (false, b'{') => return Err(Unsupported("a repetition of nothing")),
                (false, _) => self.literal(byte),
                (true, b'{') if self.interval_len().is_none() => self.literal(byte),
                (true, b'{') => return Err(Unsupported("a repetition of nothing")),
                (true, _) => {
                    self.warned = true;
                    return Ok(true);
                }
            },
            b'*' | b'+' | b'?' => self.repeat(&char::from(byte).to_string())?,
            b'{' => self.interval()?,
            b'[' => self.bracket()?,
            b'.' => self.out.push_str("(?s:.)"),
            byte => self.literal(byte),
        }
        Ok(false)
    }

    /// A repetition of a repetition needs a group: `*?` would mean something else to the crate.
    fn repeat(&mut self, operator: &str) -> Result<(), Fault> {
        if std::mem::replace(&mut self.repeated, true) {
            if self.single {
                return Err(Unsupported("a repetition of a repetition"));
            }
            if self.strict && !self.extended && operator.starts_with(['*', '{']) {
                return Err(Invalid("a repetition of a repetition"));
            }
            self.out.insert_str(self.atom, "(?:");
            self.out.push(')');
            self.ambiguous = true;
        }
        self.out.push_str(operator);
        Ok(())
    }

    /// Whether a `$` of a basic expression stands at an end.
    fn at_end(&self) -> bool {
        let rest = &self.text[self.at..];
        rest.is_empty() || rest.starts_with(b"\\)") || rest.starts_with(b"\\|")
    }

    /// The length of an interval such as `1,3` without its braces, if there is one.
    fn interval_len(&self) -> Option<usize> {
        let close: &[u8] = if self.extended { b"}" } else { b"\\}" };
        let rest = &self.text[self.at..];
        let found = rest.windows(close.len()).position(|window| window == close);
        let is_interval = |text: &[u8]| text.iter().all(|byte| byte.is_ascii_digit() || *byte == b',');
        found.filter(|len| is_interval(&rest[..*len]) && *len > 0)
    }

    fn interval(&mut self) -> Result<(), Fault> {
        let Some(len) = self.interval_len() else {
            if self.extended && !self.strict {
                self.atom = self.out.len();
                self.literal(b'{');
                return Ok(());
            }
            return Err(Invalid("an interval that is not closed, or not valid"));
        };
        let inner = &self.text[self.at..self.at + len];
        let (low, high) = match inner.iter().position(|byte| *byte == b',') {
            Some(at) => (&inner[..at], Some(&inner[at + 1..])),
            None => (inner, None),
        };
        let number = |text: &[u8]| crate::accounts::number(text).filter(|number| *number <= 255);
        let low = if low.is_empty() { 0 } else { number(low).ok_or(Unsupported("an interval"))? };
        let text = match high {
            None => format!("{{{low}}}"),
            Some([]) => format!("{{{low},}}"),
            Some(high) => format!("{{{low},{}}}", number(high).ok_or(Unsupported("an interval"))?),
        };
        self.at += len + if self.extended { 1 } else { 2 };
        self.repeat(&text)
    }

    fn bracket(&mut self) -> Result<(), Fault> {
        let negated = self.peek(0) == Some(b'^');
        self.at += usize::from(negated);
        let mut bytes = [false; 256];
        let (mut first, mut is_plain) = (true, true);
        let start = self.at;
        loop {
            let byte = self.peek(0).ok_or(Invalid("a set that is not closed"))?;
            if byte == b']' && !first {
                self.at += 1;
                break;
            }
            first = false;
            if byte == b'[' && matches!(self.peek(1), Some(b':')) {
                let rest = &self.text[self.at + 2..];
                let len =
                    rest.windows(2).position(|window| window == b":]").ok_or(Invalid("a class that is not closed"))?;
                let class = &rest[..len];
                in_class(class, 0).ok_or(Invalid("a class that does not exist"))?;
                (0..=u8::MAX)
                    .filter(|byte| in_class(class, *byte) == Some(true))
                    .for_each(|byte| bytes[usize::from(byte)] = true);
                self.at += len + 4;
                is_plain = false;
                continue;
            }
            if byte == b'[' && matches!(self.peek(1), Some(b'.' | b'=')) {
                return Err(Unsupported("a collating element"));
            }
            self.at += 1;
            let mut high = byte;
            if self.peek(0) == Some(b'-') && !matches!(self.peek(1), Some(b']') | None) {
                high = self.peek(1).unwrap_or(byte);
                self.at += 2;
                is_plain = false;
                if high < byte {
                    return Err(Invalid("a range that ends before it begins"));
                }
            }
            (byte..=high).for_each(|byte| bytes[usize::from(byte)] = true);
        }
        let inner = self.text.get(start..self.at.saturating_sub(1)).unwrap_or_default();
        let has_others = inner.iter().any(|byte| *byte != b':');
        self.lone_class |= is_plain && has_others && inner.starts_with(b":") && inner.ends_with(b":");
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

fn is_repetition(byte: u8) -> bool {
    matches!(byte, b'*' | b'+' | b'?' | b'{')
}
