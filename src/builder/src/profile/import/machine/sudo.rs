//! `sudo` of a script: it starts a program as root, in an environment of its own (sudoers(5), `env_reset`).

use vmbake_shell::{Call, Follow, Outcome};

use super::{ENVIRONMENT, assignments, first, text};

/// Programs that read variables of any name.
const READERS: [&[u8]; 5] = [b"bash", b"dash", b"env", b"printenv", b"sh"];
/// Directories of scripts.
const LOCAL: [&str; 2] = ["/usr/local/sbin", "/usr/local/bin"];
/// Variables that shells set themselves.
const OF_SHELLS: [&str; 4] = ["OLDPWD", "PWD", "SHLVL", "_"];
/// Variables that sudo keeps, and that no result depends on unless a script reads them.
const KEPT: [&str; 3] = ["COLORTERM", "TERM", "TZ"];

/// Refuses options, and variables that the program would not get. `None` runs it.
pub(super) fn sudo(call: &Call<'_>) -> Option<Outcome> {
    let word = first(call)?;
    if word.starts_with(b"-") || word.contains(&b'=') {
        return Some(Outcome::Unsupported(text(word)));
    }
    if !reads_variables(call, word) {
        return None;
    }
    let own: Vec<(Vec<u8>, Vec<u8>)> = assignments(&*call.files);
    let is_given = |name: &[u8], value: &[u8]| {
        ENVIRONMENT.iter().any(|(known, text)| (known.as_bytes(), text.as_bytes()) == (name, value))
            || own.iter().any(|(known, text)| (known.as_slice(), text.as_slice()) == (name, value))
    };
    let exported = call.variables.exported();
    let other = exported.iter().find(|(name, value)| {
        let name = text(name);
        let is_kept = KEPT.contains(&name.as_str()) || OF_SHELLS.contains(&name.as_str()) || name.starts_with("LC_");
        !is_kept && !is_given(name.as_bytes(), value)
    });
    other.map(|(name, _)| Outcome::Unsupported(format!("the variable {}, which sudo does not pass on,", text(name))))
}

/// Whether a program is a shell or a script.
fn reads_variables(call: &Call<'_>, word: &[u8]) -> bool {
    let name = word.rsplit(|byte| *byte == b'/').next().unwrap_or(word);
    let path = |directory: &str| [directory.as_bytes(), b"/", word].concat();
    let exists = |path: &[u8]| call.files.destination(path).is_ok();
    READERS.contains(&name)
        || match word.contains(&b'/') {
            true => {
                let system = ["/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/"];
                let in_system = system.iter().any(|place| word.strip_suffix(name) == Some(place.as_bytes()));
                !in_system && call.files.lookup(&call.path(word), Follow::Yes).is_ok()
            }
            false => LOCAL.iter().any(|directory| exists(&path(directory))),
        }
}
