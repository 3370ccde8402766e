//! Operands of programs that work on files: plausible, and odd.

use super::Grammar;
use crate::judge::program::{Node, pieces};

impl Grammar {
    /// A path that a program may read or change.
    pub(super) fn path(&mut self) -> Node {
        let text = match self.random.weighted(&[40, 22, 14, 10, 10, 4]) {
            0 => self.random.pick(&["f", "f", "g", "d/x", "h", "hard", "./f", "d/s/deep"]),
            1 => self.random.pick(&["d", "e", "d/s", "d/", "e/", ".", "d/."]),
            2 => self.random.pick(&["l", "ld", "dangling", "loop", "ld/x", "ld/", "ld/s"]),
            3 => self.random.pick(&["nope", "nope/x", "f/x", "new", "nope/"]),
            4 => self.random.pick(&[
                "d/../f",
                "d//x",
                "f/",
                "l/",
                "dangling/",
                "\"$PWD/f\"",
                "./d/./x",
                "'a b'",
                "d/*",
                "loop/x",
                ".hidden",
            ]),
            _ => self.random.pick(&["\"$x\"", "$x", "\"\"", "*", "-- f", "d/new", "e/new"]),
        };
        Node::word("", pieces![text])
    }

    /// A file that a filter reads, without a program's own output.
    pub(super) fn input(&mut self) -> Node {
        let text = self.random.pick(&[
            "f",
            "f",
            "f",
            "g",
            "g",
            "d/x",
            "l",
            "/etc/group",
            "f g",
            "nope f",
            "-",
            "d",
            "dangling",
            "ld/x",
            "hard",
        ]);
        Node::word("", pieces![text])
    }

    /// A name that is new, mostly.
    pub(super) fn new_path(&mut self) -> Node {
        let text = self.random.pick(&[
            "new", "new", "d/new", "e/new", "h", "new/", "d", "e", "nope/new", "ld/new", "f", "g", "dangling", "n1",
            "'a b'", "ld", "l", "e/",
        ]);
        Node::word("", pieces![text])
    }

    pub(super) fn mode(&mut self) -> &'static str {
        self.random.pick(&[
            "644",
            "755",
            "0600",
            "u+x",
            "go-rwx",
            "a+r",
            "+x",
            "u=rw,go=r",
            "g=u",
            "o=",
            "1777",
            "2755",
            "4755",
            "u+s",
            "g+s",
            "+t",
            "a-w",
            "u=rwX,g=rX",
            "0",
            "=r",
            "u-s",
            "g-s",
            "00755",
            "a=rx",
            "7",
            "ug+rw,o-w",
            "o=g",
            "+X",
            "-x",
        ])
    }
}
