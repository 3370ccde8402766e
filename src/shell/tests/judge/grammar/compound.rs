//! Lists, conditions, loops, functions, subshells.

use super::Grammar;
use crate::judge::program::{Node, Piece, pieces};

impl Grammar {
    pub(super) fn compound(&mut self) -> Node {
        self.depth -= 1;
        let node = match self.random.weighted(&[18, 14, 10, 14, 12, 8, 8, 10, 8, if self.bash { 12 } else { 0 }]) {
            0 => self.conditional(),
            1 => self.for_loop(),
            2 => self.while_loop(),
            3 => self.case(),
            4 => self.and_or(),
            5 => self.subshell(),
            6 => self.group(),
            7 => self.function(),
            8 => self.pipe_into_loop(),
            _ => self.bash_compound(),
        };
        self.depth += 1;
        node
    }

    fn conditional(&mut self) -> Node {
        let mut pieces = pieces!["if ", self.condition(), "; then\n", self.list()];
        if self.random.chance(20) {
            pieces.extend(pieces![Node::optional("", pieces!["elif ", self.condition(), "; then\n", self.list()])]);
        }
        if self.random.chance(50) {
            pieces.extend(pieces![Node::optional("", pieces!["else\n", self.list()])]);
        }
        pieces.push("fi".into());
        pieces.push(self.redirection().into());
        Node::statement("if", pieces)
    }

    /// A command in a place where its status is tested; without a here-document, which would need a line's end.
    fn condition(&mut self) -> Node {
        let not = Node::optional("", pieces![if self.random.chance(15) { "! " } else { "" }]);
        let command = match self.random.weighted(&[60, 15, 15, 10]) {
            0 => self.test(),
            1 => Node::statement("", pieces![self.random.pick(&["true", "false", ":", "(exit 2)", "[ -n \"$x\" ]"])]),
            2 => self.filter_pipeline(),
            _ => self.call_or_test(),
        };
        Node::fixed("", pieces![not, command])
    }

    fn call_or_test(&mut self) -> Node {
        match self.functions.last() {
            Some(name) => Node::statement("call", pieces![*name, " ", self.word()]),
            None => self.test(),
        }
    }

    fn body(&mut self) -> Node {
        let was = std::mem::replace(&mut self.in_loop, true);
        let list = self.list();
        self.in_loop = was;
        if self.random.chance(20) {
            let text = self.random.pick(&[
                "break",
                "continue",
                "break 2",
                "continue 2",
                "[ \"$i\" = b ] && break",
                "[ \"$i\" = a ] && continue",
            ]);
            return Node::fixed("", pieces![list, Node::statement("jump", pieces![text]), "\n"]);
        }
        list
    }

    fn for_loop(&mut self) -> Node {
        let mut pieces = pieces!["for i"];
        match self.random.weighted(&[60, 15, 10, 15]) {
            0 => {
                pieces.push(" in".into());
                pieces.extend(self.words(3));
            }
            1 => pieces.push(" in \"$@\"".into()),
            2 => {}
            _ => pieces.push(" in a b c".into()),
        }
        pieces.extend(pieces![
            "; do\n",
            Node::statement("", pieces!["echo \"$i\""]),
            "\n",
            self.body(),
            "done",
            self.redirection()
        ]);
        Node::statement("for", pieces)
    }

    fn while_loop(&mut self) -> Node {
        if self.random.chance(50) {
            let read = self.random.pick(&[
                "read line",
                "read -r line",
                "IFS= read -r line",
                "IFS=: read a line",
                "read a b line",
            ]);
            let was = std::mem::replace(&mut self.quiet, true);
            let body = self.body();
            self.quiet = was;
            let input = self.random.pick(&["f", "f", "g", "d/x", "/etc/group", "nope"]);
            let show = Node::statement("", pieces!["echo \"[$line]\""]);
            return Node::statement(
                "while-read",
                pieces![format!("while {read}; do\n"), show, "\n", body, format!("done <{input}")],
            );
        }
        let (start, condition) = self.random.pick(&[
            ("k=0", "while [ $k -lt 3 ]"),
            ("k=0", "until [ $k -ge 2 ]"),
            ("k=0", "while [ \"$((k < 2))\" = 1 ]"),
            ("k=3", "while false || [ $k -lt 5 ]"),
        ]);
        let list = self.body();
        Node::statement("while", pieces![format!("{start}; {condition}; do\nk=$((k+1))\n"), list, "done"])
    }

    fn case(&mut self) -> Node {
        let mut pieces = pieces!["case ", self.word(), " in\n"];
        for _ in 0..=self.random.below(3) {
            let open = if self.random.chance(15) { "(" } else { "" };
            let end = if self.bash && self.random.chance(15) { self.random.pick(&[";&\n", ";;&\n"]) } else { ";;\n" };
            let mut branch = pieces![open, self.pattern()];
            if self.random.chance(25) {
                branch.extend(pieces!["|", self.pattern()]);
            }
            branch.extend(pieces![")\n", self.list(), end]);
            pieces.push(Node::optional("", branch).into());
        }
        if self.random.chance(60) {
            pieces.push(Node::optional("", pieces!["*) echo other;;\n"]).into());
        }
        pieces.push("esac".into());
        Node::statement("case", pieces)
    }

    fn and_or(&mut self) -> Node {
        let mut pieces = pieces![self.condition()];
        for _ in 0..=self.random.below(2) {
            let right = match self.random.below(4) {
                0 => self.test(),
                1 => {
                    Node::statement("", pieces![self.random.pick(&["false", "true", "return 3", "exit 4", "(exit 5)"])])
                }
                _ => self.echo(),
            };
            pieces.extend(pieces![self.random.pick(&[" && ", " || "]), right]);
        }
        Node::statement("and-or", pieces)
    }

    pub(super) fn subshell(&mut self) -> Node {
        let change = if self.random.chance(40) {
            self.random.pick(&[
                "cd d\n",
                "cd d/s\n",
                "cd ld\n",
                "cd nope\n",
                "cd ..\n",
                "cd ld/..\n",
                "cd -P ld\n",
                "cd d && pwd\n",
                "cd\n",
                "cd -- d\n",
            ])
        } else {
            ""
        };
        let label = if change.is_empty() { "" } else { "cd" };
        let list = self.list();
        Node::statement("subshell", pieces!["(", Node::optional(label, pieces![change]), list, ")", self.redirection()])
    }

    fn group(&mut self) -> Node {
        if !self.quiet && self.random.chance(40) {
            let text = self.phrase("group");
            return Node::statement("descriptors", pieces![text]);
        }
        let list = self.list();
        Node::statement("group", pieces!["{\n", list, "}", self.redirection()])
    }

    fn function(&mut self) -> Node {
        let Some(name) = ["f1", "f2", "f3"].into_iter().find(|name| !self.functions.contains(name)) else {
            return self.group();
        };
        let was = std::mem::replace(&mut self.in_function, true);
        let in_loop = std::mem::replace(&mut self.in_loop, false);
        let mut body: Vec<Piece> = Vec::new();
        if self.random.chance(40) {
            let text = self.random.pick(&[
                "local x",
                "local x=in",
                "local x=\"$1\" y",
                "local v=$(false); echo $?",
                "local n=5",
                "local x; x=2",
                "local -",
            ]);
            body.extend(pieces![Node::statement("local", pieces![text]), "\n"]);
        }
        if self.random.chance(40) {
            body.extend(pieces![Node::statement("", pieces!["echo \"$# $1\""]), "\n"]);
        }
        body.extend(pieces![self.list()]);
        if self.random.chance(30) {
            body.extend(pieces![
                Node::statement(
                    "return",
                    pieces![self.random.pick(&["return", "return 3", "return 0", "false", "return $n"])]
                ),
                "\n"
            ]);
        }
        self.in_function = was;
        self.in_loop = in_loop;
        let keyword = if self.bash && self.random.chance(20) { "function " } else { "" };
        let (open, close) = if self.random.chance(85) { ("{\n", "}") } else { ("(\n", ")") };
        let call = self.words(2);
        self.functions.push(name);
        let mut pieces = pieces![format!("{keyword}{name}() {open}"), Node::fixed("", body), close];
        if !self.quiet && self.random.chance(8) {
            pieces.push(
                Node::optional("function-redirection", pieces![self.random.pick(&[" >o1", " <f", " 2>/dev/null"])])
                    .into(),
            );
        }
        let mut after: Vec<Piece> = pieces![name];
        after.extend(call);
        pieces.extend(pieces!["\n", Node::statement("call", after)]);
        Node::statement("function", pieces)
    }

    fn pipe_into_loop(&mut self) -> Node {
        let was = std::mem::replace(&mut self.quiet, true);
        let source = self.source();
        let body = self.list();
        self.quiet = was;
        Node::statement(
            "pipe-into-loop",
            pieces![source, " | while read -r line; do\necho \"<$line>\"\n", body, "done"],
        )
    }
}
