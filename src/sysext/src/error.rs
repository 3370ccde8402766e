//! Why a bundle does not become an extension.

use std::path::{Path, PathBuf};

use vmbake_common::message::FileError;
use vmbake_disk::ext4::AuthorError;
use vmbake_disk::squashfs::SquashfsError;
use vmbake_disk::write::WriteError;

use vmbake_common::atomic_file::PublishError;
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_compose::merge::MergeError;
use vmbake_compose::stage::StageError;
use vmbake_distribute::bundle::BundleError;
use vmbake_fetch::FetchError;
use vmbake_fetch::verify::VerifyError;
use vmbake_manifest::ManifestError;

/// Why a bundle does not become an extension.
#[derive(Debug, thiserror::Error)]
pub enum ExtensionError {
    #[error("{}", lines(path, refusals))]
    Refused {
        path: PathBuf,
        /// All that is wrong, each with its layer and key.
        refusals: Vec<String>,
    },
    #[error("{path}: an extension has the name of its file, of letters, digits, `-`, `_` and `.`, and ends with .raw")]
    Name { path: PathBuf },
    #[error(
        "{path}: an extension has the name of its directory, of letters, digits, `-`, `_` and `.`, and not with .raw at its end"
    )]
    FolderName { path: PathBuf },
    #[error("{path}: is not that extension, and is not replaced")]
    Foreign { path: PathBuf },
    #[error("{path}: a directory has no blocks that a hash tree could verify")]
    NoBlocks { path: PathBuf },
    #[error("{path}: the bundle is for {found}, not for {expected}")]
    Target {
        path: PathBuf,
        /// System and architecture that are asked for.
        expected: String,
        found: String,
    },
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Verify(#[from] VerifyError),
    #[error(transparent)]
    Stage(#[from] StageError),
    #[error(transparent)]
    Merge(#[from] MergeError),
    #[error(transparent)]
    Author(#[from] AuthorError),
    #[error(transparent)]
    Squashfs(#[from] SquashfsError),
    #[error("{path}: cannot write the extension")]
    Write { path: PathBuf, source: WriteError },
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    File(#[from] FileError),
}

impl Hint for ExtensionError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Refused { .. } => {
                "docs/sysext.md lists what an extension can contain; `vmbake bake --with` installs anything"
            }
            Self::Name { .. } => "-o acme-agent.raw is such a name; with --format dir there is no .raw",
            Self::FolderName { .. } => "-o acme-agent is such a name",
            Self::Foreign { .. } => "-o names another directory",
            Self::NoBlocks { .. } => "--format squashfs or ext4 has some",
            Self::Target { .. } => "--os and --arch say which system and architecture",
            _ => return None,
        };
        Some(text.to_owned())
    }

    fn has_lines(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    vmbake_common::causes!(Bundle, Manifest, Fetch, Verify, Stage, Merge, Author, Squashfs, Publish, File; Write);
}

/// A line for each refusal.
fn lines(path: &Path, refusals: &[String]) -> String {
    let line = |what: &String| escape::line(format!("{}: {what}", path.display()));
    refusals.iter().map(line).collect::<Vec<_>>().join("\n")
}
