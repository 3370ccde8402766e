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
        let text = self.random.pick(&[
            "read a <f; echo \"$a $?\"",
            "read a b <f; echo \"$a|$b\"",
            "IFS=: read a b c <f; echo \"$a|$b|$c\"",
            "read -r a <f; echo \"$a\"",
            "echo 'p q r' | { read a b; echo \"$a,$b\"; }",
            "read a </dev/null; echo \"$? [$a]\"",
            "printf 'no newline' | { read a; echo \"$? $a\"; }",
            "printf 'a\\\\\\nb\\n' | { read a; echo \"$a\"; }",
            "echo ' a  b ' | { IFS= read a; echo \"[$a]\"; }",
            "echo ' a  b ' | { read a; echo \"[$a]\"; }",
            "echo 'a:b:' | { IFS=: read a b; echo \"[$a][$b]\"; }",
            "echo x | read a; echo \"$a\"",
            "printf 'a\\tb\\n' | { read a b; echo \"$b\"; }",
            "echo 'a::b' | { IFS=: read a b c; echo \"$a|$b|$c\"; }",
            "echo 'a b c' | { read a b; echo \"$b\"; }",
            "echo '\\a\\b' | { read -r a; echo \"$a\"; }",
            "echo a | { read; echo $?; }",
            "echo ' :a : b ' | { IFS=' :' read a b; echo \"[$a][$b]\"; }",
            "echo 'a,b,c,' | { IFS=, read a b; echo \"[$a][$b]\"; }",
            "while read a b; do echo \"$b $a\"; done <g",
        ]);
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
        let text = self.random.pick(&[
            "export x; env | grep '^x='",
            "export y=1; sh -c 'echo $y'",
            "export x=\"$y\"; echo \"$x\"",
            "readonly x; echo \"$x\"",
            "readonly v=1; v=2; echo $?",
            "(readonly v=1; v=2; echo in); echo $?",
            "unset x; echo \"${x-gone}\"",
            "unset -f f1; echo $?",
            "unset nope; echo $?",
            "export x=$y; echo \"$x\"",
            "x=1 sh -c 'echo $x'; echo \"$x\"",
            "x=5 :; echo $x",
            "x=5 eval 'echo $x'; echo $x",
            "export v=$(false); echo $?",
            "export a=1 b=2; echo $a$b",
            "unset x y; echo \"$x$y\"",
            "export nope; env | grep nope; echo $?",
            "readonly q=1; unset q; echo $?",
            "local x; echo $?",
            "q=1; readonly q; (q=3); echo $?",
            "export -p | grep ' x='",
            "export x=~; [ \"$x\" = \"$HOME\" ]; echo $?",
            "x=1; export x; x=2; sh -c 'echo $x'",
            "export 2x=1; echo $?",
            "x='a b'; export y=$x; echo \"$y\"",
        ]);
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
        let text = self.random.pick(&[
            "while getopts ab: o -a -b v -c; do echo \"$o $OPTARG\"; done; echo $OPTIND",
            "while getopts :ab: o -x -b; do echo \"$o $OPTARG\"; done",
            "set -- -ab v rest; while getopts ab: o; do echo \"$o $OPTARG\"; done; shift $((OPTIND-1)); echo \"$@\"",
            "getopts a o; echo \"$? $o\"",
            "set -- -a -- -b; while getopts ab o; do echo $o; done; echo $OPTIND",
            "set -- -abv; while getopts ab: o; do echo \"$o ${OPTARG-none}\"; done",
            "f() { OPTIND=1; while getopts x:y o; do echo \"$o $OPTARG\"; done; }; f -y -x 1; f -x2",
            "set -- a -b; while getopts b o; do echo $o; done; echo $OPTIND $o",
        ]);
        Node::statement("getopts", pieces![text])
    }
}
