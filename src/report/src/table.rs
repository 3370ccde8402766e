//! What a page is made of, before it is HTML: sections with tables.

use serde::Serialize;

use super::disk_map::DiskDrawing;
use super::treemap::Treemap;

/// A name and what is to be said of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    pub name: String,
    /// What is said.
    pub value: String,
}

impl Fact {
    /// A fact.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

/// A part of the page with a heading of its own.
#[derive(Debug, Default, Serialize)]
pub(super) struct Section {
    /// Where links lead to.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// A sentence above everything else.
    pub(super) text: String,
    pub(super) facts: Vec<Fact>,
    pub(super) treemap: Option<Treemap>,
    pub(super) disk: Option<DiskDrawing>,
    pub(super) tables: Vec<Table>,
}

/// A table of text.
#[derive(Debug, Serialize)]
pub(super) struct Table {
    pub(super) title: String,
    pub(super) heads: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(title: impl Into<String>, heads: &[&'static str], rows: Vec<Vec<String>>) -> Self {
        Self { title: title.into(), heads: heads.to_vec(), rows }
    }

    /// Facts as rows; `None` where there are none.
    pub(super) fn of_facts<A: ToString, B: ToString>(
        title: &str,
        heads: [&'static str; 2],
        facts: impl IntoIterator<Item = (A, B)>,
    ) -> Option<Self> {
        let rows: Vec<_> = facts.into_iter().map(|(name, value)| vec![name.to_string(), value.to_string()]).collect();
        (!rows.is_empty()).then(|| Self::new(title, &heads, rows))
    }
}
