//! Checks that the image has the time zone and the locales that a layer sets.

use vmbake_disk::tree::Kind;

use super::MergeError;
use super::place::Target;
use vmbake_layer::{Schema, Words};

const ZONES: &str = "/usr/share/zoneinfo";
const LOCALES: &str = "/usr/lib/locale";
/// Locales that the C library itself has.
const ALWAYS: [&str; 2] = ["C", "POSIX"];

/// Refuses a time zone or a locale that the image lacks, since what needs it would silently fall back to another one.
pub(super) fn check(target: &Target, schema: &Schema) -> Result<(), MergeError> {
    if let Some(zone) = &schema.timezone {
        let path = format!("{ZONES}/{zone}");
        // Other files and directories are in the same place.
        let is_zone = |id| matches!(target.tree.inode(id).kind, Kind::File(_));
        let is_zone = target.tree.resolve(path.as_bytes()).is_ok_and(is_zone);
        if !is_zone || !target.bytes(&path)?.starts_with(b"TZif") {
            let layer = schema.name.clone();
            return Err(MergeError::Setting { layer, what: "time zone", value: zone.clone(), path });
        }
    }
    let mut locales = schema.locale.iter().flat_map(Words::as_slice);
    locales.try_for_each(|locale| require(target, &schema.name, locale))
}

/// Refuses a list for locale-gen(8) that names a locale that the image lacks.
pub(super) fn check_list(target: &Target, layer: &str, path: &str) -> Result<(), MergeError> {
    let text = target.text_or_empty(path)?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let mut named = lines.filter_map(|line| line.split_whitespace().next());
    named.try_for_each(|locale| require(target, layer, locale))
}

fn require(target: &Target, layer: &str, locale: &str) -> Result<(), MergeError> {
    let name = normalized(locale);
    let path = format!("{LOCALES}/{name}");
    if ALWAYS.contains(&locale) || target.tree.resolve(path.as_bytes()).is_ok() || is_archived(target, &name)? {
        return Ok(());
    }
    Err(MergeError::Setting { layer: layer.to_owned(), what: "locale", value: locale.to_owned(), path })
}

/// Whether the archive of locales has one: their names stand in it, each with a NUL behind it.
fn is_archived(target: &Target, name: &str) -> Result<bool, MergeError> {
    let path = format!("{LOCALES}/locale-archive");
    if target.tree.resolve(path.as_bytes()).is_err() {
        return Ok(false);
    }
    let needle = format!("\0{name}\0");
    Ok(target.bytes(&path)?.windows(needle.len()).any(|bytes| bytes == needle.as_bytes()))
}

/// A locale as its files are named: the codeset in small letters and digits (`_nl_normalize_codeset` of the C library).
fn normalized(locale: &str) -> String {
    let (rest, modifier) = locale.split_once('@').map_or((locale, None), |(rest, modifier)| (rest, Some(modifier)));
    let codeset = |text: &str| {
        let letters = text.chars().filter(char::is_ascii_alphanumeric);
        letters.map(|letter| letter.to_ascii_lowercase()).collect::<String>()
    };
    let name = match rest.split_once('.') {
        Some((language, text)) => format!("{language}.{}", codeset(text)),
        None => rest.to_owned(),
    };
    modifier.map_or(name.clone(), |modifier| format!("{name}@{modifier}"))
}

#[cfg(test)]
mod tests {
    use super::normalized;

    #[test]
    fn locales_are_named_as_their_files() {
        for (locale, name) in [
            ("C.UTF-8", "C.utf8"),
            ("de_DE.UTF-8@euro", "de_DE.utf8@euro"),
            ("en_US", "en_US"),
            ("sr_RS@latin", "sr_RS@latin"),
        ] {
            assert_eq!(normalized(locale), name);
        }
    }
}
