//! Grammar of constructs that only bash has.

use super::Grammar;
use crate::judge::program::{Node, Piece, pieces};

impl Grammar {
    pub(super) fn bash_statement(&mut self) -> Node {
        match self.random.weighted(&[16, 10, 8, 10, 8, 10, 8, 8, 8, 6]) {
            0 => self.array_statement(),
            1 => self.map_statement(),
            2 => Node::statement(
                "append",
                pieces![
                    self.random.pick(&["x+=", "y+=", "arr[1]+=", "n+="]),
                    self.word(),
                    "; echo \"$x|$y|${arr[1]}|$n\""
                ],
            ),
            3 => self.arithmetic_command(),
            4 => self.here_string(),
            5 => self.declaration(),
            6 => self.bash_trap(),
            7 => self.shopt(),
            8 => self.bash_builtin(),
            _ => self.process_substitution(),
        }
    }

    pub(super) fn double_bracket(&mut self) -> Node {
        let mut pieces: Vec<Piece> = pieces!["[[ "];
        if self.random.chance(12) {
            pieces.push(Node::optional("", pieces!["! "]).into());
        }
        pieces.push(self.bracket_primary().into());
        if self.random.chance(20) {
            let inner = self.bracket_primary();
            pieces.push(Node::optional("bracket-and-or", pieces![self.random.pick(&[" && ", " || "]), inner]).into());
        }
        pieces.push(" ]]".into());
        Node::statement("double-bracket", pieces)
    }

    fn bracket_primary(&mut self) -> Node {
        match self.random.weighted(&[25, 25, 12, 12, 12, 10, 4]) {
            0 => Node::optional(
                "bracket-pattern",
                pieces![self.word(), self.random.pick(&[" == ", " = ", " != "]), self.pattern()],
            ),
            1 => {
                let regex = self.random.pick(&[
                    "a",
                    "^a",
                    "b$",
                    "[a-c]+",
                    "(a)(b)?",
                    "^([a-z]+)([0-9]*)$",
                    "\"a\"",
                    "a|b",
                    "^[^:]*:",
                    "$y",
                    "\"$y\"",
                    ".",
                    "^$",
                    "(.)(.)",
                    "[[:space:]]",
                    "a{2}",
                    "\\.",
                    "x*",
                ]);
                Node::optional("regex-match", pieces![self.word(), format!(" =~ {regex}")])
            }
            2 => Node::optional("", pieces![self.random.pick(&["-n ", "-z ", ""]), self.word()]),
            3 => Node::optional(
                "bracket-file",
                pieces![self.random.pick(&["-e ", "-f ", "-d ", "-L ", "-s ", "-x ", "-a "]), self.path()],
            ),
            4 => Node::optional(
                "bracket-number",
                pieces![
                    self.arithmetic_operand(),
                    self.random.pick(&[" -eq ", " -ne ", " -lt ", " -gt ", " -le "]),
                    self.arithmetic_operand()
                ],
            ),
            5 => Node::optional(
                "bracket-odd",
                pieces![self.random.pick(&[
                    "-v x",
                    "-v arr[1]",
                    "a < b",
                    "b > a",
                    "-o errexit",
                    "( a = b || c = c )",
                    "-v unset",
                    "f -ef hard",
                    "-v map[k]",
                    "! -v y",
                    "! ( a = a )",
                    "-R x",
                    "$x",
                    "-t 0"
                ])],
            ),
            _ => Node::optional("", pieces!["-n $x"]),
        }
    }

    fn arithmetic_operand(&mut self) -> Node {
        Node::word(
            "",
            pieces![self.random.pick(&["0", "1", "n", "$n", "n+1", "010", "x", "unset", "-1", "${#x}", "2*2", "0x10"])],
        )
    }

    fn here_string(&mut self) -> Node {
        let command = self.random.pick(&[
            "cat",
            "read x",
            "read -r x y",
            "tr a-z A-Z",
            "wc -c",
            "grep a",
            "while read -r q; do echo \"[$q]\"; done",
            "IFS=: read -r x y",
        ]);
        Node::statement("here-string", pieces![command, " <<<", self.word(), "; echo \"$x\""])
    }

    fn bash_builtin(&mut self) -> Node {
        match self.random.below(6) {
            0 => return self.bash_read(),
            1 => return self.bash_print(),
            _ => {}
        }
        let text = self.phrase("bash-builtin");
        Node::statement("bash-builtin", pieces![text])
    }

    fn process_substitution(&mut self) -> Node {
        if !self.has_proc {
            return self.here_string();
        }
        let text = self.random.pick(&[
            "cat <(echo a)",
            "diff <(echo a) <(echo a); echo $?",
            "while read -r q; do x=$q; echo \"$q\"; done < <(printf '1\\n2\\n'); echo \"$x\"",
            "cat <(sort f) <(echo z)",
            "mapfile -t arr < <(seq 3); echo ${#arr[@]}",
            "grep -c . <(cat f)",
            "read -r x < <(echo r); echo $x",
            "cat < <(false); echo $?",
        ]);
        Node::statement("process-substitution", pieces![text])
    }

    pub(super) fn bash_compound(&mut self) -> Node {
        match self.random.below(4) {
            0 => {
                let header = self.random.pick(&[
                    "for ((i=0; i<3; i++))",
                    "for (( i=3; i; i-- ))",
                    "for ((i=0,j=5; i<j; i+=2, j--))",
                    "for ((i=0; i<0; i++))",
                ]);
                Node::statement("c-for", pieces![header, "; do\necho $i\n", self.list(), "done"])
            }
            1 => Node::statement(
                "if",
                pieces!["if ", self.double_bracket(), "; then\n", self.list(), "else\n", self.list(), "fi"],
            ),
            2 => Node::statement(
                "rematch",
                pieces![
                    "if [[ ",
                    self.word(),
                    " =~ ",
                    self.random.pick(&["(.)(.*)", "^([a-z])", "b(.)?", "([0-9]+)"]),
                    " ]]; then\nprintf '<%s>' \"${BASH_REMATCH[@]}\"; echo\nfi"
                ],
            ),
            _ => Node::statement("for-braces", pieces!["for i in {1..3} {a,b}; do\necho $i\n", self.list(), "done"]),
        }
    }

    fn bash_read(&mut self) -> Node {
        let input = self.random.pick(&[
            "'a b c'",
            "' a  b '",
            "a:b:c",
            "'a\\b c'",
            "$'a\\tb'",
            "$'x y\\nz'",
            "\"$x\"",
            "''",
            "':a:'",
        ]);
        let ifs = self.random.pick(&["", "", "IFS=: ", "IFS= ", "IFS=', '  "]);
        let flags = self.random.pick(&["", "-r ", "-r ", "-d : ", "-n 2 ", "-N 3 ", "-rd '' ", "-p q "]);
        let (names, show) = self.random.pick(&[
            ("q", "[$q]"),
            ("q r", "[$q][$r]"),
            ("q r s", "[$q][$r][$s]"),
            ("", "[$REPLY]"),
            ("-a arr", "${#arr[@]} ${arr[*]}"),
        ]);
        Node::statement("bash-read", pieces![format!("{ifs}read {flags}{names} <<<{input}; echo \"$? {show}\"")])
    }

    fn bash_print(&mut self) -> Node {
        let mut pieces = match self.random.below(3) {
            0 => pieces!["echo ", self.random.pick(&["-e", "-n", "-E", "-ne", "-en", "-e -n", "-x", "-"])],
            1 => pieces![
                "printf -v q ",
                self.random.pick(&["'%s-'", "'%d,'", "'%5s'", "'%q '", "'%x'", "'%b'", "'a%%'"])
            ],
            _ => pieces![
                "printf ",
                self.random.pick(&[
                    "'%q\\n'",
                    "'%-6s|\\n'",
                    "'%b\\n'",
                    "'%5.1f\\n'",
                    "'%c|'",
                    "'%s\\n'",
                    "'%.2s\\n'",
                    "'%03d\\n'",
                    "'\\x41\\u0042\\n'"
                ])
            ],
        };
        let shown = self.random.pick(&["", "; echo", "; echo \"$q\""]);
        pieces.extend(self.words(3));
        pieces.push(shown.into());
        Node::statement("bash-print", pieces)
    }
}
