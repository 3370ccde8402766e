//! Settings of the machines, the files that are rendered from them, and checks of their values.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{NAME, Writer};
use crate::import::runtime::{Form, RUNTIME, RuntimeValue};

impl Writer<'_> {
    pub(super) fn first_boot(&mut self) {
        let mut boot = std::mem::take(&mut self.boot);
        let mut named = BTreeSet::new();
        for file in &boot {
            let text = file.pointer("/content/text").and_then(Value::as_str).unwrap_or_default();
            named.extend(RUNTIME.iter().filter(|value| names(text, value.variable)).map(|value| value.variable));
        }
        let mut variables = Map::new();
        let mut checks = Vec::new();
        for value in named.iter().filter_map(|name| RuntimeValue::of(name)) {
            variables.insert(value.variable.to_owned(), self.variable(value));
            if value.form == Form::Word {
                checks.push(harmless(value.variable));
            }
        }
        if self.parts.has_name {
            let (path, setting) = NAME;
            variables.insert(setting.to_owned(), json!({"required": true, "format": "hostname"}));
            self.document.required.insert(setting);
            boot.push(json!({"path": path, "mode": "0600", "content": {"text": format!("{{{{ {setting} }}}}")}}));
        }
        if !variables.is_empty() {
            self.insert("first_boot", "variables", Value::Object(variables));
        }
        for (key, list) in [("files", boot), ("checks", checks)] {
            if !list.is_empty() {
                self.insert("first_boot", key, Value::Array(list));
            }
        }
        let commands = &self.evaluated.effects.commands;
        if !commands.is_empty() {
            self.insert("first_boot", "commands", json!(commands));
        }
    }

    fn variable(&mut self, value: &'static RuntimeValue) -> Value {
        let mut variable = Map::new();
        match self.parts.defaults.get(value.variable) {
            Some(default) => {
                variable.insert("default".to_owned(), json!(default));
            }
            None if !value.optional || self.parts.demanded.contains(&value.variable) => {
                variable.insert("required".to_owned(), json!(true));
            }
            None => {}
        }
        let is_required = variable.contains_key("required");
        let list = if is_required { &mut self.document.required } else { &mut self.document.optional };
        list.insert(value.variable);
        let format = match value.form {
            Form::Word => None,
            Form::Url => Some("url"),
            Form::Lines => Some("base64"),
            Form::Addresses => Some("addresses"),
        };
        variable.extend(format.map(|format| ("format".to_owned(), json!(format))));
        Value::Object(variable)
    }
}

/// Whether a template names a variable.
fn names(template: &str, variable: &str) -> bool {
    vmbake_firstboot::template::Text::parse(template).is_ok_and(|text| text.names().contains(variable))
}

/// Characters of a word that nothing reads as something else: not in a unit, a shell or YAML.
pub(in crate::import) const HARMFUL: [char; 24] = [
    ' ', '"', '\'', '\\', '$', '%', '`', ';', '&', '|', '<', '>', '{', '}', '#', '*', '?', '[', ']', '(', ')', '~',
    '!', '^',
];

/// A check that a word has none of them, and that no program takes it for an option.
fn harmless(variable: &str) -> Value {
    let tests: Vec<String> = HARMFUL
        .iter()
        .map(|char| {
            let char = match char {
                '\'' | '\\' => format!("\\{char}"),
                other => other.to_string(),
            };
            format!("'{char}' not in {variable}")
        })
        .collect();
    json!({"that": format!("{} and not {variable}|starts_with('-')", tests.join(" and ")), "otherwise": format!("{variable} starts with - or contains a character with a special meaning in systemd, shells or YAML")})
}
