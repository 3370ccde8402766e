//! test and expr.

use super::Grammar;
use crate::judge::program::{Node, Piece, pieces};

impl Grammar {
    /// A test with a visible result.
    pub(super) fn test_list(&mut self) -> Node {
        if self.random.chance(20) {
            return self.expr();
        }
        let test = self.test();
        let tail = self.random.pick(&[" && echo yes", " || echo no", " && echo yes || echo no", "; echo $?"]);
        Node::statement("", pieces![test, tail])
    }

    pub(super) fn test(&mut self) -> Node {
        if self.bash && self.random.chance(35) {
            return self.double_bracket();
        }
        let mut pieces: Vec<Piece> = pieces!["[ "];
        if self.random.chance(12) {
            pieces.push(Node::optional("", pieces!["! "]).into());
        }
        pieces.push(self.test_primary().into());
        if self.random.chance(12) {
            let inner = self.test_primary();
            pieces.push(Node::optional("test-and-or", pieces![self.random.pick(&[" -a ", " -o "]), inner]).into());
        }
        pieces.push(" ]".into());
        Node::statement("test", pieces)
    }

    fn test_primary(&mut self) -> Node {
        match self.random.weighted(&[25, 20, 15, 30, 6, 4]) {
            0 => Node::optional(
                "",
                pieces![self.word_or_quoted(), self.random.pick(&[" = ", " != ", " = "]), self.word_or_quoted()],
            ),
            1 => Node::optional("", pieces![self.random.pick(&["-n ", "-z ", ""]), self.word_or_quoted()]),
            2 => Node::optional(
                "test-number",
                pieces![
                    self.number(),
                    self.random.pick(&[" -eq ", " -ne ", " -lt ", " -gt ", " -le ", " -ge "]),
                    self.number()
                ],
            ),
            3 => {
                let operator = self.random.pick(&[
                    "-e ", "-f ", "-d ", "-h ", "-L ", "-s ", "-x ", "-r ", "-w ", "-e ", "-f ", "-d ", "-g ", "-u ",
                    "-k ", "-p ", "-b ",
                ]);
                Node::optional("test-file", pieces![operator, self.path()])
            }
            4 => Node::optional(
                "test-odd",
                pieces![self.random.pick(&[
                    "-n",
                    "!",
                    "-f",
                    "= a",
                    "\"\"",
                    "\\( a = a \\)",
                    "a -ef b",
                    "f -ef hard",
                    "-z ''",
                    "a \\< b",
                    "b \\> a",
                    "-t 0",
                    "-v x",
                    "-o errexit"
                ])],
            ),
            _ => Node::optional("", pieces!["-n \"$x\""]),
        }
    }

    fn word_or_quoted(&mut self) -> Node {
        if self.random.chance(70) { Node::word("", pieces![self.double_quoted()]) } else { self.word() }
    }

    fn number(&mut self) -> Node {
        let text = self.random.pick(&[
            "0", "1", "3", "$n", "\"$n\"", "-1", "010", "$#", "$((n+1))", "7", "${#x}", "\"$x\"", "+1", "' 2'", "$?",
        ]);
        Node::word("", pieces![text])
    }

    fn expr(&mut self) -> Node {
        let number = self.number();
        let text = match self.random.below(5) {
            0 => Node::optional(
                "",
                pieces![
                    number,
                    self.random.pick(&[" + ", " - ", " \\* ", " / ", " % ", " = ", " \\< ", " \\>= ", " != "]),
                    self.number()
                ],
            ),
            1 => Node::optional(
                "",
                pieces![
                    "\"$x\" : ",
                    self.random.pick(&["'a'", "'.*'", "'\\(.\\)'", "'[a-z]*'", "'\\(.*\\)b'", "'b'", "'^a'"])
                ],
            ),
            2 => Node::optional(
                "",
                pieces![self.random.pick(&[
                    "length \"$x\"",
                    "substr abc 2 1",
                    "index abc b",
                    "length abc",
                    "a : a",
                    "abc : 'a\\(.\\)'",
                    "match abc b"
                ])],
            ),
            3 => Node::optional("", pieces![number, self.random.pick(&[" \\| ", " \\& "]), self.number()]),
            _ => Node::optional("", pieces!["\\( ", number, " + 1 \\) \\* 2"]),
        };
        Node::statement("expr", pieces!["expr ", text, Node::optional("", pieces!["; echo $?"])])
    }
}
