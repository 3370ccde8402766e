//! Parses `layer.json`: bytes in; the [`Schema`] with the positions of its values, or all syntax errors, duplicate keys, unknown keys and
//! wrong types out.

use super::Schema;
use super::position::{Span, Spans, child, position};
use super::text::without_comments;
use vmbake_common::address;

/// Maximum number of reported form faults.
const MAX_FAULTS: usize = 100;

/// A fault of form, with line and column.
pub(super) type FormFault = ((usize, usize), String);

/// A document that has the right form.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) schema: Schema,
    pub(super) text: Vec<u8>,
    pub(super) spans: Spans,
}

impl Document {
    /// Reads `text`.
    pub(super) fn read(text: &[u8]) -> Result<Self, Vec<FormFault>> {
        let text = &without_comments(text);
        // Values know more of JSON's rules than the schema, which ignores nothing but could stop at a first unknown key.
        let value: serde_json::Value = serde_json::from_slice(text)
            .map_err(|error| vec![(position(text, offset(text, &error)), message(&error))])?;
        let spans = Spans::of(text);
        // Before other checks, whose messages may show values.
        if let Some(pointer) = address::in_json(&value, &is_content) {
            let at = spans.get(&pointer).map_or(0, |place| place.start);
            return Err(vec![(position(text, at), address::MESSAGE.to_owned())]);
        }
        let twice = |(at, key): &(usize, String)| (position(text, *at), format!("duplicate key {key:?}"));
        let mut faults: Vec<FormFault> = spans.twice.iter().take(MAX_FAULTS).map(twice).collect();
        match schema(text, &spans, &mut faults) {
            Some(schema) if faults.is_empty() => Ok(Self { schema, text: text.to_vec(), spans }),
            _ => {
                faults.sort();
                Err(faults)
            }
        }
    }

    /// Line and column of the value that `pointer` names, or of its key; where it is not in the text, of what it would be in.
    pub(super) fn position(&self, pointer: &str, key: bool) -> (usize, usize) {
        let at = |place: &Span| if key { place.key } else { place.start };
        let mut ends = pointer.rmatch_indices('/').map(|(end, _)| end);
        let place = self.spans.get(pointer).or_else(|| ends.find_map(|end| self.spans.get(pointer.get(..end)?)));
        position(&self.text, place.map_or(0, at))
    }
}

/// Whether `pointer` names file contents or a first-boot template, and not a URL for vmbake.
fn is_content(pointer: &str) -> bool {
    ["/files", "/units/files", "/motd"].contains(&pointer)
        || (pointer.starts_with("/first_boot/") && !pointer.starts_with("/first_boot/variables"))
}

/// The schema; each entry that does not fit is a fault, and is blanked out to find the next one.
fn schema(text: &[u8], spans: &Spans, faults: &mut Vec<FormFault>) -> Option<Schema> {
    let mut rest = text.to_vec();
    loop {
        let error = match serde_json::from_slice::<Schema>(&rest) {
            Ok(schema) => return Some(schema),
            Err(error) => error,
        };
        let at = offset(text, &error);
        let reason = message(&error);
        // A required key that was blanked out is not missing.
        let missing = reason.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
        if missing.is_some_and(|key| spans.get(&child("", key)).is_some()) && !faults.is_empty() {
            return None;
        }
        // A value is often judged only when what stands behind it is seen.
        let inside = spans.ending(at).filter(|_| missing.is_none()).map_or(at, |value| value.start);
        let entry = spans.around(inside, 2).filter(|(_, place)| rest.get(place.key) == text.get(place.key));
        let found = (position(text, start(spans, at, missing.is_some())), reason);
        if !faults.iter().any(|(position, _)| *position == found.0) {
            faults.push(found);
        }
        match entry {
            Some((_, place)) if faults.len() < MAX_FAULTS && blank(&mut rest, place) => {}
            _ => return None,
        }
    }
}

/// Where that begins which made serde_json stop at the byte `at`, which is the last of it, or the one behind it.
fn start(spans: &Spans, at: usize, missing: bool) -> usize {
    match spans.around(at, 2) {
        // Tagged values are read as a whole before they are judged; so are objects that lack a key.
        Some((pointer, entry)) if at + 1 == entry.end && (missing || pointer.starts_with("/artifacts/")) => entry.key,
        _ if missing => spans.ending(at + 1).map_or(at, |place| place.key),
        _ => match spans.ending(at).or_else(|| spans.ending(at + 1)) {
            Some(value) => value.start,
            None => spans
                .around(at, usize::MAX)
                .map_or(at, |(_, place)| if at < place.start { place.key } else { place.start }),
        },
    }
}

/// Replaces a member, and one comma next to it, with blanks.
fn blank(rest: &mut [u8], place: &Span) -> bool {
    let is_blank = |byte: &u8| b" \t\r\n".contains(byte);
    let after = rest.get(place.end..).unwrap_or_default();
    let after = after.iter().position(|byte| !is_blank(byte)).map(|skipped| place.end + skipped);
    let before = rest.get(..place.key).unwrap_or_default().iter().rposition(|byte| !is_blank(byte));
    let comma = [after, before].into_iter().flatten().find(|at| rest.get(*at) == Some(&b','));
    let Some(member) = rest.get_mut(place.key..place.end) else { return false };
    // Lines stay where they are.
    member.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    if let Some(byte) = comma.and_then(|at| rest.get_mut(at)) {
        *byte = b' ';
    }
    true
}

/// The byte at which serde_json stopped: its lines and columns count from 1, columns in bytes.
fn offset(text: &[u8], error: &serde_json::Error) -> usize {
    let newlines = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let line = std::iter::once(0).chain(newlines).nth(error.line().saturating_sub(1)).unwrap_or(text.len());
    (line + error.column().saturating_sub(1)).min(text.len())
}

/// The message of serde_json without its position, since our message starts with it.
fn message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(rest: &str) -> Vec<String> {
        let text = format!("{{\"name\": \"a\", \"version\": \"1\", \"description\": \"d\", \"os\": [\"o\"]{rest}}}");
        let faults = Document::read(text.as_bytes()).map(|_| ()).unwrap_err();
        faults.into_iter().map(|((line, column), message)| format!("{line}:{column}: {message}")).collect()
    }

    #[test]
    fn all_faults_of_form_are_found() {
        let found = faults(
            ",\n\"unit\": {},\n\"directories\": {\"/x\": {\"mode\": \"755\"}, \"/y\": {}, \"/z\": {\"mode\": \"0755\"}, \"/z\": {\"mode\": \"0700\"}},\n\
             \"requires\": [\"b\", 3, null],\n\"artifacts\": {\"x\": {\"type\": \"rpm\"}, \"y\": {\"type\": \"file\", \"path\": \"/y\"},\n\
             \"z\": {\"type\": \"file\", \"path\": \"/y\", \"mode\": \"9999\"}},\n\"empty\": {}",
        );
        for (found, expected) in found.iter().zip([
            "2:1: unknown field `unit`",
            "3:32: mode \"755\" is not four octal digits",
            "3:74: duplicate key \"/z\"",
            "4:19: invalid type: integer `3`, expected a string",
            "4:22: invalid type: null, expected a string",
            "5:29: unknown variant `rpm`, expected one of",
            "5:37: missing field `mode`",
            "6:6: mode \"9999\" is not four octal digits",
            "7:1: invalid type: map, expected a sequence",
        ]) {
            assert!(found.starts_with(expected), "{expected}: {found}");
        }
        assert_eq!(found.len(), 9, "{found:#?}");
    }

    #[test]
    fn what_is_no_json_is_one_fault() {
        for (text, expected) in [
            ("", ((1, 1), "EOF while parsing a value")),
            ("{\n  \"name\": 1,\n}", ((3, 1), "trailing comma")),
            ("{\"a\": \"é\" x}", ((1, 11), "expected `,` or `}`")),
        ] {
            let faults = Document::read(text.as_bytes()).map(|_| ()).unwrap_err();
            assert_eq!(faults, [(expected.0, expected.1.to_owned())]);
        }
        assert_eq!(Document::read(b"{}").map(|_| ()).unwrap_err()[0].1, "missing field `name`");
        let deep = "[".repeat(1_000_000);
        assert!(Document::read(deep.as_bytes()).map(|_| ()).unwrap_err()[0].1.contains("recursion limit"));
    }
}
