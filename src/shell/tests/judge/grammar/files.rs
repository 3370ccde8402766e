//! Programs that change files.

use super::Grammar;
use crate::judge::program::{Node, Piece, pieces};

impl Grammar {
    pub(super) fn file_command(&mut self) -> Node {
        let owner = if self.root { 6 } else { 0 };
        let command = match self.random.weighted(&[12, 10, 12, 10, 12, 9, 9, 4, 5, owner, 8, 6]) {
            0 => self.mkdir(),
            1 => self.touch(),
            2 => self.cp(),
            3 => self.mv(),
            4 => self.ln(),
            5 => self.rm(),
            6 => self.chmod(),
            7 => self.rmdir(),
            8 => self.install(),
            9 => self.chown(),
            10 => self.show(),
            _ => self.edit(),
        };
        let tail = self.random.pick(&["", "", "", "; echo $?", " || echo failed", " 2>/dev/null", " && echo done"]);
        Node::statement("", pieces![command, Node::optional("", pieces![tail])])
    }

    /// A program with options before, between or after its operands.
    fn command(
        &mut self,
        label: &'static str,
        usual: &[&'static str],
        rare: &[&'static str],
        operands: Vec<Node>,
    ) -> Node {
        let mut words: Vec<Node> = Vec::new();
        for _ in 0..self.random.weighted(&[35, 45, 20]) {
            words.push(Node::word("", pieces![self.random.usual(usual, rare)]));
        }
        let late = if self.random.chance(8) { words.pop() } else { None };
        let empty = self.random.chance(2);
        if !empty {
            words.extend(operands);
        }
        words.extend(late);
        let mut pieces: Vec<Piece> = pieces![label];
        words.into_iter().for_each(|word| pieces.extend(pieces![" ", word]));
        Node::statement(label, pieces)
    }

    fn some_paths(&mut self, most: usize) -> Vec<Node> {
        let count = 1 + self.random.weighted(&[70, 20, 10][..most.clamp(1, 3)]);
        (0..count).map(|_| self.path()).collect()
    }

    fn mkdir(&mut self) -> Node {
        let mode = self.random.pick(&["-m 700", "-m 2755", "-m u=rwx,go=", "-m 1777", "-m a+w"]);
        let mut operands = vec![self.new_path()];
        if self.random.chance(25) {
            operands.push(self.path());
        }
        if self.random.chance(30) {
            operands.push(Node::word(
                "",
                pieces![self.random.pick(&["p/q/r", "d/p/q", "e/p", "p/../q", "p//q/", "ld/p/q", "f/p"])],
            ));
        }
        self.command("mkdir", &["-p", "-p", "-p", mode, "-pm 750", "--parents"], &["-v", "-m 0"], operands)
    }

    fn touch(&mut self) -> Node {
        let operands = if self.random.chance(60) { vec![self.new_path()] } else { self.some_paths(2) };
        self.command("touch", &["-c", "--", "-a", "-m"], &["-h", "--no-create", "-d @1000000000", "-r f"], operands)
    }

    fn cp(&mut self) -> Node {
        let mut operands = self.some_paths(2);
        operands.push(self.new_path());
        let usual = ["-r", "-a", "-p", "-f", "-R", "-rp", "-d", "-P", "-L", "-n", "-T", "--", "-rT", "-t d"];
        let rare = ["-al", "-H", "-s", "-l", "-u", "-v", "--parents", "--remove-destination", "-rL"];
        self.command("cp", &usual, &rare, operands)
    }

    fn mv(&mut self) -> Node {
        let mut operands = self.some_paths(2);
        operands.push(self.new_path());
        self.command("mv", &["-f", "-n", "-T", "-f", "-t d", "--"], &["-v", "-fT", "-u", "-i"], operands)
    }

    fn ln(&mut self) -> Node {
        let target = match self.random.weighted(&[50, 50]) {
            0 => self.path(),
            _ => Node::word(
                "",
                pieces![self.random.pick(&["../f", "x", "/nope/nope", "d/x", "nowhere", "a", "..", "."])],
            ),
        };
        let mut operands = vec![target];
        if self.random.chance(88) {
            operands.push(self.new_path());
        }
        if self.random.chance(4) {
            operands.push(Node::word("", pieces!["d"]));
        }
        self.command(
            "ln",
            &["-s", "-s", "-s", "-sf", "-sf", "-sfn", "-f", "-snf", "-sT", "-n"],
            &["-sr", "-t d", "-sv", "-sfT"],
            operands,
        )
    }

    fn rm(&mut self) -> Node {
        let operands = self.some_paths(3);
        self.command(
            "rm",
            &["-f", "-f", "-r", "-rf", "-rf", "-R", "-fr", "--", "--force"],
            &["-d", "-v", "--recursive", "-i"],
            operands,
        )
    }

    fn rmdir(&mut self) -> Node {
        let operands = self.some_paths(2);
        self.command("rmdir", &["-p", "--ignore-fail-on-non-empty", "-p", "--"], &["-v", "--parents"], operands)
    }

    fn chmod(&mut self) -> Node {
        let mut operands = vec![Node::word("", pieces![self.mode()])];
        operands.extend(self.some_paths(2));
        self.command("chmod", &["-R", "-R", "-f", "--"], &["-v", "-c", "--reference=f"], operands)
    }

    fn chown(&mut self) -> Node {
        if self.random.chance(30) {
            let mut operands = vec![Node::word("", pieces![self.random.pick(&["adm", "4", "root", "nogroup9"])])];
            operands.extend(self.some_paths(2));
            return self.command("chgrp", &["-R", "-h", "-f"], &["-v"], operands);
        }
        let owner = self.random.pick(&[
            "root",
            "www-data",
            "www-data:adm",
            "33",
            "33:4",
            ":adm",
            "root:",
            "1000:1000",
            "nouser9",
            "www-data:",
        ]);
        let mut operands = vec![Node::word("", pieces![owner])];
        operands.extend(self.some_paths(2));
        self.command("chown", &["-R", "-h", "-R", "-f"], &["-RH", "-RP", "--no-dereference", "-v"], operands)
    }

    fn install(&mut self) -> Node {
        if self.random.chance(35) {
            let operands = vec![self.new_path()];
            return self.command("install", &["-d", "-d", "-d -m 700", "-dm 750"], &["-d -m 2755", "-D"], operands);
        }
        let mut operands = self.some_paths(1);
        operands.push(self.new_path());
        self.command(
            "install",
            &["-m 644", "-m 755", "-D", "-m 0600", "-T", "-t d", "-Dm 640", "-p"],
            &["-v", "-C"],
            operands,
        )
    }

    /// What there is of files.
    fn show(&mut self) -> Node {
        let path = self.path();
        match self.random.below(8) {
            0 => self.command("ls", &["-1", "-a", "-A", "-d", "-1a"], &["-R", "-p", "-F", "-L", "-r"], vec![path]),
            1 => {
                let format = self.random.pick(&["'%a %F'", "'%A %n'", "%U:%G", "'%N'", "%h", "'%a %u %g'", "'%F %n'"]);
                self.command("stat", &["-L"], &["--"], vec![Node::word("", pieces![format!("-c {format}")]), path])
            }
            2 => self.command("readlink", &["-f", "-e", "-m", "-n", "-f"], &["-v"], vec![path]),
            3 => self.command("realpath", &["-e", "-m"], &["-s", "-q"], vec![path]),
            4 => self.command("basename", &["-s .gz", "--"], &["-a"], vec![path]),
            5 => self.command("dirname", &["--"], &["-z"], vec![path]),
            6 => Node::statement("ls", pieces!["ls -ld ", path, " | cut -c1-10"]),
            _ => self.find(),
        }
    }

    fn edit(&mut self) -> Node {
        let file = Node::word("", pieces![self.random.pick(&["f", "f", "g", "d/x", "l", "nope", "f g", "hard"])]);
        let script = self.sed_script();
        Node::statement("sed-in-place", pieces!["sed -i ", script, " ", file])
    }
}
