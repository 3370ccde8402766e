//! The syntax tree of an awk program. Names are resolved: a variable or an array is an index into a table.

pub(super) struct Program {
    pub(super) begin: Vec<Statement>,
    pub(super) rules: Vec<Rule>,
    /// There may be an empty one, for which the input is read too.
    pub(super) end: Option<Vec<Statement>>,
    /// The names of variables, those of awk first.
    pub(super) scalars: Vec<Vec<u8>>,
    pub(super) arrays: usize,
    pub(super) ranges: usize,
}

/// A pattern and what is done with the records that it selects; `None` prints them.
pub(super) struct Rule {
    pub(super) pattern: Pattern,
    pub(super) action: Option<Statement>,
}

pub(super) enum Pattern {
    Always,
    If(Expr),
    /// From a record to a record, and the place of the flag that says that it is between them.
    Range(Expr, Expr, usize),
}

pub(super) enum Statement {
    Expression(Expr),
    Print(Vec<Expr>),
    Printf(Vec<Expr>),
    If(Expr, Box<Statement>, Option<Box<Statement>>),
    While(Expr, Box<Statement>),
    Do(Box<Statement>, Expr),
    For(Option<Expr>, Option<Expr>, Option<Expr>, Box<Statement>),
    /// The variable, the array.
    ForIn(usize, usize, Box<Statement>),
    Block(Vec<Statement>),
    /// An array, or one element of it.
    Delete(usize, Option<Vec<Expr>>),
    Break,
    Continue,
    Next,
    Exit(Option<Expr>),
}

pub(super) enum Expr {
    Number(f64),
    Text(Vec<u8>),
    /// A match with the record where it is not the operand of an operator or function that takes an expression.
    Regex(Vec<u8>),
    Variable(usize),
    Field(Box<Expr>),
    Element(usize, Vec<Expr>),
    Group(Box<Expr>),
    /// `(a, b)`, which only `print` takes.
    List(Vec<Expr>),
    Assign(Box<Expr>, Option<Arithmetic>, Box<Expr>),
    /// `++` and `--`: the target, what is added, whether the result is the new value.
    Step(Box<Expr>, f64, bool),
    Not(Box<Expr>),
    Minus(Box<Expr>),
    Plus(Box<Expr>),
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    Concatenation(Box<Expr>, Box<Expr>),
    Comparison(Comparison, Box<Expr>, Box<Expr>),
    /// `~`, or `!~` if the flag is false.
    Match(bool, Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    In(Vec<Expr>, usize),
    Call(Function, Vec<Expr>),
    /// `split`: the text, the array, the separator.
    Split(Box<Expr>, usize, Option<Box<Expr>>),
}

impl Expr {
    /// Whether it can be assigned to.
    pub(super) fn is_place(&self) -> bool {
        matches!(self, Self::Variable(_) | Self::Field(_) | Self::Element(..))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Less,
    LessEqual,
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
}

/// A function of awk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Gsub,
    Index,
    Int,
    Length,
    Match,
    Split,
    Sprintf,
    Sub,
    Substr,
    Lower,
    Upper,
    /// What it gives is random, by its name.
    Random(&'static str),
    /// What it gives depends on the time.
    Clock(&'static str),
    /// It is refused when it is called.
    Other(&'static str),
}

impl Function {
    pub(super) fn find(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"gsub" => Self::Gsub,
            b"index" => Self::Index,
            b"int" => Self::Int,
            b"length" => Self::Length,
            b"match" => Self::Match,
            b"split" => Self::Split,
            b"sprintf" => Self::Sprintf,
            b"sub" => Self::Sub,
            b"substr" => Self::Substr,
            b"tolower" => Self::Lower,
            b"toupper" => Self::Upper,
            b"rand" => Self::Random("rand"),
            b"srand" => Self::Random("srand"),
            b"systime" => Self::Clock("systime"),
            b"strftime" => Self::Clock("strftime"),
            b"mktime" => Self::Other("mktime"),
            b"system" => Self::Other("system"),
            b"close" => Self::Other("close"),
            b"fflush" => Self::Other("fflush"),
            b"atan2" => Self::Other("atan2"),
            b"cos" => Self::Other("cos"),
            b"exp" => Self::Other("exp"),
            b"log" => Self::Other("log"),
            b"sin" => Self::Other("sin"),
            b"sqrt" => Self::Other("sqrt"),
            _ => return None,
        })
    }

    /// The least and the greatest number of its arguments.
    pub(super) fn arity(self) -> (usize, usize) {
        match self {
            Self::Length => (0, 1),
            Self::Int | Self::Lower | Self::Upper => (1, 1),
            Self::Index | Self::Match => (2, 2),
            Self::Split | Self::Sub | Self::Gsub | Self::Substr => (2, 3),
            Self::Sprintf => (1, usize::MAX),
            Self::Random(_) | Self::Clock(_) | Self::Other(_) => (0, usize::MAX),
        }
    }
}
