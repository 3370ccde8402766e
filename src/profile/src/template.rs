//! Templates of profiles: a text in Go's `text/template` and values in, text out.
//!
//! Supported: `if`, `else`, `with`, `range`, `template`, comments, trim markers, variables, and the functions in [`FUNCTIONS`]. Everything
//! else is refused by name and line before rendering. So templates cannot call themselves, `range` iterates over values only, and the
//! length of the result is bounded.

use std::collections::BTreeSet;
use std::io::{self, Write};

use gotmpl::parse::{BranchNode, CommandNode, Expr, ListNode, Node, Parser, PipeNode, Pos};
use gotmpl::{MissingKey, Template, TemplateError, Value};

use super::constraint;
use super::error::{Location, ProfileError};
use super::fields::{Words, shown};

/// Functions of Go and of sprig that profiles call.
const FUNCTIONS: [&str; 7] = ["eq", "ne", "and", "or", "not", "len", "semverCompare"];
/// Longest text that a template becomes, in bytes: a profile's largest has 8 KB.
const MAX_OUTPUT: usize = 1 << 20;
/// Most rounds of all ranges of a template.
const MAX_ROUNDS: u64 = 10_000;
/// Most ranges inside of each other.
const MAX_RANGES: usize = 2;

/// Stands behind a template while it is looked through: no text of YAML has this character.
const END: &str = "\u{1}";

/// A text of a profile that was found to have nothing but what is known.
pub(super) struct Checked<'a> {
    words: &'a Words,
    source: String,
    /// Fields of the values that it names.
    pub(super) fields: BTreeSet<String>,
    /// Those of which it asks more than whether they are there; `.` stands for what a variable or a range gives.
    pub(super) compared: BTreeSet<String>,
}

/// Where a walk through a template is.
#[derive(Clone, Copy)]
struct Inside {
    /// Dot is the values, as at the beginning.
    at_root: bool,
    ranges: usize,
}

impl<'a> Checked<'a> {
    /// Looks through a text, in which `templates` may be named.
    pub(super) fn new(words: &'a Words, templates: &BTreeSet<&str>) -> Result<Self, ProfileError> {
        let source = without_comments(&words.text);
        let failed = |error| template_error(words, error);
        let marked = format!("{source}{END}");
        let (tree, defines) = Parser::new(&marked, "{{", "}}").and_then(Parser::parse).map_err(failed)?;
        // The parser stops at an `end` or `else` too many, and says nothing.
        if !matches!(tree.nodes.last(), Some(Node::Text(text)) if text.text.ends_with(END)) {
            let message = "unexpected {{ end }} or {{ else }}".to_owned();
            return Err(ProfileError::Template { spot: words.spot.clone(), message });
        }
        if let Some(define) = defines.first() {
            return Err(refused(words, define.pos, "define", "use the field `templates` to define templates"));
        }
        let mut walk = Walk { words, templates, fields: BTreeSet::new(), compared: BTreeSet::new() };
        walk.list(&tree, Inside { at_root: true, ranges: 0 })?;
        let Walk { fields, compared, .. } = walk;
        Ok(Self { words, source, fields, compared })
    }

    /// Renders it; `named` are the texts of templates, which must have no template text in them.
    pub(super) fn render(&self, named: &[(&str, String)], values: &Value) -> Result<String, ProfileError> {
        let failed = |error| template_error(self.words, error);
        let mut template = Template::new("")
            .missing_key(MissingKey::Error)
            .max_range_iters(MAX_ROUNDS)
            .func("semverCompare", semver_compare)
            .parse(&self.source)
            .map_err(failed)?;
        for (name, text) in named {
            // As OSM does: the text begins with a line end, and loses the white space at its end.
            let definition = format!("{{{{define \"{name}\"}}}}\n{text}\n{{{{- end}}}}");
            template = template.parse(&definition).map_err(failed)?;
        }
        let mut output = Bounded(Vec::new());
        template.execute(&mut output, values).map_err(|error| match error {
            TemplateError::Io(_) => {
                ProfileError::Unsupported { spot: self.words.spot.clone(), what: "the rendered template exceeds 1 MiB" }
            }
            error => failed(error),
        })?;
        String::from_utf8(output.0).map_err(|_| ProfileError::Unsupported {
            spot: self.words.spot.clone(),
            what: "the template splits a character",
        })
    }
}

/// What is looked for in a template.
struct Walk<'a> {
    words: &'a Words,
    templates: &'a BTreeSet<&'a str>,
    fields: BTreeSet<String>,
    compared: BTreeSet<String>,
}

impl Walk<'_> {
    fn list(&mut self, list: &ListNode, inside: Inside) -> Result<(), ProfileError> {
        list.nodes.iter().try_for_each(|node| self.node(node, inside))
    }

    fn node(&mut self, node: &Node, inside: Inside) -> Result<(), ProfileError> {
        match node {
            Node::Text(_) => Ok(()),
            Node::List(list) => self.list(list, inside),
            Node::Action(action) => self.pipe(&action.pipe, inside),
            Node::If(branch) => self.branch(branch, inside, inside),
            Node::With(branch) => self.branch(branch, inside, Inside { at_root: false, ..inside }),
            Node::Range(branch) => {
                let ranges = inside.ranges.saturating_add(1);
                if ranges > MAX_RANGES {
                    return Err(refused(self.words, branch.pos, "range", "nested more than two levels deep"));
                }
                self.iterable(&branch.pipe)?;
                self.branch(branch, inside, Inside { at_root: false, ranges })
            }
            Node::Template(call) => {
                if !self.templates.contains(call.name.as_str()) {
                    let known = self.templates.iter().copied().collect::<Vec<_>>().join(", ");
                    let expected = match known.is_empty() {
                        true => "no `template` action in a named template".to_owned(),
                        false => format!("one of the templates {known}"),
                    };
                    return Err(ProfileError::value(spot(self.words, call.pos), expected, shown(&call.name)));
                }
                call.pipe.as_ref().map_or(Ok(()), |pipe| self.pipe(pipe, inside))
            }
            Node::Define(define) => Err(refused(self.words, define.pos, "define", NOT_USED)),
            Node::Break(pos) => Err(refused(self.words, *pos, "break", NOT_USED)),
            Node::Continue(pos) => Err(refused(self.words, *pos, "continue", NOT_USED)),
        }
    }

    fn branch(&mut self, branch: &BranchNode, outside: Inside, inside: Inside) -> Result<(), ProfileError> {
        self.pipe(&branch.pipe, outside)?;
        self.list(&branch.body, inside)?;
        branch.else_body.as_ref().map_or(Ok(()), |body| self.list(body, outside))
    }

    /// Refuses ranges over what may be a number, which Go knows only since 1.22: how many rounds there are is up to the values.
    fn iterable(&self, pipe: &PipeNode) -> Result<(), ProfileError> {
        let is_value = |expression: &Expr| match expression {
            Expr::Field(..) | Expr::Dot(_) => true,
            Expr::Variable(_, name, chain) => name == "$" && !chain.is_empty(),
            _ => false,
        };
        match pipe.commands[..] {
            [CommandNode { ref args, .. }] if matches!(args[..], [ref only] if is_value(only)) => Ok(()),
            _ => Err(refused(self.words, pipe.pos, "range", "only values are supported")),
        }
    }

    fn pipe(&mut self, pipe: &PipeNode, inside: Inside) -> Result<(), ProfileError> {
        for command in &pipe.commands {
            let is_comparison = |name: &str| !matches!(name, "and" | "or" | "not");
            if matches!(command.args.first(), Some(Expr::Identifier(_, name)) if is_comparison(name)) {
                // Of a pipe the last argument is what comes before.
                let arguments = command.args.iter().skip(1).chain(pipe.commands.iter().flat_map(|one| &one.args));
                self.compared.extend(arguments.filter_map(compared));
            }
        }
        let mut expressions = pipe.commands.iter().flat_map(|command| &command.args);
        expressions.try_for_each(|expression| self.expression(expression, inside))
    }

    fn expression(&mut self, expression: &Expr, inside: Inside) -> Result<(), ProfileError> {
        match expression {
            Expr::Identifier(pos, name) if !FUNCTIONS.contains(&name.as_str()) => {
                Err(refused(self.words, *pos, &format!("function {name}"), FUNCTIONS_ARE))
            }
            Expr::Field(pos, chain) if inside.at_root => self.field(*pos, chain.first()),
            Expr::Variable(pos, name, chain) if name == "$" && !chain.is_empty() => self.field(*pos, chain.first()),
            Expr::Pipe(_, pipe) => self.pipe(pipe, inside),
            Expr::Chain(_, inner, _) => self.expression(inner, inside),
            _ => Ok(()),
        }
    }

    /// Notes a field of the values, which must be one that there can be.
    fn field(&mut self, pos: Pos, name: Option<&gotmpl::parse::SmolStr>) -> Result<(), ProfileError> {
        let Some(name) = name else { return Ok(()) };
        match super::values::FIELDS.contains(&name.as_str()) {
            true => {
                self.fields.insert(name.to_string());
                Ok(())
            }
            false => Err(ProfileError::UnknownField {
                spot: spot(self.words, pos),
                field: format!(".{name}"),
                known: super::values::FIELDS.to_vec(),
            }),
        }
    }
}

/// What a comparison is about, unless it is a text or number that stands there.
fn compared(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Field(_, chain) => chain.first().map(ToString::to_string),
        Expr::Variable(_, name, chain) if name == "$" => chain.first().map(ToString::to_string),
        Expr::Dot(_) | Expr::Variable(..) | Expr::Chain(..) | Expr::Pipe(..) => Some(".".to_owned()),
        _ => None,
    }
}

const NOT_USED: &str = "expected one of: if, else, with, range, template";
const FUNCTIONS_ARE: &str = "expected one of: eq, ne, and, or, not, len, semverCompare";

/// A place in a text, by its line.
fn spot(words: &Words, pos: Pos) -> Location {
    let line = words.spot.line.saturating_add(pos.line).saturating_sub(1);
    Location { line, ..words.spot.clone() }
}

fn refused(words: &Words, pos: Pos, what: &str, why: &'static str) -> ProfileError {
    ProfileError::Refused { spot: spot(words, pos), what: what.to_owned(), why }
}

fn template_error(words: &Words, error: TemplateError) -> ProfileError {
    let line = match &error {
        TemplateError::Parse { line, .. } | TemplateError::Lex { line, .. } => (*line).max(1),
        _ => 1,
    };
    let message = match error {
        TemplateError::Parse { message, .. } | TemplateError::Lex { message, .. } => message,
        error => error.to_string(),
    };
    ProfileError::Template { spot: spot(words, Pos::new(0, line)), message }
}

fn semver_compare(arguments: &[Value]) -> gotmpl::Result<Value> {
    let [Value::String(constraint), Value::String(version)] = arguments else {
        return Err(TemplateError::Exec("semverCompare expects a constraint and a version".to_owned()));
    };
    match constraint::fits(constraint, version) {
        Some(fits) => Ok(Value::Bool(fits)),
        None => {
            Err(TemplateError::Exec(format!("semverCompare: invalid constraint {constraint:?} or version {version:?}")))
        }
    }
}

/// Comments as empty texts: white space around two comments in a row is trimmed as Go does then. Lines stay.
fn without_comments(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find("{{") {
        let (before, action) = rest.split_at(start);
        out.push_str(before);
        let inside = action[2..].strip_prefix('-').map_or(&action[2..], |inside| inside.trim_ascii_start());
        let comment = inside.strip_prefix("/*").and_then(|comment| comment.split_once("*/"));
        rest = match comment {
            Some((comment, after)) => {
                out.push_str(&action[..action.len() - inside.len()]);
                out.push_str("\"\"");
                out.extend(comment.chars().filter(|char| *char == '\n'));
                after
            }
            None => {
                let (action, after) = action.split_at(action_end(action));
                out.push_str(action);
                after
            }
        };
    }
    out + rest
}

/// The end of an action that is not a comment: behind its `}}`, which may also stand in a text.
fn action_end(action: &str) -> usize {
    let mut quote = None;
    let mut escaped = false;
    for (at, char) in action.char_indices() {
        match (quote, char) {
            _ if escaped => escaped = false,
            (Some('"' | '\''), '\\') => escaped = true,
            (Some(open), _) if open == char => quote = None,
            (None, '"' | '\'' | '`') => quote = Some(char),
            (None, '}') if action[at..].starts_with("}}") => return at + 2,
            _ => {}
        }
    }
    action.len()
}

/// Takes so much and no more.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.len().saturating_add(bytes.len()) > MAX_OUTPUT {
            true => Err(io::ErrorKind::FileTooLarge.into()),
            false => self.0.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
