//! The interface to the caller, which implements Debian's commands and knows accounts and the machine.

use std::collections::BTreeMap;

use crate::files::Files;
use crate::run::Event;

/// Where the programs of a system are.
pub(crate) const SYSTEM: [&[u8]; 4] = [b"/bin", b"/usr/bin", b"/sbin", b"/usr/sbin"];

/// Whether a path names a program of the system.
pub(crate) fn in_system(path: &[u8]) -> bool {
    path.iter().rposition(|byte| *byte == b'/').is_some_and(|at| SYSTEM.contains(&&path[..at]))
}

/// How a command of the caller ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It ran, and this is its exit status.
    Status(u8),
    /// It is replaced by this command, a program with its arguments, as by exec(2).
    Exec(Vec<Vec<u8>>),
    /// It succeeds on a machine for which the script is right, and that is not known here: a script that goes on after a failure may not
    /// read its exit status.
    Assumed,
    /// It can only run on the machine; the script is given up here.
    Deferred(String),
    /// It must not run; the script is given up here.
    Refused(String),
    /// It is known, but not with these arguments; what is not known is named.
    Unsupported(String),
}

/// One call of a command that the interpreter has no own function for.
pub struct Call<'a> {
    /// The command as the script names it, perhaps with its path.
    pub name: &'a [u8],
    /// The file of the tree that the name means, if it is not a program of the system.
    pub file: Option<&'a [u8]>,
    /// Its arguments, expanded.
    pub args: &'a [Vec<u8>],
    /// The variables of the shell. A command that dash would run as a program sees the exported ones only, and changes none; those that are
    /// shell functions really, like debconf's `db_get`, may see and set all.
    pub variables: &'a mut dyn Variables,
    /// The file tree.
    pub files: &'a mut dyn Files,
    /// What the command reads, if it reads: taking it consumes it.
    pub stdin: &'a mut dyn FnMut() -> Vec<u8>,
    /// What the command writes.
    pub stdout: &'a mut Vec<u8>,
    /// What it writes to standard error.
    pub stderr: &'a mut Vec<u8>,
    /// The working directory: an absolute path, as pwd prints it.
    pub cwd: &'a [u8],
    /// The mask of new files' modes.
    pub umask: u16,
    /// Whether the script looks at how it ends or at what it writes: it is tested, or stands in a pipe or substitution.
    pub is_observed: bool,
    /// Whether its exit status changes nothing, as in `COMMAND || true`.
    pub is_tolerated: bool,
    /// Whether its output goes to a file, a pipe or a substitution.
    pub is_captured: bool,
    /// The same of its standard error.
    pub are_errors_captured: bool,
    /// Whether it would inherit an open descriptor above 2.
    pub has_descriptors: bool,
    pub script: &'a str,
    pub line: u32,
}

impl Call<'_> {
    /// The last component of the name.
    pub fn base_name(&self) -> &[u8] {
        self.name.rsplit(|byte| *byte == b'/').next().unwrap_or(self.name)
    }

    /// Whether the name means a program of the system: by the search path, or by its path in one of the system's directories.
    pub fn is_system(&self) -> bool {
        self.file.is_none() && (!self.name.contains(&b'/') || in_system(self.name))
    }

    /// An absolute path for an operand.
    pub fn path(&self, operand: &[u8]) -> Vec<u8> {
        if operand.starts_with(b"/") { operand.to_vec() } else { crate::shell::below(self.cwd, operand) }
    }
}

/// Variables of a shell.
pub trait Variables {
    /// The value of a variable, unless it is unset.
    fn get(&self, name: &[u8]) -> Option<Vec<u8>>;
    /// Sets a variable.
    fn set(&mut self, name: &[u8], value: &[u8]);
    /// Sets a variable and exports it: programs that the script calls later see it, too.
    fn export(&mut self, name: &[u8], value: &[u8]);
    /// The exported variables: the environment of programs.
    fn exported(&self) -> BTreeMap<Vec<u8>, Vec<u8>>;
}

/// Questions of a script other than the commands that it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question<'a> {
    /// What a text is, compares with, or is made of, where that decides what is done, or where a part of it is taken.
    Value(&'a [u8]),
    /// A program that neither the interpreter has, nor the tree.
    Program(&'a [u8]),
    /// A variable that is not set, by its name.
    Unset(&'a [u8]),
    /// All variables of the environment whose names begin with this.
    Environment(&'a [u8]),
    /// The number of fields that an unquoted text expands to. If it `is_alone` in its word, an empty text yields no field.
    Fields { text: &'a [u8], is_alone: bool },
}

/// What the caller knows.
pub trait Commands {
    /// Runs a command, or says with `None` that it does not know it. Asked before the interpreter's own commands and before scripts of the
    /// tree, but after functions of the script and the shell's builtins.
    fn run(&mut self, call: &mut Call<'_>) -> Option<Outcome>;

    /// Whether a command is a function of a file that was sourced: it runs wherever the search path leads.
    fn is_function(&self, name: &[u8]) -> bool {
        let _ = name;
        false
    }

    /// Runs what `. FILE` would, `call.name` being the file's absolute path, or says with `None` that the file is to be read from the tree.
    fn source(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
        let _ = call;
        None
    }

    /// Hears of each simple command that ran, in the order in which they ended, and of how it ended.
    fn ran(&mut self, event: &Event) {
        let _ = event;
    }

    /// Whether the answer is unknown: then the run is given up where a script asks, whatever it would do with a failure.
    fn unknown(&self, question: Question<'_>) -> bool {
        let _ = question;
        false
    }

    /// The value of a command substitution, given its output without trailing newlines.
    fn substituted(&self, output: Vec<u8>) -> Vec<u8> {
        output
    }

    fn user_id(&self, files: &dyn Files, name: &[u8]) -> Option<u32> {
        crate::accounts::id(files, crate::accounts::PASSWD, name)
    }

    fn group_id(&self, files: &dyn Files, name: &[u8]) -> Option<u32> {
        crate::accounts::id(files, crate::accounts::GROUP, name)
    }

    fn user_name(&self, files: &dyn Files, id: u32) -> Option<Vec<u8>> {
        crate::accounts::name(files, crate::accounts::PASSWD, id)
    }

    fn group_name(&self, files: &dyn Files, id: u32) -> Option<Vec<u8>> {
        crate::accounts::name(files, crate::accounts::GROUP, id)
    }

    /// The name of process 1 in `/proc/1/comm`; `None` where that depends on the machine.
    fn first_process(&self) -> Option<&'static str> {
        None
    }

    /// What `uname -m` prints, as `x86_64`; `None` where a script must not ask.
    fn machine(&self) -> Option<&'static str> {
        None
    }
}
