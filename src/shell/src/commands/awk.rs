//! `awk`, of which scripts mostly want one field: `/regex/ { print $1, $3 }`, with `-F` and comparisons of a field with a text. Anything else is
//! refused, but for `BEGIN { for (v in ENVIRON) print v }`, by which scripts see all names of the environment.

use super::options::{Accepted, parse};
use super::regex::{Expression, Syntax};
use super::{inputs, split_lines};
use crate::eval::Run;
use crate::shell::Shell;

/// What selects lines.
enum Selection {
    All,
    Line(Box<Expression>),
    /// `$n == "text"`, and `!=`.
    Field(usize, bool, Vec<u8>),
}

/// A piece of what is printed.
enum Piece {
    /// `$n`, 0 for the line.
    Field(usize),
    /// `$NF`
    Last,
    Text(Vec<u8>),
    /// A comma.
    Separator,
}

struct Parser<'p> {
    text: &'p [u8],
}

pub(super) fn awk(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &Accepted { letters: b"F:", long: &[], strict: true })?;
    let Some((program, files)) = options.operands.split_first() else {
        return shell.unsupported(b"awk without a program");
    };
    let mut parser = Parser { text: program };
    if parser.environment() {
        return names(shell);
    }
    parser.text = program;
    let selection = parser.selection(shell)?;
    let Some(pieces) = parser.print() else { return shell.unsupported(program) };
    let separator = match options.value(b'F') {
        None => None,
        Some([byte]) if *byte != b' ' => Some(*byte),
        Some(other) => return shell.unsupported(&[b"-F ", other].concat()),
    };
    if files.iter().any(|file| file.contains(&b'=')) {
        return shell.unsupported(b"an assignment");
    }
    let (contents, failed) = inputs(shell, "awk", files)?;
    for (_, content) in contents {
        for line in split_lines(&content) {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            shell.spend(line.len() + 1)?;
            let fields: Vec<&[u8]> = match separator {
                None => line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|field| !field.is_empty()).collect(),
                Some(_) if line.is_empty() => Vec::new(),
                Some(separator) => line.split(|byte| *byte == separator).collect(),
            };
            let field = |at: usize| if at == 0 { line } else { fields.get(at - 1).copied().unwrap_or_default() };
            let selected = match &selection {
                Selection::All => true,
                Selection::Line(expression) => expression.is_match(shell, line)?,
                Selection::Field(at, equal, text) => (field(*at) == &text[..]) == *equal,
            };
            if selected {
                let out: Vec<&[u8]> = pieces
                    .iter()
                    .map(|piece| match piece {
                        Piece::Field(at) => field(*at),
                        Piece::Last => field(fields.len()),
                        Piece::Text(text) => text,
                        Piece::Separator => b" ",
                    })
                    .collect();
                shell.out(&[&out.concat()[..], b"\n"].concat())?;
            }
        }
    }
    Ok(if failed { 2 } else { 0 })
}

/// The names of the environment. awk tells them in an order of its own, on which nobody relies.
fn names(shell: &mut Shell<'_>) -> Run<u8> {
    let variables = shell.state.variables.iter().filter(|(_, found)| found.exported && found.value.is_some());
    let lines: Vec<u8> = variables.flat_map(|(name, _)| [&name[..], b"\n"].concat()).collect();
    shell.out(&lines)?;
    Ok(0)
}

impl Parser<'_> {
    /// Whether the whole program is `BEGIN { for (v in ENVIRON) print v }`, whatever the variable's name.
    fn environment(&mut self) -> bool {
        let mut begins = self.take(b"BEGIN") && self.take(b"{") && self.take(b"for") && self.take(b"(");
        let variable = self.name();
        begins &= self.take(b"in") && self.take(b"ENVIRON") && self.take(b")") && self.take(b"print");
        let same = self.name() == variable && !variable.is_empty();
        while self.take(b";") {}
        begins && same && self.take(b"}") && self.text.trim_ascii().is_empty()
    }

    fn name(&mut self) -> Vec<u8> {
        self.skip();
        let len = self.text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (name, rest) = self.text.split_at(len);
        self.text = rest;
        name.to_vec()
    }

    fn skip(&mut self) {
        self.text = self.text.trim_ascii_start();
    }

    fn take(&mut self, token: &[u8]) -> bool {
        self.skip();
        let rest = self.text.strip_prefix(token);
        self.text = rest.unwrap_or(self.text);
        rest.is_some()
    }

    fn selection(&mut self, shell: &mut Shell<'_>) -> Run<Selection> {
        self.skip();
        if let Some(rest) = self.text.strip_prefix(b"/") {
            // An escape would mean something else to awk than to grep only in its own escapes, which are letters.
            let Some(end) = rest.iter().position(|byte| *byte == b'/') else { return shell.unsupported(self.text) };
            let pattern = &rest[..end];
            if pattern.windows(2).any(|pair| pair[0] == b'\\' && pair[1].is_ascii_alphanumeric())
                || pattern.ends_with(b"\\")
            {
                return shell.unsupported(self.text);
            }
            self.text = &rest[end + 1..];
            return Ok(Selection::Line(Box::new(Expression::new(shell, pattern, Syntax::Extended, false)?)));
        }
        if !self.text.starts_with(b"$") {
            return Ok(Selection::All);
        }
        let (whole, field) = (self.text, self.field());
        let equal = self.take(b"==");
        let (Some(Piece::Field(at)), true, Some(text)) = (field, equal || self.take(b"!="), self.string()) else {
            return shell.unsupported(whole);
        };
        Ok(Selection::Field(at, equal, text))
    }

    fn field(&mut self) -> Option<Piece> {
        if !self.take(b"$") {
            return None;
        }
        if self.take(b"NF") {
            return Some(Piece::Last);
        }
        let len = self.text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = crate::accounts::number(&self.text[..len])?;
        self.text = &self.text[len..];
        Some(Piece::Field(usize::try_from(number).ok()?))
    }

    fn string(&mut self) -> Option<Vec<u8>> {
        if !self.take(b"\"") {
            return None;
        }
        let end = self.text.iter().position(|byte| *byte == b'"')?;
        let text = self.text[..end].to_vec();
        self.text = &self.text[end + 1..];
        (!text.contains(&b'\\')).then_some(text)
    }

    /// `{ print … }` up to the end of the program.
    fn print(&mut self) -> Option<Vec<Piece>> {
        if !self.take(b"{") || !self.take(b"print") {
            return None;
        }
        let mut pieces = Vec::new();
        loop {
            self.skip();
            match self.text.first()? {
                b'$' => pieces.push(self.field()?),
                b'"' => pieces.push(Piece::Text(self.string()?)),
                b',' if !pieces.is_empty() => {
                    self.take(b",");
                    pieces.push(Piece::Separator);
                }
                _ => break,
            }
        }
        while self.take(b";") {}
        let done = self.take(b"}") && self.text.trim_ascii().is_empty();
        if pieces.is_empty() {
            pieces.push(Piece::Field(0));
        }
        (done && !matches!(pieces.last(), Some(Piece::Separator))).then_some(pieces)
    }
}
