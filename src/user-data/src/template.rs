//! Values with placeholders for fields that a server sets for each machine: texts in, a template, a sample and the
//! longest text out.
//!
//! Nstance executes user data as a template of Go's text/template, without custom functions and with `missingkey=zero`. Every
//! field is escaped when the template is executed, so that no value can leave its quotes: a settings file is a double-quoted YAML
//! scalar of assignments in single quotes, and the template `value` writes a value for both. It accepts printable ASCII and line
//! ends; anything else makes the execution fail, and no machine starts. Where a field is a scalar by itself, `printf "%+q"` writes a
//! string whose escapes are those of YAML, too.

use vmbake_common::message;
use vmbake_firstboot::env;
use vmbake_firstboot::plan::{Format, Variable};

use super::document::escaped;
use super::fields::{self, FIELDS, Field, INSTANCE, KnownField};
use super::{NAME, PROVIDER, Problem, Provider};
use vmbake_common::spelling::near;

/// Writes the string that it is given byte by byte: `'` as a file with variables needs it, then all escapes of YAML. `slice` fails
/// if its string is too short.
pub(super) const DEFINITION: &str = r#"
{{- define "value" }}{{ if . }}{{ $c := slice . 0 1 -}}
{{ if eq $c "'" }}'\"'\"'{{ else if eq $c "\"" "\\" }}\{{ $c }}{{ else if eq $c "\n" }}\n{{ else if or (lt $c " ") (gt $c "~") }}{{ slice "not ASCII" 99 }}{{ else }}{{ $c }}{{ end -}}
{{ template "value" slice . 1 }}{{ end }}{{ end }}
"#;

/// Server that fills placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserDataTemplate {
    /// An Nstance server.
    Nstance,
}

/// Rendering of a template.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Source,
    /// With the longest values.
    Longest,
}

/// A value with placeholders.
#[derive(Debug)]
pub(super) struct Value(Vec<Piece>);

#[derive(Debug)]
enum Piece {
    Text(String),
    Field(Field),
}

impl UserDataTemplate {
    pub const NAMES: [&str; 1] = ["nstance"];

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        (name == Self::NAMES[0]).then_some(Self::Nstance)
    }
}

impl Value {
    pub(super) fn text(text: &str) -> Self {
        Self(vec![Piece::Text(text.to_owned())])
    }

    /// A field alone.
    pub(super) fn field(field: Field) -> Self {
        Self(vec![Piece::Field(field)])
    }

    /// Reads the value of a setting.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, Problem> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once("{{") {
            let unknown = |near| Problem::Placeholder { name: name.to_owned(), near };
            let (inside, after) = after.split_once("}}").ok_or_else(|| unknown(Vec::new()))?;
            let inside = inside.trim();
            let known = |field: &KnownField| if inside.starts_with('.') { field.path } else { field.setting };
            let field = fields::find(inside).ok_or_else(|| unknown(near(inside, FIELDS.iter().map(known))))?;
            pieces.push(Piece::Text(before.to_owned()));
            pieces.push(Piece::Field(field));
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
        Ok(Self(pieces))
    }

    /// Refuses placeholders in the setting of that name, for which a sample cannot show what the server sets.
    pub(super) fn misplaced(&self, name: &str, variable: Option<&Variable>) -> Option<Problem> {
        let fields: Vec<&Field> = self.fields().collect();
        if name == NAME {
            let found = fields.iter().map(|field| field.path()).collect::<Vec<_>>();
            let is_known = matches!(found[..], [] | [INSTANCE]);
            return (!is_known).then(|| Problem::Message(message!("{}: expected text with at most one placeholder, {{{{ .Instance.ID }}}}, as it becomes the host name, found {}", NAME, found.join(" and "))));
        }
        let variable = variable.filter(|one| one.format.is_some() || !one.one_of.is_empty())?;
        let field = match variable.format {
            // Base64 depends on preceding bytes.
            Some(Format::Base64) => fields.into_iter().next(),
            Some(Format::HostPort) => return self.partial(name),
            _ => fields.into_iter().find(|field| matches!(field, Field::Named(_))),
        }?;
        (self.0.len() > 1).then(|| Problem::Message(message!("{name}: expected only {{{{ {} }}}}, because the value has a required format; found other text or placeholders next to it", field.path())))
    }

    /// Refuses a variable that is only part of the port of an address: digits next to it change the number.
    fn partial(&self, name: &str) -> Option<Problem> {
        let colon = |piece: &Piece| matches!(piece, Piece::Text(text) if text.contains(':'));
        let at = self.0.iter().rposition(colon)?;
        let is_empty = matches!(&self.0[at], Piece::Text(text) if text.ends_with(':'));
        let port = &self.0[at + 1..];
        let field = port.iter().find_map(|piece| match piece {
            Piece::Field(field @ Field::Named(_)) => Some(field),
            _ => None,
        })?;
        let is_whole = port.len() == 1 && is_empty;
        (!is_whole).then(|| {
            Problem::Message(message!(
                "{name}: expected {{{{ {} }}}} as the whole port; found other text or placeholders next to it",
                field.path()
            ))
        })
    }

    /// The longest value, if it has placeholders.
    pub(super) fn longest(&self) -> Option<String> {
        let long = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Field(field) => field.longest(),
        };
        self.fields().next().map(|_| self.0.iter().map(long).collect())
    }

    fn fields(&self) -> impl Iterator<Item = &Field> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Field(field) => Some(field),
        })
    }

    /// A sample value for the setting of that name.
    pub(super) fn sample(
        &self,
        name: &str,
        variable: Option<&Variable>,
        provider: Option<Provider>,
    ) -> Result<String, Problem> {
        let of_provider = || match provider {
            Some(provider) => Ok(provider.name().to_owned()),
            None => Err(Problem::Provider { name: name.to_owned() }),
        };
        let sample = |piece: &Piece| match piece {
            Piece::Text(text) => Ok(text.clone()),
            Piece::Field(Field::Provider) => of_provider(),
            Piece::Field(Field::Named(_)) if name == PROVIDER => of_provider(),
            Piece::Field(Field::Known(known)) => Ok(known.sample.to_owned()),
            // A custom sample fits the whole value.
            Piece::Field(Field::Named(_)) if self.0.len() == 1 => Ok(fitting(name, variable)),
            // Part of a host name, a number, or a port.
            Piece::Field(Field::Named(_)) => Ok("1".to_owned()),
        };
        self.0.iter().map(sample).collect()
    }

    /// The value in the single quotes of an assignment, in the double quotes of a YAML scalar.
    pub(super) fn assigned(&self, form: Form) -> String {
        let text = |piece: &Piece| match (piece, form) {
            // A template must not have literal braces.
            (Piece::Text(text), _) => escaped(&env::quoted(text)).replace("{{", "{\\u007b"),
            (Piece::Field(field), Form::Source) => format!("{{{{ template \"value\" {} }}}}", field.path()),
            (Piece::Field(field), Form::Longest) => escaped(&field.longest()),
        };
        self.0.iter().map(text).collect()
    }

    /// The value as a whole YAML scalar.
    pub(super) fn scalar(&self, form: Form) -> String {
        let text = |piece: &Piece| match piece {
            Piece::Text(text) => format!("\"{}\"", escaped(text)),
            Piece::Field(field) => field.path().to_owned(),
        };
        match (self.0.as_slice(), form) {
            ([], _) => "\"\"".to_owned(),
            ([piece @ Piece::Text(_)], _) => text(piece).replace("{{", "{\\u007b"),
            ([piece], Form::Source) => format!("{{{{ printf \"%+q\" {} }}}}", text(piece)),
            (pieces, Form::Source) => {
                let operands: Vec<String> = pieces.iter().map(text).collect();
                format!("{{{{ printf \"%+q\" (print {}) }}}}", operands.join(" "))
            }
            (_, Form::Longest) => format!("\"{}\"", escaped(&self.longest().unwrap_or_default())),
        }
    }
}

fn fitting(name: &str, variable: Option<&Variable>) -> String {
    if let Some(known) = FIELDS.iter().find(|known| known.setting == name) {
        return known.sample.to_owned();
    }
    let one_of = variable.and_then(|variable| variable.one_of.first());
    let format = variable.and_then(|variable| variable.format);
    let of_format = match format {
        Some(Format::Boolean) => "true",
        Some(Format::Number | Format::Port) => "1",
        Some(Format::HostPort) => "192.0.2.1:1",
        Some(Format::Addresses) => "192.0.2.1",
        Some(Format::Url) => "https://value",
        Some(Format::Base64) => "eA==",
        Some(Format::Hostname | Format::Host) | None => "value",
    };
    one_of.cloned().unwrap_or_else(|| of_format.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_fields_and_everything_else_is_text() {
        for (text, assigned, scalar) in [
            ("it's {x}", r#"it'\"'\"'s {x}"#, r#""it's {x}""#),
            ("{{.Cluster.ID}}", r#"{{ template "value" .Cluster.ID }}"#, r#"{{ printf "%+q" .Cluster.ID }}"#),
            ("{{ CLUSTER_ID }}", r#"{{ template "value" .Cluster.ID }}"#, r#"{{ printf "%+q" .Cluster.ID }}"#),
            (
                "a\"{{ .Vars.B_1 }}}",
                r#"a\"{{ template "value" .Vars.B_1 }}}"#,
                r#"{{ printf "%+q" (print "a\"" .Vars.B_1 "}") }}"#,
            ),
            ("", "", r#""""#),
        ] {
            let value = Value::parse("A", text).unwrap();
            assert_eq!(
                (value.assigned(Form::Source).as_str(), value.scalar(Form::Source).as_str()),
                (assigned, scalar)
            );
        }
        let braces = Value::text("{{{ .Nonce }}");
        assert_eq!(braces.assigned(Form::Source), r"{\u007b{ .Nonce }}");
        assert_eq!(braces.scalar(Form::Source), r#""{\u007b{ .Nonce }}""#);
    }

    #[test]
    fn other_actions_are_refused() {
        for text in [
            "{{",
            "{{ .Cluster.ID",
            "{{{ .Cluster.ID }}",
            "{{- .Cluster.ID }}",
            "{{ .Cluster }}",
            "{{ .Vars }}",
            "{{ .Vars. }}",
            "{{ .Vars.1A }}",
            "{{ .Vars.A.B }}",
            "{{ .Vars.A | html }}",
            "{{ .Cluster.ID .Nonce }}",
            "{{ PROVIDER_KIND }}",
            "{{/* .Nonce */}}",
        ] {
            assert!(matches!(Value::parse("A", text), Err(Problem::Placeholder { .. })), "{text}");
        }
        let error = Value::parse("A", "{{ .Cluster.Id }}").unwrap_err().to_string();
        assert_eq!(error, "A: unknown placeholder; did you mean .Cluster.ID?");
    }
}
