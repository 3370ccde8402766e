//! The language of templates and conditions in a plan: a strict subset of Jinja with only these forms.
//!
//! `{{ expression }}` is replaced; `{% if %}`, `{% elif %}`, `{% else %}`, `{% endif %}`, `{% for NAME in LIST %}` and
//! `{% endfor %}` select and repeat; `{# #}` is a comment. A tag alone on its line leaves no line: blanks before it and
//! the line break after it are removed, as with Jinja's `lstrip_blocks` and `trim_blocks`.
//!
//! Values are texts, lists of texts, whole numbers, `true` and `false`. An empty text, an empty list and 0 count as false.
//! There are no assignments, macros or includes; an unknown name is an error, never empty. A value is inserted, never
//! parsed as a template again.

mod evaluate;
mod filters;
mod lex;
mod parse;

use std::collections::BTreeSet;

pub use evaluate::{Machine, Scope, Value};
pub use filters::split_port;
pub(crate) use filters::{Url, base64};

use parse::{Expression, Node};

/// Format of inserted values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// Verbatim: the caller quotes the result.
    Raw,
    /// Verbatim, without control characters, unless the value is the whole text, but for white space around it.
    Lines,
    /// As JSON: quoted texts, which are also valid YAML and TOML.
    Json,
}

/// Error of a template or of its evaluation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("line {line}: {message}")]
    Syntax {
        /// Line of the template, from 1.
        line: usize,
        message: String,
    },
    #[error("{name} is not defined")]
    Undefined { name: String },
    #[error("{message}")]
    Value {
        /// Expected and found.
        message: String,
    },
    #[error("cannot resolve {host}: {reason}")]
    Unresolved { host: String, reason: String },
}

impl Fault {
    fn value(message: impl Into<String>) -> Self {
        Self::Value { message: message.into() }
    }
}

/// A text with expressions in it.
#[derive(Clone, Debug)]
pub struct Text(Vec<Node>);

/// A condition.
#[derive(Clone, Debug)]
pub struct Condition(Expression);

impl Text {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        parse::nodes(text).map(Self)
    }

    /// Whether it has no expressions.
    pub fn is_plain(&self) -> bool {
        self.0.iter().all(|node| matches!(node, Node::Text(_)))
    }

    /// The names that it uses.
    pub fn names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        parse::names_of(&self.0, &mut Vec::new(), &mut names);
        names
    }

    /// Renders the template.
    pub fn render(&self, scope: &Scope, writing: Writing) -> Result<String, Fault> {
        let is_blank = |node: &Node| matches!(node, Node::Text(text) if text.chars().all(char::is_whitespace));
        let others: Vec<&Node> = self.0.iter().filter(|node| !is_blank(node)).collect();
        let whole = matches!(others[..], [Node::Output(_)]);
        let writing = if whole && writing == Writing::Lines { Writing::Raw } else { writing };
        let mut text = String::new();
        evaluate::render(&self.0, scope, &mut Vec::new(), writing, &mut text)?;
        Ok(text)
    }
}

impl Condition {
    /// Reads a condition.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        parse::expression(text).map(Self)
    }

    /// The names that it uses.
    pub fn names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        self.0.names(&[], &mut names);
        names
    }

    pub fn holds(&self, scope: &Scope) -> Result<bool, Fault> {
        evaluate::value(&self.0, scope, &[]).map(|value| value.is_true())
    }
}

/// Renders a template once.
pub fn render(text: &str, scope: &Scope, writing: Writing) -> Result<String, Fault> {
    Text::parse(text)?.render(scope, writing)
}

/// Whether a condition holds; an absent one does.
pub fn holds(condition: Option<&str>, scope: &Scope) -> Result<bool, Fault> {
    condition.map_or(Ok(true), |text| Condition::parse(text)?.holds(scope))
}

#[cfg(test)]
mod tests;
