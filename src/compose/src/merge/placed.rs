//! What a package lists, and where it goes: decided by diversions, owners and conffiles, one after the other.

use crate::stage::Member;

/// One path that a package lists.
pub(super) struct Placed {
    /// Path in the package, absolute.
    pub(super) listed: String,
    /// With its path in the tree.
    pub(super) entry: Member,
    /// Whether what is there stays: a conffile that an upgrade does not touch.
    pub(super) kept: bool,
}
