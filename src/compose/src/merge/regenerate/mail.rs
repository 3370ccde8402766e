//! Postfix tables: refuses a source file that must be indexed by `postmap` or `newaliases`.

use crate::merge::MergeError;
use crate::merge::database::Database;
use crate::merge::place::Target;

const MAIN: &str = "/etc/postfix/main.cf";

/// Types of tables that are files made of another file (postmap(1)).
const INDEXED: [&str; 5] = ["btree", "cdb", "dbm", "hash", "lmdb"];

/// Fails if Postfix reads an index of the file that nothing makes.
pub(super) fn check(target: &Target, packages: &Database, path: &str, layer: &str) -> Result<(), MergeError> {
    let Ok(settings) = target.text(MAIN) else { return Ok(()) };
    // Its script runs newaliases when it is configured.
    let waits = path == "/etc/aliases" && packages.waiting.contains("postfix");
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    let is_named = INDEXED.iter().any(|kind| {
        let table = format!("{kind}:{path}");
        settings.match_indices(&table).any(|(at, _)| {
            let before = at.checked_sub(1).and_then(|at| settings.as_bytes().get(at));
            // `texthash` is read without an index.
            !before.is_some_and(is_word) && !settings.as_bytes().get(at + table.len()).is_some_and(is_word)
        })
    });
    if waits || !is_named {
        return Ok(());
    }
    Err(MergeError::Unread {
        path: path.to_owned(),
        layer: layer.to_owned(),
        what: format!("{MAIN} uses it as an indexed table, which requires postmap"),
        hint: "use the type texthash, which needs no index, or run `postmap FILE` or `newaliases` in a unit before postfix.service",
    })
}
