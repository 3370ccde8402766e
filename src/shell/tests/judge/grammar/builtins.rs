//! The shell's own commands.

use super::Grammar;
use crate::judge::program::{Node, pieces};

impl Grammar {
    pub(super) fn builtin(&mut self) -> Node {
        match self.random.weighted(&[12, 8, 10, 10, 14, 10, 6, 6, 8, 6, 5, 6, 4]) {
            0 => self.positional(),
            1 => self.options_of_the_shell(),
            2 => self.trap(),
            3 => self.eval(),
            4 => self.read(),
            5 => self.export(),
            6 => self.getopts(),
            7 => self.dot(),
            8 => self.end(),
            9 => self.directory(),
            10 => Node::statement(
                "umask",
                pieces![self.random.pick(&[
                    "umask 077; touch um",
                    "umask",
                    "umask 027; mkdir um",
                    "umask -S",
                    "umask u=rwx,go=",
                    "umask 0; echo a >um",
                    "(umask 777; touch um)",
                    "umask g+w; umask"
                ])],
            ),
            11 => Node::statement("command", pieces![self.phrase("builtin")]),
            _ => self.script(),
        }
    }

    fn positional(&mut self) -> Node {
        match self.random.below(4) {
            0 => {
                let mut pieces = pieces!["set --"];
                pieces.extend(self.words(3));
                Node::statement("set", pieces!["", Node::fixed("", pieces), "; echo \"$# $*\""])
            }
            1 => Node::statement(
                "shift",
                pieces![self.random.pick(&[
                    "shift; echo \"$1\"",
                    "shift 2; echo $#",
                    "shift 0",
                    "shift $#; echo $#",
                    "[ $# -gt 0 ] && shift",
                    "shift; shift; shift; echo $#",
                    "shift 9; echo $?"
                ])],
            ),
            2 => Node::statement(
                "positional-list",
                pieces![self.random.pick(&[
                    "printf '[%s]' \"$@\"; echo",
                    "for i; do echo \"$i\"; done",
                    "printf '[%s]' $*; echo",
                    "printf '[%s]' \"$*\"; echo",
                    "IFS=-; echo \"$*\"",
                    "set -- \"$@\" z; echo \"$#\"",
                    "x=\"$@\"; echo \"$x\"",
                    "printf '[%s]' \"a$@b\"; echo",
                    "set -- $x; echo $#",
                    "set -- *; echo \"$1\"",
                    "set --; echo \"$#\" \"$@\"",
                    "printf '[%s]' \"${@:-e}\"; echo",
                    "x=$*; echo \"$x\"",
                ])],
            ),
            _ => Node::statement(
                "arguments",
                pieces!["while [ $# -gt 0 ]; do case $1 in -*) echo opt;; *) echo \"arg $1\";; esac; shift; done"],
            ),
        }
    }

    fn options_of_the_shell(&mut self) -> Node {
        let text = self.random.pick(&[
            "set -e",
            "set +e",
            "set -u",
            "set -f; echo *",
            "set +f",
            "set -eu",
            "set -C; echo a >o1; echo $?",
            "set -x",
            "set -o errexit; echo on",
            "set +u",
            "echo $-",
            "set -e; set +e; false; echo $?",
            "set -a; q=1; env | grep '^q='",
            "set -v",
            "set -o nounset",
            "set -f; set +f; echo [a-f]",
            "set -eC",
            "set -",
            "set -o | grep errexit",
        ]);
        Node::statement("shell-options", pieces![text])
    }

    fn end(&mut self) -> Node {
        let text = if self.in_function && self.random.chance(60) {
            self.random.pick(&["return", "return 2", "return $?", "return 256", "false; return"])
        } else if self.in_loop && self.random.chance(60) {
            self.random.pick(&["break", "continue", "break 1", "continue 1", "break 5"])
        } else {
            self.random.pick(&[
                "exit",
                "exit 3",
                "(exit 300); echo $?",
                "false; exit",
                "(exit); echo $?",
                "break; echo $?",
                "return 4",
                "exit $n",
                "(false; exit); echo $?",
                "(exit 1 2); echo $?",
                "(exit -1); echo $?",
                "(return 7); echo $?",
                "false",
                "true",
            ])
        };
        Node::statement("end", pieces![text])
    }

    fn directory(&mut self) -> Node {
        let text = self.phrase("directory");
        if self.quiet { Node::statement("", pieces!["pwd | wc -l"]) } else { Node::statement("cd", pieces![text]) }
    }
}
