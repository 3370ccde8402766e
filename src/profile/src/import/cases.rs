//! Runs of the scripts without values that a machine may lack, compared with the run in which all are there.

use std::collections::{BTreeMap, BTreeSet};

use super::base::{Content, Found};
use super::error::ImportError;
use super::evaluate::Evaluated;
use super::program::Phase;
use super::runtime::{RuntimeValue, legible};

/// The phases of a machine that lacks some values.
pub(super) struct Lacking {
    pub(super) absent: Vec<&'static RuntimeValue>,
    pub(super) phases: [Phase; 2],
}

impl Lacking {
    /// Refuses scripts whose results depend on whether the values are there. The first boot writes files of `templates` for both cases,
    /// unless a script changed them; `own` has the texts of the profile's files if all values are there.
    pub(super) fn compare(
        &self,
        whole: &Evaluated,
        other: &Evaluated,
        templates: &BTreeSet<&str>,
        own: &BTreeMap<&str, &str>,
    ) -> Result<(), ImportError> {
        let files = self.phases.iter().flat_map(|phase| &phase.files);
        let texts: BTreeMap<&str, &str> = files.map(|file| (file.path.as_str(), file.text.as_str())).collect();
        let is_template = |one: &Found, other: &Found| {
            let path = one.path.as_str();
            let is_own = |found: &Found, texts: &BTreeMap<&str, &str>| match &found.content {
                Content::File(text) => texts.get(path).is_some_and(|own| own.as_bytes() == text.as_slice()),
                _ => false,
            };
            templates.contains(path) && is_own(one, own) && is_own(other, &texts)
        };
        let is_same = |one: &Found, other: &Found| {
            (&one.path, one.mode, one.owner) == (&other.path, other.mode, other.owner)
                && (is_template(one, other) || self.without(&one.content) == other.content)
        };
        let by_path = |evaluated: &Evaluated| -> BTreeSet<String> {
            evaluated.after.iter().map(|found| found.path.clone()).collect()
        };
        let (paths, others) = (by_path(whole), by_path(other));
        if let Some(path) = paths.symmetric_difference(&others).next() {
            return Err(self.refused(path));
        }
        if let Some((found, _)) = whole.after.iter().zip(&other.after).find(|(one, other)| !is_same(one, other)) {
            return Err(self.refused(&found.path));
        }
        let rest = |evaluated: &Evaluated| {
            let Evaluated { removed, kept, written, early, deferred, .. } = evaluated;
            (removed.clone(), kept.clone(), written.clone(), early.clone(), deferred.clone())
        };
        match whole.effects.lasting() == other.effects.lasting() && rest(whole) == rest(other) {
            true => Ok(()),
            false => Err(self.refused("packages, units or commands of the scripts")),
        }
    }

    /// A content with nothing in place of the values.
    fn without(&self, content: &Content) -> Content {
        let Content::File(bytes) = content else { return content.clone() };
        let Ok(text) = str::from_utf8(bytes) else { return content.clone() };
        let text = self.absent.iter().fold(text.to_owned(), |text, value| text.replace(&value.mark(), ""));
        Content::File(text.into_bytes())
    }

    fn refused(&self, path: &str) -> ImportError {
        let what = format!(
            "what the scripts make of it depends on whether .{} is set, which only machines know: write it as one of `files`",
            self.fields()
        );
        ImportError::Tree { path: legible(path), what }
    }

    /// The fields of the values.
    pub(super) fn fields(&self) -> String {
        self.absent.iter().map(|value| value.field).collect::<Vec<_>>().join(" and .")
    }
}
