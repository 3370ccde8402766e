//! The syntax tree of a script: the grammar of POSIX XCU 2.10, and what [`Language`] adds for scripts of bash.

pub(crate) mod reader;
pub(crate) mod words;
mod here_document;
mod commands;
mod compound;
mod conditional;

use std::cell::OnceCell;
use std::rc::Rc;

pub(crate) use commands::{Parser, assignment};

/// Which scripts a caller runs. It says how much of bash the scripts of bash may use; scripts of `sh` are the same in both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Maintainer scripts of packages: `[[ ]]`, `function`, `set -o pipefail`, the `echo` of bash.
    #[default]
    Maintainer,
    /// Scripts that set up a machine: here-strings (`<<<`) and `source` too.
    Provisioning,
}

/// The language of one script, by its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Dash,
    Bash(Dialect),
}

impl Language {
    pub(crate) fn new(bash: bool, dialect: Dialect) -> Self {
        if bash { Self::Bash(dialect) } else { Self::Dash }
    }

    pub(crate) fn is_bash(self) -> bool {
        matches!(self, Self::Bash(_))
    }

    /// Whether `<<<` and `source` are those of bash.
    pub(crate) fn provisions(self) -> bool {
        self == Self::Bash(Dialect::Provisioning)
    }
}

/// A word: what expands to fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Word {
    pub(crate) parts: Vec<Part>,
}

impl Word {
    /// The bytes of a word without quotes and expansions.
    pub(crate) fn literal(&self) -> Option<&[u8]> {
        match self.parts.as_slice() {
            [Part::Literal(bytes)] => Some(bytes),
            _ => None,
        }
    }
}

/// A piece of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Bytes without quotes.
    Literal(Vec<u8>),
    /// Bytes behind a backslash or between single quotes.
    Quoted(Vec<u8>),
    /// What stands between double quotes.
    DoubleQuoted(Vec<Part>),
    /// `$name`, `${name…}`.
    Parameter(Box<Parameter>),
    /// `$(…)`, and the same with backquotes.
    Command(Rc<Node>),
    /// `$((…))`.
    Arithmetic(Vec<Part>),
}

/// A parameter with what is done to its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: Vec<u8>,
    pub(crate) operation: Operation,
    /// Where it stands.
    pub(crate) line: u32,
}

/// What is done to the value of a parameter. `bool` says whether an empty value counts as none: the colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    /// `$x`
    Value,
    /// `${#x}`
    Length,
    /// `${x-word}`
    Default(bool, Vec<Part>),
    /// `${x=word}`
    Assign(bool, Vec<Part>),
    /// `${x?word}`
    Error(bool, Vec<Part>),
    /// `${x+word}`
    Alternative(bool, Vec<Part>),
    /// `${x%word}`, `${x%%word}`, `${x#word}`, `${x##word}`
    Trim { suffix: bool, longest: bool, pattern: Vec<Part> },
    /// What dash calls a bad substitution, when it gets there.
    Bad,
}

/// A command with its parts, as dash divides them: the rules of `set -e` are told by these kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Simple(Box<Simple>),
    Pipe(Vec<Node>),
    Not(Box<Node>),
    /// The first, and then others with whether they run after a success (`&&`) or a failure (`||`).
    AndOr(Box<Node>, Vec<(bool, Node)>),
    Sequence(Vec<Node>),
    Background(Box<Node>),
    Redirected(Box<Node>, Vec<Redirect>, u32),
    Subshell(Rc<Node>, u32),
    /// Conditions with their branches, and the last `else`.
    If(Vec<(Node, Node)>, Option<Box<Node>>),
    Loop {
        until: bool,
        condition: Box<Node>,
        body: Box<Node>,
    },
    For {
        name: Vec<u8>,
        words: Option<Vec<Word>>,
        body: Box<Node>,
        line: u32,
    },
    Case {
        subject: Word,
        arms: Vec<Arm>,
        line: u32,
    },
    Function {
        name: Vec<u8>,
        body: Rc<Node>,
    },
    /// `[[ … ]]`
    Conditional(Box<Condition>, u32),
}

/// One arm of `case`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arm {
    pub(crate) patterns: Vec<Word>,
    pub(crate) body: Option<Node>,
}

/// A simple command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Simple {
    pub(crate) assignments: Vec<(Vec<u8>, Word)>,
    pub(crate) words: Vec<Word>,
    pub(crate) redirects: Vec<Redirect>,
    pub(crate) line: u32,
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) fd: u32,
    pub(crate) target: Target,
}

/// Where a redirection leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// `< word`
    Read(Word),
    /// `> word`, and whether it may replace in spite of `set -C`: `>|`
    Write(Word, bool),
    /// `>> word`
    Append(Word),
    /// `<> word`
    ReadWrite(Word),
    /// `>& word`, `<& word`
    Duplicate(Word),
    /// `<< word`: the document; the parts expand.
    HereDocument(Rc<OnceCell<Vec<Part>>>),
    /// `<<< word`, of bash: the word and a newline.
    HereString(Word),
}

/// What stands in `[[ ]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Unary(Vec<u8>, Word),
    Binary(Word, Vec<u8>, Word),
    Word(Word),
}

/// Why a script cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SyntaxError {
    /// What was found, and what was expected, at a line.
    Unexpected { line: u32, reason: String },
    /// Syntax nested more deeply than [`MAX_DEPTH`].
    TooDeep { line: u32 },
}

/// Deepest nesting of commands, words and substitutions: the parser calls itself that often.
pub(crate) const MAX_DEPTH: u32 = 100;
