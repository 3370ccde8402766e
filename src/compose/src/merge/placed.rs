//! Determines where each file of a package is placed: applies diversions, ownership and conffile rules, in this order.

use crate::stage::Member;

/// One path that a package lists.
pub(super) struct Placed {
    /// Path in the package, absolute.
    pub(super) listed: String,
    /// With its path in the tree.
    pub(super) entry: Member,
    /// Whether what is there stays: a conffile that an upgrade does not touch.
    pub(super) kept: bool,
    /// Whether dpkg's configuration excludes it: it is listed, but not written.
    pub(super) left_out: bool,
}
