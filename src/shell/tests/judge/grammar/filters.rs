//! Pipelines of programs that read and write text.

use super::Grammar;
use crate::judge::program::{Node, Piece, pieces};

impl Grammar {
    /// What writes text into a pipeline.
    pub(super) fn source(&mut self) -> Node {
        match self.random.weighted(&[30, 25, 15, 10, 10, 10]) {
            0 => {
                let text = self.random.pick(&super::TEXTS);
                Node::statement("", pieces![format!("printf '{text}'")])
            }
            1 => Node::statement("cat", pieces!["cat ", self.input()]),
            2 => self.echo(),
            3 => {
                let operands =
                    self.random.usual(&["3", "1 5", "0 2 9", "5 1", "5 -1 1", "2 2", "-1 1"], &["-w 8 11", "-s , 4"]);
                Node::statement("seq", pieces![format!("seq {operands}")])
            }
            4 => self.find(),
            _ => Node::statement("ls", pieces!["ls ", self.random.pick(&["", "d", "-a", "-d *", "-1 e", "-A d"])]),
        }
    }

    pub(super) fn filter_pipeline(&mut self) -> Node {
        let was = std::mem::replace(&mut self.quiet, true);
        let mut pieces: Vec<Piece> = Vec::new();
        let alone = self.random.chance(30);
        if alone {
            let filter = self.filter();
            // tr takes no files as operands.
            let before = if filter.label == "tr" { " <" } else { " " };
            pieces.extend(pieces![filter, before, self.input()]);
        } else {
            pieces.push(self.source().into());
            for _ in 0..=self.random.weighted(&[60, 30, 10]) {
                let filter = self.filter();
                pieces.push(Node::optional("", pieces![" | ", filter]).into());
            }
        }
        self.quiet = was;
        // A listing would race with the file that the pipeline makes.
        let text = pieces.iter().map(Piece::text).collect::<String>();
        let lists = ["ls", "find", "echo", "<%s>", "xargs"].iter().any(|name| text.contains(name));
        if !self.quiet && !lists && self.random.chance(20) {
            let target =
                self.random.pick(&[" >o1", " >o2", " >>o1", " | tee o1", " | tee -a o2", " | tee o1 o2 >/dev/null"]);
            pieces.push(Node::optional("output", pieces![target]).into());
        }
        Node::statement("", pieces)
    }

    /// A program that reads standard input or the operands behind it.
    fn filter(&mut self) -> Node {
        match self.random.weighted(&[18, 18, 8, 10, 8, 6, 8, 6, 4, 10, 4, 4]) {
            0 => self.sed(),
            1 => self.grep(),
            2 => self.options(
                "cut",
                &["-d: -f1", "-d: -f2-", "-c1-3", "-f2", "-d' ' -f1,3", "-d: -f3 -s", "-c2", "-d: -f-2", "-d= -f2"],
                &["-b1,2", "--delimiter=: --fields=1", "-d, -f1 --complement"],
            ),
            3 => self.options(
                "sort",
                &["", "-r", "-n", "-u", "-k2", "-k2,2n", "-t: -k2", "-t: -k2n", "-nr", "-V", "-k1,1 -k2,2nr", "-rn -u"],
                &["-f", "-b", "-s -k2", "-c", "-h", "-d", "-k2.1"],
            ),
            4 => self.options(
                "head",
                &["", "-n 1", "-n 2", "-1", "-n -1", "-c 3", "-2", "-n 0", "-n1"],
                &["-q", "-v -n 1"],
            ),
            5 => self.options("tail", &["", "-n 1", "-n 2", "-1", "-n +2", "-c 3", "-n1", "-n 0"], &["+2", "-q -n 2"]),
            6 => self.options("wc", &["-l", "-w", "-c", "", "-lw"], &["-m", "-L"]),
            7 => self.options("uniq", &["", "-c", "-d", "-u"], &["-i", "-f1", "-w1", "-s1"]),
            8 => self.options("cat", &["", "", "-"], &["-n", "-A", "-s", "-E", "-b", "-T", "-v"]),
            9 => self.awk(),
            10 => self.xargs(),
            _ => self.translate(),
        }
    }

    fn options(&mut self, label: &'static str, usual: &[&'static str], rare: &[&'static str]) -> Node {
        let options = Node::word("", pieces![self.random.usual(usual, rare)]);
        Node::statement(label, pieces![format!("{label} "), options])
    }

    fn translate(&mut self) -> Node {
        let sets = self.random.pick(&[
            "a-z A-Z",
            "-d a",
            "-s ' '",
            "' ' _",
            "-d '\\n'",
            "-cd 'a-c\\n'",
            "'[:lower:]' '[:upper:]'",
            "'\\n' ,",
            "-s a-z",
            "abc x",
            ": ' '",
            "-d '[:space:]'",
            "'a-c' 'x-z'",
            "-c a-z '\\n'",
            "-t abc x",
            "'\\t' ' '",
            "-sd a b",
            "'[a*3]' x",
        ]);
        Node::statement("tr", pieces!["tr ", Node::word("", pieces![sets])])
    }

    fn sed(&mut self) -> Node {
        if self.random.chance(12) {
            let regex = self.extended_regex();
            let with = self.random.pick(&["X", "", "[&]", "\\n"]);
            let command = self.random.pick(&["-E", "-r", "-nE"]);
            let flags = if command == "-nE" { "p" } else { self.random.pick(&["", "g", "I"]) };
            return Node::statement("sed-extended", pieces![format!("sed {command} 's/{regex}/{with}/{flags}'")]);
        }
        let options = self.random.pick(&["", "", "", "-n ", "-e ", "-s ", "-n -e "]);
        Node::statement("sed", pieces!["sed ", Node::word("", pieces![options]), self.sed_script()])
    }

    fn grep(&mut self) -> Node {
        let options = self.random.usual(
            &[
                "", "", "-v ", "-i ", "-c ", "-n ", "-o ", "-x ", "-w ", "-l ", "-h ", "-s ", "-vc ", "-m1 ", "-H ",
                "-nv ",
            ],
            &["-L ", "-A1 ", "-B1 ", "-io ", "-a ", "-C1 "],
        );
        let (name, regex) = match self.random.weighted(&[55, 25, 15, 5]) {
            0 => ("grep ", self.basic_regex()),
            1 => ("grep -E ", self.extended_regex()),
            2 => ("grep -F ", self.random.pick(&["a", ".", "a*b", "[x]", "", "one", "a b"]).to_owned()),
            _ => ("grep -e a -e ", self.basic_regex()),
        };
        let quiet = self.random.chance(4);
        let options = if quiet { "-q " } else { options };
        Node::statement(
            if name == "grep -E " { "grep-extended" } else { "grep" },
            pieces![name, Node::word("", pieces![options]), format!("'{regex}'")],
        )
    }

    fn awk(&mut self) -> Node {
        let text = self.phrase("awk");
        Node::statement("awk", pieces!["awk ", Node::word("", pieces![text])])
    }

    fn xargs(&mut self) -> Node {
        let usual =
            ["", "-n1 ", "-r ", "-n2 echo", "echo x", "-I{} echo '<{}>'", "-n1 echo", "-r echo", "printf '[%s]'"];
        let rare = ["-L1 echo", "-d: echo", "-t echo", "-0 ", "-I% echo %-%"];
        let text = self.random.usual(&usual, &rare);
        Node::statement("xargs", pieces!["xargs ", Node::word("", pieces![text])])
    }

    pub(super) fn find(&mut self) -> Node {
        let mut pieces: Vec<Piece> = pieces![
            "find ",
            Node::word(
                "",
                pieces![
                    self.random.pick(&[".", "d", "d e", "f", "ld", "ld/", "nope", "", "-L .", "./d", "-H ld", "d/"])
                ]
            )
        ];
        for _ in 0..self.random.below(4) {
            let test = self.random.usual(
                &[
                    "-type f",
                    "-type d",
                    "-type l",
                    "-name 'f'",
                    "-name '*x*'",
                    "-maxdepth 1",
                    "-mindepth 1",
                    "! -name 'd*'",
                    "-empty",
                    "-path '*s*'",
                    "-perm 755",
                    "-type f -o -type l",
                    "\\( -name f -o -name g \\)",
                    "-print",
                    "-prune",
                    "-name s -prune -o -print",
                    "-not -type d",
                    "-regex '.*x'",
                    "-exec echo {} \\;",
                    "-perm /111",
                    "-exec test -s {} \\; -print",
                    "-name x -o -name f",
                    "-iname 'F*'",
                    "-user root",
                    "-size 0",
                ],
                &[
                    "-perm -100",
                    "-xtype l",
                    "-type f,l",
                    "-links 2",
                    "-samefile f",
                    "-true",
                    "-printf '%f %m\\n'",
                    "-depth",
                    "-readable -type f",
                    "-wholename ./f",
                    "-lname '*'",
                ],
            );
            pieces.extend(pieces![" ", Node::word("", pieces![test])]);
        }
        if !self.quiet && self.random.chance(10) {
            let action = self.random.pick(&[
                "-type f -delete",
                "-exec chmod 700 {} +",
                "-type f -exec chmod 600 {} \\;",
                "-name x -exec rm {} \\;",
                "-mindepth 1 -delete",
            ]);
            pieces.extend(pieces![" ", Node::word("find-action", pieces![action])]);
        }
        pieces.push(" | sort".into());
        Node::statement("find", pieces)
    }
}
