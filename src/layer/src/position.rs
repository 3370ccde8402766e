//! Positions of the values in a JSON document: text that serde_json accepts (RFC 8259) in; the position of each value by JSON pointer (RFC
//! 6901), and duplicate keys, of which serde_json silently uses the last, out.
//!
//! Spans are byte offsets; positions are lines and columns, both counted from 1, columns in characters.

use std::collections::{BTreeMap, BTreeSet};

/// Most bytes of all pointers: a long key stands in those of all values below it.
const MAX_POINTERS: usize = 64 << 20;

/// The span of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// First byte of its key, or of itself where it is an element of an array.
    pub(super) key: usize,
    /// First byte of the value.
    pub(super) start: usize,
    /// The byte after its last one.
    pub(super) end: usize,
}

/// The spans of a document by JSON pointer.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans {
    by_pointer: BTreeMap<String, Span>,
    /// Duplicate keys: position and text of each repetition.
    pub(super) twice: Vec<(usize, String)>,
}

impl Spans {
    /// Finds the places of `text`, which is valid JSON and nested no deeper than serde_json takes.
    pub(super) fn of(text: &[u8]) -> Self {
        let mut scanner = Scanner { text, at: 0, spans: Self::default(), room: MAX_POINTERS };
        scanner.value("", None);
        scanner.spans
    }

    /// The place of the value that `pointer` names.
    pub(super) fn get(&self, pointer: &str) -> Option<&Span> {
        self.by_pointer.get(pointer)
    }

    /// The deepest value around the byte `at`, of those that are at most `depth` levels below the root.
    pub(super) fn around(&self, at: usize, depth: usize) -> Option<(&str, &Span)> {
        let level = |pointer: &str| pointer.matches('/').count();
        let inside = self.by_pointer.iter().filter(|(_, place)| (place.key..place.end).contains(&at));
        let (pointer, place) = inside
            .filter(|(pointer, _)| (1..=depth).contains(&level(pointer)))
            .max_by_key(|(pointer, _)| level(pointer))?;
        Some((pointer, place))
    }

    /// The deepest value that ends before the byte `end`.
    pub(super) fn ending(&self, end: usize) -> Option<&Span> {
        self.by_pointer.values().filter(|place| place.end == end).max_by_key(|place| place.start)
    }
}

/// The pointer of the member `key` of what `parent` points to.
pub fn child(parent: &str, key: &str) -> String {
    format!("{parent}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Line and column of the byte `at`.
pub(super) fn position(text: &[u8], at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let lines = before.iter().filter(|byte| **byte == b'\n').count();
    // Every byte of UTF-8 that does not continue a character begins one.
    let characters = before[line..].iter().filter(|byte| **byte & 0xc0 != 0x80).count();
    (lines + 1, characters + 1)
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    spans: Spans,
    /// Bytes that pointers may still take. Without any left, values have no place of their own.
    room: usize,
}

impl Scanner<'_> {
    /// The pointer of the member `key` of what `parent` points to; the root's when there is no room for it.
    fn child(&mut self, parent: &str, key: &str) -> String {
        // A tilde or slash becomes two bytes.
        let room = self.room.checked_sub(parent.len() + 2 * key.len() + 1);
        self.room = room.unwrap_or(0);
        if room.is_some() { child(parent, key) } else { String::new() }
    }

    /// Reads the value at `pointer`, whose key stands at `key`.
    fn value(&mut self, pointer: &str, key: Option<usize>) {
        self.blank();
        let start = self.at;
        match self.text.get(start) {
            Some(b'{') => self.object(pointer),
            Some(b'[') => self.array(pointer),
            Some(b'"') => self.string(),
            _ => self.skip(|byte| !b",]} \t\r\n".contains(&byte)),
        }
        let place = Span { key: key.unwrap_or(start), start, end: self.at };
        self.spans.by_pointer.insert(pointer.to_owned(), place);
    }

    fn object(&mut self, pointer: &str) {
        self.at += 1;
        let mut keys = BTreeSet::new();
        while self.next(b'}') {
            let start = self.at;
            self.string();
            let key: String =
                serde_json::from_slice(self.text.get(start..self.at).unwrap_or_default()).unwrap_or_default();
            let pointer = self.child(pointer, &key);
            if !keys.insert(key.clone()) {
                self.spans.twice.push((start, key));
            }
            self.blank();
            self.at += 1;
            self.value(&pointer, Some(start));
        }
    }

    fn array(&mut self, pointer: &str) {
        self.at += 1;
        let mut index = 0_usize;
        while self.next(b']') {
            let pointer = self.child(pointer, &index.to_string());
            self.value(&pointer, None);
            index += 1;
        }
    }

    /// Whether another member follows; passes the comma before it, or the bracket `end`.
    fn next(&mut self, end: u8) -> bool {
        self.skip(|byte| b", \t\r\n".contains(&byte));
        match self.text.get(self.at) {
            Some(byte) if *byte != end => true,
            _ => {
                self.at += 1;
                false
            }
        }
    }

    fn string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.text.get(self.at).filter(|byte| **byte != b'"') {
            self.at += if *byte == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
    }

    fn blank(&mut self) {
        self.skip(|byte| b" \t\r\n".contains(&byte));
    }

    fn skip(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.text.get(self.at).is_some_and(|byte| wanted(*byte)) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_its_place() {
        let text = r#"{"a": [1, {"x/y": "q\"}]", "~": null}], "é": {}, "a": true}"#;
        let _: serde_json::Value = serde_json::from_str(text).unwrap();
        let spans = Spans::of(text.as_bytes());
        let shown = |pointer: &str| spans.get(pointer).map(|place| &text[place.start..place.end]);
        for (pointer, expected) in
            [("", text), ("/a/0", "1"), ("/a/1/x~1y", r#""q\"}]""#), ("/a/1/~0", "null"), ("/é", "{}"), ("/a", "true")]
        {
            assert_eq!(shown(pointer), Some(expected), "{pointer}");
        }
        assert_eq!(spans.twice, [(text.rfind("\"a\"").unwrap(), "a".to_owned())]);
        assert_eq!(position("é\nüx".as_bytes(), 5), (2, 2));
        assert_eq!(spans.around(12, 2).unwrap().0, "/a/1");
    }

    #[test]
    fn long_keys_above_many_values_do_not_fill_the_memory() {
        let (key, list) = ("k".repeat(20_000), "0,".repeat(10_000));
        let text = format!("{{\"a\": 1, \"{key}\": [{list}0], \"b\": {{\"a\": 2}}}}");
        let spans = Spans::of(text.as_bytes());
        assert!(spans.by_pointer.keys().map(String::len).sum::<usize>() <= MAX_POINTERS);
        let shown = |pointer: &str| spans.get(pointer).and_then(|place| text.get(place.start..place.end));
        assert_eq!((shown(""), shown("/a")), (Some(text.as_str()), Some("1")));
    }
}
