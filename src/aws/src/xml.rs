//! The XML of EC2 and STS: parses a text and finds elements by name. Namespaces are ignored.

use std::str::FromStr;

use roxmltree::{Document, ParsingOptions};

use super::error::AwsError;

/// Maximum number of nodes in a document: a page of 1,000 images has some 100,000.
const MAX_NODES: u32 = 2_000_000;

/// The name of a missing element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Missing(pub(super) &'static str);

/// A response in XML.
#[derive(Debug)]
pub(super) struct Xml {
    action: String,
    text: String,
}

impl Xml {
    pub(super) fn new(action: String, text: String) -> Self {
        Self { action, text }
    }

    /// Applies `read` to the root. A document type, and with it any entity declaration, is refused.
    pub(super) fn read<T>(&self, read: impl FnOnce(Node<'_, '_>) -> Result<T, Missing>) -> Result<T, AwsError> {
        let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, ..ParsingOptions::default() };
        let lacks = |what| AwsError::Answer { action: self.action.clone(), what };
        let document = Document::parse_with_options(&self.text, options).map_err(|_| lacks("XML"))?;
        read(Node(document.root_element())).map_err(|missing| lacks(missing.0))
    }
}

/// An element.
#[derive(Clone, Copy)]
pub(super) struct Node<'a, 'input>(roxmltree::Node<'a, 'input>);

impl<'a, 'input> Node<'a, 'input> {
    /// The first child element of that name.
    pub(super) fn child(&self, name: &'static str) -> Result<Self, Missing> {
        self.named(name).next().ok_or(Missing(name))
    }

    /// The `item` elements of the list of that name; empty if it is missing.
    pub(super) fn items(&self, name: &'static str) -> impl Iterator<Item = Self> + use<'a, 'input> {
        let list = self.child(name).ok();
        list.into_iter().flat_map(|list| list.named("item"))
    }

    /// The text of a child element, which must not be empty.
    pub(super) fn text(&self, name: &'static str) -> Result<String, Missing> {
        self.some_text(name).ok_or(Missing(name))
    }

    /// As [`Self::text`], for an element that may be empty or missing.
    pub(super) fn some_text(&self, name: &'static str) -> Option<String> {
        let text = self.child(name).ok()?.0.text()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The number in a child element.
    pub(super) fn number<N: FromStr>(&self, name: &'static str) -> Result<N, Missing> {
        self.text(name)?.parse().map_err(|_| Missing(name))
    }

    /// `true` or `false` in a child element; `None` if it is missing.
    pub(super) fn flag(&self, name: &'static str) -> Result<Option<bool>, Missing> {
        self.some_text(name).map(|text| text.parse().map_err(|_| Missing(name))).transpose()
    }

    fn named(&self, name: &'static str) -> impl Iterator<Item = Self> + use<'a, 'input> {
        self.0.children().filter(move |child| child.is_element() && child.tag_name().name() == name).map(Self)
    }
}
