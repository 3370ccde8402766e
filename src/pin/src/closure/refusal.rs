//! Why a package cannot be chosen, with the chain of dependencies to it.

use vmbake_common::hint::Hint;

/// Separator of the packages in a chain.
pub const ARROW: &str = " → ";

/// Why a package or one of its dependencies cannot be chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{}: depends on {relation}, which is neither in the base nor in an archive", chain.join(ARROW))]
    Unmet {
        /// The chain of dependencies to it, from the requested package.
        chain: Vec<String>,
        /// The relation as written.
        relation: String,
    },
    #[error("{}: conflicts with {}: {text}", chain.join(ARROW), other(.package, .version, .second))]
    Conflict {
        /// The chain of dependencies to it, from the requested package.
        chain: Vec<String>,
        text: String,
        package: String,
        version: String,
        /// The chain of dependencies to the other package; empty if the base has it.
        second: Vec<String>,
    },
    #[error("{}: replaces a dependency of package {package} of the base: {relation}", chain.join(ARROW))]
    Loses {
        /// The chain of dependencies to it, from the requested package.
        chain: Vec<String>,
        package: String,
        /// The relation as written.
        relation: String,
    },
    #[error("{}: depends on {package} {wanted}, but {} at version {found}", chain.join(ARROW), if *.by_layer { "a layer has it on hold" } else { "the base has it on hold" })]
    Held {
        /// The chain of dependencies to it, from the requested package.
        chain: Vec<String>,
        package: String,
        found: String,
        wanted: String,
        /// Whether a layer holds it, rather than the base.
        by_layer: bool,
    },
    #[error("{}: depends on {package} {wanted}, but the manifest has it as an artifact of version {found}", chain.join(ARROW))]
    Given {
        /// The chain of dependencies to it, from the requested package.
        chain: Vec<String>,
        package: String,
        found: String,
        wanted: String,
    },
    #[error("{package}: refusing to downgrade from version {found} of the base to {}", wanted.join(" and "))]
    Later { package: String, found: String, wanted: Vec<String> },
    #[error("{}: {package} is removed by layer {layer}", chain.join(ARROW))]
    Removed {
        /// The chain of dependencies to it, from the requested package.
        chain: Vec<String>,
        package: String,
        layer: String,
    },
    #[error("{package}: layer {layer} removes it, but {} depends on {relation}", chain.join(ARROW))]
    StillNeeded {
        package: String,
        layer: String,
        /// The chain of dependencies to the package that needs it.
        chain: Vec<String>,
        /// The relation as written.
        relation: String,
    },
    #[error("{}: {package} is excluded by `without`", chain.join(ARROW))]
    Without {
        /// The chain of dependencies to it, from the requested package.
        chain: Vec<String>,
        package: String,
    },
    #[error(
        "{}: {package} {}, which is not supported in a bake", chain.join(ARROW),
        if *.is_loader { "is a boot loader or generates an initial RAM disk" } else { "would need a change of the boot menu" }
    )]
    Boot {
        /// The chain of dependencies to it, from the requested package.
        chain: Vec<String>,
        package: String,
        /// Whether it is refused on every base: a boot loader or dracut, rather than a kernel or initramfs-tools.
        is_loader: bool,
    },
    #[error("{}: {package} compiles kernel modules on the machine, which is not supported in a bake", chain.join(ARROW))]
    Compiles {
        /// The chain of dependencies to it, from the requested package.
        chain: Vec<String>,
        package: String,
    },
    #[error("{package}: chain of more than {limit} dependencies")]
    TooDeep { package: String, limit: usize },
}

/// The hint for conflicts.
const REMOVED_BY_NAME: &str = "packages are removed only if a layer lists them in `remove_packages`";

/// The description of the second of two conflicting packages.
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
                "kernels, initial RAM disks and boot menus come from the base: use `vmbake update KIND --only os.image` to pin a newer one"
                    .to_owned()
            }
            Self::Compiles { .. } => {
                "build the module elsewhere, and add it to a layer below /usr/lib/modules/VERSION".to_owned()
            }
            Self::Held { package, by_layer: true, .. } => format!("remove {package} from `hold`, or request less"),
            Self::Held { .. } => "use a base that does not have it on hold, or request less".to_owned(),
            Self::Removed { package, layer, .. } => {
                format!("take {package} out of `remove_packages` of layer {layer}, or request less")
            }
            Self::StillNeeded { chain, layer, .. } => format!(
                "add {} to `remove_packages` of layer {layer} too, or install another package that satisfies the dependency",
                chain.last().map_or("it", String::as_str)
            ),
            Self::Without { package, .. } => format!("remove {package} from `without`, or request less"),
            Self::Given { package, .. } => {
                format!("use `vmbake update KIND --only {package}` to pin the newest version of the artifact")
            }
            // `without` is for dependencies, not for requested packages.
            Self::Conflict { chain, second, package, .. } if second.is_empty() => {
                let remedy = format!("to remove {package} from the image, add to the layer: \"remove_packages\": [\"{package}\"]");
                if chain.len() < 2 { remedy } else { format!("{remedy}; or exclude one with `without`") }
            }
            Self::Conflict { chain, second, .. } if chain.len() < 2 && second.len() < 2 => {
                "request only one of them".to_owned()
            }
            Self::Conflict { .. } => "request only one of them, or exclude one with `without`".to_owned(),
            Self::Loses { chain, package, .. } => {
                let remedy = format!("{REMOVED_BY_NAME}: add {package}, or request another package");
                if chain.len() < 2 { remedy } else { format!("{remedy}; or exclude one with `without`") }
            }
            Self::Unmet { .. } => "use `archive` to name another archive".to_owned(),
            Self::Later { .. } => "request the version of the base, or none".to_owned(),
            Self::TooDeep { .. } => return None,
        })
    }
}
