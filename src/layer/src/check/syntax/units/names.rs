//! Lists of names in values of settings.

const LISTS: &str = include_str!("names.txt");

/// Whether a list has a name.
pub(super) fn is_in(list: &str, name: &str) -> bool {
    let is_header = |line: &&str| line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) == Some(list);
    let lines = LISTS.lines().skip_while(|line| !is_header(line)).skip(1).take_while(|line| !line.starts_with('['));
    lines.filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace).any(|known| known == name)
}
