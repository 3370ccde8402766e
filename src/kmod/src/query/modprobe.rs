//! Configuration of modprobe: modprobe.d(5), and the dependencies that depmod lists in text files.

use std::collections::BTreeMap;

use crate::conf::{self, Command};
use crate::error::{KmodError, unsupported};
use crate::files::{Files, read};
use crate::name;

/// What the files say, in their order. Names of modules and aliases are normalized to underscores.
#[derive(Debug, Default)]
pub struct Config {
    /// Patterns of aliases, and the modules that they name.
    pub aliases: Vec<(String, String)>,
    pub blacklist: Vec<String>,
    pub options: Vec<(String, String)>,
    /// Modules that a command loads.
    pub installs: Vec<String>,
    /// Modules that a command removes: it makes their names known.
    pub removes: Vec<String>,
    pub softdeps: Vec<(String, Softdep)>,
    pub weakdeps: Vec<(String, Vec<String>)>,
}

/// Modules to load before and after a module, if they exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Softdep {
    pub pre: Vec<String>,
    pub post: Vec<String>,
}

impl Config {
    /// Reads the files of the tree and of the kernel's `directory`, sorted by name.
    pub fn read(files: &impl Files, directory: &str) -> Result<Self, KmodError> {
        let mut paths = BTreeMap::new();
        for name in ["modules.softdep", "modules.weakdep"] {
            paths.insert(name.to_owned(), format!("{directory}/{name}"));
        }
        conf::find(files, "modprobe.d", &mut paths)?;
        let mut config = Self::default();
        for path in paths.into_values() {
            let content = read(files, &path)?.unwrap_or_default();
            for command in conf::commands(&content, &path)? {
                config.add(&command)?;
            }
        }
        Ok(config)
    }

    /// Adds a command. modprobe ignores lines with missing arguments.
    fn add(&mut self, command: &Command) -> Result<(), KmodError> {
        let normal = |word: &str| {
            let normal = name::alias(word.as_bytes()).and_then(|normal| String::from_utf8(normal).ok());
            normal.ok_or_else(|| unsupported(&command.place, format!("{word}, with unmatched brackets")))
        };
        match command.words()[..] {
            ["alias", alias, module, ..] => self.aliases.push((normal(alias)?, normal(module)?)),
            ["blacklist", module, ..] => self.blacklist.push(normal(module)?),
            ["options", module, _, ..] => self.options.push((normal(module)?, command.after(2).to_owned())),
            ["install", module, _, ..] => self.installs.push(normal(module)?),
            ["remove", module, _, ..] => self.removes.push(normal(module)?),
            ["softdep", module, ref words @ ..] if !words.is_empty() => {
                self.softdeps.push((normal(module)?, softdep(words)));
            }
            ["weakdep", module, ref words @ ..] if !words.is_empty() => {
                self.weakdeps.push((normal(module)?, words.iter().map(|word| (*word).to_owned()).collect()));
            }
            ["alias" | "blacklist" | "options" | "install" | "remove" | "softdep" | "weakdep", ..] => {}
            [name, ..] => return Err(unsupported(&command.place, format!("command {name}"))),
            [] => {}
        }
        Ok(())
    }
}

fn softdep(words: &[&str]) -> Softdep {
    let mut softdep = Softdep::default();
    let mut list = None;
    for word in words {
        match (*word, list) {
            ("pre:" | "post:", _) => list = Some(*word == "pre:"),
            (_, Some(true)) => softdep.pre.push((*word).to_owned()),
            (_, Some(false)) => softdep.post.push((*word).to_owned()),
            (_, None) => {}
        }
    }
    softdep
}
