//! Scripts of sed, and regular expressions.

use super::Grammar;
use crate::judge::program::{Node, Piece, pieces};

impl Grammar {
    /// A basic regular expression without slashes and single quotes.
    pub(super) fn basic_regex(&mut self) -> String {
        let mut text = String::new();
        if self.random.chance(25) {
            text.push('^');
        }
        for _ in 0..=self.random.below(3) {
            text.push_str(self.random.pick(&[
                "a",
                "b",
                "o",
                "1",
                ".",
                "[a-c]",
                "[^a]",
                "[[:space:]]",
                "[[:digit:]]",
                "\\(a\\)",
                "x",
                " ",
                "\\.",
                "e",
                "\\(a\\|o\\)",
                "\\w",
                "t",
                "=",
                "[]x]",
                ":",
            ]));
            text.push_str(self.random.pick(&["", "", "", "", "*", "\\+", "\\?", "\\{1,2\\}", "\\{2\\}"]));
        }
        if self.random.chance(20) {
            text.push('$');
        }
        text
    }

    /// An extended regular expression without slashes and single quotes.
    pub(super) fn extended_regex(&mut self) -> String {
        let mut text = String::new();
        if self.random.chance(25) {
            text.push('^');
        }
        for _ in 0..=self.random.below(3) {
            text.push_str(self.random.pick(&[
                "a",
                "b",
                "o",
                "1",
                ".",
                "[a-c]",
                "[^a]",
                "[[:space:]]",
                "(a|b)",
                "(o)",
                "x",
                " ",
                "\\.",
                "e",
                "[0-9]",
                "t|n",
                "(ab|a)",
                "\\b",
            ]));
            text.push_str(self.random.pick(&["", "", "", "", "*", "+", "?", "{1,2}", "{2}"]));
        }
        if self.random.chance(20) {
            text.push('$');
        }
        text
    }

    pub(super) fn sed_script(&mut self) -> Node {
        let count = 1 + self.random.weighted(&[75, 20, 5]);
        let mut pieces: Vec<Piece> = pieces!["'"];
        for index in 0..count {
            if index > 0 {
                pieces.push(self.random.pick(&[";", "; ", "\u{2}"]).into());
            }
            let command = self.sed_command();
            let line_end = command.starts_with(['a', 'i', 'c', 'w']) || command.starts_with("$a");
            let address =
                if command.starts_with(['$', '/', ':']) { Node::fixed("", Vec::new()) } else { self.sed_address() };
            pieces.push(Node::optional("", pieces![address, Node::optional("", pieces![command])]).into());
            if line_end {
                break;
            }
        }
        pieces.push("'".into());
        Node::word("", pieces)
    }

    fn sed_address(&mut self) -> Node {
        let regex = self.basic_regex();
        let text = match self.random.weighted(&[45, 15, 8, 10, 6, 5, 4, 4, 3]) {
            0 => String::new(),
            1 => format!("/{regex}/"),
            2 => self.random.pick(&["1", "2", "3", "9"]).to_owned(),
            3 => "$".to_owned(),
            4 => format!("{},{}", self.random.pick(&["1", "2", "3"]), self.random.pick(&["2", "$", "1", "+1", "~2"])),
            5 => format!("/{regex}/,/{}/", self.basic_regex()),
            6 => format!("{}!", self.random.pick(&["1", "$", "2,3", "/a/"])),
            7 => format!("0,/{regex}/"),
            _ => self.random.pick(&["1~2", "0~2", "\\,a,", "/a/I", "2,/b/", "/a/,+1", "$!"]).to_owned(),
        };
        Node::optional(if text.is_empty() { "" } else { "sed-address" }, pieces![text])
    }

    fn sed_command(&mut self) -> String {
        match self.random.weighted(&[50, 12, 8, 10, 6, 6, 6, 3]) {
            0 => {
                let with = self
                    .random
                    .usual(&["X", "", "[&]", "\\1", "a\\&b", "\\n", "x y", "\\t", "\\\\"], &["\\U&", "\\L&"]);
                let regex = self.basic_regex();
                let with = if with == "\\1" && !regex.contains("\\(") { "&&" } else { with };
                let (open, flags) = (
                    self.random.pick(&["/", "/", "/", ",", "|", "#"]),
                    self.random.pick(&["", "", "g", "2", "p", "I", "gp", "2g"]),
                );
                let regex = if open == "|" { regex.replace("\\|", "") } else { regex };
                let open = if regex.contains(',') { "/" } else { open };
                format!("s{open}{regex}{open}{with}{open}{flags}")
            }
            1 => "d".to_owned(),
            2 => "p".to_owned(),
            3 => self
                .random
                .pick(&[
                    "a text",
                    "i text",
                    "c text",
                    "a\\  text",
                    "a\\\u{2}two\\\u{2}lines",
                    "i\\text",
                    "$a end",
                    "$a\\",
                ])
                .to_owned(),
            4 => self.random.pick(&["q", "q5", "Q", "="]).to_owned(),
            5 => "y/abc/xyz/".to_owned(),
            6 => self.random.pick(&["N", "n", "G", "H;x", "$!N", "N;P;D", "$!d", "h;G", "x;p;x"]).to_owned(),
            _ => self
                .random
                .pick(&[
                    "{p;d}",
                    "{s/a/b/;s/b/c/}",
                    ":a;N;$!ba;s/\\n/,/g",
                    "/a/{s/a/b/;p}",
                    "s/a/b/;t;s/$/!/",
                    "b",
                    "w /dev/stdout",
                ])
                .to_owned(),
        }
    }
}
