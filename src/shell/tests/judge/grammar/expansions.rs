//! Parameters and command substitutions.

use super::Grammar;
use crate::judge::program::{Node, Piece, pieces};

impl Grammar {
    pub(super) fn parameter(&mut self, quoted: bool) -> Node {
        let name = self.name();
        match self.random.weighted(&[35, 14, 20, 14, 6, 8, 4, if self.bash { 22 } else { 0 }]) {
            0 => Node::optional("", pieces![format!("${name}")]),
            1 => Node::optional("", pieces![format!("${{{name}}}")]),
            2 => self.conditional_expansion(quoted),
            3 => self.trimmed(),
            4 => Node::optional("length", pieces![self.random.pick(&["${#x}", "${#y}", "${#}", "${#1}", "${#unset}"])]),
            5 => Node::optional(
                "positional",
                pieces![self.random.pick(&["$1", "$2", "$3", "$4", "$#", "${1}", "$?", "${10}", "$10"])],
            ),
            6 => Node::optional("all-positional", pieces![self.random.pick(&["$@", "$*", "${@}", "${*}"])]),
            _ => self.bash_expansion(),
        }
    }

    fn conditional_expansion(&mut self, quoted: bool) -> Node {
        let name = self.random.pick(&["x", "y", "unset", "v", "1", "4", "@", "*"]);
        let operator = self.random.pick(&["-", ":-", "+", ":+", "-", ":-", ":+", "=", ":=", "?", ":?"]);
        let named = name.bytes().all(|byte| byte.is_ascii_lowercase());
        let (label, operator) = match operator {
            "=" | ":=" if named => ("assign", operator),
            "=" | ":=" => ("default", "-"),
            "?" | ":?" if self.random.chance(80) => ("default", ":-"),
            "?" | ":?" => ("required", operator),
            "+" | ":+" => ("alternative", operator),
            other => ("default", other),
        };
        let inner = match self.random.weighted(&[40, 20, 10, 10, 20]) {
            0 => Node::optional("", pieces![self.random.pick(&["a", "", "b c", "a/b", "*", ":", "d/*", "~"])]),
            1 if self.depth > 0 => self.nested_parameter(quoted),
            2 => Node::optional("", pieces![self.random.pick(&["'q r'", "\\}", "\\\\", "\"q\"", "\"a  b\"", "a\\ b"])]),
            3 => self.substitution(),
            _ => Node::optional("", pieces!["y"]),
        };
        Node::optional(label, pieces![format!("${{{name}{operator}"), inner, "}"])
    }

    fn nested_parameter(&mut self, quoted: bool) -> Node {
        self.depth -= 1;
        let node = self.parameter(quoted);
        self.depth += 1;
        node
    }

    fn trimmed(&mut self) -> Node {
        let operator = self.random.pick(&["#", "##", "%", "%%"]);
        let name = self.random.pick(&["x", "y", "1", "unset", "v"]);
        Node::optional("trim", pieces![format!("${{{name}{operator}"), self.pattern(), "}"])
    }

    pub(super) fn substitution(&mut self) -> Node {
        if self.depth == 0 {
            return Node::optional("substitution", pieces!["$(echo a)"]);
        }
        self.depth -= 1;
        let was = std::mem::replace(&mut self.quiet, true);
        let inner = match self.random.weighted(&[40, 30, 10, 10]) {
            0 => self.echo(),
            1 => self.filter_pipeline(),
            2 => self.statement(),
            _ => Node::statement(
                "",
                pieces![self.random.pick(&[
                    "false",
                    "true",
                    "exit 3",
                    "(exit 4)",
                    "echo a; false",
                    "printf 'a\\n\\n\\n'",
                    "cat f",
                    "pwd | wc -l"
                ])],
            ),
        };
        self.quiet = was;
        self.depth += 1;
        let text = inner.text();
        if self.random.chance(12) && !text.contains(['`', '\\', '\'', '"', '\n']) {
            return Node::optional("backquotes", pieces!["`", inner, "`"]);
        }
        let end = if text.contains('\n') || text.contains('#') { "\n)" } else { ")" };
        Node::optional("substitution", pieces!["$(", inner, end])
    }

    fn bash_expansion(&mut self) -> Node {
        let name = self.random.pick(&["x", "y", "1", "unset", "n"]);
        match self.random.weighted(&[25, 25, 15, 8, 8, 8, 12]) {
            0 => Node::optional(
                "substring",
                pieces![format!(
                    "${{{name}:{}}}",
                    self.random
                        .pick(&["1", "0:1", "1:2", " -1", "n", "1:-1", "9", " -2:1", "n:1", "0", "2:0", "1+1", "$n"])
                )],
            ),
            1 => self.replaced(name),
            2 => Node::optional(
                "case-change",
                pieces![format!(
                    "${{{name}{}}}",
                    self.random.pick(&["^^", ",,", "^", ",", "^^[a-c]", "^b", ",,A", "~~", "~"])
                )],
            ),
            3 => Node::optional(
                "indirect",
                pieces![self.random.pick(&[
                    "${!r}",
                    "${!x}",
                    "${!r:-u}",
                    "${!unset-}",
                    "${!x*}",
                    "${!BASH_R*}",
                    "${!r@}"
                ])],
            ),
            4 => Node::optional(
                "transform",
                pieces![format!(
                    "${{{name}@{}}}",
                    self.random.pick(&["Q", "Q", "U", "u", "L", "E", "A", "a", "P", "K"])
                )],
            ),
            5 => Node::optional(
                "positional-slice",
                pieces![self.random.pick(&[
                    "${@:1}", "${@:2}", "${@:1:2}", "${*:2}", "${@: -1}", "${@:0:0}", "${@#o}", "${@^}", "${*%e}",
                    "${@/o/0}", "${#@}"
                ])],
            ),
            _ => self.array_expansion(),
        }
    }

    fn replaced(&mut self, name: &str) -> Node {
        let form = self.random.pick(&["/", "//", "/#", "/%"]);
        let with = self.random.pick(&["", "/", "/X", "/'Y Z'", "/$y", "/\"$y\"", "/[&]", "/\\&", "/\\/", "/$(echo s)"]);
        Node::optional("replace", pieces![format!("${{{name}{form}"), self.pattern_of_replacement(), with, "}"])
    }

    fn pattern_of_replacement(&mut self) -> Node {
        let text = self
            .random
            .pick(&["a", "b", "?", "[a-c]", "a*", "*", "\\/", "b*", "'a b'", "$y", "\"$y\"", "[!a]", " ", ":", "."]);
        Node::word("", pieces![text])
    }

    pub(super) fn array_expansion(&mut self) -> Node {
        let array = self.random.pick(&["arr", "arr", "arr", "map", "x", "unset"]);
        let text = match self.random.below(9) {
            0 => format!("${{{array}[0]}}"),
            1 => format!("${{{array}[@]}}"),
            2 => format!("${{{array}[*]}}"),
            3 => format!("${{#{array}[@]}}"),
            4 => format!("${{!{array}[@]}}"),
            5 => format!("${array}"),
            6 => format!("${{{array}[{}]}}", self.random.pick(&["1", "n", "-1", "5", "k", "'k'", "$n", "n+1"])),
            7 => format!("${{{array}[@]:{}}}", self.random.pick(&["1", "0:2", "1:1", "2"])),
            _ => format!(
                "${{{array}[@]{}}}",
                self.random.pick(&["#a", "%b", "/a/b", "^", "-none", "+some", ":-none", "@Q"])
            ),
        };
        let text = if array == "map" { text.replace("[@]", "[k]").replace("[*]", "[k]") } else { text };
        let piece: Piece = if self.random.chance(40) { format!("\"{text}\"").into() } else { text.into() };
        Node::optional("array", vec![piece])
    }
}
