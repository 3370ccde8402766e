//! The syntax tree: words, commands, redirections.

use std::cell::OnceCell;
use std::rc::Rc;

/// The lines of a compound command or substitution. For `$LINENO` of bash the last one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) first: u32,
    pub(crate) last: u32,
}

/// A word: what expands to fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Word {
    pub(crate) parts: Vec<Part>,
    /// Whether braces gave more than this word: bash does not see an assignment in it then.
    pub(crate) from_braces: bool,
}

impl Word {
    pub(crate) fn new(parts: Vec<Part>) -> Self {
        Self { parts, from_braces: false }
    }

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
    /// Bytes after a backslash, between single quotes, or of `$'…'`.
    Quoted(Vec<u8>),
    /// The content of double quotes.
    DoubleQuoted(Vec<Part>),
    /// `$name`, `${name…}`.
    Parameter(Box<Parameter>),
    /// `$(…)`, and the same with backquotes.
    Command(Rc<Node>, Lines),
    /// `$((…))`.
    Arithmetic(Vec<Part>),
    /// `<(…)` with `input`, `>(…)` without; only in scripts of bash.
    Process { input: bool, node: Rc<Node> },
    /// An operand of `declare` and its like that is an assignment; only in scripts of bash, and the only part of its word.
    Assignment(Box<Assignment>),
}

/// A parameter with what is done to its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: Vec<u8>,
    pub(crate) index: Option<Subscript>,
    /// `${!name}`: the value is the name of the parameter.
    pub(crate) indirect: bool,
    pub(crate) operation: Operation,
    pub(crate) line: u32,
}

impl Parameter {
    pub(crate) fn new(name: Vec<u8>, operation: Operation, line: u32) -> Self {
        Self { name, index: None, indirect: false, operation, line }
    }
}

/// The element of an array: `[@]`, `[*]`, or `[expression]`, which is a key where the array is associative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subscript {
    At,
    Star,
    Expression(Vec<Part>),
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
    /// `${x:offset}`, `${x:offset:length}`: arithmetic expressions.
    Substring { offset: Vec<Part>, length: Option<Vec<Part>> },
    /// `${x/pattern/replacement}`, `${x//…}`, `${x/#…}`, `${x/%…}`
    Replace { pattern: Vec<Part>, replacement: Vec<Part>, anchor: Anchor, all: bool },
    /// `${x^pattern}`, `${x^^…}`, `${x,…}`, `${x,,…}`, `${x~…}`, `${x~~…}`; without a pattern any character is meant.
    Case { change: CaseChange, all: bool, pattern: Vec<Part> },
    /// `${x@Q}`: the letter.
    Transform(u8),
    /// `${!prefix@}`, or `${!prefix*}` with `star`: the names of variables; the name of the parameter is the prefix.
    Names { star: bool },
    /// `${!x[@]}`: the subscripts of an array.
    Keys,
    /// What the shell calls a bad substitution when it evaluates it.
    Bad,
}

/// Where the pattern of a replacement has to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    None,
    Prefix,
    Suffix,
}

/// How letters change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaseChange {
    Upper,
    Lower,
    Toggle,
}

/// `name=value`, and in scripts of bash `name[index]+=value` and `name=(…)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) name: Vec<u8>,
    pub(crate) index: Option<Vec<Part>>,
    pub(crate) append: bool,
    pub(crate) value: Assigned,
}

/// The right side of an assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Assigned {
    Word(Word),
    Array(Vec<Element>),
}

/// An element between the parentheses of an array's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) index: Option<Vec<Part>>,
    pub(crate) append: bool,
    pub(crate) value: Word,
}

/// A command with its parts, as dash divides them: the rules of `set -e` depend on these kinds.
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
    Subshell(Rc<Node>, Lines),
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
    /// `for ((init; condition; step))`
    ForArithmetic {
        init: Vec<Part>,
        condition: Vec<Part>,
        step: Vec<Part>,
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
        line: u32,
    },
    /// `[[ … ]]`
    Conditional(Box<Condition>, Lines),
    /// `((…))`
    Arithmetic(Vec<Part>, Lines),
}

/// One arm of `case`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arm {
    pub(crate) patterns: Vec<Word>,
    pub(crate) body: Option<Node>,
    pub(crate) end: ArmEnd,
}

/// What follows an arm of `case` that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArmEnd {
    /// `;;`: the end.
    Leave,
    /// `;&`: the next arm without a test.
    FallThrough,
    /// `;;&`: the next arm that matches.
    Continue,
}

impl Node {
    /// The redirection, where a program consists of `<file` and nothing else.
    pub(crate) fn lone_input(&self) -> Option<&Redirect> {
        match self {
            Self::Sequence(nodes) => match &nodes[..] {
                [node] => node.lone_input(),
                _ => None,
            },
            // bash overlooks the negation.
            Self::Not(inner) if matches!(**inner, Self::Simple(_)) => inner.lone_input(),
            Self::Simple(simple) if simple.words.is_empty() && simple.assignments.is_empty() => {
                match &simple.redirects[..] {
                    [redirect @ Redirect { fd: Descriptor::Number(0), target: Target::Read(_) }] => Some(redirect),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// A simple command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Simple {
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) words: Vec<Word>,
    pub(crate) redirects: Vec<Redirect>,
    pub(crate) line: u32,
    /// `$LINENO` in bash: the line on which the word after the name ends.
    pub(crate) number: u32,
    /// The line on which its last word ends.
    pub(crate) last: u32,
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) fd: Descriptor,
    pub(crate) target: Target,
}

/// The left side of a redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Descriptor {
    Number(u32),
    /// `{name}>file`: the shell chooses a number from 10 on and assigns it.
    Variable(Vec<u8>),
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
    /// `&> word`, or `&>> word` with `append`: standard output and standard error.
    Both { word: Word, append: bool },
    /// `>& word` without a number: a descriptor, or a file for both as `&>`.
    DuplicateOrBoth(Word),
    /// `<< word`: the document; the parts expand.
    HereDocument(Rc<OnceCell<Vec<Part>>>),
    /// `<<< word`, of bash: the word and a newline.
    HereString(Word),
}

/// The expression in `[[ ]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Unary(Vec<u8>, Word),
    Binary(Word, Vec<u8>, Word),
    Word(Word),
}
