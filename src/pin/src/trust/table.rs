//! The anchors as Markdown, and the README that carries it.

use std::fmt::Write as _;

use super::item::{Item, day};
use vmbake_common::escape;

/// What stands in the README before the generated part.
const MARK: &str = "<!-- Below: vmbake trust show -->\n";

/// The items of a file as Markdown, with the addresses it comes from. It says nothing of the present day, so it changes
/// with the file only.
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

/// The README with another generated part; `None` where it has no place for one.
pub fn renew_readme(readme: &str, generated: &str) -> Option<String> {
    let (prose, _) = readme.split_once(MARK)?;
    Some(format!("{prose}{MARK}\n{generated}"))
}
