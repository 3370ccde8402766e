//! Rules of nft(8): the file of a layer in, an error out if it includes a file that the image does not have, so that a machine has no
//! firewall.

use super::of_layer;
use crate::merge::MergeError;
use crate::merge::missing::is_made;
use crate::merge::place::Target;
pub use vmbake_layer::{Layer, NftInclude, nft_includes};

const RULES: &str = "/etc/nftables.conf";

/// Where nft looks for relative paths.
const DIRECTORY: &str = "/etc";

const HINT: &str =
    "add the file to `files`; a path with a wildcard, such as \"/etc/nftables.d/*.nft\", may have no files";

pub(super) fn check(target: &Target, layers: &[Layer]) -> Result<(), MergeError> {
    let Some(layer) = of_layer(target, layers, RULES) else { return Ok(()) };
    for NftInclude { line, path } in nft_includes(&String::from_utf8_lossy(&target.bytes(RULES)?)) {
        let included = if path.starts_with('/') { path.clone() } else { format!("{DIRECTORY}/{path}") };
        // The current directory of nft is not known, nor files that only machines have.
        let is_unknown = path.contains(['*', '?', '[']) || path.starts_with("./") || path.starts_with("../");
        if !is_unknown && target.tree.resolve(included.as_bytes()).is_err() && !is_made(layers, &included) {
            let what = format!("nft refuses the file: it includes {path}, which is not in the image");
            let path = format!("{RULES}:{line}");
            return Err(MergeError::Unread { path, layer: layer.to_owned(), what, hint: HINT });
        }
    }
    Ok(())
}
