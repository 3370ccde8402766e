//! The language of texts and conditions in a plan: a strict subset of Jinja, of which nothing but these forms exists.
//!
//! `{{ expression }}` is replaced; `{% if %}`, `{% elif %}`, `{% else %}`, `{% endif %}`, `{% for NAME in LIST %}` and
//! `{% endfor %}` choose and repeat; `{# #}` is a comment. A tag alone on its line leaves no line behind: blanks before it and
//! the line end after it are dropped, as with Jinja's `lstrip_blocks` and `trim_blocks`.
//!
//! Values are texts, lists of texts, whole numbers, `true` and `false`. An empty text, an empty list and 0 count as false.
//! There are no assignments, macros or includes; an unknown name is an error, never empty. A text is only ever written, not
//! read as a template again: what a value contains does not matter.

mod evaluate;
mod filters;
mod lex;
mod parse;

use std::collections::BTreeSet;

pub use evaluate::{Machine, Scope, Value};
pub use filters::split_port;
pub(crate) use filters::{Url, base64};

use parse::{Expression, Node};

/// How the values of a template are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// As they are: somebody else quotes the result.
    Raw,
    /// As they are, without control characters, unless the value is the whole text.
    Lines,
    /// As JSON: texts in quotes. YAML and TOML read the same.
    Json,
}

/// What is wrong with a template, or stops its evaluation.
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
        /// What is expected, and what is found.
        message: String,
    },
    #[error("{host} has no address: {reason}")]
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

/// An expression that holds or does not.
#[derive(Clone, Debug)]
pub struct Condition(Expression);

impl Text {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        parse::nodes(text).map(Self)
    }

    /// Whether nothing in it is replaced.
    pub fn is_plain(&self) -> bool {
        self.0.iter().all(|node| matches!(node, Node::Text(_)))
    }

    /// The names that it needs.
    pub fn names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        parse::names_of(&self.0, &mut Vec::new(), &mut names);
        names
    }

    /// The text with everything replaced.
    pub fn render(&self, scope: &Scope, writing: Writing) -> Result<String, Fault> {
        let whole = matches!(self.0[..], [Node::Output(_)]);
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

    /// The names that it needs.
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

/// Whether a condition holds; one that is not there does.
pub fn holds(condition: Option<&str>, scope: &Scope) -> Result<bool, Fault> {
    condition.map_or(Ok(true), |text| Condition::parse(text)?.holds(scope))
}

#[cfg(test)]
mod tests;
