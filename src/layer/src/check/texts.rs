//! What a layer's own files show of faults that a bake refuses: files that a program would have to process, and unknown words.

use super::super::findings::Findings;
use super::super::{Layer, processed};
use super::pointer;

/// Words of `expand` without an argument.
const WORDS: [&str; 5] = ["kind", "version", "os", "codename", "arch"];

pub(super) fn check(found: &mut Findings, layer: &Layer) {
    for (path, file) in &layer.files {
        let unprocessed = processed::unprocessed(path, &file.content);
        let unprocessed = unprocessed.map(|(what, hint)| format!("{path:?} cannot be used: {what}; {hint}"));
        let is_expanded = layer.schema.expand.contains(path);
        let word = is_expanded.then(|| wrong_word(&file.content)).flatten();
        let word = word.map(|reason| format!("{path:?} {reason}, and `expand` lists it"));
        found.key(pointer(layer, path), unprocessed.or(word));
    }
}

/// What is wrong with the words that a bake replaces.
fn wrong_word(content: &[u8]) -> Option<String> {
    let Ok(mut rest) = str::from_utf8(content) else { return Some("is not UTF-8".to_owned()) };
    while let Some((_, after)) = rest.split_once("@{") {
        let Some((word, after)) = after.split_once('}') else { return Some("has a @{ without its }".to_owned()) };
        if !WORDS.contains(&word) && !word.starts_with("image:") {
            return Some(format!("has the unknown word @{{{word}}}"));
        }
        rest = after;
    }
    None
}
