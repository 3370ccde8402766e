//! The command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub const HELP: &str = "\
Configures a baked image on its first boot and applies later changes of its settings.

Usage: firstboot COMMAND [OPTIONS]
       NAME.sh [OPTIONS]          run the command NAME through a link of that name, such as configure.sh

Commands:
  install              remove files that user data downloaded for an installation, which a baked image does not need
  bootstrap            record the facts of this machine, once
  configure            update directories, files and users; run bootstrap first if necessary
  restart              enable, start and stop services according to the settings
  permissions          update mode and owner of directories and files
  hosts                update the names in /etc/hosts
  update-mutable-env SRC DEST [true]
                       merge the settings of SRC into DEST; with true, delete SRC
  recv-watch           install received files, then run configure and restart
  exec NAME            execute the program NAME with the arguments of its settings
  status               print the result of the last configure

Options:
  --root DIR   use DIR as the root directory; leave units alone
  --dry-run    print changes without making them
  --no-block   restart: do not wait for the services
  --json       status: print the whole record

Exit codes: 0 success, 1 failure, 2 usage error, 3 not configured yet because user data is missing
";

/// The command.
#[derive(Debug, PartialEq)]
pub enum Command {
    Help,
    Version,
    Install,
    Bootstrap,
    Configure,
    Restart { no_block: bool },
    Permissions,
    Hosts,
    UpdateMutableEnv { source: String, destination: String, delete: bool },
    RecvWatch,
    Exec { name: String },
    Status { json: bool },
}

/// The parsed command line.
#[derive(Debug)]
pub struct Arguments {
    pub command: Command,
    pub root: PathBuf,
    pub dry_run: bool,
}

/// Options and operands as given.
#[derive(Default)]
struct Given {
    words: Vec<String>,
    root: Option<PathBuf>,
    dry_run: bool,
    no_block: bool,
    json: bool,
    help: bool,
    version: bool,
}

/// Parses the arguments, including the program name.
pub fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Arguments, String> {
    let script = arguments.next().and_then(|called| super::script(Path::new(&called)));
    let mut given = read(arguments)?;
    if let Some(script) = script {
        given.words.insert(0, script);
    }
    let command = command(&given)?;
    let takes = |option: bool, taken: bool, name: &str| match option && !taken {
        true => Err(format!("{name} is not an option of this command")),
        false => Ok(()),
    };
    takes(given.no_block, matches!(command, Command::Restart { .. }), "--no-block")?;
    takes(given.json, matches!(command, Command::Status { .. }), "--json")?;
    Ok(Arguments { command, root: given.root.unwrap_or_else(|| "/".into()), dry_run: given.dry_run })
}

fn read(mut arguments: impl Iterator<Item = OsString>) -> Result<Given, String> {
    let mut given = Given::default();
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--help" | "-h") => given.help = true,
            Some("--version" | "-V") => given.version = true,
            Some("--dry-run") => given.dry_run = true,
            Some("--no-block") => given.no_block = true,
            Some("--json") => given.json = true,
            Some("--root") => {
                let root = arguments.next().filter(|dir| !dir.is_empty()).ok_or("--root requires a value DIR")?;
                given.root = Some(root.into());
            }
            Some(word) if !word.starts_with('-') => given.words.push(word.to_owned()),
            _ => return Err(format!("unknown argument {argument:?}")),
        }
    }
    Ok(given)
}

fn command(given: &Given) -> Result<Command, String> {
    if given.help {
        return Ok(Command::Help);
    }
    if given.version {
        return Ok(Command::Version);
    }
    let words: Vec<&str> = given.words.iter().map(String::as_str).collect();
    Ok(match words[..] {
        ["install"] => Command::Install,
        ["bootstrap"] => Command::Bootstrap,
        ["configure"] => Command::Configure,
        ["restart"] => Command::Restart { no_block: given.no_block },
        ["permissions"] => Command::Permissions,
        ["hosts"] => Command::Hosts,
        ["recv-watch"] => Command::RecvWatch,
        ["exec", name] => Command::Exec { name: name.to_owned() },
        ["status"] => Command::Status { json: given.json },
        ["update-mutable-env", source, destination, ref rest @ ..] => Command::UpdateMutableEnv {
            source: absolute(source)?,
            destination: absolute(destination)?,
            delete: match rest {
                [] | ["false" | "0"] => false,
                ["true" | "1"] => true,
                _ => return Err("expected `true` or nothing after SRC and DEST".to_owned()),
            },
        },
        [] => return Err("missing command".to_owned()),
        [word, ..] => return Err(format!("unknown command {word:?} or wrong number of arguments")),
    })
}

/// A path below the root, not below the working directory.
fn absolute(path: &str) -> Result<String, String> {
    if path.starts_with('/') { Ok(path.to_owned()) } else { Err(format!("{path:?} is not an absolute path")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &str) -> Result<Arguments, String> {
        parse(words.split(' ').map(OsString::from))
    }

    #[test]
    fn commands_scripts_and_options_are_understood() {
        assert_eq!(parsed("/x/configure.sh --dry-run").unwrap().command, Command::Configure);
        assert_eq!(parsed("nstance-recv-watch.sh").unwrap().command, Command::RecvWatch);
        assert_eq!(parsed("firstboot exec kubelet").unwrap().command, Command::Exec { name: "kubelet".into() });
        let update = |delete| Command::UpdateMutableEnv { source: "/a".into(), destination: "/b".into(), delete };
        assert_eq!(parsed("update-mutable-env.sh /a /b 1").unwrap().command, update(true));
        assert_eq!(parsed("firstboot update-mutable-env /a /b").unwrap().command, update(false));
        assert_eq!(parsed("firstboot --root /r hosts").unwrap().root, Path::new("/r"));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for words in [
            "firstboot",
            "firstboot what",
            "other.sh",
            "firstboot configure again",
            "firstboot exec",
            "firstboot --root",
            "firstboot configure --json",
            "firstboot configure --no-block",
            "firstboot update-mutable-env a /b",
            "firstboot update-mutable-env /a /b perhaps",
        ] {
            assert!(parsed(words).is_err(), "{words}");
        }
    }
}
