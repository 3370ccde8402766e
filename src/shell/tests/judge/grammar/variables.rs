//! Builtins that set variables.

use super::Grammar;
use crate::judge::program::{Node, pieces};

impl Grammar {
    pub(super) fn read(&mut self) -> Node {
        if self.random.chance(50) {
            let input = self.random.pick(&[
                "a b c\\n",
                " a  b \\n",
                "a:b:c\\n",
                "a::b:\\n",
                " a : b : c \\n",
                "a\\\\b c\\n",
                "a\\\\\\nb c\\n",
                "a b",
                "",
                "\\n",
                ":a\\n",
                "a\\tb\\t\\tc\\n",
                "a,b;c\\n",
                "  \\n",
                "a:\\n",
                "::\\n",
                "a b\\nc d\\n",
                "\\\\ a\\n",
            ]);
            let ifs = self.random.pick(&["", "", "IFS= ", "IFS=: ", "IFS=' :' ", "IFS=', ' ", "IFS=b "]);
            let names = self.random.pick(&["a", "a b", "a b c", "a b", "-r a", "-r a b", "-r a b c"]);
            let show = "echo \"$? [$a][$b][$c]\"; }";
            return Node::statement("read", pieces![format!("printf '{input}' | {{ {ifs}read {names}; {show}")]);
        }
        let text = self.phrase("read");
        Node::statement("read", pieces![text])
    }

    pub(super) fn export(&mut self) -> Node {
        if self.random.chance(40) {
            let command = self.random.pick(&["export", "export", "readonly", "local", "unset"]);
            let name = self.random.pick(&["x", "y", "n", "v", "q"]);
            let value = if command == "unset" {
                Node::fixed("", pieces![])
            } else {
                Node::fixed("", pieces!["=", self.word()])
            };
            let show = self.random.pick(&[
                "; echo \"$? $x|$y|$n|$v|$q\"",
                "; sh -c 'echo \"$x|$y|$n|$v|$q\"'",
                "",
                " && echo \"${x-unset}\"",
            ]);
            return Node::statement("variables", pieces![format!("{command} {name}"), value, show]);
        }
        let text = self.phrase("export");
        Node::statement("variables", pieces![text])
    }

    pub(super) fn getopts(&mut self) -> Node {
        if self.random.chance(50) {
            let options = self.random.pick(&["ab:", ":ab:", "a:b", "abc", ":a:", "b:", ":"]);
            let mut pieces = pieces![format!("while getopts {options} o")];
            for _ in 0..self.random.below(5) {
                pieces.extend(pieces![
                    " ",
                    Node::word(
                        "",
                        pieces![self.random.pick(&[
                            "-a", "-b", "-ab", "-ba", "-bv", "-x", "--", "-", "v", "-a v", "-c", "''", "-b ''"
                        ])]
                    )
                ]);
            }
            pieces.push("; do echo \"$o [${OPTARG-}] $OPTIND\"; done; echo \"$OPTIND $o\"".into());
            return Node::statement("getopts", pieces);
        }
        let text = self.phrase("getopts");
        Node::statement("getopts", pieces![text])
    }
}
