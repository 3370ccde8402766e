//! Assigns ids to the accounts that maintainer scripts create. Pinned ids are the same in every image.

use std::collections::{BTreeMap, BTreeSet};

use super::tables::Tables;
use crate::merge::{MergeError, Pins};
use vmbake_manifest::PinnedAccounts;

/// What has an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::merge) enum AccountKind {
    User,
    Group,
}

impl AccountKind {
    /// The word for it.
    pub(in crate::merge) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Group => "group",
        }
    }
}

/// Ids by the kind of the account and its name.
type AccountIds = BTreeMap<(AccountKind, String), u32>;

/// What is pinned, and what was given.
#[derive(Clone, Debug, Default)]
pub(in crate::merge) struct Ids {
    pinned: AccountIds,
    pins: Pins,
    given: AccountIds,
}

impl Ids {
    /// From now on, these accounts get these ids.
    pub(in crate::merge) fn pin(&mut self, pinned: Option<&PinnedAccounts>, pins: Pins) {
        self.pins = pins;
        let Some(PinnedAccounts { users, groups }) = pinned else { return };
        let users = users.iter().map(|(name, id)| ((AccountKind::User, name.clone()), *id));
        let groups = groups.iter().map(|(name, id)| ((AccountKind::Group, name.clone()), *id));
        self.pinned = users.chain(groups).collect();
    }

    /// The ids that were given.
    pub(in crate::merge) fn given(&self) -> PinnedAccounts {
        let of = |wanted| {
            let found = self.given.iter().filter(move |((kind, _), _)| *kind == wanted);
            found.map(|((_, name), id)| (name.clone(), *id)).collect()
        };
        PinnedAccounts { users: of(AccountKind::User), groups: of(AccountKind::Group) }
    }

    /// The id for a new account: the pinned one, or what `free` chooses among those that are taken, to which the pinned ids
    /// of other accounts belong. `None` where all are.
    pub(in crate::merge) fn choose(
        &mut self,
        kind: AccountKind,
        name: &str,
        tables: &Tables,
        free: impl FnOnce(&BTreeSet<u32>) -> Option<u32>,
    ) -> Result<Option<u32>, MergeError> {
        let table = match kind {
            AccountKind::User => &tables.passwd,
            AccountKind::Group => &tables.group,
        };
        let pinned = self.pinned.get(&(kind, name.to_owned())).copied();
        let id = match pinned.map(|id| (id, table.name(id))) {
            Some((id, None)) => Some(id),
            Some((id, Some(found))) if self.pins == Pins::Fixed => {
                let (what, name, found) = (kind.name(), name.to_owned(), found.to_owned());
                return Err(MergeError::PinnedId { what, name, id, found });
            }
            _ => {
                let others = self.pinned.iter().filter(|((_, other), _)| other != name).map(|(_, id)| *id);
                free(&table.ids().into_iter().chain(others).collect())
            }
        };
        if let Some(id) = id {
            self.record(kind, name, id);
        }
        Ok(id)
    }

    /// Remembers an id that a script has named itself.
    pub(in crate::merge) fn record(&mut self, kind: AccountKind, name: &str, id: u32) {
        self.given.insert((kind, name.to_owned()), id);
    }
}

/// The lowest id of a range that is free.
pub(in crate::merge) fn lowest(taken: &BTreeSet<u32>, first: u32, last: u32) -> Option<u32> {
    (first..=last).find(|id| !taken.contains(id))
}

/// The highest id of a range that is free.
pub(in crate::merge) fn highest(taken: &BTreeSet<u32>, first: u32, last: u32) -> Option<u32> {
    (first..=last).rev().find(|id| !taken.contains(id))
}

/// The id below all of a range that are taken, as `useradd --system` has it, or else the highest that is free.
pub(in crate::merge) fn below(taken: &BTreeSet<u32>, first: u32, last: u32) -> Option<u32> {
    if first > last {
        return None;
    }
    let lowest = taken.range(first..=last).next().map_or(Some(last), |id| id.checked_sub(1));
    lowest.filter(|id| *id >= first).or_else(|| highest(taken, first, last))
}

/// The id above all of a range that are taken, as useradd(8) has it, or else the lowest that is free.
pub(in crate::merge) fn above(taken: &BTreeSet<u32>, first: u32, last: u32) -> Option<u32> {
    if first > last {
        return None;
    }
    let highest = taken.range(first..=last).next_back().map_or(Some(first), |id| id.checked_add(1));
    highest.filter(|id| *id <= last).or_else(|| lowest(taken, first, last))
}

#[cfg(test)]
mod tests {
    use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};

    use super::{AccountKind, Ids, above, below, highest, lowest};
    use crate::merge::Pins;
    use crate::merge::accounts::Tables;
    use crate::merge::place::Target;

    /// A pinned id wins, is remembered as any other, and is left to its account. One that belongs to another account by now
    /// stops a bake, and is replaced by an update.
    #[test]
    fn a_pinned_id_wins() {
        let tree = Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default());
        let mut tables = Tables::read(&Target::new(tree, Timestamp::default())).unwrap();
        tables.add_group("taken", 300, "!");
        let mut ids = Ids::default();
        for (name, id) in [("pinned", 200), ("late", 300), ("later", 301)] {
            ids.pinned.insert((AccountKind::Group, name.to_owned()), id);
        }
        let choose = |ids: &mut Ids, name| {
            ids.choose(AccountKind::Group, name, &tables, |taken| lowest(taken, 300, 400))
                .map_err(|error| error.to_string())
        };
        assert_eq!(choose(&mut ids, "pinned"), Ok(Some(200)));
        assert_eq!(choose(&mut ids, "other"), Ok(Some(302)));
        let error = "the id 300 is pinned for the group late, but belongs to taken";
        assert_eq!(choose(&mut ids, "late"), Err(error.to_owned()));
        assert_eq!(choose(&mut ids, "later"), Ok(Some(301)));
        ids.pins = Pins::Preferred;
        assert_eq!(choose(&mut ids, "late"), Ok(Some(302)));
        let given: Vec<_> = ids.given.iter().map(|((_, name), id)| (name.as_str(), *id)).collect();
        assert_eq!(given, [("late", 302), ("later", 301), ("other", 302), ("pinned", 200)]);
    }

    /// The ids that useradd(8) and adduser(8) of Debian 13 choose among those.
    #[test]
    fn ids_are_chosen_as_the_tools_do() {
        let taken = [0, 100, 101, 555, 998, 999, 1000, 65534].into();
        assert_eq!(lowest(&taken, 100, 999), Some(102));
        assert_eq!(highest(&taken, 101, 999), Some(997));
        assert_eq!(below(&taken, 101, 999), Some(997), "101 is taken");
        assert_eq!(below(&taken, 300, 999), Some(554));
        assert_eq!(below(&taken, 200, 210), Some(210), "none is taken");
        assert_eq!(above(&taken, 1000, 60000), Some(1001));
        assert_eq!(above(&taken, 990, 999), Some(990));
        assert_eq!([lowest(&taken, 998, 1000), below(&taken, 998, 1000), above(&taken, 998, 1000)], [None; 3]);
        assert_eq!([below(&taken, 5, 4), above(&taken, 5, 4)], [None; 2]);
    }
}
