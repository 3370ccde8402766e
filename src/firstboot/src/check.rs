//! Checks a plan before it reaches a machine: a part and the whole in, findings out.
//!
//! A part is from one layer; the whole is joined from all layers that it can rely on. A plan without findings never
//! fails at an unknown name, filter or template on a machine.

mod names;

use std::collections::BTreeSet;

use crate::plan::{Assignment, Block, Check, Content, Exec, FileRule, Format, Named, Ownership, Plan, Stage};
use crate::root::{PLAIN, is_plain};
use crate::settings::check_value;
use crate::template::{Condition, Fault, Text};
use names::Known;

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// JSON pointer in the part (RFC 6901).
    pub pointer: String,
    pub message: String,
}

/// Checks everything in `part`. `template_file` has the text of a template by its path in the image.
pub fn check(part: &Plan, whole: &Plan, template_file: &dyn Fn(&str) -> Option<String>) -> Vec<Finding> {
    let known = Known::of(whole);
    let mut checker = Checker { findings: Vec::new(), template_file };
    checker.inputs(part);
    checker.variables(part);
    checker.assignments("/detect", &part.detect, |assignment| known.detect_before(assignment));
    checker.assignments("/values", &part.values, |assignment| known.values_before(assignment));
    checker.checks("/checks", &part.checks, |stage| match stage {
        Stage::Bootstrap => &known.detect,
        Stage::Before | Stage::After => &known.all,
    });
    for (index, address) in part.connect.iter().enumerate() {
        checker.text(format!("/connect/{index}"), address, &known.all);
    }
    for (name, user) in &part.users {
        let pointer = format!("/users/{}", escaped(name));
        checker.condition(format!("{pointer}/when"), Some(&user.when), &known.all);
        checker.path(format!("{pointer}/shell"), &user.shell);
    }
    for (name, account) in &part.accounts {
        let pointer = format!("/accounts/{}", escaped(name));
        checker.path(format!("{pointer}/home"), &account.home);
        checker.path(format!("{pointer}/shell"), &account.shell);
    }
    for (key, map) in
        [("directories", &part.directories), ("modes", &part.modes), ("optional_modes", &part.optional_modes)]
    {
        checker.owned(key, map);
    }
    checker.files(part, whole, &known);
    for (index, block) in part.blocks.iter().enumerate() {
        checker.block(&format!("/blocks/{index}"), block, &known);
    }
    for (index, command) in part.commands.iter().enumerate() {
        match command.first() {
            Some(program) => checker.path(format!("/commands/{index}/0"), program),
            None => checker.found(format!("/commands/{index}"), "is empty"),
        }
    }
    checker.services(part, whole, &known);
    for (name, exec) in &part.exec {
        checker.exec(&format!("/exec/{}", escaped(name)), exec, whole);
    }
    checker.received(part);
    checker.findings
}

/// Escapes a key for a pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Whether a text can be the name of a variable, in files and in templates.
fn is_variable(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(plain)
        && matches!(Text::parse(&format!("{{{{ {name} }}}}")), Ok(text) if text.names().contains(name))
}

struct Checker<'a> {
    findings: Vec<Finding>,
    template_file: &'a dyn Fn(&str) -> Option<String>,
}

impl Checker<'_> {
    fn found(&mut self, pointer: String, message: impl Into<String>) {
        self.findings.push(Finding { pointer, message: message.into() });
    }

    fn path(&mut self, pointer: String, path: &str) {
        if !is_plain(path) {
            self.found(pointer, format!("{path:?} is not {PLAIN}"));
        }
    }

    fn variable(&mut self, pointer: String, name: &str) {
        if !is_variable(name) {
            self.found(pointer, format!("{name:?} is not a valid name of a variable"));
        }
    }

    fn names(&mut self, pointer: String, names: Result<BTreeSet<String>, Fault>, known: &BTreeSet<String>) {
        match names {
            Err(fault) => self.found(pointer, fault.to_string()),
            Ok(names) => {
                for name in names.difference(known) {
                    self.found(pointer.clone(), format!("{name} is not defined"));
                }
            }
        }
    }

    fn text(&mut self, pointer: String, text: &str, known: &BTreeSet<String>) {
        self.names(pointer, Text::parse(text).map(|text| text.names()), known);
    }

    fn condition(&mut self, pointer: String, condition: Option<&str>, known: &BTreeSet<String>) {
        if let Some(condition) = condition {
            self.names(pointer, Condition::parse(condition).map(|condition| condition.names()), known);
        }
    }

    fn inputs(&mut self, part: &Plan) {
        let Some(inputs) = &part.inputs else { return };
        let paths = [
            ("user_data", &inputs.user_data),
            ("detected", &inputs.detected),
            ("mutable", &inputs.mutable),
            ("defaults", &inputs.defaults),
            ("marker", &inputs.marker),
        ];
        paths.iter().for_each(|(key, path)| self.path(format!("/inputs/{key}"), path));
    }

    fn variables(&mut self, part: &Plan) {
        let mut names: BTreeSet<&str> = part.variables.keys().map(String::as_str).collect();
        for (name, variable) in &part.variables {
            let pointer = format!("/variables/{name}");
            self.variable(pointer.clone(), name);
            if !variable.default.is_empty()
                && let Err(error) = check_value(name, variable, &variable.default)
            {
                self.found(format!("{pointer}/default"), error.to_string());
            }
            if variable.max.is_some() && variable.format != Some(Format::Number) {
                self.found(format!("{pointer}/max"), format!("{name}: `max` requires the format `number`"));
            }
            for (index, alias) in variable.aliases.iter().enumerate() {
                let pointer = format!("{pointer}/aliases/{index}");
                self.variable(pointer.clone(), alias);
                if !names.insert(alias) {
                    self.found(pointer, format!("the name {alias} is already used"));
                }
            }
        }
    }

    fn assignments(&mut self, parent: &str, list: &[Assignment], known: impl Fn(&Assignment) -> BTreeSet<String>) {
        for (index, assignment) in list.iter().enumerate() {
            let (pointer, known) = (format!("{parent}/{index}"), known(assignment));
            self.variable(format!("{pointer}/name"), &assignment.name);
            self.text(format!("{pointer}/value"), &assignment.value, &known);
            self.condition(format!("{pointer}/when"), assignment.when.as_deref(), &known);
        }
    }

    fn checks<'b>(&mut self, parent: &str, checks: &[Check], known: impl Fn(Stage) -> &'b BTreeSet<String>) {
        for (index, check) in checks.iter().enumerate() {
            let (pointer, known) = (format!("{parent}/{index}"), known(check.at));
            self.condition(format!("{pointer}/when"), check.when.as_deref(), known);
            self.condition(format!("{pointer}/that"), Some(&check.that), known);
            self.text(format!("{pointer}/otherwise"), &check.otherwise, known);
        }
    }

    fn owned(&mut self, key: &str, map: &Named<Ownership>) {
        for path in map.keys() {
            self.path(format!("/{key}/{}", escaped(path)), path);
        }
    }

    fn files(&mut self, part: &Plan, whole: &Plan, known: &Known) {
        for (index, rule) in part.files.iter().enumerate() {
            let pointer = format!("/files/{index}");
            self.path(format!("{pointer}/path"), &rule.path);
            self.text(format!("{pointer}/path"), &rule.path, &known.all);
            self.condition(format!("{pointer}/when"), rule.when.as_deref(), &known.all);
            if whole.files.iter().filter(|other| other.path == rule.path).count() > 1 {
                self.found(format!("{pointer}/path"), format!("duplicate {}", rule.path));
            }
            self.content(&format!("{pointer}/content"), rule, &known.all);
        }
    }

    fn content(&mut self, pointer: &str, rule: &FileRule, known: &BTreeSet<String>) {
        match &rule.content {
            Content::Text(text) => self.text(format!("{pointer}/text"), text, known),
            Content::Environment(list) => {
                let parent = format!("{pointer}/environment");
                self.assignments(&parent, list, |_| known.clone());
                let mut seen = BTreeSet::new();
                for (index, assignment) in list.iter().enumerate().filter(|(_, one)| !seen.insert(&one.name)) {
                    self.found(format!("{parent}/{index}"), format!("duplicate {}", assignment.name));
                }
            }
            Content::Template(template) => {
                let parent = format!("{pointer}/template");
                let mut names = known.clone();
                for (name, value) in &template.with {
                    self.variable(format!("{parent}/with/{name}"), name);
                    self.text(format!("{parent}/with/{name}"), value, known);
                    names.insert(name.clone());
                }
                match (self.template_file)(&template.file) {
                    Some(text) => self.text(format!("{parent}/file"), &text, &names),
                    None => {
                        self.found(format!("{parent}/file"), format!("{} is not a file of any layer", template.file))
                    }
                }
            }
        }
    }

    fn block(&mut self, pointer: &str, block: &Block, known: &Known) {
        self.path(format!("{pointer}/path"), &block.path);
        self.condition(format!("{pointer}/when"), block.when.as_deref(), &known.all);
        self.text(format!("{pointer}/text"), &block.text, &known.all);
        if block.name.trim() != block.name || block.name.is_empty() || block.name.chars().any(char::is_control) {
            self.found(format!("{pointer}/name"), format!("{:?} is not a single line of text", block.name));
        }
    }

    fn services(&mut self, part: &Plan, whole: &Plan, known: &Known) {
        for (index, service) in part.services.iter().enumerate() {
            let pointer = format!("/services/{index}");
            self.condition(format!("{pointer}/when"), service.when.as_deref(), &known.all);
            if let Some(path) = &service.on_change
                && !whole.files.iter().any(|rule| rule.path == *path)
            {
                self.found(format!("{pointer}/on_change"), format!("{path} is not a file of the plan"));
            }
            if whole.services.iter().filter(|other| other.unit == service.unit).count() > 1 {
                self.found(format!("{pointer}/unit"), format!("duplicate {}", service.unit));
            }
        }
    }

    fn exec(&mut self, pointer: &str, exec: &Exec, whole: &Plan) {
        self.path(format!("{pointer}/program"), &exec.program);
        let rule = whole.files.iter().find(|rule| rule.path == exec.environment_file);
        let Some(Content::Environment(list)) = rule.map(|rule| &rule.content) else {
            let message = format!("{} is not an environment file of the plan", exec.environment_file);
            return self.found(format!("{pointer}/environment_file"), message);
        };
        let known: BTreeSet<String> = list.iter().map(|assignment| assignment.name.clone()).collect();
        for (index, argument) in exec.arguments.iter().enumerate() {
            let pointer = format!("{pointer}/arguments/{index}");
            self.text(pointer.clone(), &argument.value, &known);
            self.condition(format!("{pointer}/when"), argument.when.as_deref(), &known);
        }
        self.assignments(&format!("{pointer}/environment"), &exec.environment, |_| known.clone());
        self.checks(&format!("{pointer}/checks"), &exec.checks, |_| &known);
    }

    fn received(&mut self, part: &Plan) {
        if let Some(receive) = &part.receive {
            for (key, path) in [("directory", &receive.directory), ("keys", &receive.keys), ("stamp", &receive.stamp)] {
                self.path(format!("/receive/{key}"), path);
            }
            for (key, name) in [("trigger", &receive.trigger), ("mutable", &receive.mutable)] {
                self.file_name(format!("/receive/{key}"), name);
            }
        }
        for (name, place) in &part.received {
            let pointer = format!("/received/{}", escaped(name));
            self.file_name(pointer.clone(), name);
            self.path(format!("{pointer}/directory"), &place.directory);
        }
        for (name, place) in &part.keys {
            let pointer = format!("/keys/{}", escaped(name));
            self.file_name(pointer.clone(), name);
            self.path(format!("{pointer}/directory"), &place.directory);
            self.path(format!("{pointer}/certificate"), &place.certificate);
        }
    }

    fn file_name(&mut self, pointer: String, name: &str) {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
            self.found(pointer, format!("{name:?} is not a valid file name"));
        }
    }
}
