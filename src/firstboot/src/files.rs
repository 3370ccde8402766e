//! Files that are written by the rules of a plan.

use crate::accounts::Accounts;
use crate::env;
use crate::error::Error;
use crate::plan::{Content, FileRule, Notation, Plan};
use crate::root::{PLAIN, Root, is_plain};
use crate::settings::{self, Variables};
use crate::template::{self, Machine, Scope, Text, Writing};

/// Maximum length of a template, in bytes.
const MAX_TEMPLATE: u64 = 1 << 20;

/// Reads a template by its absolute path.
pub type Templates<'a> = dyn Fn(&str) -> Result<String, Error> + 'a;

/// Evaluated rules of a machine.
pub struct Outcome<'a> {
    /// Files to write, with path and content.
    pub present: Vec<(&'a FileRule, String, String)>,
    /// Paths to remove.
    pub absent: Vec<String>,
    /// Written paths that depend on variables.
    pub placed: Vec<String>,
}

/// Evaluates all rules before any write, so that an error in one leaves the machine unchanged.
pub fn evaluate<'a>(
    rules: impl IntoIterator<Item = &'a FileRule>,
    variables: &Variables,
    machine: &dyn Machine,
    templates: &Templates,
) -> Result<Outcome<'a>, Error> {
    let scope = Scope { variables, machine };
    let mut outcome = Outcome { present: Vec::new(), absent: Vec::new(), placed: Vec::new() };
    for rule in rules {
        let fault = Error::fault(&rule.path);
        let path = Text::parse(&rule.path).map_err(&fault)?;
        let depends = !path.is_plain();
        if template::holds(rule.when.as_deref(), &scope).map_err(&fault)? {
            let path = path.render(&scope, Writing::Lines).map_err(&fault)?;
            // Thus it stays in the directory before its first expression, whatever the values are.
            if !is_plain(&path) {
                return Err(Error::refused(rule.path.as_ref(), PLAIN, &format!("{path:?}")));
            }
            if depends {
                outcome.placed.push(path.clone());
            }
            let content = content(rule, variables, machine, templates)?;
            outcome.present.push((rule, path, content));
        } else if !rule.keep && !depends {
            outcome.absent.push(rule.path.clone());
        }
    }
    Ok(outcome)
}

fn content(
    rule: &FileRule,
    variables: &Variables,
    machine: &dyn Machine,
    templates: &Templates,
) -> Result<String, Error> {
    let scope = Scope { variables, machine };
    let fault = Error::fault(&rule.path);
    match &rule.content {
        Content::Text(text) => template::render(text, &scope, Writing::Lines).map_err(fault),
        Content::Environment(assignments) => {
            let mut lines = String::new();
            for assignment in assignments {
                if template::holds(assignment.when.as_deref(), &scope).map_err(&fault)? {
                    let value = template::render(&assignment.value, &scope, Writing::Raw).map_err(&fault)?;
                    lines.push_str(&env::assignment(&assignment.name, &value, assignment.bare)?);
                }
            }
            Ok(lines)
        }
        Content::Template(template) => {
            let mut variables = variables.clone();
            for (name, value) in &template.with {
                let value = template::render(value, &scope, Writing::Raw).map_err(&fault)?;
                variables.insert(name.clone(), value);
            }
            let writing = match template.format {
                Notation::Text => Writing::Lines,
                Notation::Json => Writing::Json,
            };
            let text = templates(&template.file)?;
            template::render(&text, &Scope { variables: &variables, machine }, writing)
                .map_err(Error::fault(&template.file))
        }
    }
}

/// A template of the image.
pub fn template_of(root: &Root, path: &str) -> Result<String, Error> {
    let bytes = root.read(path, MAX_TEMPLATE)?.ok_or_else(|| Error::missing(&root.shown(path)))?;
    String::from_utf8(bytes).map_err(|error| Error::Corrupt {
        path: root.shown(path),
        expected: "UTF-8",
        found: error.utf8_error().to_string(),
    })
}

/// Writes and removes files. If a service has an obstacle in its directory, other files are written
/// nevertheless; the first error is returned at the end.
pub fn write(root: &Root, accounts: &Accounts, outcome: &Outcome) -> Result<(), Error> {
    let mut failed = Ok(());
    for (rule, path, content) in &outcome.present {
        failed = failed.and(write_one(root, accounts, rule, path, content));
    }
    for path in &outcome.absent {
        failed = failed.and(root.remove(path).map(drop));
    }
    failed
}

fn write_one(root: &Root, accounts: &Accounts, rule: &FileRule, path: &str, content: &str) -> Result<(), Error> {
    if let (Some(directory), Some((parent, _))) = (&rule.directory, path.rsplit_once('/')) {
        root.directory(parent, &accounts.owner(directory.mode, &directory.owner, &directory.group)?)?;
    }
    root.write(path, content.as_bytes(), &accounts.owner(rule.mode, &rule.owner, &rule.group)?).map(drop)
}

/// Removes files of earlier runs at paths without a rule, and directories that become empty.
pub fn remove_stale(root: &Root, earlier: &[String], outcome: &Outcome) -> Result<(), Error> {
    for path in earlier.iter().filter(|path| !outcome.placed.contains(path)) {
        root.remove(path)?;
        if let Some((parent, _)) = path.rsplit_once('/') {
            root.remove_directory(parent)?;
        }
    }
    Ok(())
}

/// The files that the builder writes into an image: those with `bake`, with the defaults of all variables.
pub fn baked<'a>(
    plan: &'a Plan,
    facts: &Variables,
    templates: &Templates,
) -> Result<Vec<(&'a FileRule, String, String)>, Error> {
    let mut variables = settings::combine(plan, &[])?;
    variables.extend(facts.clone());
    settings::assign(&plan.detect, &mut variables, &Nowhere)?;
    settings::assign(&plan.values, &mut variables, &Nowhere)?;
    let rules = plan.files.iter().filter(|rule| rule.bake);
    evaluate(rules, &variables, &Nowhere, templates).map(|outcome| outcome.present)
}

/// No machine: the image is being built.
struct Nowhere;

impl Machine for Nowhere {
    fn exists(&self, _: &str) -> Result<bool, template::Fault> {
        Ok(false)
    }

    fn addresses(&self, host: &str) -> Result<Vec<String>, template::Fault> {
        Err(template::Fault::Unresolved { host: host.to_owned(), reason: "no network during a bake".to_owned() })
    }

    fn cloud(&self, _: &str) -> Result<String, template::Fault> {
        Ok(String::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_do_not_lead_out_of_the_directory_of_a_path() {
        let plan = r#"{"files": [{"path": "/opt/u/{{ A }}", "mode": "0644", "bake": true, "content": {"text": "x"}}]}"#;
        let plan: Plan = serde_json::from_str(plan).unwrap();
        let found = |value: &str| {
            let variables = [("A".to_owned(), value.to_owned())].into();
            let evaluated = evaluate(&plan.files, &variables, &Nowhere, &|path| Err(Error::missing(path.as_ref())));
            evaluated.map(|outcome| outcome.present[0].1.clone()).map_err(|error| error.to_string())
        };
        for value in ["a", "a/b", "..a", "a/..b", "a..", ".a"] {
            assert_eq!(found(value), Ok(format!("/opt/u/{value}")), "{value}");
        }
        for value in ["../../etc/cron.d/evil", "..", "a/../../../etc/x", "a/..", "./a", "", "/etc", "a/"] {
            let expected =
                format!("/opt/u/{{{{ A }}}}: refused: expected {PLAIN}, found {:?}", format!("/opt/u/{value}"));
            assert_eq!(found(value), Err(expected), "{value}");
        }
    }
}
