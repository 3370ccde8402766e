//! Alternatives, as update-alternatives(1) installs them: a file of choices below `/var/lib/dpkg/alternatives` and two
//! levels of links. Groups stay in automatic mode, where the highest priority wins.

use std::collections::BTreeMap;

use super::MergeError;
use super::place::Target;
use crate::layer::Alternative;

const CHOICES: &str = "/var/lib/dpkg/alternatives";
const LINKS: &str = "/etc/alternatives";

/// Installs new groups of alternatives. A group that the base already has is refused: merging is not implemented.
pub(super) fn install(target: &mut Target, alternatives: &[Alternative]) -> Result<(), MergeError> {
    let mut groups: BTreeMap<&str, Vec<&Alternative>> = BTreeMap::new();
    for alternative in alternatives {
        groups.entry(&alternative.name).or_default().push(alternative);
    }
    for (name, mut choices) in groups {
        let path = format!("{CHOICES}/{name}");
        if !target.text_or_empty(&path)?.is_empty() {
            let reason = "is an alternative of the base, to which no choice can be added".to_owned();
            return Err(MergeError::Content { path, reason });
        }
        choices.sort_by(|a, b| a.path.cmp(&b.path));
        let meta = target.meta(0o644);
        target.file(&path, meta, group(&choices).into_bytes())?;
        if let Some(best) = choices.iter().max_by_key(|choice| choice.priority) {
            link(target, best)?;
        }
    }
    Ok(())
}

fn slaves<'a>(choices: &[&'a Alternative]) -> BTreeMap<&'a str, &'a str> {
    let all = choices.iter().flat_map(|choice| &choice.slaves);
    all.map(|(name, (link, _))| (name.as_str(), link.as_str())).collect()
}

/// The file of choices: mode and links, an empty line, then the choices, and an empty line at the end.
fn group(choices: &[&Alternative]) -> String {
    let slaves = slaves(choices);
    let mut lines = vec!["auto".to_owned()];
    lines.extend(choices.first().map(|choice| choice.link.clone()));
    lines.extend(slaves.iter().flat_map(|(name, link)| [(*name).to_owned(), (*link).to_owned()]));
    lines.push(String::new());
    for choice in choices {
        lines.extend([choice.path.clone(), choice.priority.to_string()]);
        let path = |name: &&str| choice.slaves.get(*name).map(|(_, path)| path.clone()).unwrap_or_default();
        lines.extend(slaves.keys().map(path));
    }
    lines.push(String::new());
    lines.join("\n") + "\n"
}

fn link(target: &mut Target, best: &Alternative) -> Result<(), MergeError> {
    let master = (best.name.as_str(), best.link.as_str(), best.path.as_str());
    let slaves = best.slaves.iter().map(|(name, (link, path))| (name.as_str(), link.as_str(), path.as_str()));
    for (name, link, path) in std::iter::once(master).chain(slaves) {
        target.symlink(&format!("{LINKS}/{name}"), path)?;
        target.symlink(link, &format!("{LINKS}/{name}"))?;
    }
    Ok(())
}
