//! Alternatives, as update-alternatives(1) installs them: a file of choices below `/var/lib/dpkg/alternatives` and two
//! levels of links. In automatic mode the highest priority wins; what was chosen by hand stays.

use std::collections::BTreeMap;

use vmbake_disk::tree::Kind;

use super::place::Target;
use super::{AlternativeFault, MergeError};
use crate::layer::Alternative;

const CHOICES: &str = "/var/lib/dpkg/alternatives";
const LINKS: &str = "/etc/alternatives";

/// One group: its generic names, and what they can point to.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    manual: bool,
    link: String,
    /// Name to generic name.
    slaves: BTreeMap<String, String>,
    /// By path, which is the order of the file.
    choices: BTreeMap<String, Choice>,
}

#[derive(Debug, PartialEq, Eq)]
struct Choice {
    priority: i32,
    /// Name of the slave to its path.
    slaves: BTreeMap<String, String>,
}

/// Adds choices, each to its group, which is made when it is new.
pub(super) fn install(target: &mut Target, alternatives: &[Alternative]) -> Result<(), MergeError> {
    for alternative in alternatives {
        let path = format!("{CHOICES}/{}", alternative.name);
        let refused = |fault: AlternativeFault| MergeError::content(&path, fault);
        check(alternative).map_err(refused)?;
        let old = target.text_or_empty(&path)?;
        let mut group = match old.is_empty() {
            true => Group {
                manual: false,
                link: alternative.link.clone(),
                slaves: BTreeMap::new(),
                choices: BTreeMap::new(),
            },
            false => Group::parse(&old).ok_or_else(|| refused(AlternativeFault::Group))?,
        };
        if target.tree.resolve(alternative.path.as_bytes()).is_err() {
            return Err(refused(AlternativeFault::NoChoice { path: alternative.path.clone() }));
        }
        group.add(alternative).map_err(refused)?;
        let best = group.chosen(target, &alternative.name);
        if !group.manual {
            group.link_to(target, &alternative.name, &best)?;
        }
        target.set_text(&path, &group.text())?;
    }
    Ok(())
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
    fn parse(text: &str) -> Option<Self> {
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

    fn add(&mut self, new: &Alternative) -> Result<(), AlternativeFault> {
        if new.link != self.link {
            return Err(AlternativeFault::Link { found: self.link.clone(), wanted: new.link.clone() });
        }
        let mut choice = Choice { priority: new.priority, slaves: BTreeMap::new() };
        for (name, (link, path)) in &new.slaves {
            let known = self.slaves.entry(name.clone()).or_insert_with(|| link.clone());
            if known != link {
                let (name, found, wanted) = (name.clone(), known.clone(), link.clone());
                return Err(AlternativeFault::SlaveLink { name, found, wanted });
            }
            choice.slaves.insert(name.clone(), path.clone());
        }
        self.choices.insert(new.path.clone(), choice);
        Ok(())
    }

    /// The choice of automatic mode: what the link has now stays unless the priority of another is higher.
    fn chosen(&self, target: &Target, name: &str) -> String {
        let link = target.tree.find(format!("{LINKS}/{name}").as_bytes()).ok().flatten();
        let current = match link.map(|id| &target.tree.inode(id).kind) {
            Some(Kind::Symlink(to)) => String::from_utf8_lossy(to).into_owned(),
            _ => String::new(),
        };
        let first = self.choices.get_key_value(&current).or_else(|| self.choices.first_key_value());
        let Some(mut best) = first else { return String::new() };
        for next in &self.choices {
            if next.1.priority > best.1.priority {
                best = next;
            }
        }
        best.0.clone()
    }

    /// Makes the links to a choice. A slave whose file is not there has none.
    fn link_to(&self, target: &mut Target, name: &str, path: &str) -> Result<(), MergeError> {
        let slaves = self.choices.get(path).map(|choice| &choice.slaves);
        double_link(target, name, &self.link, path)?;
        for (name, link) in &self.slaves {
            match slaves.and_then(|slaves| slaves.get(name)).filter(|path| target.tree.resolve(path.as_bytes()).is_ok())
            {
                Some(path) => double_link(target, name, link, path)?,
                None => {
                    let found = target.tree.find(link.as_bytes()).ok().flatten();
                    if found.is_some_and(|id| matches!(target.tree.inode(id).kind, Kind::Symlink(_))) {
                        target.remove(link)?;
                    }
                    target.remove(&format!("{LINKS}/{name}"))?;
                }
            }
        }
        Ok(())
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

fn double_link(target: &mut Target, name: &str, link: &str, path: &str) -> Result<(), MergeError> {
    let found = target.tree.find(link.as_bytes()).ok().flatten().map(|id| &target.tree.inode(id).kind);
    if let Some(found) = found.filter(|found| !matches!(found, Kind::Symlink(_))) {
        let fault = AlternativeFault::Occupied { name: name.to_owned(), found: found.name() };
        return Err(MergeError::content(link, fault));
    }
    target.symlink(&format!("{LINKS}/{name}"), path)?;
    target.symlink(link, &format!("{LINKS}/{name}"))
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
