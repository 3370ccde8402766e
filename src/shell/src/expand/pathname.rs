//! Pathname expansion over the tree.

use super::{Unit, bytes};
use crate::eval::Run;
use crate::files::Follow;
use crate::pattern::Pattern;
use crate::shell::Shell;

impl Shell<'_> {
    /// Adds the paths that a field matches, or the field itself without its quotes.
    pub(super) fn pathnames(&mut self, field: &[Unit], fields: &mut Vec<Vec<u8>>) -> Run<()> {
        let special = |unit: &Unit| !unit.is_quoted() && matches!(unit.byte(), Some(b'*' | b'?' | b'['));
        if self.state.flags.noglob || !field.iter().any(special) {
            fields.push(bytes(field));
            return Ok(());
        }
        let mut components: Vec<Vec<Unit>> = vec![Vec::new()];
        for unit in field {
            match unit.byte() {
                Some(b'/') => components.push(Vec::new()),
                _ => components.last_mut().into_iter().for_each(|last| last.push(*unit)),
            }
        }
        let mut found: Vec<Vec<u8>> = vec![Vec::new()];
        let last = components.len() - 1;
        for (at, component) in components.iter().enumerate() {
            let pattern = Pattern::new(component);
            let slash: &[u8] = if at < last { b"/" } else { b"" };
            let mut next = Vec::new();
            for prefix in found {
                self.step()?;
                if pattern.is_special() {
                    self.matching(&prefix, &pattern, slash, &mut next)?;
                } else {
                    let path = [&prefix[..], &pattern.text(), slash].concat();
                    if path.is_empty() || at < last || self.stat(&path, Follow::No).is_ok() {
                        next.push(path);
                    }
                }
            }
            found = next;
        }
        found.sort();
        if found.is_empty() {
            found.push(bytes(field));
        }
        fields.append(&mut found);
        Ok(())
    }

    fn matching(&mut self, prefix: &[u8], pattern: &Pattern, slash: &[u8], next: &mut Vec<Vec<u8>>) -> Run<()> {
        let dir = self.path(if prefix.is_empty() { b"." } else { prefix });
        let Ok(mut names) = self.files.list(&dir) else { return Ok(()) };
        if pattern.begins_with_dot() {
            names.extend([b".".to_vec(), b"..".to_vec()]);
        }
        self.spend(names.iter().map(|name| name.len().saturating_mul(pattern.len())).sum())?;
        for name in names {
            if (name.starts_with(b".") && !pattern.begins_with_dot()) || !pattern.matches(&name) {
                continue;
            }
            let path = [prefix, &name, slash].concat();
            if slash.is_empty() || self.stat(&path, Follow::Yes).is_ok_and(|node| node.is_dir()) {
                next.push(path);
            }
        }
        Ok(())
    }
}
