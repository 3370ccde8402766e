//! Supported versions of kmod.

/// A version of kmod, as Debian builds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// Debian 12. No `modules.weakdep`; the nodes of an index are in post-order, and the last of equal lines of `modules.order` counts.
    Kmod30,
    /// Debian 13. The nodes of an index are in pre-order, and the first of equal lines of `modules.order` counts.
    Kmod34,
}

impl Release {
    /// The release of a package version such as `34.2-2`; `None` if it is not supported.
    pub fn of_version(version: &str) -> Option<Self> {
        match version.split(['.', '+', '-', '~']).next()? {
            "30" => Some(Self::Kmod30),
            "34" => Some(Self::Kmod34),
            _ => None,
        }
    }
}
