//! Section on the first boot: the first-boot plan and the record in, tables out. The plan can have any version.

use serde_json::Value;
use vmbake_disk::tree::{Tree, TreeError};

use super::table::{Section, Table};
use vmbake_compose::origin::Record;
use vmbake_query::changelog::{MAX_PLAN, PLAN, describe};

/// Parts of the plan in execution order, with their titles.
const PARTS: [(&str, &str); 15] = [
    ("inputs", "Files to wait for"),
    ("detect", "Detected values"),
    ("values", "Derived values"),
    ("checks", "Checks"),
    ("connect", "Addresses to connect to"),
    ("users", "Users to create"),
    ("accounts", "Users to restore"),
    ("directories", "Directories"),
    ("modes", "Modes and owners of files"),
    ("files", "Files to write"),
    ("blocks", "Blocks of files to write"),
    ("commands", "Programs to run"),
    ("services", "Units to enable, start and stop"),
    ("received", "Files that can be delivered"),
    ("keys", "Private keys to generate"),
];

/// Maximum length of a shown value, in characters.
const MAX_SHOWN: usize = 400;

/// The first-boot section of `tree`.
pub(super) fn section(tree: &Tree, record: Option<&Record>) -> Section {
    let (text, mut tables) = match tree.read(PLAN.as_bytes(), MAX_PLAN) {
        Ok(plan) => match serde_json::from_slice::<Value>(&plan) {
            Ok(plan) => (introduction(&plan), of_plan(&plan)),
            Err(error) => (format!("The plan {PLAN} cannot be read: {error}"), Vec::new()),
        },
        Err(TreeError::NotFound { .. }) => (
            "The image has no first-boot plan of vmbake. The actions of other programs are unknown.".to_owned(),
            Vec::new(),
        ),
        Err(error) => (format!("The plan {PLAN} cannot be read: {error}"), Vec::new()),
    };
    let deferred = record.into_iter().flat_map(|record| &record.deferred);
    tables.extend(Table::of_facts("Packages that are configured on the first boot", ["package", "why"], deferred));
    Section { id: "first-boot", title: "First boot", text, tables, ..Section::default() }
}

fn introduction(plan: &Value) -> String {
    let waits = plan.get("inputs").is_some_and(|inputs| !inputs.is_null());
    let start = match waits {
        true => "The first-boot program waits for the listed user data, and configures the machine with it.",
        false => "The first-boot program does not wait for user data.",
    };
    format!("{start} Its plan is {PLAN}.")
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
