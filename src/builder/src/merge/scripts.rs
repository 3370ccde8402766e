//! What maintainer scripts would do on a new installation, without running them.
//!
//! Sections that debhelper generated are read line by line: every line must be one of the shapes known here. What stands
//! outside of them must do nothing. A script that is more than that must be on a layer's audited list, with its digest.

use std::collections::BTreeSet;

use super::place::Target;
use super::{MergeError, alternatives, units};
use crate::layer::{Alternative, AuditedScript};
use crate::manifest::Digest;
use crate::stage::Deb;

/// Scripts that run when a package is installed; the others are only kept.
const SCRIPTS: [&str; 2] = ["preinst", "postinst"];

/// Generators of debhelper whose sections are understood. Those of dh_makeshlibs and dh_installdeb have no effect on a
/// new installation; ldconfig's cache is renewed on the first boot, by systemd's ldconfig.service.
const GENERATORS: [&str; 4] = ["dh_installsystemd", "dh_installdeb", "dh_makeshlibs", "dh_systemd_enable"];

/// Everything that the scripts of a package change.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// Units to enable, and units that only get a record of what enabling them would link.
    enable: BTreeSet<String>,
    record: BTreeSet<String>,
    alternatives: Vec<Alternative>,
}

/// Reads the scripts of `deb`; one that is not understood is an error that shows it.
pub(super) fn effects(deb: &Deb, audited: &[AuditedScript]) -> Result<Effects, MergeError> {
    let mut effects = Effects::default();
    for script in SCRIPTS {
        let Some(bytes) = deb.info.get(script) else { continue };
        let sha256 = Digest::of(bytes).hex();
        let known = |entry: &&AuditedScript| entry.package == deb.name() && entry.script == script;
        if let Some(entry) = audited.iter().filter(known).find(|entry| entry.sha256 == sha256) {
            effects.alternatives.extend(entry.alternatives.iter().cloned());
            continue;
        }
        let text = String::from_utf8_lossy(bytes);
        interpret(&text, &mut effects).map_err(|reason| MergeError::Script {
            package: deb.name().to_owned(),
            script: script.to_owned(),
            sha256,
            reason,
            text: text.trim_end().to_owned(),
        })?;
    }
    Ok(effects)
}

/// Makes the changes.
pub(super) fn apply(target: &mut Target, effects: Effects) -> Result<(), MergeError> {
    for unit in &effects.enable {
        units::helper_enable(target, unit)?;
    }
    for unit in effects.record.difference(&effects.enable) {
        units::helper_record(target, unit)?;
    }
    alternatives::install(target, &effects.alternatives)
}

fn interpret(text: &str, effects: &mut Effects) -> Result<(), String> {
    let mut section: Option<Vec<&str>> = None;
    for line in text.lines().map(str::trim) {
        match (&mut section, line.strip_prefix("# Automatically added by ")) {
            (None, Some(generator)) => {
                let name = generator.split('/').next().unwrap_or_default();
                if !GENERATORS.contains(&name) {
                    return Err(format!("a section of {name}"));
                }
                section = Some(Vec::new());
            }
            (Some(_), Some(_)) => return Err("a section inside a section".to_owned()),
            (Some(lines), None) if line == "# End automatically added section" => {
                generated(lines, effects)?;
                section = None;
            }
            (Some(lines), None) => lines.push(line),
            (None, None) if is_idle(line) => {}
            (None, None) => return Err(format!("the line {line:?}")),
        }
    }
    if section.is_some() { Err("a section without an end".to_owned()) } else { Ok(()) }
}

/// Whether a line outside of all sections does nothing.
fn is_idle(line: &str) -> bool {
    matches!(line, "" | "set -e" | "set -eu" | "exit 0" | ":" | "true") || line.starts_with('#')
}

/// Interprets one generated section, for a package that was not installed before.
fn generated(lines: &[&str], effects: &mut Effects) -> Result<(), String> {
    let mut mine = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for line in lines {
        let words = words(line).ok_or_else(|| format!("the line {line:?}"))?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["if", rest @ ..] if condition(rest) => {
                if let ["deb-systemd-helper", "debian-installed", units @ .., "then"] = rest {
                    mine.2.extend(units.iter().map(|unit| (*unit).to_owned()));
                }
            }
            [] | ["fi"] | ["else"] | ["then"] => {}
            ["deb-systemd-helper", "enable", units @ ..] => mine.0.extend(units.iter().map(|unit| (*unit).to_owned())),
            ["deb-systemd-helper", "update-state", units @ ..] => {
                mine.1.extend(units.iter().map(|unit| (*unit).to_owned()));
            }
            ["deb-systemd-helper", "unmask" | "disable", ..]
            | ["deb-systemd-invoke", ..]
            | ["systemctl", "--system", "daemon-reload"]
            | ["_dh_action=restart" | "_dh_action=start" | "_dh_action=try-restart"]
            | ["dpkg-maintscript-helper", "rm_conffile" | "mv_conffile" | "symlink_to_dir" | "dir_to_symlink", ..]
            | ["ldconfig"] => {}
            _ => return Err(format!("the line {line:?}")),
        }
    }
    // What is enabled only where the package was installed before is not enabled here.
    effects.enable.extend(mine.0.difference(&mine.2).cloned());
    effects.record.extend(mine.1);
    Ok(())
}

/// Whether these are the words of a condition that debhelper writes: none of them changes anything.
fn condition(words: &[&str]) -> bool {
    let Some((&"then", words)) = words.split_last() else { return false };
    match words {
        ["deb-systemd-helper", "--quiet", "was-enabled", ..] | ["deb-systemd-helper", "debian-installed", ..] => true,
        _ => {
            let mut depth = 0;
            let plain = words.iter().all(|word| {
                depth += i32::from(*word == "[") - i32::from(*word == "]");
                depth == 1 || matches!(*word, "]" | "||" | "&&")
            });
            plain && depth == 0
        }
    }
}

/// Splits a line into words as a shell would, for lines that use nothing but quotes; `None` for all others. The ends
/// `>/dev/null` and `|| true` are dropped, and `; then` becomes a word.
fn words(line: &str) -> Option<Vec<String>> {
    let line = line.split(" #").next().unwrap_or(line).trim();
    if line.starts_with('#') {
        return Some(Vec::new());
    }
    let line = line.trim_end_matches("|| true").trim_end().trim_end_matches(">/dev/null").trim_end();
    let (line, then) = match line.strip_suffix("then") {
        Some(rest) if rest.trim_end().ends_with(';') => (rest.trim_end().trim_end_matches(';'), true),
        _ => (line, false),
    };
    if line.contains(['`', ';', '<', '>', '\\', '(', ')']) {
        return None;
    }
    let mut words: Vec<String> = line
        .split_whitespace()
        .map(|word| word.trim_matches(|quote| quote == '\'' || quote == '"').to_owned())
        .collect();
    if words.iter().any(|word| word.contains(['\'', '"'])) {
        return None;
    }
    if then {
        words.push("then".to_owned());
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(body: &str) -> Result<Effects, String> {
        let mut effects = Effects::default();
        let text = format!(
            "#!/bin/sh\nset -e\n# Automatically added by dh_installsystemd/13\n{body}\n# End automatically added section\n"
        );
        interpret(&text, &mut effects).map(|()| effects)
    }

    #[test]
    fn new_installations_enable_what_is_not_bound_to_an_earlier_one() {
        let enabled = "if [ \"$1\" = \"configure\" ] || [ \"$1\" = \"abort-upgrade\" ] ; then\n\
            deb-systemd-helper unmask 'a.service' >/dev/null || true\n\
            if deb-systemd-helper --quiet was-enabled 'a.service'; then\n\
            deb-systemd-helper enable 'a.service' >/dev/null || true\nelse\n\
            deb-systemd-helper update-state 'a.service' >/dev/null || true\nfi\nfi";
        let effects = section(enabled).unwrap();
        assert!(effects.enable.contains("a.service") && effects.record.contains("a.service"));
        let bound = "if deb-systemd-helper debian-installed 'a.service'; then\n\
            deb-systemd-helper enable 'a.service' >/dev/null || true\nfi\n\
            deb-systemd-helper update-state 'a.service' >/dev/null || true";
        let effects = section(bound).unwrap();
        assert!(effects.enable.is_empty() && effects.record.contains("a.service"));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for body in [
            "rm -rf /",
            "if rm -rf /; then",
            "if [ -e $(touch /x) ]; then",
            "deb-systemd-helper enable 'a.service' ; rm x",
            "systemctl --system daemon-reload && rm x",
            "ldconfig || rm x",
            "if [ a ] || rm x ; then",
        ] {
            assert!(section(body).is_err(), "{body}");
        }
        for text in ["echo hello", "# Automatically added by dh_other/1\n# End automatically added section"] {
            assert!(interpret(text, &mut Effects::default()).is_err(), "{text}");
        }
    }
}
