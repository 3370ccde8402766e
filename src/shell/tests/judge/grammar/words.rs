//! Words: literals, quotes, and what is between them.

use super::Grammar;
use crate::judge::program::{Node, Piece, QUOTED_NEWLINE, pieces};

const LITERALS: [&str; 22] = [
    "a", "b", "ab", "x", "f", "d", "one", "abc", "A", "0", "1", "7", "10", "a.b", "a/b", "a:b", "-", "--", "-n", "foo",
    "=", "a=b",
];

const VALUES: [&str; 24] = [
    "a",
    "'a b'",
    "''",
    "' lead tail '",
    "x:y:z",
    "a/b.c",
    "'*'",
    "abcabc",
    "'[a]'",
    "0",
    "7",
    "010",
    "-n",
    "Abc",
    "f",
    "d",
    "./f",
    "foo.tar.gz",
    "\"it's\"",
    "'a\\b'",
    "'a  b'",
    "/a/b/",
    "a,b",
    "'d/*'",
];

impl Grammar {
    /// A value for an assignment, quoted.
    pub(super) fn value(&mut self) -> String {
        self.random.pick(&VALUES).to_owned()
    }

    pub(super) fn name(&mut self) -> &'static str {
        self.random.pick(&["x", "x", "x", "y", "y", "n", "v", "unset"])
    }

    /// An argument.
    pub(super) fn word(&mut self) -> Node {
        let count = 1 + self.random.weighted(&[70, 22, 8]);
        let mut parts: Vec<Piece> = (0..count).map(|_| self.part().into()).collect();
        // dash divides what follows `"$@"` in a word in unusual ways.
        if let Some(at) = parts.iter().position(|part| part.text().starts_with('"') && part.text().contains('@')) {
            parts.truncate(at + 1);
        }
        if parts.len() == 1 { Node::word("", parts) } else { Node::word("joined", parts) }
    }

    fn part(&mut self) -> Node {
        match self.random.weighted(&[25, 10, 22, 3, 20, 6, 5, 5, 2, if self.bash { 14 } else { 0 }]) {
            0 => Node::optional("", pieces![self.random.pick(&LITERALS)]),
            1 => self.single_quoted(),
            2 => self.double_quoted(),
            3 => Node::optional(
                "escape",
                pieces![self.random.pick(&["\\ ", "\\*", "\\\\", "\\$", "\\\"", "\\a", "\\'"])],
            ),
            4 => self.parameter(false),
            5 => self.substitution(),
            6 => self.arithmetic_expansion(),
            7 => Node::optional(
                "glob",
                pieces![self.random.pick(&[
                    "*",
                    "?",
                    "d/*",
                    "*/",
                    "[a-f]",
                    "[!a-f]*",
                    "*.*",
                    "./*",
                    ".*",
                    "d*/*",
                    "[[:alpha:]]",
                    "x*"
                ])],
            ),
            8 => Node::optional("tilde", pieces![self.random.pick(&["~", "~/a", "a~", "~root/x", "~nouser"])]),
            _ => self.bash_part(),
        }
    }

    fn single_quoted(&mut self) -> Node {
        let text = self
            .random
            .pick(&["a b", "", "*", "$x", "a  b", "\\n", "a\\tb", "\"", "\\\\", "`x`", "~", "a\u{2}b", "#", "\\c"]);
        Node::optional("single-quoted", pieces![format!("'{text}'")])
    }

    pub(super) fn double_quoted(&mut self) -> Node {
        let mut pieces: Vec<Piece> = pieces!["\""];
        for _ in 0..self.random.weighted(&[5, 50, 30, 15]) {
            let part = match self.random.weighted(&[30, 40, 8, 8, 10]) {
                0 => Node::optional(
                    "",
                    pieces![self.random.pick(&["a", " ", "a b", "*", "'", "~", "{a,b}", "#", "a\u{2}b", "/", ":"])],
                ),
                1 => self.parameter(true),
                2 => self.substitution(),
                3 => self.arithmetic_expansion(),
                _ => Node::optional(
                    "escape",
                    pieces![self.random.pick(&["\\$", "\\\"", "\\\\", "\\`", "\\a", "\\n", "\\*"])],
                ),
            };
            pieces.push(part.into());
        }
        pieces.push("\"".into());
        Node::optional("", pieces)
    }

    pub(super) fn words(&mut self, most: usize) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for _ in 0..=self.random.below(most) {
            pieces.extend(pieces![" ", self.word()]);
        }
        pieces
    }

    /// A pattern of `case` and of expansions.
    pub(super) fn pattern(&mut self) -> Node {
        let count = 1 + self.random.weighted(&[60, 30, 10]);
        let mut pieces = Vec::new();
        for _ in 0..count {
            let text = self.random.pick(&[
                "*",
                "*",
                "?",
                "a",
                "b",
                "ab",
                "a*",
                "*b",
                ".",
                "/",
                ":",
                "[ab]",
                "[!a]",
                "[a-c]",
                "[[:digit:]]",
                "[[:upper:]]",
                "[]a]",
                "[^a]",
                "\\*",
                "'*'",
                "\"$y\"",
                "$y",
                "\"a\"",
                "[a-]",
                "*.",
                "'a b'",
            ]);
            pieces.push(Node::optional("", pieces![text]).into());
        }
        if self.extglob && self.random.chance(20) {
            let text = self.random.pick(&["@(a|b)", "!(a)", "*(ab)", "+([0-9])", "?(x)"]);
            pieces.push(Node::optional("extglob", pieces![text]).into());
        }
        Node::word("", pieces)
    }

    /// What only bash expands.
    fn bash_part(&mut self) -> Node {
        match self.random.below(4) {
            0 => Node::optional(
                "brace",
                pieces![self.random.pick(&[
                    "{a,b}",
                    "{1..3}",
                    "{a,}",
                    "x{a,b}y",
                    "{a..e..2}",
                    "{3..1}",
                    "{01..03}",
                    "{a,{b,c}}",
                    "{a}",
                    "{}",
                    "{a,b",
                    "{$x,b}",
                    "\\{a,b}",
                    "{'a b',c}",
                    "{1..3..0}",
                    "{-1..1}",
                    "{a,b}{1,2}",
                    "{x..1}",
                    "{,}",
                    "{a,b}}",
                ])],
            ),
            1 => Node::optional(
                "dollar-quoted",
                pieces![self.random.pick(&[
                    "$'a\\tb'",
                    "$'\\n'",
                    "$'\\x41'",
                    "$'\\101'",
                    "$'\\''",
                    "$'a\\\\b'",
                    "$'\\e'",
                    "$'\\u0041'",
                    "$'\\cA'",
                    "$'a\\0b'",
                    "$'\\\"'",
                    "$'\\z'",
                ])],
            ),
            2 => Node::optional("locale-quoted", pieces!["$\"a $x\""]),
            _ => self.array_expansion(),
        }
    }

    pub(super) fn newline(&self) -> char {
        QUOTED_NEWLINE
    }
}
