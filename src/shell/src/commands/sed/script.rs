//! The script of `sed`, parsed.

use super::super::regex::Expression;
use super::substitution::Substitution;
use crate::eval::Run;
use crate::shell::Shell;

/// Lines of an address, or of what a command does.
#[derive(Debug, Clone)]
pub(super) enum Address {
    Line(usize),
    Last,
    /// `None`: the last expression that was used.
    Match(Option<Box<Expression>>),
    /// `addr,+n`
    Plus(usize),
}

/// One command with its addresses.
#[derive(Debug, Clone)]
pub(super) struct Command {
    pub(super) from: Option<Address>,
    pub(super) to: Option<Address>,
    pub(super) negated: bool,
    pub(super) action: Action,
}

/// What a command does.
#[derive(Debug, Clone)]
pub(super) enum Action {
    /// `{`: to the place of its `}`.
    Open(usize),
    Close,
    Substitute(Box<Substitution>),
    Translate(Box<[u8; 256]>),
    Delete,
    DeleteFirst,
    Print,
    PrintFirst,
    Number,
    Next,
    Append,
    Quit(u8, bool),
    Insert(Vec<u8>),
    AppendText(Vec<u8>),
    Change(Vec<u8>),
    Hold(bool),
    Get(bool),
    Exchange,
    Label(Vec<u8>),
    /// `b`, and `t` with what makes it jump.
    Branch(Vec<u8>, Option<bool>),
}

pub(super) struct Parser<'p, 'h> {
    pub(super) shell: &'p mut Shell<'h>,
    pub(super) text: &'p [u8],
    pub(super) at: usize,
    pub(super) extended: bool,
}

/// Parses a script.
pub(super) fn parse(shell: &mut Shell<'_>, text: &[u8], extended: bool) -> Run<Vec<Command>> {
    shell.spend(text.len())?;
    let mut parser = Parser { shell, text, at: 0, extended };
    let mut commands: Vec<Command> = Vec::new();
    let mut open = Vec::new();
    loop {
        parser.skip(|byte| byte.is_ascii_whitespace() || byte == b';');
        if parser.peek().is_none() {
            break;
        }
        if parser.peek() == Some(b'#') {
            parser.skip(|byte| byte != b'\n');
            continue;
        }
        let command = parser.command()?;
        match command.action {
            Action::Open(_) => open.push(commands.len()),
            Action::Close => {
                let end = commands.len();
                let Some(start) = open.pop() else { return parser.wrong("a “}” too many") };
                commands[start].action = Action::Open(end);
            }
            _ => {}
        }
        commands.push(command);
    }
    if open.is_empty() { Ok(commands) } else { parser.wrong("a “{” that is not closed") }
}

impl Parser<'_, '_> {
    pub(super) fn wrong<T>(&self, what: &str) -> Run<T> {
        self.shell.unsupported(&["the sed script “".as_bytes(), self.text, "”: ".as_bytes(), what.as_bytes()].concat())
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip(&mut self, fits: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&fits) {
            self.at += 1;
        }
    }

    pub(super) fn number(&mut self) -> usize {
        let mut number: usize = 0;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            number = number.saturating_mul(10).saturating_add(usize::from(digit - b'0'));
            self.at += 1;
        }
        number
    }

    fn address(&mut self) -> Run<Option<Address>> {
        Ok(Some(match self.peek() {
            Some(b'0'..=b'9') => Address::Line(self.number()),
            Some(b'$') => {
                self.at += 1;
                Address::Last
            }
            Some(b'/') => {
                self.at += 1;
                self.matching(b'/')?
            }
            Some(b'\\') => {
                self.at += 1;
                let Some(delimiter) = self.peek() else { return self.wrong("an address") };
                self.at += 1;
                self.matching(delimiter)?
            }
            Some(b'+') => {
                self.at += 1;
                Address::Plus(self.number())
            }
            _ => return Ok(None),
        }))
    }

    fn matching(&mut self, delimiter: u8) -> Run<Address> {
        let text = self.delimited(delimiter, true)?;
        let ignore_case = self.peek() == Some(b'I');
        self.at += usize::from(ignore_case);
        Ok(Address::Match(self.expression(&text, ignore_case)?.map(Box::new)))
    }

    fn command(&mut self) -> Run<Command> {
        let from = self.address()?;
        let mut to = None;
        self.skip(|byte| byte == b' ');
        if from.is_some() && self.peek() == Some(b',') {
            self.at += 1;
            self.skip(|byte| byte == b' ');
            to = self.address()?;
            if to.is_none() {
                return self.wrong("an address");
            }
        }
        if matches!((&from, &to), (Some(Address::Plus(_)), _) | (Some(Address::Line(0)), _)) {
            return self.wrong("an address");
        }
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        let negated = self.peek() == Some(b'!');
        self.at += usize::from(negated);
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        let Some(letter) = self.peek() else { return self.wrong("a command is missing") };
        self.at += 1;
        let action = self.action(letter)?;
        if !matches!(
            action,
            Action::Open(_) | Action::Insert(_) | Action::AppendText(_) | Action::Change(_) | Action::Label(_)
        ) {
            self.skip(|byte| matches!(byte, b' ' | b'\t'));
            if !matches!(self.peek(), None | Some(b';' | b'\n' | b'}' | b'#')) {
                return self.wrong("what follows a command");
            }
        }
        Ok(Command { from, to, negated, action })
    }

    fn action(&mut self, letter: u8) -> Run<Action> {
        Ok(match letter {
            b'{' => Action::Open(0),
            b'}' => Action::Close,
            b's' => return self.substitution(),
            b'y' => return self.translation(),
            b'd' => Action::Delete,
            b'D' => Action::DeleteFirst,
            b'p' => Action::Print,
            b'P' => Action::PrintFirst,
            b'=' => Action::Number,
            b'n' => Action::Next,
            b'N' => Action::Append,
            b'q' | b'Q' => {
                self.skip(|byte| byte == b' ');
                Action::Quit(self.number().to_le_bytes()[0], letter == b'q')
            }
            b'i' => Action::Insert(self.lines()?),
            b'a' => Action::AppendText(self.lines()?),
            b'c' => Action::Change(self.lines()?),
            b'h' | b'H' => Action::Hold(letter == b'H'),
            b'g' | b'G' => Action::Get(letter == b'G'),
            b'x' => Action::Exchange,
            b':' => Action::Label(self.label(false)),
            b'b' => Action::Branch(self.label(true), None),
            b't' => Action::Branch(self.label(true), Some(true)),
            b'T' => Action::Branch(self.label(true), Some(false)),
            other => return self.wrong(&format!("the command “{}”", char::from(other))),
        })
    }

    fn label(&mut self, short: bool) -> Vec<u8> {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        let start = self.at;
        self.skip(|byte| byte != b'\n' && !(short && matches!(byte, b';' | b'}')) && (short || byte != b';'));
        self.text[start..self.at].trim_ascii().to_vec()
    }

    /// The text of `a`, `i` and `c`: in one line, or behind a backslash and a newline.
    fn lines(&mut self) -> Run<Vec<u8>> {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        if self.peek() == Some(b'\\') {
            self.at += 1;
            let kept = self.at;
            self.skip(|byte| matches!(byte, b' ' | b'\t'));
            // Blanks behind the backslash belong to a text in the same line.
            self.at = if self.peek() == Some(b'\n') { self.at + 1 } else { kept };
        }
        let mut text = Vec::new();
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'\n' => break,
                b'\\' => {
                    let Some(next) = self.peek() else { break };
                    self.at += 1;
                    if next.is_ascii_alphabetic() {
                        return self.wrong("an escape in a text");
                    }
                    text.push(next);
                }
                byte => text.push(byte),
            }
        }
        if text.is_empty() {
            return self.wrong("a text is missing");
        }
        text.push(b'\n');
        Ok(text)
    }
}
