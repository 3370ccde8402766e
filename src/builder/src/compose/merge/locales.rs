//! Time zones and locales: whether an image has those that a layer sets.

use super::MergeError;
use super::place::Target;
use crate::layer::Schema;

const ZONES: &str = "/usr/share/zoneinfo";
const LOCALES: &str = "/usr/lib/locale";
/// Locales that the C library itself has.
const ALWAYS: [&str; 2] = ["C", "POSIX"];

/// Refuses a time zone or a locale that the image lacks, since what needs it would silently fall back to another one.
pub(super) fn check(target: &Target, schema: &Schema) -> Result<(), MergeError> {
    let missing = |what, value: &str, path| {
        Err(MergeError::Setting { layer: schema.name.clone(), what, value: value.to_owned(), path })
    };
    if let Some(zone) = &schema.timezone {
        let path = format!("{ZONES}/{zone}");
        if target.tree.resolve(path.as_bytes()).is_err() {
            return missing("time zone", zone, path);
        }
    }
    if let Some(locale) = &schema.locale
        && !ALWAYS.contains(&locale.as_str())
    {
        let name = normalized(locale);
        let path = format!("{LOCALES}/{name}");
        if target.tree.resolve(path.as_bytes()).is_err() && !is_archived(target, &name)? {
            return missing("locale", locale, path);
        }
    }
    Ok(())
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
