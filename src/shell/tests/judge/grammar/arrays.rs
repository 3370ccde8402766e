//! Arrays, maps and arithmetic commands of bash.

use super::Grammar;
use crate::judge::program::{Node, Piece, pieces};

impl Grammar {
    pub(super) fn subscript(&mut self) -> &'static str {
        self.random.pick(&["0", "0", "1", "1", "2", "5", "n", "$n", "n+1", "-1", "-2", "${#arr[@]}", "#", "1-1"])
    }

    pub(super) fn array_statement(&mut self) -> Node {
        let subscript = self.subscript();
        let start = match self.random.weighted(&[30, 10, 14, 10, 10, 6, 8, 10, 6]) {
            0 => self.array_literal("arr="),
            1 => self.array_literal("arr+="),
            2 => Node::fixed(
                "",
                pieces![format!("arr[{subscript}]{}", self.random.pick(&["=", "=", "+="])), self.word()],
            ),
            3 => Node::fixed("", pieces![format!("unset 'arr[{subscript}]'")]),
            4 => Node::fixed(
                "",
                pieces![
                    format!("(( arr[{subscript}] {} ", self.random.pick(&["=", "+=", "-=", "=="])),
                    self.arithmetic(1),
                    " ))"
                ],
            ),
            5 => Node::fixed("", pieces!["arr=($(", self.echo(), "))"]),
            6 => {
                let text = [
                    "arr=(*)",
                    "arr=(\"$@\")",
                    "arr=(\"${arr[@]}\" z)",
                    "arr=()",
                    "arr=($x)",
                    "arr=(${x//a/ })",
                    "IFS=: ; arr=($x)",
                    "arr=$x",
                    "unset arr",
                    "arr=({a..c})",
                    "arr=([n]=p [n+1]=q)",
                ];
                Node::fixed("", pieces![self.random.pick(&text)])
            }
            7 => self.mapfile(),
            _ => Node::fixed("", pieces!["f9() { local -n ref=$1; ref+=(\"$2\"); }; f9 arr ", self.word()]),
        };
        Node::statement("array", pieces![start, Node::optional("", pieces![self.phrase("array-show")])])
    }

    fn array_literal(&mut self, name: &str) -> Node {
        let mut pieces: Vec<Piece> = pieces![format!("{name}(")];
        for _ in 0..self.random.below(4) {
            let element =
                if self.random.chance(12) { self.random.pick(&["[1]=", "[3]=", "[n]=", "[0]+="]) } else { "" };
            pieces.extend(pieces![Node::optional("", pieces![element]), self.word(), " "]);
        }
        pieces.push(")".into());
        Node::fixed("", pieces)
    }

    fn mapfile(&mut self) -> Node {
        let flags = self.random.pick(&["-t", "-t", "", "-t -n 1", "-t -s 1", "-d : -t", "-t -O 2", "-tn 2"]);
        let input = self.random.pick(&["<f", "<g", "<<<\"$x\"", "<<<$'a\\nb\\nc'", "</dev/null", "<nope"]);
        let name = self.random.pick(&["mapfile", "readarray"]);
        Node::fixed("", pieces![format!("{name} {flags} arr {input}")])
    }

    pub(super) fn map_statement(&mut self) -> Node {
        let key = self.random.pick(&["k", "k", "'a b'", "$x", "\"$x\"", "1", "n"]);
        let change = match self.random.below(6) {
            0 => Node::optional("", pieces![format!("map[{key}]="), self.word(), "; "]),
            1 => Node::optional("", pieces![format!("map[{key}]+="), self.word(), "; "]),
            2 => Node::optional("", pieces!["map+=([j]=1 [k]=2); "]),
            3 => Node::optional("", pieces!["unset 'map[k]'; "]),
            4 => Node::optional("", pieces![format!("(( map[{key}]++ )); ")]),
            _ => Node::optional("", pieces!["for i in a b a; do (( map[$i]++ )); done; "]),
        };
        let declare = self.random.pick(&[
            "declare -A map",
            "declare -A map=([k]=v [j]=w)",
            "declare -A map=([k]=\"$x\")",
            "declare -A map=(k v j w)",
            "declare -A map; map=([\"a b\"]=1)",
        ]);
        Node::statement(
            "map",
            pieces![declare, "; ", change, "echo $?", Node::optional("", pieces![self.phrase("map-show")])],
        )
    }

    pub(super) fn arithmetic_command(&mut self) -> Node {
        let show = "; echo \"$? $n\"";
        if self.random.chance(40) {
            return Node::statement("arithmetic-command", pieces![self.phrase("arithmetic-command"), show]);
        }
        Node::statement("arithmetic-command", pieces!["(( ", self.arithmetic(2), " ))", show])
    }
}
