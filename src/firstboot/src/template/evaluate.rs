//! Evaluates templates and expressions.

use std::collections::BTreeMap;

use super::parse::{Expression, Node};
use super::{Fault, Writing, filters};

/// Maximum length of a rendered text, in bytes: each value has a limit, but loops multiply.
const MAX_TEXT: usize = 4 << 20;

/// A value of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    /// A list of texts.
    List(Vec<String>),
    /// A whole number.
    Number(i64),
    /// True or false.
    Boolean(bool),
}

impl Value {
    /// Whether it is truthy: all but an empty text, an empty list, 0 and `false`.
    pub fn is_true(&self) -> bool {
        match self {
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Number(number) => *number != 0,
            Self::Boolean(value) => *value,
        }
    }

    pub(super) fn text(&self) -> Result<&str, Fault> {
        match self {
            Self::Text(text) => Ok(text),
            _ => Err(Fault::value(format!("expected text, found {self:?}"))),
        }
    }

    fn list(&self) -> Result<&[String], Fault> {
        match self {
            Self::List(list) => Ok(list),
            _ => Err(Fault::value(format!("expected a list, found {self:?}"))),
        }
    }
}

/// Queries to the machine.
pub trait Machine {
    /// Whether an absolute path exists.
    fn exists(&self, path: &str) -> Result<bool, Fault>;
    /// The addresses of a host, sorted; at least one.
    fn addresses(&self, host: &str) -> Result<Vec<String>, Fault>;
    /// Cloud metadata of the machine, by a dotted path; empty if unknown.
    fn cloud(&self, path: &str) -> Result<String, Fault>;
}

/// Defined names.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// Variables, all texts.
    pub variables: &'a BTreeMap<String, String>,
    /// Target of functions.
    pub machine: &'a dyn Machine,
}

/// Values of enclosing loops, innermost last.
type Bound = Vec<(String, String)>;

/// Renders nodes.
pub(super) fn render(
    nodes: &[Node],
    scope: &Scope,
    bound: &mut Bound,
    writing: Writing,
    out: &mut String,
) -> Result<(), Fault> {
    for node in nodes {
        match node {
            Node::Text(text) => out.push_str(text),
            Node::Output(expression) => write(&value(expression, scope, bound)?, writing, out)?,
            Node::If(branches, otherwise) => {
                let mut body = otherwise;
                for (condition, branch) in branches {
                    if value(condition, scope, bound)?.is_true() {
                        body = branch;
                        break;
                    }
                }
                render(body, scope, bound, writing, out)?;
            }
            Node::For(name, list, body) => {
                for element in value(list, scope, bound)?.list()? {
                    bound.push((name.clone(), element.clone()));
                    render(body, scope, bound, writing, out)?;
                    bound.pop();
                }
            }
        }
        if out.len() > MAX_TEXT {
            return Err(Fault::value(format!("text is longer than {MAX_TEXT} bytes")));
        }
    }
    Ok(())
}

/// The value of an expression.
pub(super) fn value(expression: &Expression, scope: &Scope, bound: &[(String, String)]) -> Result<Value, Fault> {
    let evaluate = |expression: &Expression| value(expression, scope, bound);
    let all = |parts: &[Expression]| parts.iter().map(evaluate).collect::<Result<Vec<_>, _>>();
    Ok(match expression {
        Expression::Literal(value) => value.clone(),
        Expression::Name(name) => name_of(name, scope, bound)?,
        Expression::List(parts) => {
            let texts = all(parts)?;
            Value::List(texts.iter().map(|text| text.text().map(str::to_owned)).collect::<Result<_, _>>()?)
        }
        Expression::Not(inner) => Value::Boolean(!evaluate(inner)?.is_true()),
        Expression::And(left, right) => match evaluate(left)? {
            left if left.is_true() => evaluate(right)?,
            left => left,
        },
        Expression::Or(left, right) => match evaluate(left)? {
            left if left.is_true() => left,
            _ => evaluate(right)?,
        },
        Expression::Equal(left, right) => Value::Boolean(equal(&evaluate(left)?, &evaluate(right)?)?),
        Expression::In(left, right) => Value::Boolean(contains(&evaluate(right)?, evaluate(left)?.text()?)?),
        Expression::Join(left, right) => Value::Text(plain(&evaluate(left)?)? + &plain(&evaluate(right)?)?),
        Expression::Choice(parts) => {
            let [condition, then, otherwise] = &**parts;
            evaluate(if evaluate(condition)?.is_true() { then } else { otherwise })?
        }
        Expression::Filter(filter, inner, arguments) => filters::apply(filter, evaluate(inner)?, &all(arguments)?)?,
        Expression::Call(function, arguments) => call(function, &all(arguments)?, scope)?,
    })
}

fn name_of(name: &str, scope: &Scope, bound: &[(String, String)]) -> Result<Value, Fault> {
    let local = bound.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value);
    let found = local.or_else(|| scope.variables.get(name)).cloned();
    found.map(Value::Text).ok_or_else(|| Fault::Undefined { name: name.to_owned() })
}

/// Values of different types are never equal in Jinja, which hides mistakes: here it is an error.
fn equal(left: &Value, right: &Value) -> Result<bool, Fault> {
    if std::mem::discriminant(left) == std::mem::discriminant(right) {
        Ok(left == right)
    } else {
        Err(Fault::value(format!("cannot compare {left:?} and {right:?}")))
    }
}

fn contains(whole: &Value, part: &str) -> Result<bool, Fault> {
    match whole {
        Value::List(list) => Ok(list.iter().any(|element| element == part)),
        _ => Ok(whole.text()?.contains(part)),
    }
}

fn call(function: &str, arguments: &[Value], scope: &Scope) -> Result<Value, Fault> {
    let argument = arguments.first().map_or(Ok(""), Value::text)?;
    Ok(match function {
        "exists" => Value::Boolean(scope.machine.exists(argument)?),
        "addresses" => Value::List(scope.machine.addresses(argument)?),
        _ => Value::Text(scope.machine.cloud(argument)?),
    })
}

/// Formats a value without quotes.
fn plain(value: &Value) -> Result<String, Fault> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Boolean(value) => Ok(value.to_string()),
        Value::List(_) => Err(Fault::value("cannot write a list as text")),
    }
}

fn write(value: &Value, writing: Writing, out: &mut String) -> Result<(), Fault> {
    match (writing, value) {
        (Writing::Json, Value::Text(text)) => quote(text, out),
        (Writing::Json, Value::List(list)) => {
            out.push('[');
            for (index, text) in list.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                quote(text, out);
            }
            out.push(']');
        }
        (Writing::Lines, value) => {
            let text = plain(value)?;
            if let Some(c) = text.chars().find(|c| c.is_control() && *c != '\t') {
                return Err(Fault::value(format!("value contains the control character {c:?}")));
            }
            out.push_str(&text);
        }
        (_, value) => out.push_str(&plain(value)?),
    }
    Ok(())
}

/// A JSON string (RFC 8259, section 7). Characters that YAML 1.2 (section 5.1) and TOML 1.0 do not allow verbatim are escaped as well.
fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}
