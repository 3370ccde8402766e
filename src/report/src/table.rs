//! The contents of a report: sections with tables.

use serde::Serialize;

use super::disk_map::DiskDrawing;
use super::treemap::Treemap;

/// A name with a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    pub name: String,
    pub value: String,
}

impl Fact {
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

/// A section with a heading.
#[derive(Debug, Default, Serialize)]
pub(super) struct Section {
    /// Anchor.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// Introductory text.
    pub(super) text: String,
    pub(super) facts: Vec<Fact>,
    pub(super) treemap: Option<Treemap>,
    pub(super) disk: Option<DiskDrawing>,
    pub(super) tables: Vec<Table>,
}

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

    /// Facts as rows; `None` if there are none.
    pub(super) fn of_facts<A: ToString, B: ToString>(
        title: &str,
        heads: [&'static str; 2],
        facts: impl IntoIterator<Item = (A, B)>,
    ) -> Option<Self> {
        let rows: Vec<_> = facts.into_iter().map(|(name, value)| vec![name.to_string(), value.to_string()]).collect();
        (!rows.is_empty()).then(|| Self::new(title, &heads, rows))
    }
}
