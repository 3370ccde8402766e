//! Parser of templates and expressions.

use std::collections::BTreeSet;

use super::lex::{self, Piece, Token};
use super::{Fault, Value, filters};

/// Maximum nesting depth of expressions and tags: plans are written manually.
const MAX_DEPTH: usize = 32;

/// Maximum number of tokens in an expression: each operator nests as well.
const MAX_TOKENS: usize = 500;

/// Reserved words.
const RESERVED: [&str; 8] = ["and", "or", "not", "in", "if", "else", "true", "false"];

/// A part of a template.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Text(String),
    Output(Expression),
    /// The first branch whose condition holds, or the else branch.
    If(Vec<(Expression, Vec<Node>)>, Vec<Node>),
    For(String, Expression, Vec<Node>),
}

#[derive(Clone, Debug)]
pub(super) enum Expression {
    Literal(Value),
    Name(String),
    List(Vec<Expression>),
    Not(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    Equal(Box<Expression>, Box<Expression>),
    In(Box<Expression>, Box<Expression>),
    Join(Box<Expression>, Box<Expression>),
    /// Condition, value if it holds, value otherwise.
    Choice(Box<[Expression; 3]>),
    Filter(&'static str, Box<Expression>, Vec<Expression>),
    Call(&'static str, Vec<Expression>),
}

impl Expression {
    /// Adds the names that are not bound by a loop.
    pub(super) fn names(&self, bound: &[String], names: &mut BTreeSet<String>) {
        match self {
            Self::Literal(_) => {}
            Self::Name(name) => {
                if !bound.contains(name) {
                    names.insert(name.clone());
                }
            }
            Self::List(parts) | Self::Call(_, parts) => parts.iter().for_each(|part| part.names(bound, names)),
            Self::Not(inner) => inner.names(bound, names),
            Self::And(a, b) | Self::Or(a, b) | Self::Equal(a, b) | Self::In(a, b) | Self::Join(a, b) => {
                a.names(bound, names);
                b.names(bound, names);
            }
            Self::Choice(parts) => parts.iter().for_each(|part| part.names(bound, names)),
            Self::Filter(_, inner, arguments) => {
                inner.names(bound, names);
                arguments.iter().for_each(|argument| argument.names(bound, names));
            }
        }
    }
}

/// Adds the names that are not bound by a loop.
pub(super) fn names_of(nodes: &[Node], bound: &mut Vec<String>, names: &mut BTreeSet<String>) {
    for node in nodes {
        match node {
            Node::Text(_) => {}
            Node::Output(expression) => expression.names(bound, names),
            Node::If(branches, otherwise) => {
                for (condition, body) in branches {
                    condition.names(bound, names);
                    names_of(body, bound, names);
                }
                names_of(otherwise, bound, names);
            }
            Node::For(name, list, body) => {
                list.names(bound, names);
                bound.push(name.clone());
                names_of(body, bound, names);
                bound.pop();
            }
        }
    }
}

/// Reads a template.
pub(super) fn nodes(text: &str) -> Result<Vec<Node>, Fault> {
    let pieces = lex::pieces(text)?;
    let mut template = Template { pieces: pieces.into_iter(), depth: 0 };
    match template.body()? {
        (nodes, None) => Ok(nodes),
        (_, Some(tag)) => Err(syntax(tag.line, format!("unexpected {} without an opening tag", tag.word))),
    }
}

/// Reads an expression.
pub(super) fn expression(text: &str) -> Result<Expression, Fault> {
    expression_at(text, 1)
}

fn expression_at(text: &str, line: usize) -> Result<Expression, Fault> {
    let tokens = lex::tokens(text, line)?;
    if tokens.len() > MAX_TOKENS {
        return Err(syntax(line, format!("more than {MAX_TOKENS} tokens in one expression")));
    }
    let mut parser = Parser { tokens, at: 0, line, depth: 0 };
    let expression = parser.choice()?;
    match parser.tokens.get(parser.at) {
        None => Ok(expression),
        Some(token) => Err(syntax(line, format!("unexpected {}", shown(token)))),
    }
}

fn syntax(line: usize, message: String) -> Fault {
    Fault::Syntax { line, message }
}

fn shown(token: &Token) -> String {
    match token {
        Token::Text(text) => format!("{text:?}"),
        Token::Number(number) => number.to_string(),
        Token::Word(word) => word.clone(),
        Token::Sign(sign) => (*sign).to_owned(),
    }
}

/// A tag that ends or divides a body: keyword, rest, line.
struct Tag<'a> {
    word: &'a str,
    rest: &'a str,
    line: usize,
}

struct Template<'a> {
    pieces: std::vec::IntoIter<(usize, Piece<'a>)>,
    depth: usize,
}

impl<'a> Template<'a> {
    /// Nodes up to the end or to a tag that ends the body.
    fn body(&mut self) -> Result<(Vec<Node>, Option<Tag<'a>>), Fault> {
        let mut nodes = Vec::new();
        while let Some((line, piece)) = self.pieces.next() {
            let inner = match piece {
                Piece::Text(text) => {
                    nodes.push(Node::Text(text.to_owned()));
                    continue;
                }
                Piece::Output(text) => {
                    nodes.push(Node::Output(expression_at(text, line)?));
                    continue;
                }
                Piece::Tag(inner) => inner.trim(),
            };
            let (word, rest) = inner.split_once(char::is_whitespace).unwrap_or((inner, ""));
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(syntax(line, format!("tags nested more than {MAX_DEPTH} deep")));
            }
            match word {
                "if" => nodes.push(self.branches(rest, line)?),
                "for" => nodes.push(self.repetition(rest, line)?),
                "elif" | "else" | "endif" | "endfor" => {
                    self.depth -= 1;
                    return Ok((nodes, Some(Tag { word, rest, line })));
                }
                _ => return Err(syntax(line, format!("unknown tag {word:?}"))),
            }
            self.depth -= 1;
        }
        Ok((nodes, None))
    }

    fn branches(&mut self, condition: &str, line: usize) -> Result<Node, Fault> {
        let mut branches = Vec::new();
        let mut condition = expression_at(condition, line)?;
        loop {
            let (body, tag) = self.body()?;
            branches.push((condition, body));
            match tag {
                Some(Tag { word: "endif", rest: "", .. }) => return Ok(Node::If(branches, Vec::new())),
                Some(Tag { word: "elif", rest, line }) => condition = expression_at(rest, line)?,
                Some(Tag { word: "else", rest: "", .. }) => return self.last_branch(branches, line),
                Some(tag) => {
                    return Err(syntax(tag.line, format!("unexpected {} in the `if` of line {line}", tag.word)));
                }
                None => return Err(syntax(line, "if without endif".to_owned())),
            }
        }
    }

    fn last_branch(&mut self, branches: Vec<(Expression, Vec<Node>)>, line: usize) -> Result<Node, Fault> {
        match self.body()? {
            (body, Some(Tag { word: "endif", rest: "", .. })) => Ok(Node::If(branches, body)),
            (_, Some(tag)) => Err(syntax(tag.line, format!("unexpected {} after the `else` of line {line}", tag.word))),
            (_, None) => Err(syntax(line, "if without endif".to_owned())),
        }
    }

    fn repetition(&mut self, text: &str, line: usize) -> Result<Node, Fault> {
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let list = rest.trim_start().strip_prefix("in").filter(|list| list.starts_with(char::is_whitespace));
        let list = list.filter(|_| is_name(name)).ok_or_else(|| syntax(line, "expected NAME in LIST".to_owned()))?;
        let list = expression_at(list, line)?;
        match self.body()? {
            (body, Some(Tag { word: "endfor", rest: "", .. })) => Ok(Node::For(name.to_owned(), list, body)),
            (_, Some(tag)) => Err(syntax(tag.line, format!("unexpected {} in the `for` of line {line}", tag.word))),
            (_, None) => Err(syntax(line, "for without endfor".to_owned())),
        }
    }
}

/// Whether a text is a valid name.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !RESERVED.contains(&text)
}

/// Recursive descent with Jinja's operator precedence.
struct Parser {
    tokens: Vec<Token>,
    at: usize,
    line: usize,
    depth: usize,
}

impl Parser {
    fn choice(&mut self) -> Result<Expression, Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(syntax(self.line, format!("expressions nested more than {MAX_DEPTH} deep")));
        }
        let mut value = self.or()?;
        if self.word("if") {
            let condition = self.or()?;
            self.expect_word("else")?;
            let otherwise = self.choice()?;
            value = Expression::Choice(Box::new([condition, value, otherwise]));
        }
        self.depth -= 1;
        Ok(value)
    }

    fn or(&mut self) -> Result<Expression, Fault> {
        let mut left = self.and()?;
        while self.word("or") {
            left = Expression::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expression, Fault> {
        let mut left = self.not()?;
        while self.word("and") {
            left = Expression::And(Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expression, Fault> {
        let mut negated = false;
        while self.word("not") {
            negated = !negated;
        }
        let inner = self.comparison()?;
        Ok(if negated { Expression::Not(Box::new(inner)) } else { inner })
    }

    fn comparison(&mut self) -> Result<Expression, Fault> {
        let left = Box::new(self.join()?);
        let negated = self.tokens.get(self.at + 1) == Some(&Token::Word("in".to_owned())) && self.word("not");
        let compared = if self.word("in") {
            Expression::In(left, Box::new(self.join()?))
        } else if self.sign("==") {
            Expression::Equal(left, Box::new(self.join()?))
        } else if self.sign("!=") {
            return Ok(Expression::Not(Box::new(Expression::Equal(left, Box::new(self.join()?)))));
        } else {
            return Ok(*left);
        };
        Ok(if negated { Expression::Not(Box::new(compared)) } else { compared })
    }

    fn join(&mut self) -> Result<Expression, Fault> {
        let mut left = self.filtered()?;
        while self.sign("~") {
            left = Expression::Join(Box::new(left), Box::new(self.filtered()?));
        }
        Ok(left)
    }

    fn filtered(&mut self) -> Result<Expression, Fault> {
        let mut value = self.primary()?;
        while self.sign("|") {
            let name = self.any_word()?;
            let arguments = if self.sign("(") { self.list(")")? } else { Vec::new() };
            let filter = filters::filter(&name, arguments.len()).map_err(|message| syntax(self.line, message))?;
            value = Expression::Filter(filter, Box::new(value), arguments);
        }
        Ok(value)
    }

    fn primary(&mut self) -> Result<Expression, Fault> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        Ok(match token {
            Some(Token::Text(text)) => Expression::Literal(Value::Text(text)),
            Some(Token::Number(number)) => Expression::Literal(Value::Number(number)),
            Some(Token::Sign("[")) => Expression::List(self.list("]")?),
            Some(Token::Sign("(")) => {
                let inner = self.choice()?;
                self.expect_sign(")")?;
                inner
            }
            Some(Token::Word(word)) if word == "true" => Expression::Literal(Value::Boolean(true)),
            Some(Token::Word(word)) if word == "false" => Expression::Literal(Value::Boolean(false)),
            Some(Token::Word(name)) if is_name(&name) && self.sign("(") => {
                let arguments = self.list(")")?;
                let function = filters::function(&name, arguments.len()).map_err(|text| syntax(self.line, text))?;
                Expression::Call(function, arguments)
            }
            Some(Token::Word(name)) if is_name(&name) => Expression::Name(name),
            Some(token) => return Err(syntax(self.line, format!("expected a value, found {}", shown(&token)))),
            None => return Err(syntax(self.line, "expected a value".to_owned())),
        })
    }

    /// Comma-separated expressions up to a closing sign.
    fn list(&mut self, closing: &'static str) -> Result<Vec<Expression>, Fault> {
        let mut parts = Vec::new();
        while !self.sign(closing) {
            if !parts.is_empty() {
                self.expect_sign(",")?;
            }
            parts.push(self.choice()?);
        }
        Ok(parts)
    }

    fn any_word(&mut self) -> Result<String, Fault> {
        match self.tokens.get(self.at) {
            Some(Token::Word(word)) => {
                self.at += 1;
                Ok(word.clone())
            }
            _ => Err(syntax(self.line, "expected the name of a filter".to_owned())),
        }
    }

    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Word(found)) if found == word);
        self.at += usize::from(found);
        found
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Sign(found)) if *found == sign);
        self.at += usize::from(found);
        found
    }

    fn expect_word(&mut self, word: &str) -> Result<(), Fault> {
        if self.word(word) { Ok(()) } else { Err(syntax(self.line, format!("expected {word}"))) }
    }

    fn expect_sign(&mut self, sign: &str) -> Result<(), Fault> {
        if self.sign(sign) { Ok(()) } else { Err(syntax(self.line, format!("expected {sign}"))) }
    }
}
