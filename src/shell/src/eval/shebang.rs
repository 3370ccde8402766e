//! The first line of a script, parsed as by Linux and by the named shell: one interpreter and at most one argument.

use crate::state::Flags;
use crate::syntax::Language;

/// Longest first line that Linux looks at.
const LONGEST: usize = 255;

/// The shells whose scripts are interpreted, and where they are.
const SHELLS: [&[u8]; 3] = [b"sh", b"dash", b"bash"];
const DIRECTORIES: [&[u8]; 2] = [b"/bin/", b"/usr/bin/"];

/// The shell that the first line of a script names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Interpreter {
    pub(crate) bash: bool,
    pub(crate) flags: Flags,
}

impl Interpreter {
    pub(crate) fn language(self) -> Language {
        if self.bash { Language::Bash } else { Language::Dash }
    }

    /// `None` for other interpreters than a shell, and for arguments that the shell would refuse.
    pub(crate) fn of(content: &[u8]) -> Option<Self> {
        let (program, argument) = named(content)?;
        if !matches!(program, b"/usr/bin/env" | b"/bin/env") {
            let name = DIRECTORIES.iter().find_map(|dir| program.strip_prefix(*dir))?;
            return Self::new(name, argument.as_slice());
        }
        let argument = argument?;
        let Some(rest) = argument.strip_prefix(b"-S") else {
            // All of the argument is the name of the program.
            return Self::new(argument, &[]);
        };
        if rest.iter().any(|byte| b"\\'\"$#".contains(byte)) {
            return None;
        }
        let mut words = rest.split(|byte| blank(*byte)).filter(|word| !word.is_empty());
        let program = words.next()?;
        Self::new(program, &words.collect::<Vec<_>>())
    }

    fn new(name: &[u8], arguments: &[&[u8]]) -> Option<Self> {
        if !SHELLS.contains(&name) {
            return None;
        }
        let mut found = Self { bash: name == b"bash", ..Self::default() };
        for (at, argument) in arguments.iter().enumerate() {
            let letters = match *argument {
                b"-" | b"--" if at + 1 == arguments.len() => break,
                argument => argument.strip_prefix(b"-").filter(|letters| !letters.is_empty())?,
            };
            letters.iter().try_for_each(|letter| found.set(*letter, true))?;
        }
        Some(found)
    }

    /// Sets or clears an option by its letter; `None` if it changes more than how commands run.
    pub(crate) fn set(&mut self, letter: u8, on: bool) -> Option<()> {
        let flag = match letter {
            b'a' => &mut self.flags.allexport,
            b'C' => &mut self.flags.noclobber,
            b'e' => &mut self.flags.errexit,
            b'f' => &mut self.flags.noglob,
            b'u' => &mut self.flags.nounset,
            b'x' => &mut self.flags.xtrace,
            b'E' if self.bash => &mut self.flags.errtrace,
            b'T' if self.bash => &mut self.flags.functrace,
            _ => return None,
        };
        *flag = on;
        Some(())
    }

    /// Sets an option of bash by its name.
    pub(crate) fn set_named(&mut self, name: &[u8]) -> Option<()> {
        match name {
            b"pipefail" => self.flags.pipefail = true,
            b"errexit" => self.flags.errexit = true,
            b"nounset" => self.flags.nounset = true,
            b"xtrace" => self.flags.xtrace = true,
            _ => return None,
        }
        Some(())
    }
}

fn blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// The interpreter that a script names, and the one argument for it.
pub(super) fn named(content: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let line = content.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let start = line.iter().position(|byte| !blank(*byte))?;
    let end = line.iter().rposition(|byte| !blank(*byte))? + 1;
    if end > LONGEST {
        return None;
    }
    let line = &line[start..end];
    let len = line.iter().position(|byte| blank(*byte)).unwrap_or(line.len());
    let rest = &line[len..];
    let argument = rest.iter().position(|byte| !blank(*byte)).map(|at| &rest[at..]);
    Some((&line[..len], argument))
}
