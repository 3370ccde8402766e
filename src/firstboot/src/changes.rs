//! What a run did, for people: the changes that a [`Root`] recorded in, a line for each out.

use crate::accounts::Accounts;
use crate::root::{Change, Owner, Root};

/// A line for each change that was made, or in a dry run would be, in their order: `write /opt/env/x.env (0640 root:x)`.
/// Other words are `change` (of mode or owner alone), `make` (a directory) and `remove`.
pub fn lines(root: &Root) -> Vec<String> {
    // Names are for people: where they cannot be read, numbers do.
    let accounts = Accounts::read(root).unwrap_or_default();
    let line = |Change { verb, path, owner }: &Change| match owner {
        Some(Owner { mode, uid, gid }) => {
            let (user, group) = (accounts.user_name(*uid), accounts.group_name(*gid));
            format!("{verb} {path} ({mode:04o} {user}:{group})")
        }
        None => format!("{verb} {path}"),
    };
    root.changes().iter().map(line).collect()
}
