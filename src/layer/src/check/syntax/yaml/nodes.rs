//! Nodes of a YAML document that PyYAML does not construct.

use std::collections::BTreeSet;

use saphyr_parser::{Event, ScalarStyle, Tag};

use super::Problem;

/// Prefix of the tags of YAML 1.1.
const YAML: &str = "tag:yaml.org,2002:";
/// Tags of scalars, lists and mappings after the prefix.
const SCALARS: [&str; 7] = ["null", "bool", "int", "float", "binary", "timestamp", "str"];
const LISTS: [&str; 3] = ["omap", "pairs", "seq"];
const MAPPINGS: [&str; 2] = ["set", "map"];

enum Open {
    List,
    /// The keys so far; the key of the next value, or `None` if a key is next.
    Mapping(BTreeSet<String>, Option<String>),
}

/// The collections around a node, and what is known of those before it.
#[derive(Default)]
pub(super) struct Nodes {
    open: Vec<Open>,
    /// Lines of texts in quotes and in blocks, which may have tabs.
    texts: Vec<(usize, usize)>,
    pub(super) warnings: Vec<Problem>,
}

impl Nodes {
    /// What PyYAML does not accept of an event on these lines.
    pub(super) fn fault(&mut self, event: &Event, line: usize, end: usize) -> Option<String> {
        match event {
            Event::Scalar(text, style, _, tag) => {
                if *style != ScalarStyle::Plain {
                    self.texts.push((line, end));
                }
                let is_bare = *style == ScalarStyle::Plain && tag.is_none();
                self.scalar(text, is_bare, line).or_else(|| unknown_tag(tag.as_deref(), &SCALARS))
            }
            Event::Alias(_) => {
                self.place(String::new());
                None
            }
            Event::SequenceStart(_, tag) | Event::MappingStart(_, tag) => {
                if let Some(Open::Mapping(_, None)) = self.open.last() {
                    return Some("a key is a list or a mapping".to_owned());
                }
                self.place(String::new());
                let is_list = matches!(event, Event::SequenceStart(..));
                self.open.push(if is_list { Open::List } else { Open::Mapping(BTreeSet::new(), None) });
                unknown_tag(tag.as_deref(), if is_list { &LISTS } else { &MAPPINGS })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.open.pop();
                None
            }
            _ => None,
        }
    }

    /// A scalar is a key, or the value of one, or an entry of a list.
    fn scalar(&mut self, text: &str, is_bare: bool, line: usize) -> Option<String> {
        let is_key = matches!(self.open.last(), Some(Open::Mapping(_, None)));
        if let Some(Open::Mapping(_, Some(key))) = self.open.last()
            && key == "<<"
        {
            return Some(format!("expected a mapping after <<, found {text:?}"));
        }
        if is_bare && !is_key && ["=", "<<"].contains(&text) {
            return Some(format!("{text} needs quotes"));
        }
        let key = if is_bare || text != "<<" { text } else { "" };
        if !self.place(key.to_owned()) {
            let message = format!("has the key {text:?} twice: cloud-init uses only the last one");
            self.warnings.push(Problem::error(line, message).warning());
        }
        None
    }

    /// Takes a node as the next key or value. Returns false for a key that the mapping already has.
    fn place(&mut self, text: String) -> bool {
        match self.open.last_mut() {
            Some(Open::Mapping(keys, key @ None)) => {
                let is_new = text.is_empty() || text == "<<" || keys.insert(text.clone());
                *key = Some(text);
                is_new
            }
            Some(Open::Mapping(_, key)) => {
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

/// What is wrong with a tag. `!` alone is allowed.
fn unknown_tag(tag: Option<&Tag>, known: &[&str]) -> Option<String> {
    let tag = tag?;
    let name = format!("{}{}", tag.handle, tag.suffix);
    let is_known = name == "!" || name.strip_prefix(YAML).is_some_and(|name| known.contains(&name));
    (!is_known).then(|| format!("the tag {name} is unknown or has another type"))
}
