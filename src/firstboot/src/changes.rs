//! Formats the changes of a run: the changes recorded by a [`Root`] in, one line per change out.

use crate::accounts::Accounts;
use crate::root::{Change, Owner, Root};

/// One line per change, real or of a dry run, in order: `write /opt/env/x.env (0640 root:x)`.
/// Other verbs are `change` (only mode or owner), `make` (a directory) and `remove`.
pub fn lines(root: &Root) -> Vec<String> {
    // Falls back to numbers if names are unavailable.
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
