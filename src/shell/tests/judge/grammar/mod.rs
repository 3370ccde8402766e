//! Derives programs from a seed. They are deterministic (no process ids, times or races; text of error messages is not kept), end, and
//! change nothing outside their working directory.

mod words;
mod expansions;
mod arithmetic;
mod statements;
mod compound;
mod files;
mod paths;
mod filters;
mod expressions;
mod sed;
mod builtins;
mod scripts;
mod variables;
mod bash;
mod arrays;
mod declarations;
mod phrases;

use super::Dialect;
use super::program::{Node, Piece, pieces};
use super::random::Random;

/// Where a program derives its parts.
#[allow(clippy::struct_excessive_bools, reason = "contexts are independent")]
pub struct Grammar {
    pub(super) random: Random,
    bash: bool,
    /// Whether owners can be changed.
    root: bool,
    has_proc: bool,
    /// How many compounds may still be nested.
    depth: usize,
    /// Functions that are defined before this place.
    functions: Vec<&'static str>,
    in_function: bool,
    in_loop: bool,
    /// In a pipeline: files that another part reads may not change.
    quiet: bool,
    /// In a file that is sourced or run.
    in_file: bool,
    /// Whether the program turns extended patterns on.
    extglob: bool,
}

impl Grammar {
    pub fn new(seed: u64, number: usize, dialect: Dialect, root: bool, has_proc: bool) -> Self {
        let mut random = Random::new(seed ^ (number as u64).wrapping_mul(0xd134_2543_de82_ef95));
        random.below(2);
        Self {
            random,
            bash: dialect == Dialect::Bash,
            root,
            has_proc,
            depth: 3,
            functions: Vec::new(),
            in_function: false,
            in_loop: false,
            quiet: false,
            in_file: false,
            extglob: false,
        }
    }

    pub fn program(&mut self) -> Node {
        let mut pieces = Vec::new();
        if self.bash && self.random.chance(20) {
            self.extglob = true;
            pieces.extend(pieces![Node::statement("", pieces!["shopt -s extglob"]), "\n"]);
        }
        if self.random.chance(15) {
            pieces.extend(pieces![Node::statement("errexit", pieces!["set -e"]), "\n"]);
        }
        if self.random.chance(5) {
            pieces.extend(pieces![Node::statement("nounset", pieces!["set -u"]), "\n"]);
        }
        if self.random.chance(60) {
            pieces.extend(self.setting());
        }
        pieces.extend(self.variables());
        let count = 2 + self.random.below(6);
        for _ in 0..count {
            pieces.extend(pieces![self.statement(), "\n"]);
            if self.random.chance(25) {
                pieces.extend(pieces![Node::statement("", pieces!["echo $?"]), "\n"]);
            }
        }
        Node::fixed("", pieces)
    }

    /// Files that the program works on.
    fn setting(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let all: &[(usize, &'static str)] = &[
            (60, "mkdir -p d/s e"),
            (25, "printf 'x:1\\ny:2\\n' >d/x"),
            (12, "printf 'deep\\n' >d/s/deep"),
            (20, "ln -s f l; ln -s d ld"),
            (12, "ln -s nowhere dangling; ln -s loop loop"),
            (8, "ln f hard"),
            (8, "chmod 2775 e"),
            (6, "chmod 600 f"),
            (5, "touch 'a b' .hidden"),
            (5, "chmod 4755 g"),
        ];
        for file in ["f", "g"] {
            if self.random.chance(70) {
                let text = self.random.pick(&TEXTS);
                pieces.extend(pieces![Node::statement("", pieces![format!("printf '{text}' >{file}")]), "\n"]);
            }
        }
        for (percent, text) in all {
            if self.random.chance(*percent) {
                pieces.extend(pieces![Node::statement("", pieces![*text]), "\n"]);
            }
        }
        pieces
    }

    fn variables(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for name in ["x", "y", "n"] {
            if self.random.chance(60) {
                let value =
                    if name == "n" { self.random.pick(&["0", "1", "3", "7", "-2"]).to_owned() } else { self.value() };
                pieces.extend(pieces![Node::statement("", pieces![format!("{name}={value}")]), "\n"]);
            }
        }
        pieces
    }

    fn list(&mut self) -> Node {
        let mut pieces = Vec::new();
        for _ in 0..=self.random.below(3) {
            pieces.extend(pieces![self.statement(), "\n"]);
        }
        Node::fixed("", pieces)
    }
}

/// Contents of files, as printf writes them.
const TEXTS: [&str; 12] = [
    "one\\ntwo\\nthree\\n",
    "b 2\\na 1\\nc 10\\na 1\\n",
    "x:1:u\\ny:2:v\\nz:10:w\\n",
    "key = value\\n# note\\n\\nother=1\\n",
    "no newline",
    "",
    "A b C\\n  lead\\ntail  \\n",
    "a\\tb\\tc\\n1\\t2\\t3\\n",
    "foo.bar\\n[x]\\na*b\\n/a/b\\n",
    "10\\n9\\n-1\\n100\\n",
    "a\\\\b\\nc\\\\\\nd\\n",
    "root:x:0:0\\nbin:x:2:2\\n\\n",
];
