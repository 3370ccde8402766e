//! Declarations, traps and options of bash.

use super::Grammar;
use crate::judge::program::{Node, pieces};

impl Grammar {
    pub(super) fn declaration(&mut self) -> Node {
        let command = if self.in_function {
            self.random.pick(&["local", "declare", "local", "typeset", "declare -g", "local"])
        } else {
            self.random.pick(&["declare", "typeset", "readonly", "export", "declare"])
        };
        if self.random.chance(50) {
            return Node::statement("declaration", pieces![command, " ", self.phrase("declaration")]);
        }
        let flags =
            self.random.pick(&["", "-i ", "-u ", "-l ", "-r ", "-x ", "-a ", "-A ", "-ir ", "-rx ", "+x ", "-xi "]);
        let value = match self.random.below(4) {
            0 => Node::fixed("", pieces![]),
            1 if flags.contains('a') => Node::fixed("", pieces!["=(", self.word(), " ", self.word(), ")"]),
            _ => Node::fixed("", pieces![self.random.pick(&["=", "=", "+="]), self.word()]),
        };
        let show = self.random.pick(&[
            "; declare -p q",
            "; echo \"$? ${q-unset}\"",
            "; q+=1; echo \"$q\"",
            "; bash -c 'echo \"${q-none}\"'",
            "; q=2; echo $?",
            " r=1; echo \"$q$r\"",
        ]);
        Node::statement("declaration", pieces![command, " ", flags, "q", value, show])
    }

    pub(super) fn bash_trap(&mut self) -> Node {
        if self.random.chance(50) {
            return Node::statement("bash-trap", pieces![self.phrase("bash-trap")]);
        }
        let action = self.quotable();
        let signal = self.random.pick(&["ERR", "ERR", "RETURN", "DEBUG", "EXIT"]);
        let options = self.random.pick(&["", "", "set -E; ", "set -e; ", "set -eE; ", "set -T; "]);
        let after = self.random.pick(&[
            "false",
            "f9() { false; echo on; }; f9",
            "false || true",
            "x=$(false)",
            "(false)",
            "false | true",
            "! false",
            "[ a = b ]",
            "if false; then :; fi",
            "f9() { return 2; }; f9; echo $?",
            "eval false",
            "while false; do :; done",
        ]);
        Node::statement(
            "bash-trap",
            pieces![options, "trap '", action, format!("' {signal}; "), Node::optional("", pieces![after])],
        )
    }

    pub(super) fn shopt(&mut self) -> Node {
        if self.random.chance(60) {
            return Node::statement("shopt", pieces![self.phrase("shopt")]);
        }
        let option = self.random.pick(&[
            "nullglob",
            "dotglob",
            "globstar",
            "extglob",
            "nocaseglob",
            "nocasematch",
            "failglob",
            "lastpipe",
            "inherit_errexit",
            "xpg_echo",
            "nullglob dotglob",
            "localvar_inherit",
            "expand_aliases",
            "patsub_replacement",
        ]);
        let way = self.random.pick(&["-s", "-s", "-u", "-q", "-p"]);
        let after = self.random.pick(&[
            "echo $?",
            "echo *",
            "printf '%s\\n' **/*",
            "case A in a) echo y;; *) echo n;; esac",
            "echo nope*",
            "echo v | read x; echo \"$x\"",
            "[[ a == A ]]; echo $?",
            "echo 'a\\tb'",
            "arr=(zz*); echo ${#arr[@]}",
        ]);
        Node::statement("shopt", pieces![format!("shopt {way} {option}\n"), Node::optional("", pieces![after])])
    }
}
