//! Scripts for the machine's shell: output is separated by NUL, arguments are quoted.
//!
//! A script starts only after it has arrived completely, and its commands do not read the connection.

use std::fmt::Write as _;

/// Start of every response; output of a login shell before it is skipped.
pub(super) const ANSWER: &str = "vmbake-sync 1";

/// Separator of sections in a response. Differs from every path.
pub(super) const SECTION: &str = "--";

/// Maximum number of paths per call of a program: far below the limits of execve(2).
const BATCH: usize = 200;

/// A script under construction.
#[derive(Debug)]
pub(super) struct Script(String);

impl Script {
    pub(super) fn new(functions: &str) -> Self {
        let head =
            "set -u; export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; umask 077\n";
        Self(format!("{head}{functions}main() {{\nprintf '{ANSWER}\\0%s\\0' \"$login\"\n"))
    }

    /// Adds a command: trusted words, then quoted ones.
    pub(super) fn call<'a>(&mut self, command: &str, words: impl IntoIterator<Item = &'a str>) {
        self.0.push_str(command);
        words.into_iter().for_each(|word| {
            // Writing to a string cannot fail.
            let _ = write!(self.0, " {}", quoted(word));
        });
        self.0.push('\n');
    }

    /// Adds a command that is called with batches of words in place of `@@`.
    pub(super) fn batches(&mut self, command: &str, words: &[String]) {
        for batch in words.chunks(BATCH) {
            let words: Vec<String> = batch.iter().map(|word| quoted(word)).collect();
            self.0.push_str(&command.replace("@@", &words.join(" ")));
            self.0.push('\n');
        }
    }

    pub(super) fn section(&mut self) {
        self.call("printf '%s\\0'", [SECTION]);
    }

    /// The whole text.
    pub(super) fn finish(self) -> String {
        format!("login=${{1:-}}\n{}return 0\n}}\nmain </dev/null; exit $?\n", self.0)
    }
}

/// Quotes a word for a POSIX shell.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    fn run(text: &str) -> String {
        let mut shell =
            Command::new("sh").args(["-s", "root"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        shell.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        String::from_utf8(shell.wait_with_output().unwrap().stdout).unwrap()
    }

    #[test]
    fn words_arrive_as_they_are() {
        let words = ["it's", "$HOME `id`", "a\nb", "*", "", "\\", "-n"];
        let mut script = Script::new("");
        script.call("printf '%s\\0'", words);
        script.section();
        script.batches("printf '%s\\0' @@", &words.map(str::to_owned));
        let text = script.finish();
        let list = words.join("\0");
        assert_eq!(run(&text), format!("{ANSWER}\0root\0{list}\0--\0{list}\0"));
        // A truncated script has no effect.
        let half = &text[..text.len() - "main </dev/null; exit $?\n".len()];
        assert_eq!(run(half), "");
    }
}
