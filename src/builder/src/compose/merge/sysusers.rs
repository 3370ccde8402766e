//! Files of sysusers.d(5) and tmpfiles.d(5) that scripts name.

use super::accounts::lookup;
use super::place::Target;
use super::{ContentFault, MergeError};

/// systemd-sysusers has nothing to do where all users, groups and memberships of the file exist (sysusers.d(5)).
pub(super) fn check_sysusers(target: &Target, package: &str, name: &str) -> Result<(), MergeError> {
    let path = find_config(target, "sysusers.d", name)?;
    let text = target.text(&path)?;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["u" | "u!", name, rest @ ..] => {
                id(target, package, "user", "/etc/passwd", name)?;
                // `id:group` names another group, which has to exist anyway.
                if !rest.first().is_some_and(|id| id.contains(':')) {
                    id(target, package, "group", "/etc/group", name)?;
                }
            }
            ["g", name, ..] => {
                id(target, package, "group", "/etc/group", name)?;
            }
            ["m", user, group] => {
                let groups = target.text_or_empty("/etc/group")?;
                let member = |line: &str| {
                    let fields: Vec<&str> = line.split(':').collect();
                    fields.first() == Some(group)
                        && fields.get(3).is_some_and(|all| all.split(',').any(|one| one == *user))
                };
                if !groups.lines().any(member) {
                    let name = format!("{user} as a member of {group}");
                    return Err(MergeError::Needs { package: package.to_owned(), what: "user", name });
                }
            }
            ["r", ..] => {}
            _ => {
                return Err(MergeError::content(path, ContentFault::Line { line: line.to_owned() }));
            }
        }
    }
    Ok(())
}

/// A configuration file of systemd, by its name.
pub(super) fn find_config(target: &Target, folder: &str, name: &str) -> Result<String, MergeError> {
    let paths = ["/etc", "/usr/lib"].map(|dir| format!("{dir}/{folder}/{name}"));
    let found = paths.iter().find(|path| target.tree.resolve(path.as_bytes()).is_ok());
    let missing = || MergeError::content(format!("/usr/lib/{folder}/{name}"), ContentFault::NoConfig);
    found.cloned().ok_or_else(missing)
}

/// The id of an account that scripts of a package need. Ids are the layers' to give: they stay the same in every image.
pub(super) fn id(
    target: &Target,
    package: &str,
    what: &'static str,
    file: &str,
    name: &str,
) -> Result<u32, MergeError> {
    let (package, name) = (package.to_owned(), name.to_owned());
    lookup(target, file, &name)?.ok_or(MergeError::Needs { package, what, name })
}
