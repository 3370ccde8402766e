//! The parser of awk programs: their rules, by the grammar of POSIX. Unsupported syntax is refused with the text of the program.

use super::syntax::{Pattern, Program, Rule};
use super::tokens::{Lexer, Token};
use crate::error::ErrorKind;
use crate::eval::Run;
use crate::shell::Shell;

/// A program may have so many operators and statements: its tree is dropped by recursion.
const MAX_NODES: u64 = 4_000;

/// The variables of awk, by their places.
pub(super) const SPECIAL: [&str; 13] =
    ["NF", "NR", "FNR", "FS", "OFS", "ORS", "RS", "SUBSEP", "CONVFMT", "OFMT", "FILENAME", "RSTART", "RLENGTH"];

/// Names that mean something to another awk, or that would change what is read.
const FOREIGN: [&str; 14] = [
    "ARGC",
    "ARGV",
    "ARGIND",
    "BINMODE",
    "ERRNO",
    "FIELDWIDTHS",
    "FPAT",
    "FUNCTAB",
    "IGNORECASE",
    "LINT",
    "PROCINFO",
    "RT",
    "SYMTAB",
    "TEXTDOMAIN",
];

pub(super) struct Parser<'p, 's, 'h> {
    pub(super) shell: &'s mut Shell<'h>,
    pub(super) text: &'p [u8],
    pub(super) lexer: Lexer<'p>,
    pub(super) token: Token,
    scalars: Vec<Vec<u8>>,
    arrays: Vec<Vec<u8>>,
    ranges: usize,
    nodes: u64,
    pub(super) loops: usize,
    /// Whether the action is that of a pattern, which `next` may leave.
    pub(super) in_rule: bool,
    /// Whether a `>` is a redirection: in the operands of `print`, outside of parentheses.
    pub(super) printing: bool,
}

/// Parses a program.
pub(super) fn parse(shell: &mut Shell<'_>, text: &[u8]) -> Run<Program> {
    let mut parser = Parser {
        shell,
        text,
        lexer: Lexer::new(text),
        token: Token::Newline,
        scalars: SPECIAL.iter().map(|name| name.as_bytes().to_vec()).collect(),
        arrays: vec![b"ENVIRON".to_vec()],
        ranges: 0,
        nodes: 0,
        loops: 0,
        in_rule: false,
        printing: false,
    };
    parser.program()
}

impl Parser<'_, '_, '_> {
    pub(super) fn wrong<T>(&self, why: &str) -> Run<T> {
        self.shell.unsupported(&[why.as_bytes(), b" in the awk program ", self.text].concat())
    }

    pub(super) fn advance(&mut self) -> Run<Token> {
        match self.lexer.token() {
            Ok(token) => Ok(std::mem::replace(&mut self.token, token)),
            Err(why) => self.wrong(why),
        }
    }

    pub(super) fn is(&self, sign: &str) -> bool {
        matches!(self.token, Token::Sign(found) if found == sign)
    }

    pub(super) fn take(&mut self, sign: &str) -> Run<bool> {
        let found = self.is(sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(super) fn expect(&mut self, sign: &str) -> Run<()> {
        if self.take(sign)? { Ok(()) } else { self.wrong(&format!("no “{sign}” where one is expected")) }
    }

    pub(super) fn newlines(&mut self) -> Run<()> {
        while self.token == Token::Newline {
            self.advance()?;
        }
        Ok(())
    }

    /// Counts an operator or statement.
    pub(super) fn node(&mut self) -> Run<()> {
        self.nodes += 1;
        self.shell.spend(16)?;
        if self.nodes > MAX_NODES {
            let kind = ErrorKind::Limit { what: "operators and statements of an awk program", limit: MAX_NODES };
            return Err(self.shell.fatal(kind));
        }
        Ok(())
    }

    /// Parses what is nested.
    pub(super) fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Run<T>) -> Run<T> {
        self.shell.budget.enter_level().map_err(|kind| self.shell.fatal(kind))?;
        let result = parse(self);
        self.shell.budget.levels -= 1;
        result
    }

    pub(super) fn scalar(&mut self, name: &[u8]) -> Run<usize> {
        self.place(name, false)
    }

    pub(super) fn array(&mut self, name: &[u8]) -> Run<usize> {
        self.place(name, true)
    }

    fn place(&mut self, name: &[u8], array: bool) -> Run<usize> {
        let (own, other) = if array { (&self.arrays, &self.scalars) } else { (&self.scalars, &self.arrays) };
        if other.iter().any(|found| found == name) {
            return self.wrong("a name of both a variable and an array");
        }
        if FOREIGN.iter().any(|foreign| foreign.as_bytes() == name) {
            return self.wrong(&crate::error::show(name));
        }
        if let Some(at) = own.iter().position(|found| found == name) {
            return Ok(at);
        }
        let own = if array { &mut self.arrays } else { &mut self.scalars };
        own.push(name.to_vec());
        Ok(own.len() - 1)
    }

    fn program(&mut self) -> Run<Program> {
        let (mut begin, mut rules, mut end) = (Vec::new(), Vec::new(), None);
        loop {
            while self.token == Token::Newline || self.is(";") {
                self.advance()?;
            }
            if self.token == Token::End {
                break;
            }
            self.node()?;
            if self.take("BEGIN")? {
                begin.push(self.block()?);
            } else if self.take("END")? {
                end.get_or_insert_with(Vec::new).push(self.block()?);
            } else {
                self.in_rule = true;
                rules.push(self.rule()?);
                self.in_rule = false;
            }
        }
        let (scalars, arrays) = (std::mem::take(&mut self.scalars), self.arrays.len());
        Ok(Program { begin, rules, end, scalars, arrays, ranges: self.ranges })
    }

    fn rule(&mut self) -> Run<Rule> {
        if self.is("{") {
            return Ok(Rule { pattern: Pattern::Always, action: Some(self.block()?) });
        }
        let first = self.expression()?;
        let pattern = if self.take(",")? {
            self.newlines()?;
            self.ranges += 1;
            Pattern::Range(first, self.expression()?, self.ranges - 1)
        } else {
            Pattern::If(first)
        };
        if self.is("{") {
            return Ok(Rule { pattern, action: Some(self.block()?) });
        }
        match self.token {
            Token::End | Token::Newline | Token::Sign(";") => Ok(Rule { pattern, action: None }),
            _ => self.wrong("text after a pattern"),
        }
    }
}
