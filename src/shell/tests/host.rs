//! Runs a text below the real dash and by the interpreter, in directories with the same content.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use vmbake_disk::tree::{Kind, Metadata, Origin, Timestamp, Tree};
use vmbake_shell::{
    Call, Commands, Files, Finished, Host, Limits, Outcome, Script, Settings, ShellError, TreeFiles, run,
};

/// A caller that knows nothing.
pub struct Nothing;

impl Commands for Nothing {
    fn run(&mut self, _call: &mut Call<'_>) -> Option<Outcome> {
        None
    }

    fn machine(&self) -> Option<&'static str> {
        Some(std::env::consts::ARCH)
    }
}

/// What is left of a run: what can be compared.
#[derive(Debug, PartialEq, Eq)]
pub struct Left {
    pub status: Option<u8>,
    pub stdout: String,
    /// Every path below the working directory: its type and mode, and its content or target.
    pub tree: BTreeMap<String, String>,
}

pub const ARGS: [&str; 3] = ["one", "two words", "*"];

fn args() -> Vec<Vec<u8>> {
    ARGS.iter().map(|arg| arg.as_bytes().to_vec()).collect()
}

/// A tree that has only the directories down to `directory`, and the accounts of a new system.
pub fn tree(directory: &str) -> Tree {
    let meta = Metadata::root(0o755, Timestamp::default());
    let mut tree = Tree::new(meta.clone(), Origin::default());
    let origin = tree.first_origin();
    for dir in [directory, "/etc", "/tmp", "/usr/bin", "/dev"] {
        tree.make_dirs(dir.as_bytes(), &meta, origin).unwrap();
    }
    let mut files = TreeFiles::new(&mut tree, Timestamp::default(), origin);
    files
        .write(b"/etc/passwd", b"root:x:0:0:root:/root:/bin/bash\nwww-data:x:33:33::/var/www:/bin/sh\n".to_vec(), 0o644)
        .unwrap();
    files.write(b"/etc/group", b"root:x:0:\nadm:x:4:www-data\nwww-data:x:33:\n".to_vec(), 0o644).unwrap();
    tree
}

/// Runs a text by the interpreter.
pub fn interpret(
    source: &str,
    directory: &str,
    tree: &mut Tree,
    commands: &mut dyn Commands,
    limits: Limits,
) -> Result<Finished, Box<ShellError>> {
    let settings = Settings { limits, ..Settings::default() };
    interpret_with(source, directory, tree, commands, settings)
}

/// Runs a text by the interpreter, with settings other than the directory.
pub fn interpret_with(
    source: &str,
    directory: &str,
    tree: &mut Tree,
    commands: &mut dyn Commands,
    settings: Settings,
) -> Result<Finished, Box<ShellError>> {
    let origin = tree.first_origin();
    let mut files = TreeFiles::new(tree, Timestamp { secs: 1_000_000_000, nanos: 0 }, origin);
    let args = args();
    let name = format!("{directory}.script");
    let script = Script { name: &name, source: source.as_bytes(), args: &args };
    let mut host = Host { files: &mut files, commands };
    let mut settings = Settings { directory: directory.into(), ..settings };
    settings.environment.insert(b"HOME".to_vec(), b"/root".to_vec());
    run(&script, &mut host, &settings)
}

/// The interpreter's answer.
pub fn ours(source: &str, directory: &str) -> Result<Left, Box<ShellError>> {
    let mut tree = tree(directory);
    let finished = interpret_with(source, directory, &mut tree, &mut Nothing, Settings::default())?;
    let root = tree.resolve(directory.as_bytes()).unwrap();
    let mut found = BTreeMap::new();
    for (path, _, inode) in tree.walk_from(root).skip(1) {
        let path = String::from_utf8_lossy(&path[1..]).into_owned();
        let text = match &inode.kind {
            Kind::Directory(_) => format!("directory {:o}", inode.meta.mode),
            Kind::File(_) => {
                let content = tree.read(format!("{directory}/{path}").as_bytes(), 1 << 20).unwrap();
                format!("file {:o} {}", inode.meta.mode, content.escape_ascii())
            }
            Kind::Symlink(target) => format!("link {}", target.escape_ascii()),
            other => other.name().to_owned(),
        };
        found.insert(path, text);
    }
    let stdout = finished.stdout.escape_ascii().to_string();
    Ok(Left { status: Some(finished.status), stdout, tree: found })
}

/// The answer of dash in an empty directory.
pub fn dash(source: &str, directory: &Path) -> Left {
    below("dash", source, directory)
}

/// The answer of a shell of the machine in an empty directory.
pub fn below(shell: &str, source: &str, directory: &Path) -> Left {
    let script = directory.with_extension("script");
    fs::write(&script, source).unwrap();
    fs::create_dir(directory).unwrap();
    // A test that runs in the background has ignored signals, which a shell would pass on and list.
    let output = Command::new("env")
        .args(["--default-signal", "dash", "-c", "umask 022; shell=$1; shift; exec \"$shell\" \"$0\" \"$@\""])
        .arg(&script)
        .arg(shell)
        .args(ARGS)
        .current_dir(directory)
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C")
        .env("HOME", "/root")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut tree = BTreeMap::new();
    collect(directory, directory, &mut tree);
    let status = output.status.code().map(|code| u8::try_from(code).unwrap());
    Left { status, stdout: output.stdout.escape_ascii().to_string(), tree }
}

fn collect(root: &Path, dir: &Path, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        let mode = meta.permissions().mode() & 0o7777;
        let text = if meta.is_dir() {
            collect(root, &path, found);
            format!("directory {mode:o}")
        } else if meta.is_symlink() {
            format!("link {}", fs::read_link(&path).unwrap().into_os_string().into_vec().escape_ascii())
        } else {
            format!("file {mode:o} {}", fs::read(&path).unwrap_or_default().escape_ascii())
        };
        let name = String::from_utf8_lossy(path.strip_prefix(root).unwrap().as_os_str().as_bytes()).into_owned();
        found.insert(name, text);
    }
}

/// Whether dash can be asked; if not, that is told.
pub fn has_dash() -> bool {
    let found = Command::new("dash").arg("-c").arg(":").status().is_ok_and(|status| status.success());
    if !found {
        crate::skip::skip("the shell compared with dash: dash is missing");
    }
    found
}
