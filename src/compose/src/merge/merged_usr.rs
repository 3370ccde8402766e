//! The links of a merged `/usr`, where no package contains them: packages of a new system in, links in its root out.
//!
//! The package `usr-is-merged` of Debian 12 fails in a system without them, and none of its packages contains them:
//! debootstrap creates them before it unpacks the first package. Since Debian 13, `base-files` contains them.

use vmbake_common::message;

use super::MergeError;
use super::place::Target;
use crate::stage::{MemberKind, StagedArtifact, StagedContent};

const PACKAGE: &str = "usr-is-merged";

/// The directories that debootstrap links, by architecture.
const LINKS: [(&str, &[&str]); 2] =
    [("amd64", &["bin", "lib", "lib32", "lib64", "libx32", "sbin"]), ("arm64", &["bin", "lib", "sbin"])];

/// Creates the links, if the packages require a merged `/usr` and do not contain it.
pub(super) fn link(target: &mut Target, artifacts: &[StagedArtifact], arch: &str) -> Result<(), MergeError> {
    let debs = || {
        artifacts.iter().filter_map(|artifact| match &artifact.content {
            StagedContent::Deb(deb) => Some(deb),
            _ => None,
        })
    };
    let is_link = |kind: &MemberKind| matches!(kind, MemberKind::Symlink(_));
    let has_link = debs().flat_map(|deb| &deb.entries).any(|member| member.path == b"bin" && is_link(&member.kind));
    if has_link || !debs().any(|deb| deb.name() == PACKAGE) {
        return Ok(());
    }
    let unknown = || message!("{PACKAGE}: the directories that it expects to be links on {arch} are not known");
    let (_, names) = LINKS.iter().find(|(name, _)| *name == arch).ok_or_else(unknown)?;
    for name in *names {
        let meta = target.meta(0o755);
        target.ensure_directory(&format!("/usr/{name}"), meta)?;
        target.symlink(&format!("/{name}"), &format!("usr/{name}"))?;
    }
    Ok(())
}
