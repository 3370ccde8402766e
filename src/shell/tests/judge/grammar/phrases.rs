//! Phrases of the grammar that are not derived: those of `phrases.txt`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::Grammar;
use crate::judge::program::QUOTED_NEWLINE;

fn all() -> &'static BTreeMap<&'static str, Vec<String>> {
    static ALL: OnceLock<BTreeMap<&'static str, Vec<String>>> = OnceLock::new();
    ALL.get_or_init(|| {
        let sections = include_str!("phrases.txt").split("\n[").skip(1);
        let sections = sections.map(|section| section.split_once("]\n").expect("a name in brackets"));
        let phrase = |line: &str| line.replace('␤', "\n").replace('␊', &QUOTED_NEWLINE.to_string());
        let phrases = |text: &str| text.lines().filter(|line| !line.is_empty()).map(phrase).collect();
        sections.map(|(name, text)| (name, phrases(text))).collect()
    })
}

impl Grammar {
    /// A phrase of that section.
    pub(super) fn phrase(&mut self, section: &str) -> String {
        let phrases = &all()[section];
        phrases[self.random.below(phrases.len())].clone()
    }
}
