//! `sudo` in scripts: runs a program as root with a clean environment (sudoers(5), `env_reset`).

use vmbake_shell::{Call, Follow, Outcome};

use super::{PATH, first, text};

/// Programs that read variables of any name.
const READERS: [&[u8]; 5] = [b"bash", b"dash", b"env", b"printenv", b"sh"];
/// Directories of scripts.
const LOCAL: [&str; 2] = ["/usr/local/sbin", "/usr/local/bin"];
/// Where sudo looks for programs, `secure_path` of Debian, which [`SUDO_SCRIPT`](crate::import::base::SUDO_SCRIPT) sets.
pub(super) const SECURE_PATH: &[u8] = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
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
    if call.umask != 0o022 {
        return Some(Outcome::Unsupported(format!("the umask {:03o}, which sudo changes,", call.umask)));
    }
    if call.has_descriptors {
        return Some(Outcome::Unsupported("an open descriptor above 2, which sudo closes,".to_owned()));
    }
    let path = call.variables.exported().get(b"PATH".as_slice()).cloned();
    let is_usual = |path: &Vec<u8>| path == SECURE_PATH || path == PATH.as_bytes();
    if !word.contains(&b'/') && !path.as_ref().is_none_or(is_usual) {
        return Some(Outcome::Unsupported("a PATH other than that of sudo".to_owned()));
    }
    let is_odd = |arg: &Vec<u8>| arg.contains(&b'\\') || arg.starts_with(b"-");
    let rest = call.args.get(1..).unwrap_or_default();
    let is_other = match word {
        b"echo" => rest.iter().any(is_odd),
        b"printf" => rest.first().is_some_and(|format| has_conversion(format)),
        _ => false,
    };
    if is_other {
        return Some(Outcome::Unsupported(format!(
            "the program {}, which differs from the shell builtin,",
            text(word)
        )));
    }
    if !reads_variables(call, word) {
        return None;
    }
    let is_given = |name: &[u8], value: &Vec<u8>| match name {
        b"HOME" => value == b"/root",
        b"PATH" => is_usual(value),
        _ => false,
    };
    let exported = call.variables.exported();
    let other = exported.iter().find(|(name, value)| {
        let name = text(name);
        let is_kept = KEPT.contains(&name.as_str()) || OF_SHELLS.contains(&name.as_str()) || name.starts_with("LC_");
        !is_kept && !is_given(name.as_bytes(), value)
    });
    other.map(|(name, _)| Outcome::Unsupported(format!("the variable {}, which sudo does not pass on,", text(name))))
}

/// Whether a format has conversions that shells and programs print in different ways.
fn has_conversion(format: &[u8]) -> bool {
    let known = |pair: &[u8]| matches!(pair, [b'%', next] if !matches!(next, b's' | b'd' | b'%'));
    format.windows(2).any(known)
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
