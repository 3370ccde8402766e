//! Variables that plans read: layers in; names, each with its position and the layer that declares it, out.
//!
//! Only names in templates and conditions count, as the first-boot program parses them. Texts that it cannot parse are errors of the plan.

use std::collections::BTreeSet;

use vmbake_firstboot::detect;
use vmbake_firstboot::plan::{Argument, Assignment, Check, Content, Exec, FileRule, Plan, Stage, Template};
use vmbake_firstboot::template::{Condition, Fault, Text};

use super::PART;
use crate::{Layer, child};

/// A variable of another layer that a layer reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignRead<'a> {
    /// The layer that reads it.
    pub layer: &'a str,
    /// The value in its `layer.json` (RFC 6901).
    pub pointer: String,
    /// The template file that contains the name, if it is not in `layer.json`.
    pub file: Option<String>,
    pub variable: String,
    /// The layer that declares the variable.
    pub declared_by: &'a str,
}

/// The variables that the layers `own` read, and that neither they nor layers in `readable` declare; `layers` are all layers of the image.
/// `template_file` has the text of a template by its path.
pub fn foreign_reads<'a>(
    own: &[&'a Layer],
    readable: &BTreeSet<&str>,
    layers: &[&'a Layer],
    template_file: &dyn Fn(&str) -> Option<String>,
) -> Vec<ForeignRead<'a>> {
    let name_of = |layer: &&'a Layer| layer.schema.name.as_str();
    let is_readable = |name: &str| readable.contains(name) || own.iter().any(|layer| layer.schema.name == name);
    let mut found = Vec::new();
    for layer in own {
        let Some(plan) = &layer.schema.first_boot else { continue };
        for read in reads(plan, template_file) {
            let declaring: Vec<&str> = layers.iter().filter(|layer| declares(layer, &read)).map(name_of).collect();
            let Some(first) = declaring.first() else { continue };
            if !declaring.iter().any(|name| is_readable(name)) {
                found.push(ForeignRead {
                    layer: name_of(layer),
                    pointer: format!("{PART}{}", read.pointer),
                    file: read.file,
                    variable: read.name,
                    declared_by: first,
                });
            }
        }
    }
    found
}

/// A name that a plan reads.
struct Read {
    /// The value in the plan.
    pointer: String,
    name: String,
    /// The template file that contains it.
    file: Option<String>,
    /// The environment file that defines it; without one, it is a variable of the plan.
    environment: Option<String>,
}

/// Whether a layer declares or sets what is read.
fn declares(layer: &Layer, read: &Read) -> bool {
    let Some(plan) = &layer.schema.first_boot else { return false };
    match &read.environment {
        Some(path) => plan.files.iter().any(|rule| rule.path == *path),
        None => {
            let mut set = plan.detect.iter().chain(&plan.values);
            plan.variables.keys().any(|name| *name == read.name) || set.any(|assignment| assignment.name == read.name)
        }
    }
}

fn reads(plan: &Plan, template_file: &dyn Fn(&str) -> Option<String>) -> Vec<Read> {
    // Every field is named, so that a new one cannot be forgotten.
    let Plan {
        inputs: _,
        variables: _,
        detect,
        values,
        checks,
        connect,
        users,
        accounts: _,
        directories: _,
        modes: _,
        optional_modes: _,
        files,
        blocks,
        commands: _,
        services,
        exec,
        receive: _,
        received: _,
        keys: _,
    } = plan;
    let mut reader = Reader { found: Vec::new(), template_file, local: BTreeSet::new(), environment: None };
    reader.local = detect::NAMES.map(str::to_owned).into();
    reader.assignments("/detect", detect);
    reader.checks("/checks", checks, |check| check.at == Stage::Bootstrap);
    reader.local.clear();
    reader.assignments("/values", values);
    reader.checks("/checks", checks, |check| check.at != Stage::Bootstrap);
    for (index, address) in connect.iter().enumerate() {
        reader.text(format!("/connect/{index}"), address);
    }
    for (name, user) in users {
        reader.condition(format!("{}/when", child("/users", name)), Some(&user.when));
    }
    for (index, rule) in files.iter().enumerate() {
        reader.file(&format!("/files/{index}"), rule);
    }
    for (index, block) in blocks.iter().enumerate() {
        reader.condition(format!("/blocks/{index}/when"), block.when.as_deref());
        reader.text(format!("/blocks/{index}/text"), &block.text);
    }
    for (index, service) in services.iter().enumerate() {
        reader.condition(format!("/services/{index}/when"), service.when.as_deref());
    }
    for (name, exec) in exec {
        reader.exec(&child("/exec", name), exec);
    }
    reader.found
}

struct Reader<'a> {
    found: Vec<Read>,
    template_file: &'a dyn Fn(&str) -> Option<String>,
    /// Names that are no variables of the plan: facts of the machine, and those that a template defines for its file.
    local: BTreeSet<String>,
    environment: Option<String>,
}

impl Reader<'_> {
    fn names(&mut self, pointer: &str, file: Option<&str>, names: Result<BTreeSet<String>, Fault>) {
        let names = names.unwrap_or_default();
        self.found.extend(names.difference(&self.local).map(|name| Read {
            pointer: pointer.to_owned(),
            name: name.clone(),
            file: file.map(str::to_owned),
            environment: self.environment.clone(),
        }));
    }

    fn text(&mut self, pointer: String, text: &str) {
        self.names(&pointer, None, Text::parse(text).map(|text| text.names()));
    }

    fn condition(&mut self, pointer: String, condition: Option<&str>) {
        if let Some(condition) = condition {
            self.names(&pointer, None, Condition::parse(condition).map(|condition| condition.names()));
        }
    }

    fn assignments(&mut self, parent: &str, list: &[Assignment]) {
        for (index, assignment) in list.iter().enumerate() {
            self.text(format!("{parent}/{index}/value"), &assignment.value);
            self.condition(format!("{parent}/{index}/when"), assignment.when.as_deref());
        }
    }

    fn checks(&mut self, parent: &str, checks: &[Check], counts: impl Fn(&Check) -> bool) {
        for (index, check) in checks.iter().enumerate().filter(|(_, check)| counts(check)) {
            self.condition(format!("{parent}/{index}/when"), check.when.as_deref());
            self.condition(format!("{parent}/{index}/that"), Some(&check.that));
            self.text(format!("{parent}/{index}/otherwise"), &check.otherwise);
        }
    }

    fn file(&mut self, pointer: &str, rule: &FileRule) {
        self.text(format!("{pointer}/path"), &rule.path);
        self.condition(format!("{pointer}/when"), rule.when.as_deref());
        match &rule.content {
            Content::Text(text) => self.text(format!("{pointer}/content/text"), text),
            Content::Environment(list) => self.assignments(&format!("{pointer}/content/environment"), list),
            Content::Template(template) => self.template(&format!("{pointer}/content/template"), template),
        }
    }

    fn template(&mut self, pointer: &str, template: &Template) {
        for (name, value) in &template.with {
            self.text(child(&format!("{pointer}/with"), name), value);
        }
        let Some(text) = (self.template_file)(&template.file) else { return };
        self.local = template.with.keys().cloned().collect();
        let names = Text::parse(&text).map(|text| text.names());
        self.names(&format!("{pointer}/file"), Some(&template.file), names);
        self.local.clear();
    }

    /// A program has the variables of its environment file, and no others.
    fn exec(&mut self, pointer: &str, exec: &Exec) {
        self.environment = Some(exec.environment_file.clone());
        for (index, Argument { value, when }) in exec.arguments.iter().enumerate() {
            self.text(format!("{pointer}/arguments/{index}/value"), value);
            self.condition(format!("{pointer}/arguments/{index}/when"), when.as_deref());
        }
        self.assignments(&format!("{pointer}/environment"), &exec.environment);
        self.checks(&format!("{pointer}/checks"), &exec.checks, |_| true);
        self.environment = None;
    }
}
