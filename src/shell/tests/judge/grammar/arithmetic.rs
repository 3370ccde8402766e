//! Arithmetic.

use super::Grammar;
use crate::judge::program::{Node, pieces};

impl Grammar {
    pub(super) fn arithmetic_expansion(&mut self) -> Node {
        let inner = self.arithmetic(2);
        Node::optional("arithmetic", pieces!["$((", inner, "))"])
    }

    pub(super) fn arithmetic(&mut self, depth: usize) -> Node {
        if depth == 0 || self.random.chance(35) {
            let text = self.random.pick(&[
                "0",
                "1",
                "2",
                "3",
                "7",
                "10",
                "010",
                "0x1f",
                "n",
                "n",
                "$n",
                "${n}",
                "-1",
                "unset",
                "$#",
                "${#x}",
                "9223372036854775807",
                " 4 ",
            ]);
            return Node::word("", pieces![text]);
        }
        let left = self.arithmetic(depth - 1);
        match self.random.weighted(&[60, 8, 6, 6, 8, 8, if self.bash { 12 } else { 0 }]) {
            0 => {
                let operator = self.random.pick(&[
                    "+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "&", "|", "^", " + ", " - ",
                ]);
                Node::word("", pieces![left, operator, self.arithmetic(depth - 1)])
            }
            1 => Node::word("", pieces!["(", left, ")"]),
            2 => Node::word("", pieces![self.random.pick(&["!", "~", "- ", "+ "]), left]),
            3 => Node::word(
                "ternary",
                pieces![left, " ? ", self.arithmetic(depth - 1), " : ", self.arithmetic(depth - 1)],
            ),
            4 => Node::word(
                "arithmetic-assign",
                pieces![self.random.pick(&["n=", "m=", "n+=", "n-=", "n*=", "n|="]), left],
            ),
            5 => {
                Node::word("", pieces!["(", left, self.random.pick(&["+", "-", "*"]), self.arithmetic(depth - 1), ")"])
            }
            _ => match self.random.below(4) {
                0 => Node::word("increment", pieces![self.random.pick(&["n++", "++n", "n--", "--m"])]),
                1 => Node::word("power", pieces![left, self.random.pick(&["**2", "**0", "**3"])]),
                2 => Node::word("comma", pieces![left, ",", self.arithmetic(depth - 1)]),
                _ => Node::word(
                    "base",
                    pieces![self.random.pick(&["2#101", "16#ff", "36#z", "64#_", "8#17", "arr[0]", "arr[1]+1"])],
                ),
            },
        }
    }
}
