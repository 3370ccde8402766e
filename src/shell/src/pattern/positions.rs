//! Positions at which matches of a pattern end, as sets, so that groups take polynomial time.

use std::collections::BTreeSet;

use super::{Pattern, Piece, Repeat};

type Positions = BTreeSet<usize>;

impl Pattern {
    /// Every place where a match that begins at `start` can end.
    pub(crate) fn ends(&self, text: &[u8], start: usize) -> Positions {
        self.advance(text, Positions::from([start]))
    }

    fn advance(&self, text: &[u8], starts: Positions) -> Positions {
        let mut places = starts;
        for piece in &self.0 {
            if places.is_empty() {
                return places;
            }
            places = piece.advance(text, places);
        }
        places
    }
}

impl Piece {
    fn advance(&self, text: &[u8], starts: Positions) -> Positions {
        match self {
            Self::Star => starts.first().map_or_else(Positions::new, |first| (*first..=text.len()).collect()),
            Self::Group(repeat, patterns) => group(*repeat, patterns, text, starts),
            _ => {
                let fits = |at: &usize| text.get(*at).is_some_and(|byte| self.takes(*byte));
                starts.into_iter().filter(fits).map(|at| at + 1).collect()
            }
        }
    }
}

fn group(repeat: Repeat, patterns: &[Pattern], text: &[u8], starts: Positions) -> Positions {
    let once = |starts: &Positions| -> Positions {
        patterns.iter().flat_map(|pattern| pattern.advance(text, starts.clone())).collect()
    };
    match repeat {
        Repeat::One => once(&starts),
        Repeat::Optional => once(&starts).union(&starts).copied().collect(),
        Repeat::Any => closure(starts, once),
        Repeat::Some => closure(once(&starts), once),
        Repeat::Not => starts
            .into_iter()
            .flat_map(|start| {
                let matched = once(&Positions::from([start]));
                (start..=text.len()).filter(move |end| !matched.contains(end)).collect::<Vec<_>>()
            })
            .collect(),
    }
}

/// All places that any number of further matches lead to.
fn closure(starts: Positions, once: impl Fn(&Positions) -> Positions) -> Positions {
    let mut found = starts.clone();
    let mut fresh = starts;
    while !fresh.is_empty() {
        fresh = once(&fresh).difference(&found).copied().collect();
        found.extend(&fresh);
    }
    found
}
