//! Versions of single files, which become part of URLs and file names.

/// Maximum length of a version; the known ones have less than 30 characters.
pub(super) const MAX_LEN: usize = 128;

/// Whether a text is a valid version of a single file.
pub fn is_version(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_' | '~');
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    starts_well && text.len() <= MAX_LEN && text.chars().all(is_plain)
}
