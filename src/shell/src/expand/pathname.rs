//! Pathname expansion over the tree.

use super::{Unit, Units, bytes};
use crate::eval::Run;
use crate::files::Follow;
use crate::host::Question;
use crate::pattern::{Pattern, Style};
use crate::shell::Shell;

impl Shell<'_> {
    /// Adds the paths that a field matches, or the field itself without its quotes.
    pub(super) fn pathnames(&mut self, field: &[Unit], fields: &mut Vec<Vec<u8>>) -> Run<()> {
        let bash = self.state.language.is_bash();
        let escapes = |unit: &Unit| !unit.is_quoted() && unit.byte() == Some(b'\\');
        if bash && (self.shopt("nullglob") || self.shopt("failglob")) {
            if field.iter().any(escapes) {
                return self.unsupported(b"a backslash from an expansion, with nullglob or failglob");
            }
            // A pattern without a match is left out.
            let plain: Units = field.iter().copied().filter(|unit| !unit.is_quoted()).collect();
            self.ask(Question::Value(&bytes(&plain)))?;
        }
        if self.state.flags.noglob || !has_pattern(field, bash && self.shopt("extglob")) {
            fields.push(bytes(field));
            return Ok(());
        }
        if bash && field.last().is_some_and(escapes) {
            return self.unsupported(b"a pattern that ends with a backslash from an expansion");
        }
        if bash && self.state.get(b"GLOBIGNORE").is_some() {
            return self.unsupported(b"GLOBIGNORE");
        }
        let style = Style { ignore_case: bash && self.shopt("nocaseglob"), ..self.pattern_style() };
        let plain = if bash { field.to_vec() } else { without_escaped_slashes(field) };
        let components: Vec<&[Unit]> = plain.split(|unit| unit.byte() == Some(b'/')).collect();
        let patterns =
            components.iter().map(|component| self.styled_pattern(component, style)).collect::<Run<Vec<_>>>()?;
        // A lone bracket and escaped characters stay, whatever is there.
        if !patterns.iter().any(Pattern::is_special) {
            fields.push(bytes(field));
            return Ok(());
        }
        let mut is_pattern = false;
        let mut found: Vec<Vec<u8>> = vec![Vec::new()];
        let last = components.len() - 1;
        for (at, (component, pattern)) in components.iter().zip(&patterns).enumerate() {
            is_pattern |= pattern.is_special();
            // bash keeps slashes that follow each other only before the first pattern.
            if bash && is_pattern && at < last && bytes(component).is_empty() {
                continue;
            }
            let slash: &[u8] = if at < last { b"/" } else { b"" };
            let mut next = Vec::new();
            if bash && self.shopt("globstar") && is_globstar(component) {
                if components.iter().filter(|other| is_globstar(other)).count() > 1 {
                    return self.unsupported(b"more than one ** in a pattern");
                }
                for prefix in found {
                    self.descend(
                        &prefix,
                        at == last,
                        at + 2 == components.len() && components[last].is_empty(),
                        &mut next,
                    )?;
                }
                found = next;
                continue;
            }
            for prefix in found {
                self.step()?;
                if pattern.is_special() {
                    self.matching(&prefix, pattern, slash, &mut next)?;
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
        self.require_order(&found)?;
        if bash && found.is_empty() && self.shopt("failglob") {
            return Err(self.discard_reported(&[b"no match: ", &bytes(field)[..]].concat()));
        } else if bash && found.is_empty() && self.shopt("nullglob") {
            return Ok(());
        }
        if found.is_empty() {
            found.push(bytes(field));
        }
        fields.append(&mut found);
        Ok(())
    }

    fn matching(&mut self, prefix: &[u8], pattern: &Pattern, slash: &[u8], next: &mut Vec<Vec<u8>>) -> Run<()> {
        let dir = self.path(if prefix.is_empty() { b"." } else { prefix });
        if self.files.none_fits(&dir, &|name| pattern.matches(name)) {
            return self.spend(pattern.len());
        }
        let fits = |name: &[u8]| pattern.matches(name);
        let Ok(mut names) = self.files.list_for_pattern(&dir, &fits) else { return Ok(()) };
        let bash = self.state.language.is_bash();
        // bash has `globskipdots`.
        if pattern.begins_with_dot() && !bash {
            names.extend([b".".to_vec(), b"..".to_vec()]);
        }
        let hidden = bash && self.shopt("dotglob");
        self.spend(names.iter().map(|name| pattern.work(name.len()).saturating_mul(8)).sum())?;
        for name in names {
            let dot = name.starts_with(b".") && !pattern.begins_with_dot() && !hidden;
            if dot && pattern.begins_with_group() {
                return self.unsupported(b"a group at the start of a pattern, with hidden files");
            }
            self.require_same_match(pattern, &name)?;
            if dot || !pattern.matches(&name) {
                continue;
            }
            let path = [prefix, &name, slash].concat();
            if slash.is_empty() || self.stat(&path, Follow::Yes).is_ok_and(|node| node.is_dir()) {
                next.push(path);
            }
        }
        Ok(())
    }

    /// Adds what `**` matches below a directory: all of it as the last component, else directories with a slash.
    fn descend(&mut self, prefix: &[u8], files: bool, only_below: bool, next: &mut Vec<Vec<u8>>) -> Run<()> {
        if !prefix.is_empty() && !self.stat(prefix, Follow::Yes).is_ok_and(|node| node.is_dir()) {
            return Ok(());
        }
        let hidden = self.shopt("dotglob");
        if !(prefix.is_empty() && (files || only_below)) {
            next.push(prefix.to_vec());
        }
        let mut waiting = vec![prefix.to_vec()];
        while let Some(prefix) = waiting.pop() {
            self.step()?;
            let dir = self.path(if prefix.is_empty() { b"." } else { &prefix });
            let Ok(names) = self.files.list(&dir) else { continue };
            self.spend(names.iter().map(Vec::len).sum())?;
            for name in names.into_iter().filter(|name| hidden || !name.starts_with(b".")) {
                let path = [&prefix[..], &name].concat();
                let is_dir = self.stat(&path, Follow::No).is_ok_and(|node| node.is_dir());
                if !is_dir && !files && self.stat(&path, Follow::Yes).is_ok_and(|node| node.is_dir()) {
                    return self.unsupported(b"** at a link to a directory");
                }
                let below = [&path[..], b"/"].concat();
                if files {
                    next.push(path);
                } else if is_dir {
                    next.push(below.clone());
                }
                if is_dir {
                    waiting.push(below);
                }
            }
        }
        Ok(())
    }
}

/// Whether a component is `**`.
fn is_globstar(component: &[Unit]) -> bool {
    component.len() == 2 && component.iter().all(|unit| !unit.is_quoted() && unit.byte() == Some(b'*'))
}

/// A slash needs no backslash, which is not a part of a name.
fn without_escaped_slashes(field: &[Unit]) -> Vec<Unit> {
    let mut kept = Vec::new();
    let mut units = field.iter().peekable();
    while let Some(unit) = units.next() {
        if unit.is_quoted() || unit.byte() != Some(b'\\') {
            kept.push(*unit);
        } else if units.peek().and_then(|next| next.byte()) != Some(b'/') {
            kept.push(*unit);
            kept.extend(units.next());
        }
    }
    kept
}

/// Whether a field has what makes a pattern.
fn has_pattern(field: &[Unit], extended: bool) -> bool {
    let plain = |unit: &Unit| if unit.is_quoted() { None } else { unit.byte() };
    field.iter().any(|unit| matches!(plain(unit), Some(b'*' | b'?' | b'[')))
        || (extended
            && field
                .windows(2)
                .any(|pair| matches!(plain(&pair[0]), Some(b'+' | b'@' | b'!')) && plain(&pair[1]) == Some(b'(')))
}
