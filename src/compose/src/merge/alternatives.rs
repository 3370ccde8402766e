//! Alternatives, as installed by update-alternatives(1): a file with the alternatives of each group below `/var/lib/dpkg/alternatives`, and
//! two levels of links. In automatic mode, the highest priority is selected; a manual selection is kept.

mod work;

use std::collections::BTreeMap;

use vmbake_disk::tree::Kind;

use super::place::Target;
use super::{AlternativeFault, MergeError};
use vmbake_layer::{Alternative, Layer};

pub(super) use work::{Change, Message, Stop, change, drop_missing, leads_to};

pub(super) const CHOICES: &str = "/var/lib/dpkg/alternatives";
pub(super) const LINKS: &str = "/etc/alternatives";

/// One group: its generic names, and what they can point to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) manual: bool,
    pub(super) link: String,
    /// Name to generic name.
    pub(super) slaves: BTreeMap<String, String>,
    /// By path, which is the order of the file.
    pub(super) choices: BTreeMap<String, Choice>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) priority: i32,
    /// Name of the slave to its path.
    pub(super) slaves: BTreeMap<String, String>,
}

/// Adds choices that a layer lists, each to its group, which is made when it is new. Other changes by update-alternatives are refused.
pub(super) fn install(target: &mut Target, alternatives: &[Alternative]) -> Result<(), MergeError> {
    for alternative in alternatives {
        let path = format!("{CHOICES}/{}", alternative.name);
        let refused = |fault: AlternativeFault| MergeError::content(&path, fault);
        check(alternative).map_err(refused)?;
        if let Some(group) = Group::read(target, &alternative.name)? {
            group.check(alternative).map_err(refused)?;
        }
        if target.tree.resolve(alternative.path.as_bytes()).is_err() {
            return Err(refused(AlternativeFault::NoChoice { path: alternative.path.clone() }));
        }
        let slaves = alternative.slaves.iter().map(|(name, (link, _))| (name, link));
        for (name, link) in slaves.chain([(&alternative.name, &alternative.link)]) {
            vacant(target, name, link)?;
        }
        let done = work::change(target, &alternative.name, &Change::Install(alternative), false, &mut Vec::new());
        done.map_err(|stop| match stop {
            Stop::Failed(message) => refused(AlternativeFault::Failed { message }),
            Stop::Refused(error) => error,
        })?;
    }
    Ok(())
}

/// Chooses a path for a group, as `update-alternatives --set` does: later packages leave that choice alone.
pub(super) fn choose(target: &mut Target, name: &str, choice: &str) -> Result<(), MergeError> {
    let path = format!("{CHOICES}/{name}");
    let refused = |fault: AlternativeFault| MergeError::content(&path, fault);
    let Some(group) = Group::read(target, name)? else { return Err(refused(AlternativeFault::NoGroup)) };
    if !group.choices.contains_key(choice) {
        let choices = group.choices.into_keys().collect();
        return Err(refused(AlternativeFault::Unregistered { path: choice.to_owned(), choices }));
    }
    let done = work::change(target, name, &Change::Set(choice), false, &mut Vec::new());
    done.map_err(|stop| match stop {
        Stop::Failed(message) => refused(AlternativeFault::Failed { message }),
        Stop::Refused(error) => error,
    })
}

/// Fails if a layer has removed what one of them chose.
pub(super) fn check_choices(target: &Target, layers: &[Layer]) -> Result<(), MergeError> {
    let mut chosen = layers.iter().flat_map(|layer| &layer.schema.alternatives);
    match chosen.find(|(_, choice)| target.tree.resolve(choice.as_bytes()).is_err()) {
        Some((name, choice)) => {
            Err(MergeError::content(format!("{CHOICES}/{name}"), AlternativeFault::NoChoice { path: choice.clone() }))
        }
        None => Ok(()),
    }
}

/// Only a link gives way to a link.
fn vacant(target: &Target, name: &str, link: &str) -> Result<(), MergeError> {
    let found = target.tree.find(link.as_bytes()).ok().flatten().map(|id| &target.tree.inode(id).kind);
    match found.filter(|found| !matches!(found, Kind::Symlink(_))) {
        Some(found) => {
            let fault = AlternativeFault::Occupied { name: name.to_owned(), found: found.name() };
            Err(MergeError::content(link, fault))
        }
        None => Ok(()),
    }
}

/// Names become names of files, as update-alternatives has it.
fn check(new: &Alternative) -> Result<(), AlternativeFault> {
    let slaves = new.slaves.iter().map(|(name, (link, path))| (name, link, path));
    for (name, link, path) in slaves.chain([(&new.name, &new.link, &new.path)]) {
        if name.is_empty() || name.contains(['/', ' ', '\t']) || !link.starts_with('/') || !path.starts_with('/') {
            let (name, link, path) = (name.clone(), link.clone(), path.clone());
            return Err(AlternativeFault::Name { name, link, path });
        }
    }
    Ok(())
}

impl Group {
    /// The file of choices: mode and links, an empty line, then path, priority and slaves' paths of each choice.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let manual = match lines.next()? {
            "auto" => false,
            "manual" => true,
            _ => return None,
        };
        let link = lines.next()?.to_owned();
        let (mut names, mut slaves) = (Vec::new(), BTreeMap::new());
        loop {
            match lines.next()? {
                "" => break,
                name => {
                    names.push(name.to_owned());
                    slaves.insert(name.to_owned(), lines.next()?.to_owned());
                }
            }
        }
        let mut choices = BTreeMap::new();
        loop {
            let path = lines.next()?;
            if path.is_empty() {
                return Some(Self { manual, link, slaves, choices });
            }
            let mut choice = Choice { priority: lines.next()?.parse().ok()?, slaves: BTreeMap::new() };
            for name in &names {
                let path = lines.next()?;
                if !path.is_empty() {
                    choice.slaves.insert(name.clone(), path.to_owned());
                }
            }
            choices.insert(path.to_owned(), choice);
        }
    }

    /// The group of a name, if there is one.
    pub(super) fn read(target: &Target, name: &str) -> Result<Option<Self>, MergeError> {
        let path = format!("{CHOICES}/{name}");
        match target.text_or_empty(&path)?.as_str() {
            "" => Ok(None),
            text => Self::parse(text).map(Some).ok_or_else(|| MergeError::content(&path, AlternativeFault::Group)),
        }
    }

    /// A choice has the links of its group.
    fn check(&self, new: &Alternative) -> Result<(), AlternativeFault> {
        if new.link != self.link {
            return Err(AlternativeFault::Link { found: self.link.clone(), wanted: new.link.clone() });
        }
        for (name, (link, _)) in &new.slaves {
            if let Some(known) = self.slaves.get(name).filter(|known| *known != link) {
                let (name, found, wanted) = (name.clone(), known.clone(), link.clone());
                return Err(AlternativeFault::SlaveLink { name, found, wanted });
            }
        }
        Ok(())
    }

    /// The choice of automatic mode: the current one stays unless the priority of another is higher.
    pub(super) fn best(&self, current: Option<&str>) -> Option<&str> {
        let of_current = current.and_then(|current| self.choices.get_key_value(current));
        let mut best = of_current.or_else(|| self.choices.first_key_value())?;
        for next in &self.choices {
            if next.1.priority > best.1.priority {
                best = next;
            }
        }
        Some(best.0)
    }

    fn text(&self) -> String {
        let mut lines = vec![if self.manual { "manual" } else { "auto" }, &self.link];
        lines.extend(self.slaves.iter().flat_map(|(name, link)| [name.as_str(), link]));
        lines.push("");
        let priorities: Vec<String> = self.choices.values().map(|choice| choice.priority.to_string()).collect();
        for ((path, choice), priority) in self.choices.iter().zip(&priorities) {
            lines.extend([path.as_str(), priority]);
            lines.extend(self.slaves.keys().map(|name| choice.slaves.get(name).map_or("", String::as_str)));
        }
        lines.push("");
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::Group;

    #[test]
    fn groups_are_read_and_written_as_they_are() {
        let text = "auto\n/usr/bin/pager\npager.1.gz\n/usr/share/man/man1/pager.1.gz\n\n/bin/more\n50\n\
            /usr/share/man/man1/more.1.gz\n/usr/bin/less\n77\n\n\n";
        assert_eq!(Group::parse(text).unwrap().text(), text);
        for damaged in ["", "auto\n", "other\n/x\n\n\n", "auto\n/x\ny\n", "auto\n/x\n\n/y\n", "auto\n/x\n\n/y\nz\n\n"] {
            assert_eq!(Group::parse(damaged), None, "{damaged:?}");
        }
    }
}
