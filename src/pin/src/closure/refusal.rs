//! Why a package cannot be chosen, with the chain of packages that leads to it.

use vmbake_common::hint::Hint;

/// What stands between the packages of a chain.
pub const ARROW: &str = " → ";

/// Why a package, or one that it needs, cannot be chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{}: needs {relation}, which neither the base nor an archive has", chain.join(ARROW))]
    Unmet {
        /// The packages that lead to it, from that which a layer asks for.
        chain: Vec<String>,
        /// The relation, as it is written.
        relation: String,
    },
    #[error("{}: does not go together with {}: {text}", chain.join(ARROW), other(.package, .version, .second))]
    Conflict {
        /// The packages that lead to it, from that which a layer asks for.
        chain: Vec<String>,
        text: String,
        package: String,
        version: String,
        /// The packages that lead to it; none where the base has it.
        second: Vec<String>,
    },
    #[error("{}: takes the place of what {package} of the base needs: {relation}", chain.join(ARROW))]
    Loses {
        /// The packages that lead to it, from that which a layer asks for.
        chain: Vec<String>,
        package: String,
        /// The relation, as it is written.
        relation: String,
    },
    #[error("{}: needs {package} {wanted}, but {} in version {found}", chain.join(ARROW), if *.by_layer { "a layer holds it" } else { "the base holds it" })]
    Held {
        /// The packages that lead to it, from that which a layer asks for.
        chain: Vec<String>,
        package: String,
        found: String,
        wanted: String,
        /// Whether a layer holds it, or the base.
        by_layer: bool,
    },
    #[error("{}: needs {package} {wanted}, which the manifest has as an artifact in version {found}", chain.join(ARROW))]
    Given {
        /// The packages that lead to it, from that which a layer asks for.
        chain: Vec<String>,
        package: String,
        found: String,
        wanted: String,
    },
    #[error("{package}: the base has version {found}, which is later than {}: no package is downgraded", wanted.join(" and "))]
    Later { package: String, found: String, wanted: Vec<String> },
    #[error("{}: {package} is left out by `without`", chain.join(ARROW))]
    Without {
        /// The packages that lead to it, from that which a layer asks for.
        chain: Vec<String>,
        package: String,
    },
    #[error("{}: {package} makes an initial RAM disk or a boot menu, which a bake does not", chain.join(ARROW))]
    Boot {
        /// The packages that lead to it, from that which a layer asks for.
        chain: Vec<String>,
        package: String,
    },
    #[error("{package}: more than {limit} packages ask for each other in a row")]
    TooDeep { package: String, limit: usize },
}

/// What remains to be done where packages do not go together.
const NEVER_REMOVED: &str = "no package is ever removed: ask for another one";

/// The other one of two packages that do not go together.
fn other(package: &str, version: &str, chain: &[String]) -> String {
    match chain {
        [] => format!("{package} {version} of the base"),
        chain => format!("{} ({version})", chain.join(ARROW)),
    }
}

impl Hint for Refusal {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Boot { .. } => {
                "kernels, initial RAM disks and boot menus come with the base: `vmbake update KIND --only os.image` pins a newer one"
                    .to_owned()
            }
            Self::Held { package, by_layer: true, .. } => format!("take {package} out of `hold`, or ask for less"),
            Self::Held { .. } => "take a base that does not hold it, or ask for less".to_owned(),
            Self::Without { package, .. } => format!("take {package} out of `without`, or ask for less"),
            Self::Given { package, .. } => {
                format!("`vmbake update KIND --only {package}` takes the newest version of the artifact")
            }
            // `without` is for packages that come along, and not for those that a layer asks for itself.
            Self::Conflict { chain, second, .. } if chain.len() < 2 && second.len() < 2 => NEVER_REMOVED.to_owned(),
            Self::Loses { chain, .. } if chain.len() < 2 => NEVER_REMOVED.to_owned(),
            Self::Conflict { .. } | Self::Loses { .. } => format!("{NEVER_REMOVED}, or leave one out by `without`"),
            Self::Unmet { .. } => "`archive` names another archive that may have it".to_owned(),
            Self::Later { .. } => "ask for the version that the base has, or for none".to_owned(),
            Self::TooDeep { .. } => return None,
        })
    }
}
