//! The anchors as a Markdown table, and the README that contains it.

use std::fmt::Write as _;

use super::item::{Item, day};
use vmbake_common::escape;

/// Marks the start of the generated part of the README.
const MARK: &str = "<!-- Below: vmbake trust show -->\n";

/// The items of a file as Markdown, with the URLs of its upstream. Independent of the current date, so that it changes
/// only with the file.
pub fn table(name: &str, urls: &[String], items: &[Item]) -> String {
    let mut text = format!("## {name}\n\n");
    for url in urls {
        let _ = writeln!(text, "- <{url}>");
    }
    text.push_str("\n| What | Fingerprint | Owner | From | Until |\n|---|---|---|---|---|\n");
    for item in items {
        let (from, until) = (day(item.from).unwrap_or_default(), day(item.until).unwrap_or_default());
        let owner = escape::line(&item.owner).replace('|', "\\|").replace('<', "\\<");
        let _ = writeln!(text, "| {} | `{}` | {owner} | {from} | {until} |", item.kind, escape::line(&item.id));
    }
    text
}

/// The README with a new generated part; `None` if it has no mark.
pub fn renew_readme(readme: &str, generated: &str) -> Option<String> {
    let (prose, _) = readme.split_once(MARK)?;
    Some(format!("{prose}{MARK}\n{generated}"))
}
