//! Text that is run: traps, eval, sourced files and scripts.

use super::Grammar;
use crate::judge::program::{Node, Piece, pieces};

impl Grammar {
    pub(super) fn trap(&mut self) -> Node {
        if self.random.chance(35) {
            let action = self.quotable();
            let signal = self.random.pick(&["EXIT", "EXIT", "0", "TERM", "HUP; trap"]);
            return Node::statement("trap", pieces!["trap '", action, "' ", signal]);
        }
        let text = self.phrase("trap");
        Node::statement("trap", pieces![text])
    }

    pub(super) fn eval(&mut self) -> Node {
        if self.random.chance(40) {
            let text = self.phrase("eval");
            return Node::statement("eval", pieces![text]);
        }
        let inner = self.quotable();
        let tail = self.random.pick(&["", "", "; echo $?", " || echo caught"]);
        Node::statement("eval", pieces!["eval '", inner, "'", tail])
    }

    /// A statement that fits between single quotes.
    pub(super) fn quotable(&mut self) -> Node {
        if self.depth > 0 {
            self.depth -= 1;
            let inner = self.statement();
            self.depth += 1;
            if !inner.text().contains(['\'', '\n']) {
                return inner;
            }
        }
        Node::statement(
            "",
            pieces![self.random.pick(&[
                "echo q; false",
                "x=2; echo $x",
                "set +e",
                "return 3",
                "exit 6",
                "echo $?",
                "break"
            ])],
        )
    }

    pub(super) fn dot(&mut self) -> Node {
        if self.quiet || self.in_file {
            return Node::statement("dot", pieces![". /dev/null; echo $?"]);
        }
        if self.random.chance(50) {
            let file = self.file("lib", "");
            let call = self.random.pick(&[
                ". ./lib",
                ". ./lib; echo $?",
                ". ./lib || echo caught",
                "if . ./lib; then echo y; fi",
                "f9() { . ./lib; echo after; }; f9 q",
                "(. ./lib); echo $?",
            ]);
            return Node::statement("dot", pieces![file, call]);
        }
        let text = self.phrase("dot");
        Node::statement("dot", pieces![text])
    }

    /// A script of the tree.
    pub(super) fn script(&mut self) -> Node {
        if self.quiet || self.in_file {
            let inner = self.quotable();
            let options = self.random.pick(&["", "-e ", "-u ", "-eu "]);
            return Node::statement("sh", pieces![format!("sh {options}-c '"), inner, "' x y; echo $?"]);
        }
        let first = self.random.pick(&[
            "#!/bin/sh\u{2}",
            "#!/bin/sh -e\u{2}",
            "#!/bin/sh -eu\u{2}",
            "#! /bin/sh\u{2}",
            "#!/usr/bin/env sh\u{2}",
            "",
        ]);
        let file = self.file("s1", first);
        let call = self.random.pick(&[
            "./s1 a",
            "sh s1 b c",
            "sh ./s1",
            "./s1; echo $?",
            "PATH=.:$PATH; s1 q",
            "sh -e s1",
            "sh <s1",
            "x=5 ./s1",
            "export x; ./s1",
        ]);
        Node::statement("script", pieces![file, Node::optional("", pieces!["chmod +x s1; "]), call])
    }

    /// A command that writes statements to a file.
    fn file(&mut self, name: &str, first: &'static str) -> Node {
        let was = std::mem::replace(&mut self.in_file, true);
        let bash = self.bash;
        self.bash &= name == "lib";
        let depth = std::mem::replace(&mut self.depth, 1);
        let functions = std::mem::take(&mut self.functions);
        let mut body = pieces![first];
        for _ in 0..=self.random.below(3) {
            let statement = self.statement();
            if !statement.text().contains('\n') {
                body.extend(pieces![statement, "\u{2}"]);
            }
        }
        body.push("END\u{2}".into());
        self.in_file = was;
        self.bash = bash;
        self.depth = depth;
        self.functions = functions;
        Node::fixed("", pieces![format!("cat >{name} <<'END'"), Piece::Document(body), "\n"])
    }
}
