//! Variables that bash sets. Those that depend on the machine, the time or random numbers are refused when they are read.

use crate::error::ErrorKind;
use crate::eval::Run;
use crate::shell::Shell;
use crate::state::Trap;

/// The bash of Debian 13.
const VERSION: [&str; 5] = ["5", "2", "37", "1", "release"];

/// Names that bash gives a value without the script.
const NAMES: [&[u8]; 41] = [
    b"BASH",
    b"BASHOPTS",
    b"BASHPID",
    b"BASH_ALIASES",
    b"BASH_ARGC",
    b"BASH_ARGV",
    b"BASH_ARGV0",
    b"BASH_CMDS",
    b"BASH_COMMAND",
    b"BASH_LINENO",
    b"BASH_LOADABLES_PATH",
    b"BASH_SOURCE",
    b"BASH_SUBSHELL",
    b"BASH_VERSINFO",
    b"BASH_VERSION",
    b"COMP_WORDBREAKS",
    b"DIRSTACK",
    b"EPOCHREALTIME",
    b"EPOCHSECONDS",
    b"EUID",
    b"FUNCNAME",
    b"GROUPS",
    b"HISTCMD",
    b"HOSTNAME",
    b"HOSTTYPE",
    b"LINENO",
    b"MACHTYPE",
    b"OLDPWD",
    b"OPTERR",
    b"OSTYPE",
    b"PATH",
    b"PIPESTATUS",
    b"PPID",
    b"RANDOM",
    b"SECONDS",
    b"SHELL",
    b"SHELLOPTS",
    b"SHLVL",
    b"SRANDOM",
    b"TERM",
    b"UID",
];

/// Whether bash itself has variables with this prefix.
pub(super) fn begins_special(prefix: &[u8]) -> bool {
    prefix == b"_" || NAMES.iter().any(|name| name.starts_with(prefix))
}

impl Shell<'_> {
    /// The value of a variable that bash computes or sets at its start; `None` for others.
    pub(crate) fn special_variable(&mut self, name: &[u8]) -> Run<Option<Vec<u8>>> {
        if !self.state.language.is_bash() || !(name == b"_" || NAMES.contains(&name)) {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(name).into_owned();
        let one = |text: &str| Ok(Some(text.as_bytes().to_vec()));
        match name {
            b"LINENO" => {
                self.require_lines(b"$LINENO")?;
                one(&self.state.command_line.to_string())
            }
            b"UID" | b"EUID" => one("0"),
            b"RANDOM" | b"SRANDOM" | b"BASHPID" | b"PPID" => {
                Err(self.fatal(ErrorKind::Random { what: format!("${text}") }))
            }
            b"SECONDS" | b"EPOCHSECONDS" | b"EPOCHREALTIME" => {
                Err(self.fatal(ErrorKind::Clock { what: format!("${text}") }))
            }
            _ if self.state.variables.contains_key(name) && name != b"_" => Ok(None),
            b"BASH_VERSION" => one("5.2.37(1)-release"),
            b"BASH_VERSINFO" => one(VERSION[0]),
            b"OSTYPE" => one("linux-gnu"),
            b"OPTERR" => one("1"),
            b"HOSTTYPE" => Ok(Some(self.bash_machine(&text)?.0.as_bytes().to_vec())),
            b"MACHTYPE" => Ok(Some(self.bash_machine(&text)?.1.as_bytes().to_vec())),
            b"HOSTNAME" => Err(self.fatal(ErrorKind::Machine { what: "$HOSTNAME".to_owned() })),
            b"OLDPWD" | b"FUNCNAME" | b"PIPESTATUS" | b"BASH_SOURCE" | b"BASH_LINENO" => Ok(None),
            _ => self.unsupported(&[b"$", name].concat()),
        }
    }

    /// Refuses what tells the lines of commands where the line that bash counts is not known.
    pub(crate) fn require_lines(&self, what: &[u8]) -> Run<()> {
        // The action begins on the line of the function, of its `return`, or of a command in a subshell.
        let place: &[u8] = match self.state.bash.trap_running {
            Some(Trap::Return) => b" in a trap for RETURN",
            _ if self.state.bash.lines_lost => b" in or after a command of several lines",
            _ => return Ok(()),
        };
        self.unsupported(&[what, place].concat())
    }

    /// The elements of an array that bash sets at its start.
    pub(crate) fn special_array(&mut self, name: &[u8]) -> Run<Option<Vec<Vec<u8>>>> {
        if !self.state.language.is_bash() {
            return Ok(None);
        }
        let bash = &self.state.bash;
        let frames = bash.frames.iter().rev();
        Ok(match name {
            b"BASH_VERSINFO" => {
                let machine = self.bash_machine("BASH_VERSINFO")?.1;
                Some(VERSION.iter().chain([&machine]).map(|text| text.as_bytes().to_vec()).collect())
            }
            b"PIPESTATUS" => Some(bash.pipestatus.iter().map(|status| status.to_string().into_bytes()).collect()),
            b"FUNCNAME" if self.state.functions_running == 0 => None,
            b"FUNCNAME" => Some(frames.map(|frame| frame.function.clone()).chain([b"main".to_vec()]).collect()),
            b"BASH_LINENO" => {
                self.require_lines(b"$BASH_LINENO")?;
                let lines = frames.map(|frame| frame.line).chain([0]);
                Some(lines.map(|line| line.to_string().into_bytes()).collect())
            }
            b"BASH_SOURCE" if self.state.flags.argument || self.state.flags.stdin => {
                return self.unsupported(b"$BASH_SOURCE in a text without a file");
            }
            b"BASH_SOURCE" => {
                let sources = frames.map(|frame| frame.source.as_bytes().to_vec());
                Some(sources.chain([self.state.zero.to_vec()]).collect())
            }
            _ => None,
        })
    }

    /// `HOSTTYPE` and `MACHTYPE`.
    fn bash_machine(&self, name: &str) -> Run<(&'static str, &'static str)> {
        match self.commands.machine() {
            Some("x86_64") => Ok(("x86_64", "x86_64-pc-linux-gnu")),
            Some("aarch64") => Ok(("aarch64", "aarch64-unknown-linux-gnu")),
            _ => Err(self.fatal(ErrorKind::Machine { what: format!("${name}") })),
        }
    }
}
