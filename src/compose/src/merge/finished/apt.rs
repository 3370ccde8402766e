//! Repositories of apt(8): the sources of the finished tree in, an error out if two entries name different keys for one suite, at which
//! every command of apt fails.

use std::collections::BTreeMap;

use super::files_in;
use crate::merge::place::Target;
use crate::merge::{MergeError, os_release};
pub use vmbake_layer::{AptSource, apt_sources};

const MAIN: &str = "/etc/apt/sources.list";
const PARTS: &str = "/etc/apt/sources.list.d";

const HINT: &str =
    "use the same Signed-By in both entries, or remove one of them; a layer can replace a file of the base";

/// Fails if two entries conflict, of which a layer has at least one.
pub(super) fn check(target: &Target) -> Result<(), MergeError> {
    // Up to Debian 12, an entry without keys may not follow one with keys.
    let is_strict = os_release::is_debian_12_or_older(target)?;
    let files = [MAIN.to_owned()].into_iter().chain(files_in(target, PARTS, &[".list", ".sources"]));
    let mut first: BTreeMap<(String, String), (String, AptSource)> = BTreeMap::new();
    for path in files {
        for found in apt_sources(&path, &target.text(&path).unwrap_or_default()) {
            let key = (found.uri.clone(), found.suite.clone());
            match first.get_mut(&key) {
                None => {
                    first.insert(key, (path.clone(), found));
                }
                // An entry without keys takes those of a later one.
                Some((_, earlier)) if earlier.signed_by.is_empty() => earlier.signed_by = found.signed_by,
                Some(_) if found.signed_by.is_empty() && !is_strict => {}
                Some((other, earlier)) if earlier.signed_by != found.signed_by => {
                    conflict(target, (other, earlier), (&path, &found))?;
                }
                Some(_) => {}
            }
        }
    }
    Ok(())
}

fn conflict(target: &Target, first: (&str, &AptSource), second: (&str, &AptSource)) -> Result<(), MergeError> {
    let entry = |(path, source): (&str, &AptSource)| {
        let of = target.layer_at(path).map_or("the base".to_owned(), |layer| format!("layer {layer}"));
        let signed_by = if source.signed_by.is_empty() { "no Signed-By" } else { source.signed_by.as_str() };
        (format!("{path}:{}", source.line), of, signed_by.to_owned())
    };
    let layer = target.layer_at(second.0).or_else(|| target.layer_at(first.0)).map(str::to_owned);
    // A base that is at fault itself stays as it is.
    let Some(layer) = layer else { return Ok(()) };
    let ((place, _, own), (other, of, others)) = match target.layer_at(second.0) {
        Some(_) => (entry(second), entry(first)),
        None => (entry(first), entry(second)),
    };
    let AptSource { uri, suite, .. } = second.1;
    let what = format!("every command of apt fails: it has {own} for {uri} {suite}, but {other} of {of} has {others}");
    Err(MergeError::Unread { path: place, layer, what, hint: HINT })
}
