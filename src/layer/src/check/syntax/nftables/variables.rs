//! Variables of nft(8), which are defined before they are used, and included files, which must exist.

use std::collections::BTreeSet;

/// A file that nft reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NftInclude {
    /// Counted from 1.
    pub line: usize,
    /// As it is written, perhaps with wildcards.
    pub path: String,
}

/// The files that a text includes.
pub fn includes(text: &str) -> Vec<NftInclude> {
    let included = code(text).filter_map(|(line, code)| {
        let path = code.trim_start().strip_prefix("include")?.trim_start().strip_prefix('"')?;
        Some(NftInclude { line, path: path.split_once('"')?.0.to_owned() })
    });
    included.collect()
}

/// Variables that are not defined before, and paths without quotes, with their lines.
pub(super) fn faults(text: &str) -> Vec<(usize, String)> {
    let (mut defined, mut found) = (BTreeSet::new(), Vec::new());
    for (line, code) in code(text) {
        let statement = code.trim_start();
        if let Some(path) = statement.strip_prefix("include").filter(|path| path.starts_with([' ', '\t', '\'', '"'])) {
            match path.trim_start().starts_with('"') {
                // The file may define variables.
                true => return found,
                false => found.push((line, format!("expected a path in double quotes, found {}", path.trim_start()))),
            }
        }
        let mut rest = code.as_str();
        while let Some(at) = rest.find(['$', '"', 'd']) {
            let before_word = rest[..at].chars().next_back().is_none_or(|before| !is_part(before));
            let after = &rest[at + 1..];
            rest = match rest[at..].chars().next() {
                Some('"') => after.split_once('"').map_or("", |(_, rest)| rest),
                Some('$') => {
                    let (name, rest) = word(after);
                    if !name.is_empty() && !defined.contains(name) {
                        found.push((line, format!("${name} is not defined before; use `define {name} = VALUE`")));
                    }
                    rest
                }
                // `redefine` ends with it.
                _ => match after.strip_prefix("efine").filter(|_| before_word || rest[..at].ends_with("re")) {
                    Some(after) if after.starts_with([' ', '\t']) => {
                        let (name, rest) = word(after);
                        defined.insert(name.to_owned());
                        rest
                    }
                    _ => after,
                },
            };
        }
    }
    found
}

/// Lines without comments, with their numbers.
fn code(text: &str) -> impl Iterator<Item = (usize, String)> {
    (1..).zip(text.split('\n')).map(|(number, line)| {
        let mut is_quoted = false;
        let is_comment = |next: char| {
            is_quoted ^= next == '"';
            next == '#' && !is_quoted
        };
        (number, line[..line.find(is_comment).unwrap_or(line.len())].to_owned())
    })
}

/// The first word of a text, after blanks, and what follows.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches([' ', '\t']);
    text.split_at(text.find(|next: char| !is_part(next)).unwrap_or(text.len()))
}

fn is_part(next: char) -> bool {
    next.is_ascii_alphanumeric() || "_-./".contains(next)
}
