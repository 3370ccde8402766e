//! Nodes of a YAML document that PyYAML does not construct.

use std::collections::{BTreeMap, BTreeSet};

use saphyr_parser::{Event, ScalarStyle, Tag};

use super::Problem;
use super::scalars::{self, YAML};

/// Tags of scalars, lists and mappings after the prefix.
const SCALARS: [&str; 7] = ["null", "bool", "int", "float", "binary", "timestamp", "str"];
const LISTS: [&str; 3] = ["omap", "pairs", "seq"];
const MAPPINGS: [&str; 2] = ["set", "map"];

/// Lists whose entries are mappings with one key.
const PAIRS: [&str; 2] = ["omap", "pairs"];

enum Open {
    List(Kind),
    /// The keys so far; the key of the next value, or `None` if a key is next; the number of keys.
    Mapping(BTreeSet<String>, Option<String>, usize),
}

/// What of a node counts where it is merged into a mapping, or is an entry of [`PAIRS`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scalar,
    /// Whether all entries are mappings, and whether they have one key each.
    List(bool, bool),
    /// The number of keys.
    Mapping(usize),
}

/// What a collection must be, by its tag or by the key before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needed {
    Any,
    Merged,
    Pairs,
}

/// The collections around a node, and what is known of those before it.
#[derive(Default)]
pub(super) struct Nodes {
    /// Each with its anchor.
    open: Vec<(Open, Needed, usize)>,
    anchors: BTreeMap<usize, Kind>,
    /// Lines of texts in quotes and in blocks, which may have tabs.
    texts: Vec<(usize, usize)>,
    pub(super) warnings: Vec<Problem>,
}

impl Nodes {
    /// What PyYAML does not accept of an event on these lines.
    pub(super) fn fault(&mut self, event: &Event, line: usize, end: usize) -> Option<String> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                if *style != ScalarStyle::Plain {
                    self.texts.push((line, end));
                }
                let name = tag.as_deref().map(full_name);
                let is_resolved = name.as_deref().map_or(*style == ScalarStyle::Plain, |name| name == "!");
                let type_name = name.as_deref().and_then(|name| name.strip_prefix(YAML));
                let constructed = (is_resolved || type_name.is_some()).then(|| scalars::fault(text, type_name));
                let placed = self.scalar(text, is_resolved, line);
                self.anchors.insert(*anchor, Kind::Scalar);
                placed.or_else(|| unknown_tag(name.as_deref(), &SCALARS)).or_else(|| constructed.flatten())
            }
            Event::Alias(anchor) => {
                // A collection that is still open has no kind yet.
                let kind = self.anchors.get(anchor).copied();
                if self.is_at_key() && kind.is_some_and(|kind| kind != Kind::Scalar) {
                    return Some(COLLECTION_AS_KEY.to_owned());
                }
                let is_merged = self.is_merged();
                self.place(String::new());
                kind.and_then(|kind| self.entry(kind, is_merged))
            }
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => {
                if self.is_at_key() {
                    return Some(COLLECTION_AS_KEY.to_owned());
                }
                let is_list = matches!(event, Event::SequenceStart(..));
                let name = tag.as_deref().map(full_name);
                let type_name = name.as_deref().and_then(|name| name.strip_prefix(YAML));
                let needed = match type_name {
                    Some(name) if PAIRS.contains(&name) => Needed::Pairs,
                    _ if self.is_merged() => Needed::Merged,
                    _ => Needed::Any,
                };
                self.place(String::new());
                let open =
                    if is_list { Open::List(Kind::List(true, true)) } else { Open::Mapping(BTreeSet::new(), None, 0) };
                self.open.push((open, needed, *anchor));
                unknown_tag(name.as_deref(), if is_list { &LISTS } else { &MAPPINGS })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let (open, needed, anchor) = self.open.pop()?;
                let kind = match open {
                    Open::List(kind) => kind,
                    Open::Mapping(.., count) => Kind::Mapping(count),
                };
                self.anchors.insert(anchor, kind);
                match (needed, kind) {
                    (Needed::Pairs, Kind::List(_, false)) => {
                        Some("expected a list of mappings with one key each".to_owned())
                    }
                    _ => self.entry(kind, needed == Needed::Merged),
                }
            }
            _ => None,
        }
    }

    fn is_at_key(&self) -> bool {
        matches!(self.open.last(), Some((Open::Mapping(_, None, _), ..)))
    }

    /// Whether the next node is merged into the mapping around it.
    fn is_merged(&self) -> bool {
        matches!(self.open.last(), Some((Open::Mapping(_, Some(key), _), ..)) if key == "<<")
    }

    /// Records a node of the collection around it.
    fn entry(&mut self, kind: Kind, is_merged: bool) -> Option<String> {
        if let Some((Open::List(Kind::List(are_mappings, are_pairs)), ..)) = self.open.last_mut() {
            *are_mappings &= matches!(kind, Kind::Mapping(_));
            *are_pairs &= kind == Kind::Mapping(1);
        }
        let can_merge = matches!(kind, Kind::Mapping(_) | Kind::List(true, _));
        (is_merged && !can_merge).then(|| "expected a mapping or a list of mappings after <<".to_owned())
    }

    /// A scalar is a key, or the value of one, or an entry of a list.
    fn scalar(&mut self, text: &str, is_resolved: bool, line: usize) -> Option<String> {
        let (is_key, is_merged) = (self.is_at_key(), self.is_merged());
        if is_merged {
            return Some(format!("expected a mapping after <<, found {text:?}"));
        }
        if is_resolved && !is_key && ["=", "<<"].contains(&text) {
            return Some(format!("{text} needs quotes"));
        }
        let key = if is_resolved || text != "<<" { text } else { "" };
        if !self.place(key.to_owned()) {
            let message = format!("has the key {text:?} twice: cloud-init uses only the last one");
            self.warnings.push(Problem::error(line, message).warning());
        }
        self.entry(Kind::Scalar, false)
    }

    /// Takes a node as the next key or value. Returns false for a key that the mapping already has.
    fn place(&mut self, text: String) -> bool {
        match self.open.last_mut() {
            Some((Open::Mapping(keys, key @ None, count), ..)) => {
                let is_new = text.is_empty() || text == "<<" || keys.insert(text.clone());
                *key = Some(text);
                *count += 1;
                is_new
            }
            Some((Open::Mapping(_, key, _), ..)) => {
                *key = None;
                true
            }
            _ => true,
        }
    }

    /// The first line with a tab that is in neither a text nor a comment.
    pub(super) fn line_with_tab(&self, text: &str) -> Option<usize> {
        let is_text = |line: usize| self.texts.iter().any(|(start, end)| (*start..=*end).contains(&line));
        let has_tab = |line: &str| {
            let before = match line.find(" #") {
                _ if line.starts_with('#') => "",
                Some(at) => &line[..at],
                None => line,
            };
            before.trim_end_matches('\r').contains('\t')
        };
        let lines = (1..).zip(text.lines());
        lines.filter(|(number, line)| !is_text(*number) && has_tab(line)).map(|(number, _)| number).next()
    }
}

const COLLECTION_AS_KEY: &str = "a key is a list or a mapping";

fn full_name(tag: &Tag) -> String {
    format!("{}{}", tag.handle, tag.suffix)
}

/// What is wrong with a tag. `!` alone is allowed.
fn unknown_tag(name: Option<&str>, known: &[&str]) -> Option<String> {
    let name = name?;
    let is_known = name == "!" || name.strip_prefix(YAML).is_some_and(|name| known.contains(&name));
    (!is_known).then(|| format!("the tag {name} is unknown or has another type"))
}
