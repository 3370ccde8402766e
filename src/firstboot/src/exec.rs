//! Executes a program with arguments from the variables of a file, as the user of a service.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::error::Error;
use crate::machine::Here;
use crate::plan::{Content, Exec, Plan};
use crate::root::Root;
use crate::settings::{self, Variables};
use crate::template::{self, Scope, Writing};

/// A program with rendered arguments and variables.
pub struct Ready {
    program: String,
    arguments: Vec<String>,
    environment: Variables,
}

impl Ready {
    /// Reads the variables and renders the arguments.
    pub fn new(root: &Root, plan: &Plan, name: &str) -> Result<Self, Error> {
        let exec = plan.exec.get(name).ok_or_else(|| Error::Unknown {
            what: "program",
            name: name.to_owned(),
            known: plan.exec.keys().cloned().collect::<Vec<_>>().join(", "),
        })?;
        let mut variables = known(plan, exec);
        let path = &exec.environment_file;
        variables.extend(settings::read(root, path)?.ok_or_else(|| Error::NotReady { path: root.shown(path) })?);
        let machine = Here::new(root);
        let scope = Scope { variables: &variables, machine: &machine };
        settings::check(&exec.checks, None, &scope)?;
        let mut arguments = Vec::new();
        for argument in &exec.arguments {
            let fault = Error::fault(&argument.value);
            if template::holds(argument.when.as_deref(), &scope).map_err(&fault)? {
                arguments.push(template::render(&argument.value, &scope, Writing::Raw).map_err(&fault)?);
            }
        }
        let mut environment = Variables::new();
        for assignment in &exec.environment {
            let fault = Error::fault(&assignment.name);
            if template::holds(assignment.when.as_deref(), &scope).map_err(&fault)? {
                let value = template::render(&assignment.value, &scope, Writing::Raw).map_err(&fault)?;
                environment.insert(assignment.name.clone(), value);
            }
        }
        Ok(Self { program: exec.program.clone(), arguments, environment })
    }

    /// The command, one line for the program and each argument; values of variables are secret.
    pub fn describe(&self) -> String {
        let names = self.environment.keys().map(|name| format!("{name}=…\n"));
        let arguments = self.arguments.iter().map(|argument| format!("    {argument}\n"));
        names.chain([format!("{}\n", self.program)]).chain(arguments).collect()
    }

    /// Executes the program; returns only on failure.
    pub fn run(&self) -> Error {
        let source = Command::new(&self.program).args(&self.arguments).envs(&self.environment).exec();
        Error::Io { action: "run", path: self.program.clone().into(), source }
    }
}

/// The variables that the file can have, all empty.
fn known(plan: &Plan, exec: &Exec) -> Variables {
    let rules = plan.files.iter().filter(|rule| rule.path == exec.environment_file);
    let assignments = rules.filter_map(|rule| match &rule.content {
        Content::Environment(assignments) => Some(assignments),
        _ => None,
    });
    let mut variables = Variables::new();
    variables.extend(assignments.flatten().map(|assignment| (assignment.name.clone(), String::new())));
    variables
}
