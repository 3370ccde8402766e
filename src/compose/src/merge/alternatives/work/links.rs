//! Creates and removes the links of alternatives: from the generic path to `/etc/alternatives`, and from there to the selected path.

use vmbake_disk::tree::Kind;

use super::LINKS;
use super::{Stop, Work};
use crate::merge::MergeError;
use crate::merge::place::Target;

/// What a symbolic link leads to.
pub(in crate::merge) fn leads_to(target: &Target, path: &str) -> Option<String> {
    let id = target.tree.find(path.as_bytes()).ok().flatten()?;
    match &target.tree.inode(id).kind {
        Kind::Symlink(to) => Some(String::from_utf8_lossy(to).into_owned()),
        _ => None,
    }
}

pub(super) fn exists(target: &Target, path: &str) -> bool {
    target.tree.resolve(path.as_bytes()).is_ok()
}

impl Work<'_> {
    pub(super) fn move_link(&mut self, what: &str, old: &str, new: &str) -> Result<(), Stop> {
        self.info(format!("renaming {what} from {old} to {new}"));
        if !has_directory(self.target, new) {
            return Err(Stop::Failed(format!("unable to install '{old}' as '{new}': No such file or directory")));
        }
        Ok(self.target.rename(old, new)?)
    }

    /// The links that a choice has, by name: link, and what it leads to; `None` for a slave that the choice lacks.
    pub(super) fn links(&self, path: &str) -> Vec<(String, String, Option<String>)> {
        let choice = self.group.choices.get(path);
        let mut links = vec![(self.name.to_owned(), self.group.link.clone(), Some(path.to_owned()))];
        links.extend(self.group.slaves.iter().map(|(name, link)| {
            let file = choice.and_then(|choice| choice.slaves.get(name));
            (name.clone(), link.clone(), file.cloned())
        }));
        links
    }

    /// Whether a link of the current choice is not as it has to be.
    pub(super) fn is_broken(&self, current: &str) -> bool {
        self.group.choices.contains_key(current)
            && self.links(current).iter().any(|(name, link, path)| {
                let own = format!("{LINKS}/{name}");
                match path.as_ref().filter(|path| exists(self.target, path)) {
                    Some(path) => {
                        let fine = leads_to(self.target, link).is_some_and(|to| to == own);
                        !fine || leads_to(self.target, &own).as_ref() != Some(path)
                    }
                    None => leads_to(self.target, link).is_some() || leads_to(self.target, &own).is_some(),
                }
            })
    }

    /// Whether a file is at the path of a link, and is kept.
    fn is_kept(&self, link: &str) -> bool {
        let found = self.target.tree.find(link.as_bytes()).ok().flatten().map(|id| &self.target.tree.inode(id).kind);
        !self.force && found.is_some_and(|kind| !matches!(kind, Kind::Symlink(_)))
    }

    /// Makes the links to a choice. A slave whose file is not there has none.
    pub(super) fn lead_to(&mut self, path: &str) -> Result<(), Stop> {
        let links = self.links(path);
        let wanted = |target: &Target, path: &Option<String>| path.as_ref().is_some_and(|path| exists(target, path));
        for (_, link, _) in links.iter().filter(|(.., path)| wanted(self.target, path)) {
            if !has_directory(self.target, link) {
                return Err(Stop::Failed(format!(
                    "error creating symbolic link '{link}.dpkg-tmp': No such file or directory"
                )));
            }
        }
        for (name, link, path) in &links {
            match path {
                Some(path) if exists(self.target, path) => {
                    self.target.symlink(&format!("{LINKS}/{name}"), path)?;
                    if self.is_kept(link) {
                        self.warn(format!("not replacing {link} with a link"));
                    } else {
                        self.target.symlink(link, &format!("{LINKS}/{name}"))?;
                    }
                }
                lacking => {
                    if let Some(file) = lacking {
                        let group = self.name;
                        self.warn(format!(
                            "skip creation of {link} because associated file {file} (of link group {group}) doesn't exist"
                        ));
                    }
                    unlink(self.target, name, link)?;
                    if is_there(self.target, link) {
                        self.warn(format!("not removing {link} since it's not a symlink"));
                    }
                }
            }
        }
        Ok(())
    }
}

fn is_there(target: &Target, path: &str) -> bool {
    target.tree.find(path.as_bytes()).ok().flatten().is_some()
}

/// Removes both links of a name.
pub(super) fn unlink(target: &mut Target, name: &str, link: &str) -> Result<(), MergeError> {
    if leads_to(target, link).is_some() {
        target.remove(link)?;
    }
    target.remove(&format!("{LINKS}/{name}"))
}

fn has_directory(target: &Target, link: &str) -> bool {
    link.rsplit_once('/').is_some_and(|(dir, _)| dir.is_empty() || exists(target, dir))
}
