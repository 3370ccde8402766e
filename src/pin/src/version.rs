//! Versions of artifacts that stand by themselves: whatever an upstream or a manifest says, they become part of addresses and
//! file names.

/// Longest version that is believed; the known ones have less than 30 characters.
pub(super) const MAX_LEN: usize = 128;

/// Whether a text may be the version of an artifact that stands by itself.
pub fn is_version(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_' | '~');
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    starts_well && text.len() <= MAX_LEN && text.chars().all(is_plain)
}
