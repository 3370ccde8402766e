//! Scripts that run on the first boot: called once, with the environment of a unit, after all other effects of the profile.

use vmbake_shell::{Call, Files, Outcome};

use super::sudo::SECURE_PATH;
use super::{Machine, PATH, has_token, text};
use crate::import::left;
use crate::import::report::StatementClass;
use crate::import::runtime::is_marked;

/// Program that enters a directory before it calls another one (env(1)).
const ENV: &str = "/usr/bin/env";
/// Largest script.
const LARGEST: usize = 1 << 20;
/// Variables that shells set themselves.
const OF_SHELLS: [&str; 4] = ["OLDPWD", "PWD", "SHLVL", "_"];
/// Words by which a script reads all variables.
const READERS: [&str; 3] = ["declare", "env", "printenv"];
/// Variables that change what programs do, whatever a script says.
const ALWAYS: [&str; 8] = ["BASH_ENV", "ENV", "IFS", "LANG", "LANGUAGE", "PATH", "POSIXLY_CORRECT", "TZ"];

impl Machine<'_> {
    /// A script of the profile that only a machine can run.
    pub(super) fn deferred_script(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
        let path = String::from_utf8(call.path(call.name)).ok().filter(|path| self.deferred.contains(path))?;
        if let Some(what) = differs(call, &path) {
            return Some(Outcome::Unsupported(format!("a script that queries the machine, {what},")));
        }
        let words: Option<Vec<String>> = call.args.iter().map(|arg| String::from_utf8(arg.clone()).ok()).collect();
        let Some(args) =
            words.filter(|args| !args.iter().any(|arg| is_marked(arg.as_bytes()) || has_token(arg.as_bytes())))
        else {
            return Some(Outcome::Unsupported("an argument that only machines know".to_owned()));
        };
        let directory = (call.cwd != b"/").then(|| String::from_utf8(call.cwd.to_vec()));
        let Ok(directory) = directory.transpose() else {
            return Some(Outcome::Unsupported("a directory whose name is not UTF-8".to_owned()));
        };
        let enter = directory.map(|directory| [ENV.to_owned(), format!("--chdir={directory}")]);
        let command: Vec<String> = enter.into_iter().flatten().chain([path.clone()]).chain(args).collect();
        if self.effects.commands.contains(&command) {
            return Some(Outcome::Unsupported("a script that queries the machine, a second time,".to_owned()));
        }
        self.effects.commands.push(command);
        self.leave(call.files, vec![path]);
        self.note(StatementClass::FirstBoot, "it queries the machine");
        Some(Outcome::Assumed)
    }

    /// Notes that scripts are left to the machine; what they make is not known.
    pub(super) fn leave(&mut self, files: &mut dyn Files, scripts: Vec<String>) {
        self.left.push(scripts);
        files.may_have_more(b"/");
        self.has_all_programs = true;
    }
}

/// What of a call the first boot would do otherwise.
fn differs(call: &mut Call<'_>, path: &str) -> Option<String> {
    if call.is_observed {
        return Some("whose result the profile uses".to_owned());
    }
    if call.umask != 0o022 {
        return Some(format!("called with the umask {:03o}, instead of 022 as on the first boot", call.umask));
    }
    if call.are_errors_captured {
        return Some("with stderr redirected, which the first boot writes to the journal".to_owned());
    }
    if call.has_descriptors {
        return Some("with an open descriptor above 2, which the first boot does not pass".to_owned());
    }
    if !(call.stdin)().is_empty() {
        return Some("with input on stdin, which the first boot does not pass".to_owned());
    }
    let script = call.files.read(path.as_bytes(), LARGEST).unwrap_or_default();
    if !script.starts_with(b"#!") {
        return Some("without an interpreter line (#!), which the first boot needs".to_owned());
    }
    let lines: Vec<&[u8]> = script.split(|byte| *byte == b'\n').skip(1).collect();
    let script = lines.join(&b'\n');
    let is_read =
        |name: &str| left::has_word(&script, name) || READERS.iter().any(|word| left::has_word(&script, word));
    let mut exported = call.variables.exported().into_iter();
    let other = exported.find(|(name, value)| {
        let name = text(name);
        let is_given = name == "PATH" && (value == PATH.as_bytes() || (value == SECURE_PATH && !is_read(&name)));
        let counts =
            || ALWAYS.contains(&name.as_str()) || name.starts_with("LC_") || name.starts_with("LD_") || is_read(&name);
        !OF_SHELLS.contains(&name.as_str()) && !is_given && counts()
    });
    other.map(|(name, _)| format!("with the variable {}, which the first boot does not set", text(&name)))
}
