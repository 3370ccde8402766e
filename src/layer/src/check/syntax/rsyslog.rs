//! Objects and blocks of rsyslog.conf(5): rsyslogd ignores an object that it does not know, and the rest of a file after one that is not
//! closed.
//!
//! Lines that begin with `$`, actions, and names of parameters are not checked.

mod filters;

use vmbake_common::spelling::near;

use super::Problem;

/// Objects, which have parameters in parentheses.
const OBJECTS: [&str; 16] = [
    "action",
    "constant",
    "dyn_stats",
    "global",
    "include",
    "input",
    "lookup_table",
    "main_queue",
    "module",
    "parser",
    "perctile_stats",
    "property",
    "ratelimit",
    "ruleset",
    "template",
    "timezone",
];

/// What is open at a place of the file.
#[derive(Default)]
struct Reader {
    /// The lines of blocks.
    blocks: Vec<usize>,
    /// An object and its line.
    object: Option<(String, usize)>,
    /// Whether the object has the parameter `load`.
    has_load: bool,
    /// Whether the value of a parameter is next.
    is_at_value: bool,
    is_comment: bool,
    quote: Option<char>,
}

/// Checks names of objects, parentheses and braces.
pub(super) fn check(text: &str) -> Vec<Problem> {
    let mut reader = Reader::default();
    let fault = |line: usize, reason: &str| vec![Problem::error(line, format!("is not read by rsyslogd: {reason}"))];
    for (number, line) in (1..).zip(text.lines()) {
        if let Err(reason) = reader.line(number, line) {
            return fault(number, &reason);
        }
    }
    match (reader.object, reader.blocks.last()) {
        (Some((name, line)), _) => {
            fault(line, &format!("expected `)` after the parameters of {name}, found the end of the file"))
        }
        (None, Some(line)) => fault(*line, "expected `}` for the block that starts here, found the end of the file"),
        (None, None) => Vec::new(),
    }
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let text = line.trim_start();
        if self.object.is_none() && !self.is_comment && text.starts_with('$') {
            return Ok(());
        }
        let is_first = self.object.is_none() && !self.is_comment && self.quote.is_none();
        if let Some(reason) = is_first.then(|| filters::fault(text)).flatten() {
            return Err(reason);
        }
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            rest = self.part(number, next, rest, rest.len() == text.len())?;
        }
        // Outside of objects, a text ends with its line.
        if self.object.is_none() {
            self.quote = None;
        }
        Ok(())
    }

    /// Reads a word or a character, and returns the text after it.
    fn part<'a>(&mut self, number: usize, next: char, text: &'a str, is_first: bool) -> Result<&'a str, String> {
        let rest = &text[next.len_utf8()..];
        match (self.quote, next) {
            _ if self.is_comment => {
                let end = text.find("*/");
                self.is_comment = end.is_none();
                return Ok(end.map_or("", |end| &text[end + 2..]));
            }
            (Some(_), '\\') => return Ok(rest.get(1..).unwrap_or_default()),
            (Some(open), _) if open == next => self.quote = None,
            (Some(_), _) => {}
            (None, '#') => return Ok(""),
            (None, _) if self.is_at_value && !next.is_ascii_whitespace() => {
                self.is_at_value = false;
                let end = text.find(|next: char| next.is_ascii_whitespace() || next == ')').unwrap_or(text.len());
                match next {
                    '"' => self.quote = Some(next),
                    '[' | '`' => {}
                    _ => return Err(format!("expected a value in double quotes, found {:?}", &text[..end])),
                }
            }
            (None, '=') if self.object.is_some() => self.is_at_value = true,
            (None, '"' | '\'') => self.quote = Some(next),
            (None, '$') if self.object.is_none() => {
                if let Some(reason) = filters::variable_fault(rest) {
                    return Err(reason);
                }
            }
            (None, '/') if rest.starts_with('*') => {
                self.is_comment = true;
                return Ok(&rest[1..]);
            }
            (None, ')') if self.lacks_load() => return Err("module() needs load=\"NAME\"".to_owned()),
            (None, ')') if self.object.is_some() => self.object = None,
            (None, 'l' | 'L') if self.object.is_some() => {
                let word = text.split(['=', ' ', '\t']).next().unwrap_or_default();
                self.has_load |= word.eq_ignore_ascii_case("load");
            }
            (None, _) if self.object.is_some() => {}
            (None, '{') => self.blocks.push(number),
            (None, '}') if self.blocks.pop().is_none() => return Err("unexpected `}`".to_owned()),
            (None, first) if first.is_ascii_alphabetic() => return self.word(number, text, is_first),
            _ => {}
        }
        Ok(rest)
    }

    /// Whether the parameters of a module do not say which one.
    fn lacks_load(&self) -> bool {
        self.object.as_ref().is_some_and(|(name, _)| name == "module") && !self.has_load
    }

    /// A word, which may begin an object.
    fn word<'a>(&mut self, number: usize, text: &'a str, is_first: bool) -> Result<&'a str, String> {
        let end = text.find(|next: char| !next.is_ascii_alphanumeric() && next != '_').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let Some(inside) = rest.trim_start().strip_prefix('(') else { return Ok(rest) };
        let name = word.to_ascii_lowercase();
        if OBJECTS.contains(&name.as_str()) {
            self.object = Some((name, number));
            (self.has_load, self.is_at_value) = (false, false);
            return Ok(inside);
        }
        // Others may be functions of an expression.
        match near(&name, OBJECTS).first().filter(|_| is_first && self.blocks.is_empty()) {
            Some(near) => Err(format!("unknown object {word:?}; did you mean `{near}`?")),
            None => Ok(rest),
        }
    }
}
