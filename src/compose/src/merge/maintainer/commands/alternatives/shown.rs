//! Output of update-alternatives.

use vmbake_disk::tree::Kind;

use crate::merge::MergeError;
use crate::merge::alternatives::{CHOICES, Group, LINKS, Message, Stop, drop_missing, leads_to};
use crate::merge::place::Target;

/// `--display`, `--query` and `--list`.
pub(super) fn show(
    target: &Target,
    action: &str,
    name: &str,
    out: &mut Vec<u8>,
    messages: &mut Vec<Message>,
) -> Result<(), Stop> {
    let Some(mut group) = Group::read(target, name)? else {
        return Err(Stop::Failed(format!("no alternatives for {name}")));
    };
    drop_missing(target, name, &mut group, messages);
    let value = leads_to(target, &format!("{LINKS}/{name}"));
    let lines = match action {
        "--list" => group.choices.keys().cloned().collect(),
        "--query" => query(&group, name, value.as_deref()),
        _ => display(&group, name, value.as_deref()),
    };
    out.extend(lines.iter().flat_map(|line| format!("{line}\n").into_bytes()));
    Ok(())
}

fn mode(group: &Group) -> &'static str {
    if group.manual { "manual" } else { "auto" }
}

fn display(group: &Group, name: &str, value: Option<&str>) -> Vec<String> {
    let mut lines = vec![format!("{name} - {} mode", mode(group))];
    lines.push(match group.best(value) {
        Some(best) => format!("  link best version is {best}"),
        None => "  link best version not available".to_owned(),
    });
    lines.push(match value {
        Some(value) => format!("  link currently points to {value}"),
        None => "  link currently absent".to_owned(),
    });
    lines.push(format!("  link {name} is {}", group.link));
    lines.extend(group.slaves.iter().map(|(name, link)| format!("  slave {name} is {link}")));
    for (path, choice) in &group.choices {
        lines.push(format!("{path} - priority {}", choice.priority));
        lines.extend(choice.slaves.iter().map(|(name, path)| format!("  slave {name}: {path}")));
    }
    lines
}

fn query(group: &Group, name: &str, value: Option<&str>) -> Vec<String> {
    let mut lines = vec![format!("Name: {name}"), format!("Link: {}", group.link)];
    let heading = (!group.slaves.is_empty()).then(|| "Slaves:".to_owned());
    lines.extend(heading.clone());
    lines.extend(group.slaves.iter().map(|(name, link)| format!(" {name} {link}")));
    lines.push(format!("Status: {}", mode(group)));
    lines.extend(group.best(value).map(|best| format!("Best: {best}")));
    lines.push(format!("Value: {}", value.unwrap_or("none")));
    for (path, choice) in &group.choices {
        lines.extend([String::new(), format!("Alternative: {path}"), format!("Priority: {}", choice.priority)]);
        lines.extend(heading.clone());
        lines.extend(choice.slaves.iter().map(|(name, path)| format!(" {name} {path}")));
    }
    lines
}

/// `--get-selections`: a line for each group.
pub(super) fn selections(target: &Target, out: &mut Vec<u8>) -> Result<(), MergeError> {
    let dir = target.tree.resolve(CHOICES.as_bytes()).ok().map(|id| &target.tree.inode(id).kind);
    let Some(Kind::Directory(names)) = dir else { return Ok(()) };
    for name in names.keys().filter_map(|name| std::str::from_utf8(name).ok()) {
        let text = target.text_or_empty(&format!("{CHOICES}/{name}"))?;
        // Other files are skipped.
        let Some(group) = Group::parse(&text) else { continue };
        let value = leads_to(target, &format!("{LINKS}/{name}")).unwrap_or_default();
        out.extend(format!("{name:<30} {:<8} {value}\n", mode(&group)).bytes());
    }
    Ok(())
}
