//! Settings with placeholders, and their document: a template, or its rendering with the longest values.

use std::collections::BTreeMap;

use vmbake_firstboot::env;
use vmbake_firstboot::error::Error;
use vmbake_firstboot::plan::{Plan, Variable};

use super::document::{Document, Part, escaped};
use super::fields::{self, FIELDS};
use super::names::variable;
use super::template::{Form, Value};
use super::{NAME, Origin, Problem, Provider, SSH_KEY_OPTION, Settings, UserDataError, UserDataRequest, part};

/// Settings that a server renders.
pub(super) struct Filled(BTreeMap<String, Setting>);

struct Setting {
    value: Value,
    /// A sample.
    sample: String,
}

impl Filled {
    /// Parses placeholders. Settings that the server provides and that are not given become placeholders.
    pub(super) fn new(request: &UserDataRequest, plan: &Plan, settings: &Settings) -> Result<Self, UserDataError> {
        let (mut filled, mut problems) = (BTreeMap::new(), Vec::new());
        for (name, (origin, text)) in settings {
            let value = match origin {
                Origin::Option(SSH_KEY_OPTION) => Ok(Value::text(text)),
                _ => Value::parse(name, text),
            };
            match value.and_then(|value| Setting::new(name, value, variable(plan, name), request.provider)) {
                Ok(setting) => _ = filled.insert(name.clone(), setting),
                Err(problem) => problems.push(problem),
            }
        }
        if !problems.is_empty() {
            return Err(UserDataError::Settings { kind: request.kind.clone(), problems });
        }
        for known in FIELDS.iter().filter(|known| plan.variables.contains_key(known.setting)) {
            let value = fields::find(known.path).map(Value::field);
            if let Some(value) = value.filter(|_| !filled.contains_key(known.setting)) {
                filled.insert(known.setting.to_owned(), Setting { value, sample: known.sample.to_owned() });
            }
        }
        Ok(Self(filled))
    }

    /// Sample settings.
    pub(super) fn samples(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(name, setting)| (name.clone(), setting.sample.clone())).collect()
    }

    /// Maximum length of the settings file.
    pub(super) fn longest_file(&self) -> Result<usize, Error> {
        let line = |(name, setting): (&String, &Setting)| {
            let longest = setting.value.longest();
            env::assignment(name, longest.as_ref().unwrap_or(&setting.sample), false).map(|line| line.len())
        };
        self.0.iter().map(line).sum()
    }

    /// The document, with the sample's host name, and the nonce at its path.
    pub(super) fn document(
        &self,
        plan: &Plan,
        host_name: Option<&String>,
        nonce: Option<&String>,
        form: Form,
    ) -> Result<Document, Error> {
        let mut document = Document::default();
        if let (Some(sample), Some(setting)) = (host_name, self.0.get(NAME)) {
            document.host_name_scalar(&setting.value.scalar(form), sample.contains('.'));
        }
        if let (Some(path), Some(field)) = (nonce, fields::find(fields::NONCE)) {
            document.scalar_file(path, &[(Part::Nonce, Value::field(field).scalar(form))]);
        }
        if let Some(inputs) = &plan.inputs {
            // A trailing backslash removes the line break and following blanks.
            let mut lines = vec![(Part::Frame, "\"\\\n".to_owned())];
            lines.extend(
                self.0.iter().map(|(name, setting)| {
                    (part(name), format!("    {name}='{}'\\n\\\n", setting.value.assigned(form)))
                }),
            );
            if self.0.is_empty() {
                // Machines wait for a non-empty file.
                lines.push((Part::Settings, format!("    {}\\\n", escaped(&env::render([])?))));
            }
            lines.push((Part::Frame, "    \"".to_owned()));
            document.scalar_file(&inputs.user_data, &lines);
        }
        Ok(document)
    }
}

impl Setting {
    fn new(name: &str, value: Value, variable: Option<&Variable>, provider: Option<Provider>) -> Result<Self, Problem> {
        if let Some(problem) = value.misplaced(name, variable) {
            return Err(problem);
        }
        match value.longest().map(|longest| longest.len()).filter(|bytes| *bytes > env::MAX_VALUE_BYTES) {
            Some(bytes) => Err(Problem::Long { name: name.to_owned(), bytes }),
            None => Ok(Self { sample: value.sample(name, variable, provider)?, value }),
        }
    }
}
