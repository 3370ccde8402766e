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
            11 => Node::statement(
                "command",
                pieces![self.random.pick(&[
                    "command -v cat",
                    "command -v nope; echo $?",
                    "command -v cd",
                    "command echo a",
                    "type nope; echo $?",
                    "command -v f1",
                    "command -p echo b",
                    "nope; echo $?",
                    "./nope; echo $?",
                    "d; echo $?",
                    "./d; echo $?",
                    "command exit 3",
                    "command -v if",
                    "/nope/x; echo $?",
                    "\"\"; echo $?",
                    "f1() { echo f; }; f1",
                    "command -V cd >/dev/null; echo $?",
                    "hash -r; echo $?",
                    "type cd",
                    "command set -- a; echo $#",
                    "env -i echo x",
                    "command -v ./f",
                ])],
            ),
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
            "set -n",
            "set -v",
            "set -o nounset",
            "set -f; set +f; echo [a-f]",
            "set -eC",
            "set -",
            "set -o | grep errexit",
        ]);
        Node::statement("shell-options", pieces![text])
    }

    fn trap(&mut self) -> Node {
        let text = self.random.pick(&[
            "trap 'echo bye' EXIT",
            "trap 'echo \"status $?\"' EXIT",
            "trap 'exit 3' EXIT",
            "trap - EXIT",
            "trap '' EXIT",
            "trap 'echo sub' EXIT; (exit 2)",
            "(trap 'echo in' EXIT; false)",
            "trap 'echo a' EXIT; trap",
            "trap 'rm -f f' 0",
            "trap 'false; echo t' EXIT",
            "trap 'exit' EXIT; false",
            "trap 'cd d; pwd >/dev/null' EXIT",
            "trap 'echo hup' HUP; trap",
            "trap 'return 2' EXIT",
            "(trap 'exit 5' EXIT; exit 1); echo $?",
            "x=$(trap 'echo in' EXIT; echo a); echo \"$x\"",
            "trap 'echo one' EXIT; trap 'echo two' EXIT",
            "trap 'set +e; false; echo end' EXIT",
            "trap 'echo int' INT; trap - INT; trap",
            "trap 'echo x' NOPE; echo $?",
            "trap 'trap - EXIT; echo q' EXIT",
        ]);
        Node::statement("trap", pieces![text])
    }

    fn eval(&mut self) -> Node {
        if self.random.chance(40) || self.depth == 0 {
            let text = self.random.pick(&[
                "eval 'x=1; echo $x'",
                "eval; echo $?",
                "eval false; echo $?",
                "eval 'false' || echo caught",
                "eval \"$x\"",
                "eval 'echo a' 'b'",
                "eval 'return 3'",
                "eval \"y='a b'\"; echo \"$y\"",
                "eval 'exit 4'",
                "eval 'for i in 1 2; do echo $i; done'",
                "eval echo \\$x",
                "x='$y'; eval \"echo $x\"",
                "eval 'f() { echo ev; }'; f",
                "eval 'echo a\u{2}echo b'",
                "eval ' '; echo $?",
                "eval 'set -- p q'; echo $#",
            ]);
            return Node::statement("eval", pieces![text]);
        }
        self.depth -= 1;
        let inner = self.statement();
        self.depth += 1;
        let text = inner.text();
        if text.contains(['\'', '\n']) {
            return inner;
        }
        Node::statement("eval", pieces!["eval '", inner, "'"])
    }

    fn read(&mut self) -> Node {
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

    fn export(&mut self) -> Node {
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

    fn getopts(&mut self) -> Node {
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

    fn dot(&mut self) -> Node {
        if self.quiet {
            return Node::statement("dot", pieces![". /dev/null; echo $?"]);
        }
        let text = self.random.pick(&[
            "echo 'x=5; echo in' >lib; . ./lib; echo $x",
            "echo 'return 3' >lib; . ./lib; echo $?",
            "echo 'exit 4' >lib; . ./lib",
            "echo 'echo \"$1\"' >lib; . ./lib q",
            "(. ./nope; echo no); echo $?",
            ". ./nope",
            "echo false >lib; . ./lib || echo caught",
            "echo 'set -- r s' >lib; . ./lib; echo $#",
            "printf 'local x=1\\n' >lib; . ./lib; echo $?",
            ". /dev/null; echo $?",
            "echo 'f2() { echo sourced; }' >lib; . ./lib; f2",
            "mkdir -p bin; echo 'echo path' >bin/lib; PATH=$PWD/bin:$PATH; . lib",
            "echo 'if' >lib; (. ./lib); echo $?",
        ]);
        Node::statement("dot", pieces![text])
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
        let text = self.random.pick(&[
            "cd d; ls",
            "cd d && cd .. && ls",
            "cd nope; echo $?",
            "cd d; cd - >/dev/null; ls",
            "cd ld; pwd -P | sed 's,.*/,,'",
            "cd ld; pwd | sed 's,.*/,,'",
            "cd f; echo $?",
            "cd '' ; echo $?",
            "cd d/s; cd ../..; ls",
            "cd ./d; echo \"${PWD##*/}\"",
            "cd d; echo \"${OLDPWD##*/}\"",
            "CDPATH=d; cd s; echo ${PWD##*/}",
            "cd ld/..; ls",
            "cd -P ld/..; ls",
            "cd -L d; ls",
            "cd; pwd | sed 's,.*/,,'",
            "mkdir -p q/r; cd q/r; rmdir ../r; cd ..; ls",
            "cd d e; echo $?",
            "unset HOME; cd; echo $?",
            "cd -; echo $?",
            "cd dangling; echo $?",
            "cd loop; echo $?",
            "cd d//s/; echo ${PWD##*/}",
        ]);
        if self.quiet { Node::statement("", pieces!["pwd | wc -l"]) } else { Node::statement("cd", pieces![text]) }
    }

    /// A script of the tree.
    fn script(&mut self) -> Node {
        if self.quiet {
            return Node::statement(
                "sh",
                pieces![self.random.pick(&[
                    "sh -c 'echo $0 $1' x y",
                    "sh -c 'exit 3'; echo $?",
                    "sh -e -c 'false; echo no'; echo $?",
                    "echo 'echo in' | sh",
                    "sh -c 'echo \"$#\"' a b c"
                ])],
            );
        }
        let first =
            self.random.pick(&["#!/bin/sh", "#!/bin/sh -e", "#!/bin/sh -eu", "#! /bin/sh", "#!/usr/bin/env sh", ""]);
        let body = self.random.pick(&[
            "echo \"in $1\"",
            "false; echo after",
            "exit 5",
            "echo $x; x=2",
            "cd d; echo $#",
            "echo \"$unset\"; echo on",
        ]);
        let call = self.random.pick(&[
            "./s1 a",
            "sh s1 b c",
            "sh ./s1",
            "./s1; echo $?",
            "PATH=.:$PATH; s1 q",
            "sh -e s1",
            ". ./s1",
        ]);
        Node::statement(
            "script",
            pieces![
                format!("printf '%s\\n' '{first}' '{body}' >s1; "),
                Node::optional("", pieces!["chmod +x s1; "]),
                call
            ],
        )
    }
}
