//! What only bash has.

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

    fn array_statement(&mut self) -> Node {
        let show = self.random.pick(&[
            "; echo \"${arr[@]}\"",
            "; echo \"${#arr[@]} ${!arr[*]}\"",
            "; printf '<%s>' \"${arr[@]}\"; echo",
            "; declare -p arr",
            "; echo ${arr[*]}",
            "",
        ]);
        let start: Node = match self.random.weighted(&[35, 10, 10, 10, 8, 6, 8, 8, 6]) {
            0 => {
                let mut pieces = pieces!["arr=("];
                pieces.extend(self.words(3));
                pieces.push(")".into());
                Node::fixed("", pieces)
            }
            1 => Node::fixed("", pieces!["arr+=(", self.word(), ")"]),
            2 => Node::fixed(
                "",
                pieces![
                    self.random.pick(&["arr[0]=", "arr[3]=", "arr[n]=", "arr[-1]=", "arr[n+1]=", "arr=", "arr[$n]="]),
                    self.word()
                ],
            ),
            3 => Node::fixed(
                "",
                pieces![self.random.pick(&[
                    "unset 'arr[0]'",
                    "unset 'arr[1]'",
                    "unset arr",
                    "unset 'arr[-1]'",
                    "unset 'arr[@]'"
                ])],
            ),
            4 => Node::fixed("", pieces!["arr=([2]=c [0]=a ", self.word(), ")"]),
            5 => Node::fixed("", pieces!["arr=($(", self.echo(), "))"]),
            6 => Node::fixed(
                "",
                pieces![self.random.pick(&[
                    "arr=(*)",
                    "arr=(\"$@\")",
                    "arr=(\"${arr[@]}\" z)",
                    "arr=()",
                    "arr=($x)",
                    "arr=(${x//a/ })",
                    "IFS=: ; arr=($x)"
                ])],
            ),
            7 => Node::fixed(
                "",
                pieces![self.random.pick(&[
                    "mapfile -t arr <f",
                    "mapfile arr <f",
                    "readarray -t arr <<<\"$x\"",
                    "mapfile -t -n 1 arr <f",
                    "mapfile -t -s 1 arr <f",
                    "mapfile -d : -t arr <f",
                    "read -a arr <<<\"$x\"",
                    "read -ra arr <f"
                ])],
            ),
            _ => Node::fixed("", pieces!["for i in \"${arr[@]}\"; do echo \"<$i>\"; done"]),
        };
        Node::statement("array", pieces![start, Node::optional("", pieces![show])])
    }

    fn map_statement(&mut self) -> Node {
        let show = self.random.pick(&[
            "; echo \"${map[k]}\"",
            "; echo \"${#map[@]}\"",
            "; [[ -v map[k] ]]; echo $?",
            "; printf '%s\\n' \"${!map[@]}\" | sort",
            "; printf '%s\\n' \"${map[@]}\" | sort",
            "; for i in \"${!map[@]}\"; do echo \"$i\"; done | sort",
        ]);
        let start = match self.random.below(6) {
            0 => Node::fixed("", pieces!["declare -A map=([k]=", self.word(), ")"]),
            1 => Node::fixed("", pieces!["declare -A map; map[k]=", self.word(), "; map[\"a b\"]=2"]),
            2 => Node::fixed("", pieces!["declare -A map; map+=([j]=1 [k]=2)"]),
            3 => Node::fixed("", pieces!["declare -A map; map[$x]=1; map[k]+=z"]),
            4 => Node::fixed("", pieces!["declare -A map=([k]=v [j]=w); unset 'map[k]'"]),
            _ => Node::fixed("", pieces!["declare -A map; map=(k v j w)"]),
        };
        Node::statement("map", pieces![start, Node::optional("", pieces![show])])
    }

    fn arithmetic_command(&mut self) -> Node {
        if self.random.chance(30) {
            let text = self.random.pick(&[
                "let n=1+2",
                "let n++",
                "let 'n = 5' 'n > 3'",
                "(( n++ ))",
                "(( n > 2 ))",
                "((n+=2))",
                "(( 0 ))",
                "(( n = 4, n-- ))",
                "((!n))",
                "let n=0",
                "(( n == 3 && n ))",
                "((arr[0]++))",
                "((x = 5 > 3))",
            ]);
            return Node::statement("arithmetic-command", pieces![text, "; echo \"$? $n\""]);
        }
        Node::statement("arithmetic-command", pieces!["(( ", self.arithmetic(2), " )); echo \"$? $n\""])
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
            "cat -A",
        ]);
        Node::statement("here-string", pieces![command, " <<<", self.word(), "; echo \"$x\""])
    }

    fn declaration(&mut self) -> Node {
        let command = if self.in_function {
            self.random.pick(&["local", "declare", "local", "typeset", "declare -g", "local -n"])
        } else {
            self.random.pick(&["declare", "typeset", "readonly", "export", "declare"])
        };
        let text = self.random.pick(&[
            "q=1; echo $q",
            "-i q=2+3; echo $q",
            "-r q=1; q=2; echo $?",
            "-x q=1; env | grep '^q='",
            "-a q=(1 2); echo ${q[1]}",
            "-A q=([a]=1); echo ${q[a]}",
            "-u q=abc; echo $q",
            "-l q=ABC; echo $q",
            "q; echo \"${q-unset}\"",
            "-p x",
            "q=$x r=$y; echo \"$q$r\"",
            "-i q; q=1+1; echo $q",
            "-n ref=x; echo \"$ref\"; ref=5; echo \"$x\"",
            "-ir q=7; echo $q",
            "-a q; q[1]=x; echo ${#q[@]}",
            "q=(a b); echo \"${q[@]}\"",
            "-p nope; echo $?",
            "+i n; echo $n",
            "-f f1 >/dev/null; echo $?",
            "q={a,b}; echo $q",
            "q=~; echo ${#q}",
            "'q=a b'; echo \"$q\"",
        ]);
        Node::statement("declaration", pieces![command, " ", text])
    }

    fn bash_trap(&mut self) -> Node {
        let text = self.random.pick(&[
            "trap 'echo err $?' ERR; false; echo on",
            "set -E; trap 'echo err' ERR; f9() { false; }; f9",
            "trap 'echo err' ERR; f9() { false; echo x; }; f9",
            "f9() { trap 'echo ret' RETURN; }; f9",
            "trap 'echo err' ERR; false || true; if false; then :; fi",
            "set -e; trap 'echo err' ERR; false",
            "trap 'echo err' ERR; (false); x=$(false)",
            "trap 'echo err' ERR; trap - ERR; false",
            "trap 'echo d' DEBUG; echo a; trap - DEBUG; echo b",
            "trap 'echo err $LINENO' ERR\nfalse",
            "set -eE; trap 'echo caught; exit 9' ERR; f9() { false; }; f9",
            "trap 'echo err' ERR; ! true; echo end",
            "trap 'echo err' ERR; false | true; true | false",
            "set -o pipefail; trap 'echo err' ERR; false | true",
            "trap 'echo a' ERR EXIT; trap -p",
            "set -e; f9() { false; echo in; }; f9 || echo or; x=$(false; echo s); echo \"$x\"",
            "trap 'echo r' RETURN; f9() { :; }; f9; . /dev/null",
        ]);
        Node::statement("bash-trap", pieces![text])
    }

    fn shopt(&mut self) -> Node {
        let text = self.random.pick(&[
            "shopt -s nullglob; echo zz*",
            "shopt -s extglob\necho !(f)",
            "shopt -s globstar; printf '%s\\n' **",
            "shopt -s dotglob; echo *",
            "shopt -s failglob; echo zz*; echo on",
            "shopt -s nocasematch; [[ ABC == abc ]] && echo y",
            "shopt -s lastpipe; echo v | read x; echo \"$x\"",
            "shopt -s inherit_errexit; set -e; x=$(false; echo in); echo \"$x\"",
            "shopt -q nullglob; echo $?",
            "shopt -u nullglob; echo zz*",
            "shopt nullglob",
            "shopt -s nope; echo $?",
            "shopt -s nocaseglob; echo F*",
            "shopt -s nullglob dotglob; arr=(*); echo ${#arr[@]}",
            "shopt -s extglob\ncase aab in +(a)b) echo y;; esac",
            "shopt -s extglob\necho ${x##+(a)}",
            "shopt -p extglob",
            "shopt -s expand_aliases\nalias q='echo al'\nq",
            "set -o pipefail; false | true; echo $?",
            "set -o pipefail; echo a | cat | (exit 3) | cat; echo ${PIPESTATUS[@]}",
            "true | false | (exit 4); echo ${PIPESTATUS[*]}",
        ]);
        Node::statement("shopt", pieces![text])
    }

    fn bash_builtin(&mut self) -> Node {
        let text = self.random.pick(&[
            "printf -v x '%s-%d' a 5; echo \"$x\"",
            "printf '%q\\n' 'a b' \"$x\" ''",
            "echo -e 'a\\tb\\x41\\0101'",
            "echo -n x; echo -e 'a\\cb'; echo",
            "echo -E 'a\\tb'",
            "echo -ne 'q\\n'",
            "printf '%s\\n' a b c",
            "read -r -d : x <f; echo \"$x\"",
            "read -n 2 x <f; echo \"$x\"",
            "builtin echo b; builtin nope; echo $?",
            "type -t cd cat if nope f1",
            "source /dev/null; echo $?",
            "echo 'echo \"$1 $#\"' >lib; source ./lib p q; echo $#",
            "echo \"${BASH_SOURCE[0]##*/}\" | wc -l",
            "echo ${FUNCNAME[0]-main}",
            "f9() { echo ${FUNCNAME[0]}; }; f9",
            "echo $LINENO",
            "echo \"${BASH_VERSINFO[0]}\"",
            "echo ${EUID}",
            "pushd d >/dev/null; pwd | sed 's,.*/,,'; popd >/dev/null",
            "bash -c 'echo $0 {a,b}' x",
            "bash -eu -c 'false; echo no'; echo $?",
            "echo a |& cat",
            "{ echo a; echo b >&2; } |& sort",
            "time true 2>/dev/null; echo $?",
            "coproc cat",
            "select q in a; do break; done </dev/null",
            "caller; echo $?",
            "set -o posix; echo $?",
            "test -v x; echo $?",
            "! ! true; echo $?",
            "echo $[1+2]",
            "mapfile -t < f; echo ${#MAPFILE[@]}",
            "read -r x y <<<\"a b c\"; echo \"$y|$x\"",
            "read <<<' a b '; echo \"[$REPLY]\"",
            "unset -v x; echo ${x-u}",
            "printf '%(%Y)T\\n' 0",
            "printf '%s %s\\n' a",
            "printf '%d\\n' \"'A\" 0x1f 010",
            "command -v if cd f1",
            "echo \"$BASH_COMMAND\"",
            "let; echo $?",
            "exit 3 4",
            "shift 9; echo $?",
            "wait; echo $?",
            "true &\nwait; echo done",
        ]);
        Node::statement("bash-builtin", pieces![text])
    }

    fn process_substitution(&mut self) -> Node {
        let text = self.random.pick(&[
            "cat <(echo a)",
            "diff <(echo a) <(echo a); echo $?",
            "while read -r q; do x=$q; echo \"$q\"; done < <(printf '1\\n2\\n'); echo \"$x\"",
            "cat <(sort f) <(echo z)",
            "mapfile -t arr < <(seq 3); echo ${#arr[@]}",
            "grep -c . <(cat f)",
            "read -r x < <(echo r); echo $x",
            "cat < <(false); echo $?",
            "comm <(echo a) <(echo b)",
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
}
