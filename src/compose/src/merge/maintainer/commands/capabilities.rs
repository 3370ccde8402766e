//! setcap(8) and getcap(8), which write and show the extended attribute of file capabilities (capabilities(7)).

use vmbake_disk::tree::Kind;
use vmbake_shell::{Call, Outcome};

use super::programs::{ends, is_present};
use super::{Command, Done, System, status, unsupported, words};
use crate::merge::MergeError;
pub use vmbake_layer::{ATTRIBUTE, attribute};

pub(super) fn find(name: &str) -> Option<Command> {
    Some(match name {
        "setcap" => setcap,
        "getcap" => getcap,
        _ => return None,
    })
}

/// `getcap FILE…` does not mention files without capabilities, directories and links.
fn getcap(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if !is_present(call) {
        return ends(call, Outcome::Status(0));
    }
    let Some(words) = words(call).filter(|words| !words.is_empty()) else { return unsupported(call) };
    for word in &words {
        let target = &system.target();
        let found = target.wrap(target.tree.find(&call.path(word.as_bytes())))?;
        match found.map(|id| target.tree.inode(id)) {
            _ if word.starts_with('-') => return unsupported(call),
            None => call.stderr.extend(format!("{word} (No such file or directory)\n").into_bytes()),
            Some(inode) if matches!(inode.kind, Kind::File(_)) && inode.meta.xattrs.contains_key(ATTRIBUTE) => {
                return unsupported(call);
            }
            Some(_) => {}
        }
    }
    status(0)
}

/// `setcap TEXT FILE [TEXT FILE]…`, which ends at the first file that fails.
fn setcap(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(words) = words(call) else { return unsupported(call) };
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "-q").collect();
    let value = |text: &str| if text == "-r" { Some(None) } else { attribute(text).map(Some) };
    let mut pairs = Vec::new();
    for pair in words.chunks(2) {
        match (pair.first().and_then(|text| value(text)), pair.get(1)) {
            (Some(value), Some(path)) => pairs.push((value, path.replace("//", "/"))),
            _ => return unsupported(call),
        }
    }
    if pairs.is_empty() {
        return unsupported(call);
    }
    for (value, path) in pairs {
        if !set(system, call, value, &path)? {
            return status(1);
        }
    }
    status(0)
}

/// Sets or removes the capabilities of one file, unless that fails.
fn set(
    system: &mut System<'_, '_>,
    call: &mut Call<'_>,
    value: Option<Vec<u8>>,
    path: &str,
) -> Result<bool, MergeError> {
    let path = call.path(path.as_bytes());
    let target = &mut system.target();
    let found = target.wrap(target.tree.find(&path))?;
    let Some(id) = found.filter(|id| matches!(target.tree.inode(*id).kind, Kind::File(_))) else {
        call.stderr.extend_from_slice(b"Failed to set capabilities on file: No such file or directory\n");
        return Ok(false);
    };
    let mut meta = target.tree.inode(id).meta.clone();
    match value {
        Some(value) => {
            meta.xattrs.insert(ATTRIBUTE.to_vec(), value);
            target.check_privileges(&path, &meta, &target.tree.inode(id).kind)?;
        }
        None => {
            if meta.xattrs.remove(ATTRIBUTE).is_none() {
                return Ok(false);
            }
        }
    }
    *target.tree.meta_mut(id) = meta;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};

    use super::ATTRIBUTE;
    use crate::merge::database::Database;
    use crate::merge::maintainer::{Call, Ran, run};
    use crate::merge::place::Target;

    /// What getcap of libcap 2.75 says; what it shows of capabilities is not known here.
    #[test]
    fn files_without_capabilities_are_not_mentioned() {
        let root = Metadata::root(0o755, Timestamp::default());
        for (command, expected) in [
            ("getcap /plain", Some("0:")),
            ("getcap /link", Some("0:")),
            ("getcap / /plain", Some("0:")),
            ("getcap /none /plain", Some("0:/none (No such file or directory)\n")),
            ("getcap /granted", None),
            ("getcap", None),
            ("getcap -r /", None),
        ] {
            let mut target = Target::new(Tree::new(root.clone(), Origin::default()), Timestamp::default());
            for path in ["/usr/sbin/getcap", "/plain", "/granted"] {
                target.set_text(path, "\x7fELF").unwrap();
            }
            target.symlink("/link", "granted").unwrap();
            let granted = target.tree.resolve(b"/granted").unwrap();
            target.set_attribute(granted, ATTRIBUTE, vec![1, 0, 0, 2]);
            let mut database = Database::read(&target, "amd64").unwrap();
            let source = format!("#!/bin/sh\ns=0\n{command} >/said 2>&1 || s=$?\necho $s >/status\n");
            let (source, args) = (source.as_bytes(), &["configure", ""][..]);
            let call = Call { package: "p", stem: "p", arch: "all", script: "postinst", source, args, control: None };
            let ran = run(&mut target, &mut database, &call);
            let said = |path: &str| target.text_or_empty(path).unwrap();
            let found = matches!(ran, Ok(Ran::Done)).then(|| format!("{}:{}", said("/status").trim(), said("/said")));
            assert_eq!(found.as_deref(), expected, "{command}");
        }
    }
}
