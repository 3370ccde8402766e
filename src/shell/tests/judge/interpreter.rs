//! Runs a program in the interpreter, over a tree with the files of the chroot.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};
use vmbake_shell::{
    Call, Commands, ErrorKind, Files, Host, Limits, Outcome, Script, Settings, ShellError, TreeFiles, run,
};

use super::jail::{GROUP, PASSWD};
use super::left::{Left, of_tree};
use super::{ARGS, Dialect};

/// A caller without commands.
struct Nothing;

impl Commands for Nothing {
    fn run(&mut self, _call: &mut Call<'_>) -> Option<Outcome> {
        None
    }

    fn machine(&self) -> Option<&'static str> {
        Some(std::env::consts::ARCH)
    }
}

/// How the interpreter ended.
pub enum Found {
    Left(Left),
    /// Whether the working directory had changed by then.
    Refused {
        error: Box<ShellError>,
        changed: bool,
    },
    Panicked(String),
}

impl Found {
    /// Whether the program was refused as it may be: bash is parsed as a whole before its first command, dash line by line.
    pub fn is_refusal(&self, dialect: Dialect) -> bool {
        let Self::Refused { error, changed } = self else { return false };
        let is_program = error.script.starts_with("/s/") && matches!(error.kind, ErrorKind::Syntax { .. });
        !(*changed && dialect == Dialect::Bash && is_program)
    }
}

/// The files of the jail.
pub struct Base(Tree);

impl Base {
    pub fn new(programs: &BTreeSet<String>) -> Self {
        let meta = Metadata::root(0o755, Timestamp::default());
        let mut tree = Tree::new(meta.clone(), Origin::default());
        let origin = tree.first_origin();
        for directory in ["/etc", "/tmp", "/usr/bin", "/usr/lib", "/usr/lib64", "/dev", "/proc", "/w", "/s", "/o"] {
            tree.make_dirs(directory.as_bytes(), &meta, origin).unwrap();
        }
        let mut files = TreeFiles::new(&mut tree, Timestamp::default(), origin);
        for link in ["bin", "lib", "lib64"] {
            files.symlink(format!("usr/{link}").as_bytes(), format!("/{link}").as_bytes()).unwrap();
        }
        files.symlink(b"/proc/self/fd", b"/dev/fd").unwrap();
        files.write(b"/dev/null", Vec::new(), 0o666).unwrap();
        files.write(b"/etc/passwd", PASSWD.into(), 0o644).unwrap();
        files.write(b"/etc/group", GROUP.into(), 0o644).unwrap();
        for name in programs {
            files.write(format!("/usr/bin/{name}").as_bytes(), b"\x7fELF\x02\x01\x01\0".to_vec(), 0o755).unwrap();
        }
        Self(tree)
    }

    /// Runs a program as the jail does in that slot.
    pub fn run(&self, text: &str, slot: &str) -> Found {
        let attempt = catch_unwind(AssertUnwindSafe(|| self.attempt(text, slot)));
        attempt.unwrap_or_else(|payload| {
            let message = payload.downcast_ref::<String>().cloned();
            Found::Panicked(format!("panic: {}", message.unwrap_or_default()))
        })
    }

    fn attempt(&self, text: &str, slot: &str) -> Found {
        let mut tree = self.0.clone();
        let place = format!("/w/{slot}");
        let (directory, home) = (format!("{place}/p/q/d"), format!("{place}/h"));
        let origin = tree.first_origin();
        for path in [&directory, &home] {
            tree.make_dirs(path.as_bytes(), &Metadata::root(0o755, Timestamp::default()), origin).unwrap();
        }
        let before = of_tree(&tree, &place);
        let name = format!("/s/{slot}");
        let mut files = TreeFiles::new(&mut tree, Timestamp { secs: 1_000_000_000, nanos: 0 }, origin);
        files.write(name.as_bytes(), text.into(), 0o644).unwrap();
        let args = ARGS.map(|arg| arg.as_bytes().to_vec());
        let script = Script { name: &name, source: text.as_bytes(), args: &args };
        let limits = Limits { steps: 50_000, ..Limits::default() };
        let mut settings = Settings { limits, directory: directory.into(), ..Settings::default() };
        settings.environment.insert(b"HOME".to_vec(), home.into());
        settings.environment.insert(b"LC_ALL".to_vec(), b"C".to_vec());
        let result = run(&script, &mut Host { files: &mut files, commands: &mut Nothing }, &settings);
        let after = of_tree(&tree, &place);
        match result {
            Ok(finished) => Found::Left(Left { status: finished.status, stdout: finished.stdout, tree: after }),
            Err(error) => Found::Refused { error, changed: before != after },
        }
    }
}
