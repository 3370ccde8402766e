//! What the first boot does: the plan of the first-boot program and the record enter, tables leave. The plan may be of any version.

use serde_json::Value;
use vmbake_disk::tree::{Tree, TreeError};

use super::table::{Section, Table};
use vmbake_compose::origin::Record;
use vmbake_query::changelog::{MAX_PLAN, PLAN, describe};

/// Parts of the plan, in the order in which they count, and what to call them.
const PARTS: [(&str, &str); 15] = [
    ("inputs", "Files that it waits for"),
    ("detect", "What it finds out once"),
    ("values", "Values made of others"),
    ("checks", "What must hold"),
    ("connect", "Addresses that must answer"),
    ("users", "Users that it makes"),
    ("accounts", "Users that get back what they lost"),
    ("directories", "Directories"),
    ("modes", "Modes and owners of files"),
    ("files", "Files that it writes"),
    ("blocks", "Parts of files that it writes"),
    ("commands", "Programs that it runs"),
    ("services", "Units that it enables, starts and stops"),
    ("received", "Files that may arrive"),
    ("keys", "Private keys that are made on the machine"),
];

/// Longest value that is shown, in characters.
const MAX_SHOWN: usize = 400;

/// What the first boot of the image of `tree` does.
pub(super) fn section(tree: &Tree, record: Option<&Record>) -> Section {
    let (text, mut tables) = match tree.read(PLAN.as_bytes(), MAX_PLAN) {
        Ok(plan) => match serde_json::from_slice::<Value>(&plan) {
            Ok(plan) => (said(&plan), of_plan(&plan)),
            Err(error) => (format!("The plan {PLAN} cannot be read: {error}"), Vec::new()),
        },
        Err(TreeError::NotFound { .. }) => (
            "There is no plan of vmbake's first-boot program. What other programs do is not known.".to_owned(),
            Vec::new(),
        ),
        Err(error) => (format!("The plan {PLAN} cannot be read: {error}"), Vec::new()),
    };
    let deferred = record.into_iter().flat_map(|record| &record.deferred);
    tables.extend(Table::of_facts("Packages that are configured on the first boot", ["package", "why"], deferred));
    Section { id: "first-boot", title: "What the first boot does", text, tables, ..Section::default() }
}

fn said(plan: &Value) -> String {
    let waits = plan.get("inputs").is_some_and(|inputs| !inputs.is_null());
    let start = match waits {
        true => {
            "The first-boot program waits for the user data that is listed here, and configures the machine with it."
        }
        false => "The first-boot program waits for no user data.",
    };
    format!("{start} What it does is its plan, {PLAN}.")
}

fn of_plan(plan: &Value) -> Vec<Table> {
    let variables = plan.get("variables").and_then(Value::as_object).into_iter().flatten();
    let settings = variables.map(|(name, one)| (name, describe(one)));
    let settings = Table::of_facts("Settings", ["name", "what"], settings);
    let parts = PARTS.iter().filter_map(|(key, title)| {
        let rows: Vec<(String, String)> = match plan.get(key)? {
            Value::Object(named) => named.iter().map(|(name, one)| (name.clone(), summary(one))).collect(),
            Value::Array(list) => {
                list.iter().zip(1_u64..).map(|(one, number)| (number.to_string(), summary(one))).collect()
            }
            _ => Vec::new(),
        };
        Table::of_facts(title, ["name", "what"], rows)
    });
    settings.into_iter().chain(parts).collect()
}

/// A value on one line: `key: value; key: value`.
fn summary(value: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let whole = match value {
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| format!("{key}: {}", text(value))).collect::<Vec<_>>().join("; ")
        }
        Value::Array(words) => words.iter().map(text).collect::<Vec<_>>().join(" "),
        other => text(other),
    };
    match whole.char_indices().nth(MAX_SHOWN) {
        Some((at, _)) => format!("{} …", whole.get(..at).unwrap_or_default()),
        None => whole,
    }
}
