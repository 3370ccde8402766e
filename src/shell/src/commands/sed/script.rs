//! Parses the script of `sed`.

use super::super::complain;
use super::super::regex::Expression;
use super::patterns::code;
use super::substitution::Substitution;
use crate::eval::{Run, Stop};
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
    /// `first~step`
    Step(usize, usize),
    /// `addr,~n`: to the next line whose number is a multiple.
    Multiple(usize),
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
    /// `z`
    Zap,
    /// `F`
    Name,
    /// `l`, with the length of lines.
    List(usize),
    /// `w` and `W`
    Write(Vec<u8>),
    WriteFirst(Vec<u8>),
    /// `r`
    Read(Vec<u8>),
    /// `v`
    Nothing,
    Label(Vec<u8>),
    /// `b`, and `t` with what makes it jump.
    Branch(Vec<u8>, Option<bool>),
}

pub(super) struct Parser<'p, 'h> {
    pub(super) shell: &'p mut Shell<'h>,
    pub(super) text: &'p [u8],
    pub(super) at: usize,
    pub(super) extended: bool,
    /// The length of the lines of `l`.
    width: usize,
    /// Whether an expression is one that sed ends for at once, with another status than for others.
    pub(super) gives_up: bool,
}

/// Parses a script, or gives the status for one that sed gives up.
pub(super) fn parse(shell: &mut Shell<'_>, text: &[u8], extended: bool, width: usize) -> Run<Result<Vec<Command>, u8>> {
    shell.spend(text.len())?;
    let mut parser = Parser { shell, text, at: 0, extended, width, gives_up: false };
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
        let command = match parser.command() {
            Err(Stop::Error) if parser.gives_up => return Ok(Err(4)),
            command => command?,
        };
        match command.action {
            Action::Open(_) => open.push(commands.len()),
            Action::Close => {
                let end = commands.len();
                let Some(start) = open.pop() else { return parser.invalid("a “}” too many") };
                commands[start].action = Action::Open(end);
            }
            _ => {}
        }
        commands.push(command);
    }
    if open.is_empty() { Ok(Ok(commands)) } else { parser.invalid("a “{” that is not closed") }
}

/// Whether a command jumps to a label that is missing.
pub(super) fn lacks_label(commands: &[Command]) -> bool {
    let has = |label| commands.iter().any(|command| matches!(&command.action, Action::Label(own) if own == label));
    commands.iter().any(|command| matches!(&command.action, Action::Branch(to, _) if !to.is_empty() && !has(to)))
}

impl Parser<'_, '_> {
    pub(super) fn wrong<T>(&self, what: &str) -> Run<T> {
        self.shell.unsupported(&["the sed script “".as_bytes(), self.text, "”: ".as_bytes(), what.as_bytes()].concat())
    }

    /// What sed does not take either: it ends with a message.
    pub(super) fn invalid<T>(&mut self, what: &str) -> Run<T> {
        complain(self.shell, "sed", &["“".as_bytes(), self.text, "”: ".as_bytes(), what.as_bytes()].concat())?;
        Err(Stop::Error)
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
            Some(b'0'..=b'9') => {
                let first = self.number();
                self.skip(|byte| matches!(byte, b' ' | b'\t'));
                match self.peek() {
                    Some(b'~') => {
                        self.at += 1;
                        match self.number() {
                            0 => Address::Line(first),
                            step => Address::Step(first, step),
                        }
                    }
                    _ => Address::Line(first),
                }
            }
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
                let Some(delimiter) = self.peek() else { return self.invalid("an address that is not closed") };
                self.at += 1;
                self.matching(delimiter)?
            }
            Some(b'+') => {
                self.at += 1;
                Address::Plus(self.number())
            }
            Some(b'~') => {
                self.at += 1;
                Address::Multiple(self.number())
            }
            _ => return Ok(None),
        }))
    }

    fn matching(&mut self, delimiter: u8) -> Run<Address> {
        let text = self.delimited(delimiter, true)?;
        let (mut ignore_case, mut lines) = (false, false);
        while let Some(letter @ (b'I' | b'M')) = self.peek() {
            (ignore_case, lines) = (ignore_case || letter == b'I', lines || letter == b'M');
            self.at += 1;
        }
        Ok(Address::Match(self.expression(&text, ignore_case, lines)?.map(Box::new)))
    }

    fn command(&mut self) -> Run<Command> {
        let from = self.address()?;
        let mut to = None;
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        if from.is_some() && self.peek() == Some(b',') {
            self.at += 1;
            self.skip(|byte| matches!(byte, b' ' | b'\t'));
            to = self.address()?;
            if to.is_none() {
                return self.invalid("an address is missing");
            }
        }
        let to_match = matches!(to, Some(Address::Match(_)));
        if matches!(from, Some(Address::Plus(_) | Address::Multiple(_)))
            || (matches!(from, Some(Address::Line(0))) && !to_match)
        {
            return self.invalid("an address");
        }
        if matches!(to, Some(Address::Step(..))) {
            return self.wrong("an address");
        }
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        let negated = self.peek() == Some(b'!');
        self.at += usize::from(negated);
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        let Some(letter) = self.peek().filter(|letter| *letter != b'!') else {
            return self.invalid("a command is missing");
        };
        self.at += 1;
        if letter == b'}' && from.is_some() || (matches!(letter, b'q' | b'Q') && to.is_some()) {
            return self.invalid("addresses of a command that takes fewer");
        }
        let action = self.action(letter)?;
        let whole_line = match &action {
            Action::Open(_) | Action::Insert(_) | Action::AppendText(_) | Action::Change(_) | Action::Label(_) => true,
            Action::Write(_) | Action::WriteFirst(_) | Action::Read(_) | Action::Branch(..) => true,
            Action::Substitute(substitution) => substitution.file.is_some(),
            _ => false,
        };
        if !whole_line {
            self.skip(|byte| matches!(byte, b' ' | b'\t'));
            match self.peek() {
                None | Some(b';' | b'\n' | b'}' | b'#') => {}
                Some(_)
                    if letter == b's' && self.text.get(self.at.wrapping_sub(1)).is_some_and(|byte| *byte == b' ') =>
                {
                    return self.wrong("what follows a command");
                }
                Some(_) => return self.invalid("characters after a command"),
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
                self.skip(|byte| matches!(byte, b' ' | b'\t'));
                Action::Quit(self.number().to_le_bytes()[0], letter == b'q')
            }
            b'i' => Action::Insert(self.lines()?),
            b'a' => Action::AppendText(self.lines()?),
            b'c' => Action::Change(self.lines()?),
            b'h' | b'H' => Action::Hold(letter == b'H'),
            b'g' | b'G' => Action::Get(letter == b'G'),
            b'x' => Action::Exchange,
            b':' => {
                let label = self.label();
                if label.is_empty() {
                    return self.invalid("a label without a name");
                }
                Action::Label(label)
            }
            b'b' => Action::Branch(self.label(), None),
            b't' => Action::Branch(self.label(), Some(true)),
            b'T' => Action::Branch(self.label(), Some(false)),
            b'z' => Action::Zap,
            b'F' => Action::Name,
            b'l' => {
                self.skip(|byte| matches!(byte, b' ' | b'\t'));
                let given = self.peek().is_some_and(|byte| byte.is_ascii_digit());
                Action::List(if given { self.number() } else { self.width })
            }
            b'w' => Action::Write(self.file()?),
            b'W' => Action::WriteFirst(self.file()?),
            b'r' => Action::Read(self.file()?),
            b'v' => {
                self.skip(|byte| !matches!(byte, b'\n' | b';'));
                Action::Nothing
            }
            b'e' | b'R' => return self.wrong(&format!("the command “{}”", char::from(letter))),
            _ => return self.invalid("a command that is not known"),
        })
    }

    /// The name of a file, to the end of the line.
    pub(super) fn file(&mut self) -> Run<Vec<u8>> {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        let start = self.at;
        self.skip(|byte| byte != b'\n');
        match &self.text[start..self.at] {
            b"" => self.invalid("the name of a file is missing"),
            b"/dev/stderr" | b"/dev/stdin" => self.wrong("a descriptor as a file"),
            name => Ok(name.to_vec()),
        }
    }

    /// The name of a label. Another command may follow it behind a blank.
    fn label(&mut self) -> Vec<u8> {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        let start = self.at;
        self.skip(|byte| !byte.is_ascii_whitespace() && !matches!(byte, 0x0b | b';' | b'}'));
        self.text[start..self.at].to_vec()
    }

    /// The text of `a`, `i` and `c`: in one line, or behind a backslash and a newline.
    fn lines(&mut self) -> Run<Vec<u8>> {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        if self.peek().is_none() {
            return self.invalid("a text is missing");
        }
        let mut text = Vec::new();
        if self.peek() == Some(b'\\') {
            self.at += 1;
            let kept = self.at;
            self.skip(|byte| matches!(byte, b' ' | b'\t'));
            // Blanks behind the backslash belong to a text in the same line, whose first character is not escaped.
            match self.peek() {
                Some(b'\n') => self.at += 1,
                None => return Ok(text),
                Some(_) => {
                    self.at = kept;
                    let first = self.peek().filter(|byte| *byte != b'\\');
                    text.extend(first);
                    self.at += usize::from(first.is_some());
                }
            }
        }
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'\n' => break,
                b'\\' => match (code(&self.text[self.at..]), self.peek()) {
                    (Some((byte, len)), _) => {
                        text.push(byte);
                        self.at += len;
                    }
                    (None, Some(next)) => {
                        text.push(match next {
                            b'n' => b'\n',
                            b't' => b'\t',
                            next => next,
                        });
                        self.at += 1;
                    }
                    (None, None) => break,
                },
                byte => text.push(byte),
            }
        }
        text.push(b'\n');
        Ok(text)
    }
}
