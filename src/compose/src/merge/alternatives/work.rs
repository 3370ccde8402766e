//! The operations of update-alternatives on a group, with its messages.

mod links;

use vmbake_disk::tree::Kind;

use super::{CHOICES, Choice, Group, LINKS};
use crate::merge::MergeError;
use crate::merge::place::Target;
pub(in crate::merge) use links::leads_to;
use links::{exists, unlink};
use vmbake_layer::Alternative;

/// A change of a group.
pub(in crate::merge) enum Change<'a> {
    Install(&'a Alternative),
    Remove(&'a str),
    RemoveAll,
    Set(&'a str),
    Auto,
}

/// A message, by how much it matters.
pub(in crate::merge) enum Message {
    Detail(String),
    Info(String),
    Warning(String),
}

/// Why a change is not made.
pub(in crate::merge) enum Stop {
    /// update-alternatives ends with this error.
    Failed(String),
    /// The bake stops.
    Refused(MergeError),
}

impl From<MergeError> for Stop {
    fn from(error: MergeError) -> Self {
        Self::Refused(error)
    }
}

/// Changes the group of a name.
pub(in crate::merge) fn change(
    target: &mut Target,
    name: &str,
    change: &Change<'_>,
    force: bool,
    messages: &mut Vec<Message>,
) -> Result<(), Stop> {
    let group = match (Group::read(target, name)?, change) {
        (Some(group), _) => group,
        (None, Change::Install(new)) => {
            Group { manual: false, link: new.link.clone(), slaves: [].into(), choices: [].into() }
        }
        (None, Change::Remove(_)) => {
            messages.push(Message::Detail(format!("no alternatives for {name}")));
            return Ok(());
        }
        (None, _) => return Err(Stop::Failed(format!("no alternatives for {name}"))),
    };
    let mut work = Work { target, name, group, force, messages };
    drop_missing(work.target, work.name, &mut work.group, work.messages);
    if let Change::Install(new) = change {
        check(work.target, new)?;
    }
    let current = leads_to(work.target, &format!("{LINKS}/{name}"));
    let current = current.as_deref();
    work.notice(current);
    let chosen = work.apply(change, current)?;
    work.update_links(chosen.as_deref(), current)
}

/// Forgets choices whose files are not there.
pub(in crate::merge) fn drop_missing(target: &Target, name: &str, group: &mut Group, messages: &mut Vec<Message>) {
    group.choices.retain(|path, _| {
        let found = exists(target, path);
        if !found {
            messages.push(Message::Warning(format!(
                "alternative {path} (part of link group {name}) doesn't exist; removing from list of alternatives"
            )));
        }
        found
    });
}

/// A name or a link belongs to one group.
fn check(target: &Target, new: &Alternative) -> Result<(), Stop> {
    let name = &new.name;
    if !exists(target, &new.path) {
        return Err(Stop::Failed(format!("alternative path {} doesn't exist", new.path)));
    }
    let dir = target.tree.resolve(CHOICES.as_bytes()).ok().map(|id| &target.tree.inode(id).kind);
    let Some(Kind::Directory(others)) = dir else { return Ok(()) };
    let mut groups = Vec::new();
    for other in others.keys().filter_map(|other| std::str::from_utf8(other).ok()).filter(|other| other != name) {
        let text = target.text_or_empty(&format!("{CHOICES}/{other}"))?;
        groups.extend(Group::parse(&text).map(|group| (other, group)));
    }
    for (other, group) in &groups {
        let managed = |link: &String| *link == group.link || group.slaves.values().any(|managed| managed == link);
        if group.slaves.contains_key(name) {
            return Err(Stop::Failed(format!("alternative {name} can't be master: it is a slave of {other}")));
        }
        for slave in new.slaves.keys() {
            let why = match slave {
                slave if slave == other => "a master alternative".to_owned(),
                slave if group.slaves.contains_key(slave) => format!("a slave of {other}"),
                _ => continue,
            };
            return Err(Stop::Failed(format!("alternative {slave} can't be slave of {name}: it is {why}")));
        }
        let links = new.slaves.values().map(|(link, _)| link);
        if let Some(link) = [&new.link].into_iter().chain(links).find(|link| managed(link)) {
            return Err(Stop::Failed(format!("alternative link {link} is already managed by {other}")));
        }
    }
    Ok(())
}

/// A group that is being changed.
pub(super) struct Work<'a> {
    pub(super) target: &'a mut Target,
    pub(super) name: &'a str,
    pub(super) group: Group,
    /// Files give way to links.
    pub(super) force: bool,
    messages: &'a mut Vec<Message>,
}

impl Work<'_> {
    pub(super) fn info(&mut self, text: String) {
        self.messages.push(Message::Info(text));
    }

    pub(super) fn warn(&mut self, text: String) {
        self.messages.push(Message::Warning(text));
    }

    /// A link of another origin means manual mode; a missing or broken link means automatic mode.
    fn notice(&mut self, current: Option<&str>) {
        self.group.manual &= current.is_some();
        let Some(current) = current.filter(|current| !self.group.choices.contains_key(*current)) else { return };
        let link = format!("{LINKS}/{}", self.name);
        if !exists(self.target, current) {
            self.warn(format!("{link} is dangling; it will be updated with best choice"));
            self.group.manual = false;
        } else if !self.group.manual {
            self.warn(format!("{link} has been changed (manually or by a script); switching to manual updates only"));
            self.group.manual = true;
        }
    }

    /// Changes the group; gives what its link is to lead to, unless that does not change.
    fn apply(&mut self, change: &Change<'_>, current: Option<&str>) -> Result<Option<String>, Stop> {
        let name = self.name;
        match change {
            Change::Set(path) if self.group.choices.contains_key(*path) => {
                self.group.manual = true;
                return Ok(Some((*path).to_owned()));
            }
            Change::Set(path) => {
                return Err(Stop::Failed(format!("alternative {path} for {name} not registered; not setting")));
            }
            Change::Auto => {
                self.group.manual = false;
                if self.group.choices.is_empty() {
                    self.info(format!("there is no program which provides {name}"));
                }
            }
            Change::Remove(path) => {
                if self.group.choices.remove(*path).is_none() {
                    let text = format!("alternative {path} for {name} not registered; not removing");
                    self.messages.push(Message::Detail(text));
                }
                if current != Some(path) {
                    return Ok(None);
                }
                if self.group.manual {
                    self.info(format!("removing manually selected alternative - switching {name} to auto mode"));
                    self.group.manual = false;
                }
            }
            Change::RemoveAll => self.group.choices.clear(),
            Change::Install(new) => {
                self.evolve(new, current)?;
                if self.group.manual {
                    let lines = [
                        format!("automatic updates of {LINKS}/{name} are disabled; leaving it alone"),
                        format!("to return to automatic updates use 'update-alternatives --auto {name}'"),
                    ];
                    self.messages.extend(lines.map(Message::Detail));
                    return Ok(None);
                }
                if current.is_none() {
                    self.messages.push(Message::Detail(format!("setting up automatic selection of {name}")));
                }
            }
        }
        Ok(self.group.best(current).map(str::to_owned))
    }

    /// Adds a choice. Links that it has elsewhere than the group move there.
    fn evolve(&mut self, new: &Alternative, current: Option<&str>) -> Result<(), Stop> {
        if self.group.link != new.link {
            let old = std::mem::replace(&mut self.group.link, new.link.clone());
            if leads_to(self.target, &old).is_some() {
                self.move_link(&format!("{} link", self.name), &old, &new.link)?;
            }
        }
        let mut choice = Choice { priority: new.priority, slaves: [].into() };
        for (name, (link, path)) in &new.slaves {
            choice.slaves.insert(name.clone(), path.clone());
            let old = self.group.slaves.insert(name.clone(), link.clone());
            let Some(old) = old.filter(|old| old != link && leads_to(self.target, old).is_some()) else { continue };
            let choice = current.and_then(|current| self.group.choices.get(current));
            let led = choice.and_then(|choice| choice.slaves.get(name)).is_some_and(|path| exists(self.target, path));
            match led {
                true => self.move_link(&format!("{name} slave link"), &old, link)?,
                false => self.target.remove(&old)?,
            }
        }
        self.group.choices.insert(new.path.clone(), choice);
        Ok(())
    }

    /// Makes the links and the file of choices what they have to be.
    fn update_links(mut self, chosen: Option<&str>, current: Option<&str>) -> Result<(), Stop> {
        let name = self.name;
        if self.group.choices.is_empty() {
            for (name, link, _) in self.links("") {
                unlink(self.target, &name, &link)?;
            }
            return Ok(self.target.remove(&format!("{CHOICES}/{name}"))?);
        }
        if let Some(chosen) = chosen.filter(|chosen| Some(*chosen) != current) {
            let (link, mode) = (&self.group.link, if self.group.manual { "manual" } else { "auto" });
            self.messages.push(Message::Info(format!("using {chosen} to provide {link} ({name}) in {mode} mode")));
            self.lead_to(chosen)?;
        } else if let Some(current) = current.filter(|current| self.is_broken(current)) {
            self.warn(format!("forcing reinstallation of alternative {current} because link group {name} is broken"));
            self.lead_to(current)?;
        }
        let (choices, messages) = (&self.group.choices, &mut self.messages);
        self.group.slaves.retain(|slave, link| {
            let used = choices.values().any(|choice| choice.slaves.contains_key(slave));
            if !used {
                messages.push(Message::Detail(format!("discarding obsolete slave link {slave} ({link})")));
            }
            used
        });
        let path = format!("{CHOICES}/{name}");
        let text = self.group.text();
        if self.target.text_or_empty(&path)? != text {
            self.target.set_text(&path, &text)?;
        }
        Ok(())
    }
}
