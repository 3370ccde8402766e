//! Simple commands, redirections and here-documents.

use super::Grammar;
use crate::judge::program::{Node, Piece, pieces};

impl Grammar {
    pub(super) fn statement(&mut self) -> Node {
        let compound = if self.depth > 0 { 22 } else { 0 };
        let files = if self.quiet { 0 } else { 20 };
        let bash = if self.bash { 30 } else { 0 };
        match self.random.weighted(&[26, 10, files, 14, compound, 16, 8, 3, 3, bash]) {
            0 => self.output(),
            1 => self.assignment(),
            2 => self.file_command(),
            3 => self.filter_pipeline(),
            4 => self.compound(),
            5 => self.builtin(),
            6 => self.test_list(),
            7 => self.document(),
            8 => self.call(),
            _ => self.bash_statement(),
        }
    }

    /// echo or printf, perhaps redirected.
    fn output(&mut self) -> Node {
        let command = self.echo();
        let redirection = self.redirection();
        Node::statement("", pieces![command, redirection])
    }

    pub(super) fn echo(&mut self) -> Node {
        match self.random.weighted(&[60, 25, 15]) {
            0 => {
                let mut pieces = pieces!["echo"];
                pieces.extend(self.words(3));
                Node::statement("echo", pieces)
            }
            1 => {
                let mut pieces = pieces!["printf '<%s>\\n'"];
                pieces.extend(self.words(3));
                Node::statement("", pieces)
            }
            _ => {
                let format = self.random.pick(&[
                    "'%s-%s\\n'",
                    "'%d\\n'",
                    "'%5s|%-5s|\\n'",
                    "'%x %o\\n'",
                    "'%b\\n'",
                    "'%c\\n'",
                    "'%05d\\n'",
                    "'%%\\n'",
                    "'%.2s\\n'",
                    "'\\101\\t\\\\\\n'",
                    "'%s'",
                    "'a\\nb'",
                    "'%i %u\\n'",
                    "'%X\\n'",
                    "'%+d\\n'",
                    "'%s %d\\n'",
                    "'%*s\\n'",
                    "'% d\\n'",
                    "'\\x41\\n'",
                    "'%.3d\\n'",
                    "'%#x\\n'",
                ]);
                let mut pieces = pieces![format!("printf {format}")];
                pieces.extend(self.words(3));
                Node::statement("printf", pieces)
            }
        }
    }

    pub(super) fn assignment(&mut self) -> Node {
        let name = self.random.pick(&["x", "y", "v", "n", "unset2"]);
        match self.random.weighted(&[50, 12, 12, 8]) {
            0 => Node::statement("assignment", pieces![format!("{name}="), self.word()]),
            1 => Node::statement("assignment", pieces![format!("{name}="), self.word(), " y=", self.word()]),
            2 => Node::statement("prefix-assignment", pieces![format!("{name}="), self.word(), " ", self.echo()]),
            _ => Node::statement(
                "ifs",
                pieces![self.random.pick(&["IFS=:", "IFS=", "unset IFS", "IFS=' :'", "IFS=a", "IFS=,; set -- $x"])],
            ),
        }
    }

    /// A redirection that leaves no text of error messages.
    pub(super) fn redirection(&mut self) -> Node {
        let quiet = self.quiet;
        let text = match self.random.weighted(&[70, 10, 5, 2, 2, 2]) {
            1 if !quiet => self.random.pick(&[
                " >o1",
                " >o2",
                " > o1",
                " >d/o",
                " >dangling",
                " >d",
                " >nope/o",
                " >|o1",
                " >\"$v\"",
                " 1>o1",
                " >l",
                " >'a b'",
            ]),
            2 if !quiet => self.random.pick(&[" >>o1", " >>o2", " >>d/x", " >>f", " >>hard"]),
            3 => self.random.pick(&[
                " >/dev/null",
                " 2>/dev/null",
                " >&2",
                " 1>&2",
                " <f",
                " </dev/null",
                " <nope",
                " <d",
            ]),
            4 => self.random.pick(&[" >&-", " 3>&1 >&3", " 3>/dev/null", " 2>&-", " 4<f", " <&-", " >&9"]),
            5 if !quiet => self.random.pick(&[" <>o1", " >o1 >o2", " 3>o1 >&3", " >o1 2>/dev/null", " >>o1 >>o2"]),
            _ => "",
        };
        Node::optional(if text.is_empty() { "" } else { "redirection" }, pieces![text])
    }

    fn document(&mut self) -> Node {
        let command = self.random.pick(&[
            "cat",
            "cat",
            "tr a-z A-Z",
            "sed 's/a/X/'",
            "read x",
            "while read -r line; do echo \"[$line]\"; done",
            "wc -l",
            "cat -",
        ]);
        let (open, end, indented) = self.random.pick(&[
            ("<<E", "E", ""),
            ("<<'E'", "E", ""),
            ("<<-E", "\tE", "\t"),
            ("<<\\E", "E", ""),
            ("<< \"E F\"", "E F", ""),
            ("<<-'E'", "E", "\t\t"),
            ("<<E\"\"", "E", ""),
        ]);
        let mut body: Vec<Piece> = Vec::new();
        for _ in 0..self.random.below(4) {
            body.push(indented.into());
            for _ in 0..self.random.below(4) {
                let part = match self.random.weighted(&[40, 40, 10, 10]) {
                    0 => Node::optional(
                        "",
                        pieces![self.random.pick(&[
                            "a", " b", "'", "\"", "\\$x", "\\\\", "\\a", "`echo q`", "$ ", "\\`", "*", "~", "#", "  "
                        ])],
                    ),
                    1 => self.document_parameter(),
                    2 => Node::optional("", pieces!["$(echo in)"]),
                    _ => self.arithmetic_expansion(),
                };
                body.push(part.into());
            }
            body.push(self.newline().to_string().into());
        }
        body.push(end.into());
        body.push(self.newline().to_string().into());
        let tail = self.random.pick(&["", "", "", " | cat", "; echo $?", " || echo no"]);
        Node::statement("here-document", pieces![command, " ", open, Piece::Document(body), tail])
    }

    fn document_parameter(&mut self) -> Node {
        let node = self.parameter(true);
        if node.text().contains('\n') { Node::optional("", pieces!["$x"]) } else { node }
    }

    fn call(&mut self) -> Node {
        if self.functions.is_empty() {
            return self.output();
        }
        let name = self.random.pick(&self.functions.clone());
        let mut pieces = Vec::new();
        if self.random.chance(15) {
            pieces.extend(pieces!["x=", self.word(), " "]);
        }
        pieces.push(name.into());
        pieces.extend(self.words(3));
        pieces.push(self.redirection().into());
        Node::statement("call", pieces)
    }
}
