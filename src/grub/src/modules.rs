//! Modules of GRUB and their dependencies: `moddep.lst` has a line `NAME: NAME...` for each module.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::GrubError;

/// The modules with all that they need, each behind its dependencies.
pub(crate) fn closure(path: &str, list: &str, wanted: &[&str]) -> Result<Vec<String>, GrubError> {
    let lines = list.lines().filter_map(|line| line.split_once(':'));
    let needs: BTreeMap<&str, Vec<&str>> =
        lines.map(|(name, needs)| (name.trim(), needs.split_whitespace().collect())).collect();
    let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
    // A module, and whether its dependencies come before it by now: a list, because a hostile file may be a long chain.
    let mut open: Vec<(&str, bool)> = wanted.iter().rev().map(|name| (*name, false)).collect();
    while let Some((name, is_ready)) = open.pop() {
        if is_ready {
            order.push(name.to_owned());
            continue;
        }
        if !seen.insert(name) {
            continue;
        }
        let missing = || GrubError::NoModule { path: path.to_owned(), module: name.to_owned() };
        let needs = needs.get(name).filter(|_| is_name(name)).ok_or_else(missing)?;
        open.push((name, true));
        // As grub-mkimage does, the last one of the line comes first.
        open.extend(needs.iter().map(|need| (*need, false)));
    }
    Ok(order)
}

/// Whether a name is part of the name of a file.
fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::closure;

    #[test]
    fn dependencies_come_first_and_once() {
        let list = "a: b c\nb: d\nc: d\nd:\nx: y\ny: x\n";
        assert_eq!(closure("l", list, &["a", "d"]).unwrap(), ["d", "c", "b", "a"]);
        assert_eq!(closure("l", list, &["x"]).unwrap(), ["y", "x"], "a cycle ends");
        let error = closure("/moddep.lst", "a: ../b\n../b:\n", &["a"]).unwrap_err();
        assert!(error.to_string().starts_with("/moddep.lst: module \"../b\""), "{error}");
    }
}
