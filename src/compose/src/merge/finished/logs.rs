//! Log files of logrotate(8): all of its files in the finished tree in, an error out if it skips one of them, because another file names the
//! same log, or because the directory for old logs does not exist.

use super::{files_in, of_layer};
use crate::merge::MergeError;
use crate::merge::config::Config;
use crate::merge::missing::is_made;
use crate::merge::place::Target;
use vmbake_common::glob::matches;
use vmbake_common::paths::is_at_or_below;
pub use vmbake_layer::{Layer, RotatedLog, is_skipped_by_logrotate, rotated_logs};

const LOGROTATE: &str = "/usr/sbin/logrotate";
const MAIN: &str = "/etc/logrotate.conf";
const PARTS: &str = "/etc/logrotate.d";

const HINT: &str = "name each log in one file only; a layer can replace a file of the base or of a package";
const OLD_HINT: &str = "add `createolddir MODE OWNER GROUP`, or the directory to `directories` of the layer";

/// Fails if a file is skipped, and a layer is the reason.
pub(super) fn check(target: &Target, layers: &[Layer]) -> Result<(), MergeError> {
    if target.tree.resolve(LOGROTATE.as_bytes()).is_err() {
        return Ok(());
    }
    let is_included = target.text(MAIN).is_ok_and(|text| text.contains(PARTS));
    let parts = if is_included { files_in(target, PARTS, &[""]) } else { Vec::new() };
    let parts = parts.into_iter().filter(|path| !is_skipped_by_logrotate(path.rsplit('/').next().unwrap_or_default()));
    let mut earlier: Vec<(String, RotatedLog)> = Vec::new();
    for path in parts.chain([MAIN.to_owned()]) {
        let logs = rotated_logs(&target.text(&path).unwrap_or_default());
        for log in &logs {
            if let Some(layer) = of_layer(target, layers, &path) {
                check_old(target, layers, (&path, layer), log)?;
            }
            let first = earlier.iter().find(|(_, first)| !first.may_repeat && is_same(&first.pattern, &log.pattern));
            if let Some((other, first)) = first {
                conflict(target, layers, (other, first), (&path, log))?;
            }
        }
        earlier.extend(logs.into_iter().map(|log| (path.clone(), log)));
    }
    Ok(())
}

/// Whether two patterns are sure to match one file, once it exists.
fn is_same(first: &str, second: &str) -> bool {
    let is_literal = |pattern: &str| !pattern.contains(['*', '?', '[', '{', '\\']);
    // A wildcard matches no slash.
    let fits = |pattern: &str, path: &str| {
        let (dir, name) = path.rsplit_once('/').unwrap_or_default();
        let parts =
            pattern.rsplit_once('/').filter(|(other, name)| *other == dir && !name.contains(['?', '[', '{', '\\']));
        !is_literal(pattern)
            && is_literal(path)
            && parts.is_some_and(|(_, last)| matches(last.as_bytes(), name.as_bytes()))
    };
    first == second || fits(first, second) || fits(second, first)
}

fn conflict(
    target: &Target,
    layers: &[Layer],
    first: (&str, &RotatedLog),
    second: (&str, &RotatedLog),
) -> Result<(), MergeError> {
    let of = |path: &str| target.layer_at(path).map_or("the base".to_owned(), |layer| format!("layer {layer}"));
    let ((later, log), (earlier, covering)) = (second, first);
    let (path, layer, what) = if let Some(layer) = of_layer(target, layers, later) {
        let what = format!(
            "logrotate skips the file: {:?} is already covered by {:?} in {earlier}:{} of {}",
            log.pattern,
            covering.pattern,
            covering.line,
            of(earlier)
        );
        (format!("{later}:{}", log.line), layer, what)
    } else if let Some(layer) = of_layer(target, layers, earlier) {
        let what = format!(
            "logrotate skips {later}:{} of {}: {:?} is already covered by {:?} here",
            log.line,
            of(later),
            log.pattern,
            covering.pattern
        );
        (format!("{earlier}:{}", covering.line), layer, what)
    } else {
        return Ok(());
    };
    Err(MergeError::Unread { path, layer: layer.to_owned(), what, hint: HINT })
}

fn check_old(target: &Target, layers: &[Layer], of: (&str, &str), log: &RotatedLog) -> Result<(), MergeError> {
    let Some((line, dir)) = &log.old_directory else { return Ok(()) };
    let is_named =
        |config: &Config| config.numbered().any(|(_, words)| words.iter().any(|word| is_at_or_below(word, dir)));
    let is_in_config = || Config::all(target, "tmpfiles.d").unwrap_or_default().iter().any(is_named);
    let is_there = target.tree.resolve(dir.as_bytes()).is_ok() || is_made(layers, dir) || is_in_config();
    // A unit of a layer, or a script, may make it.
    let is_mentioned = || {
        let others = layers.iter().flat_map(|layer| &layer.files).filter(|(path, _)| *path != of.0);
        let name = dir.strip_prefix("/var/log/").unwrap_or(dir);
        others.into_iter().any(|(_, file)| String::from_utf8_lossy(&file.content).contains(name))
    };
    if is_there || is_mentioned() {
        return Ok(());
    }
    let what = format!("logrotate skips the file: the directory {dir} of `olddir` does not exist");
    Err(MergeError::Unread { path: format!("{}:{line}", of.0), layer: of.1.to_owned(), what, hint: OLD_HINT })
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn patterns_of_one_log() {
        for (first, second, expected) in [
            ("/var/log/a", "/var/log/a", true),
            ("/var/log/*.log", "/var/log/a.log", true),
            ("/var/log/a.log", "/var/log/*.log", true),
            ("/var/log/*.log", "/var/log/x/a.log", false),
            ("/var/log/*.log", "/var/log/a*.log", false),
            ("/var/log/*/a.log", "/var/log/x/a.log", false),
            ("/var/log/*.log", "/var/log/a.txt", false),
        ] {
            assert_eq!(is_same(first, second), expected, "{first} {second}");
        }
    }
}
