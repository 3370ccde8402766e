//! The sections that debhelper adds to maintainer scripts (its `autoscripts`, compat levels 9 to 14, as Debian 12 and 13
//! are built), read as what they do on a new installation.
//!
//! Every line must be one of the shapes known here. Conditions are not evaluated: what only an upgrade or a running
//! system would do has no effect here, and the rest is what `configure` does for a package that was not there before.

use std::collections::BTreeSet;

use debversion::Version;

use super::scripts::{Effects, Run};
use crate::layer::Alternative;

/// Generators whose sections are understood. Those of `dh_installdeb` move conffiles of older versions, those of
/// `dh_makeshlibs` run ldconfig, whose cache is written for the finished tree.
const GENERATORS: [&str; 9] = [
    "dh_installsystemd",
    "dh_systemd_enable",
    "dh_systemd_start",
    "dh_installinit",
    "dh_installtmpfiles",
    "dh_installsysusers",
    "dh_installalternatives",
    "dh_installdeb",
    "dh_makeshlibs",
];

/// What in a script is not part of a section that is understood.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rest(Vec<String>);

impl Rest {
    /// Why the script is not understood, where there is a reason.
    pub(super) fn reason(&self) -> Option<&str> {
        self.0.first().map(String::as_str)
    }
}

/// Reads a script as dpkg runs it. A fault inside of a known section is an error; what stands elsewhere is left to the
/// caller.
pub(super) fn interpret(text: &str, run: Run<'_>, effects: &mut Effects) -> Result<Rest, String> {
    let mut rest = Rest::default();
    let mut section: Option<(&str, String)> = None;
    // Conditions that are open outside of sections, and whether one of them may have ended the script.
    let (mut open, mut ended) = (0_u32, false);
    for raw in text.split('\n') {
        let line = raw.trim();
        match (&mut section, line.strip_prefix("# Automatically added by ")) {
            (None, Some(generator)) => {
                let generator = generator.split('/').next().unwrap_or_default();
                if open > 0 || ended {
                    rest.0.push(format!("a section of {generator}, which not every installation reaches"));
                }
                section = Some((generator, String::new()));
            }
            (Some(_), Some(_)) => return Err("a section inside a section".to_owned()),
            (Some((generator, lines)), None) if line == "# End automatically added section" => {
                match GENERATORS.contains(generator) {
                    true => generated(lines, run, effects)?,
                    false => rest.0.push(format!("a section of {generator}")),
                }
                section = None;
            }
            (Some((_, lines)), None) => {
                // A line that goes on is one with the next. A comment never does, nor what ends with an escaped blank.
                match raw.trim_start().strip_suffix('\\').filter(|line| !line.contains('#')) {
                    Some(line) => lines.push_str(line),
                    None => lines.extend([line, "\n"]),
                }
            }
            (None, None) if is_idle(line, run) => {
                ended |= line == "exit 0";
                match line.split_whitespace().next() {
                    Some("if") => open = open.saturating_add(1),
                    Some("fi") => open = open.saturating_sub(1),
                    _ => {}
                }
            }
            // What the arguments of an upgrade lead to for certain is done, whoever wrote it.
            (None, None) if matches!(run, Run::After(_)) && open == 0 && !ended && acts(line, effects) => {}
            (None, None) => rest.0.push(format!("the line {line:?}")),
        }
    }
    if section.is_some() { Err("a section without an end".to_owned()) } else { Ok(rest) }
}

/// Whether a line outside of all sections does nothing: that of the script's frame, or one that speaks to a running system
/// or runs ldconfig, as in scripts that their authors wrote after debhelper's.
fn is_idle(line: &str, run: Run<'_>) -> bool {
    let frame = matches!(line, "" | "set -e" | "set -eu" | "exit 0" | ":" | "true") || line.starts_with('#');
    let case = matches!(line, "case \"$1\" in" | "configure)" | ";;" | "esac");
    let speaks = |words: Vec<String>| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let nothing = !matches!(words.first(), Some(&("deb-systemd-helper" | "chmod" | "dpkg-maintscript-helper")));
        nothing && idle(&words, run)
    };
    frame || case || words(line).is_some_and(speaks)
}

/// Whether a line outside of all sections is a command whose effect is known; the effect is noted.
fn acts(line: &str, effects: &mut Effects) -> bool {
    let Some(words) = words(line) else { return false };
    other(&words.iter().map(String::as_str).collect::<Vec<_>>(), effects)
}

/// Units of one section: to enable, to record, and those that are enabled only where they were installed before.
#[derive(Default)]
struct Units {
    enable: BTreeSet<String>,
    record: BTreeSet<String>,
    earlier: BTreeSet<String>,
}

fn generated(lines: &str, run: Run<'_>, effects: &mut Effects) -> Result<(), String> {
    let mut units = Units::default();
    for line in lines.lines() {
        let unknown = || format!("the line {line:?}");
        let words = words(line).ok_or_else(unknown)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if !idle(&words, run) && !service(&words, &mut units) && !other(&words, effects) {
            return Err(unknown());
        }
    }
    match run {
        Run::New => effects.enable.extend(units.enable.difference(&units.earlier).cloned()),
        Run::After(_) | Run::Before => {
            effects.enable.extend(units.enable);
            effects.earlier.extend(units.earlier);
        }
    }
    effects.record.extend(units.record);
    Ok(())
}

/// Whether a command changes nothing on a system that does not run.
fn idle(words: &[&str], run: Run<'_>) -> bool {
    match words {
        // All of these are about what an earlier version left.
        ["dpkg-maintscript-helper", helper, rest @ ..] => maintscript_helper(helper, rest, run),
        ["deb-systemd-helper", "disable", ..] | ["chmod", "+x", ..] if run != Run::New => false,
        ["if", rest @ ..] => condition(rest) && !matches!(rest, ["deb-systemd-helper", "debian-installed", ..]),
        []
        | ["fi" | "else" | "then"]
        | ["deb-systemd-helper", "unmask" | "disable", ..]
        | ["deb-systemd-invoke" | "invoke-rc.d", ..]
        | ["systemctl", "--system", "daemon-reload"]
        | ["ldconfig"]
        | ["_dh_action=restart" | "_dh_action=start" | "_dh_action=try-restart"] => true,
        // Only after a removal that left the script behind.
        ["chmod", "+x", path] => path.starts_with("/etc/init.d/"),
        _ => false,
    }
}

/// Whether a call of dpkg-maintscript-helper(1) does nothing: scripts of the new version act on an upgrade from the
/// version that it names or an earlier one, those of the old version only when the package goes.
fn maintscript_helper(helper: &str, rest: &[&str], run: Run<'_>) -> bool {
    let names = match helper {
        "rm_conffile" => 1,
        "mv_conffile" | "symlink_to_dir" | "dir_to_symlink" => 2,
        _ => return false,
    };
    let last = rest.get(names).filter(|word| **word != "--").and_then(|word| word.parse::<Version>().ok());
    match (run, last) {
        (Run::New | Run::Before, _) => true,
        (Run::After(old), Some(last)) => old.parse::<Version>().is_ok_and(|old| old > last),
        (Run::After(_), None) => false,
    }
}

fn service(words: &[&str], units: &mut Units) -> bool {
    let owned = |units: &[&str]| units.iter().map(|unit| (*unit).to_owned()).collect::<Vec<_>>();
    match words {
        ["if", "deb-systemd-helper", "debian-installed", names @ .., "then"] => units.earlier.extend(owned(names)),
        ["deb-systemd-helper", "enable", names @ ..] if plain(names) => units.enable.extend(owned(names)),
        ["deb-systemd-helper", "update-state", names @ ..] if plain(names) => units.record.extend(owned(names)),
        _ => return false,
    }
    true
}

/// Whether these are names, not options.
fn plain(names: &[&str]) -> bool {
    !names.is_empty() && names.iter().all(|name| !name.starts_with('-') && !name.contains('/'))
}

fn other(words: &[&str], effects: &mut Effects) -> bool {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    match words {
        ["update-rc.d", script, "defaults", ..] if plain(&[script]) => {
            effects.init.insert((*script).to_owned(), true);
        }
        ["update-rc.d", script, "defaults-disabled"] if plain(&[script]) => {
            effects.init.insert((*script).to_owned(), false);
        }
        ["systemd-sysusers", names @ ..] if plain(names) => effects.sysusers.extend(owned(names)),
        ["systemd-tmpfiles", "--create", names @ ..] if plain(names) => effects.tmpfiles.extend(owned(names)),
        ["update-alternatives", "--install", link, name, path, priority, slaves @ ..] => {
            let Ok(priority) = priority.parse() else { return false };
            let mut all = Vec::new();
            for slave in slaves.chunks(4) {
                let ["--slave", link, name, path] = slave else { return false };
                all.push(((*name).to_owned(), ((*link).to_owned(), (*path).to_owned())));
            }
            let [link, name, path] = [link, name, path].map(|word| (*word).to_owned());
            effects.alternatives.push(Alternative { link, name, path, priority, slaves: all.into_iter().collect() });
        }
        _ => return false,
    }
    true
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
                if depth == 1 { !word.contains(['&', '|']) } else { matches!(*word, "]" | "||" | "&&") }
            });
            plain && depth == 0
        }
    }
}

/// Splits a line into words as a shell would, for lines that use nothing but quotes; `None` for all others. The ends
/// `>/dev/null`, `|| true` and `|| exit 1` are dropped, and `; then` becomes a word.
fn words(line: &str) -> Option<Vec<String>> {
    let line = line.split(" #").next().unwrap_or(line).trim();
    if line.starts_with('#') {
        return Some(Vec::new());
    }
    // Empty on an image that is installed from inside.
    let line = line
        .replace("${DPKG_ROOT:+--root=\"$DPKG_ROOT\"} ", "")
        .replace("\"${DPKG_ROOT:-}\"", "x")
        .replace("\"$(command -v systemd-tmpfiles)\"", "x");
    let mut line = line.as_str();
    for end in ["|| true", "|| exit 1", "|| exit $?", ">/dev/null"] {
        line = line.strip_suffix(end).unwrap_or(line).trim_end();
    }
    let (line, then) = match line.strip_suffix("then") {
        Some(rest) if rest.trim_end().ends_with(';') => (rest.trim_end().trim_end_matches(';'), true),
        _ => (line, false),
    };
    // Another command may follow; what joins tests is looked at by `condition`.
    if line.contains(['&', '|']) && !line.starts_with("if [ ") {
        return None;
    }
    if line.contains(['`', ';', '<', '>', '\\', '(', ')', '{']) {
        // dpkg-maintscript-helper gets versions with an escaped tilde, and changes nothing whatever they are.
        return line.starts_with("dpkg-maintscript-helper ").then(|| plain_helper(line)).flatten();
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

/// The words of a call with nothing but `\~` in it that a shell would look at.
fn plain_helper(line: &str) -> Option<Vec<String>> {
    let line = line.replace("\\~", "~");
    let safe = |c: char| c.is_ascii_alphanumeric() || " \t/._:+~-\"$@".contains(c);
    line.chars().all(safe).then(|| line.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(body: &str) -> Result<Effects, String> {
        let mut effects = Effects::default();
        let text = format!(
            "#!/bin/sh\nset -e\n# Automatically added by dh_installsystemd/13\n{body}\n# End automatically added section\n"
        );
        interpret(&text, Run::New, &mut effects).map(|_| effects)
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

        let disabled = "if deb-systemd-helper debian-installed 'b.service'; then\n\
            deb-systemd-helper unmask 'b.service' >/dev/null || true\n\
            if deb-systemd-helper --quiet was-enabled 'b.service'; then\n\
            deb-systemd-helper enable 'b.service' >/dev/null || true\nfi\nfi\n\
            deb-systemd-helper update-state 'b.service' >/dev/null || true";
        let effects = section(disabled).unwrap();
        assert!(!effects.enable.contains("b.service") && effects.record.contains("b.service"));
    }

    #[test]
    fn a_script_in_the_manner_of_debhelper() {
        let text = "#!/bin/sh\nset -e\ncase \"$1\" in\n    configure)\n        ldconfig\n\
            if [ -z \"${DPKG_ROOT:-}\" ] && [ -d /run/systemd/system ]; then\n\
            systemctl --system daemon-reload >/dev/null || true\n    if [ -n \"$2\" ]; then\n\
            deb-systemd-invoke try-restart a.service >/dev/null || true\n    fi\n  fi\n;;\nesac\nexit 0\n";
        assert_eq!(interpret(text, Run::New, &mut Effects::default()).unwrap().reason(), None);
        for line in ["adduser a", "deb-systemd-helper disable a.service", "chmod +x /etc/init.d/a"] {
            let more = text.replace("ldconfig", &format!("ldconfig\n{line}"));
            let reason = format!("the line {line:?}");
            assert_eq!(interpret(&more, Run::New, &mut Effects::default()).unwrap().reason(), Some(reason.as_str()));
        }
    }

    #[test]
    fn every_kind_of_section() {
        let text = "if [ -z \"$DPKG_ROOT\" ] && [ -x \"/etc/init.d/d\" ]; then\nupdate-rc.d d defaults >/dev/null\n\
            if [ -n \"$2\" ]; then\n_dh_action=restart\nelse\n_dh_action=start\nfi\n\
            invoke-rc.d --skip-systemd-native d $_dh_action || exit 1\nfi\n\
            update-rc.d e defaults-disabled >/dev/null || exit 1\n\
            if [ -x \"$(command -v systemd-tmpfiles)\" ]; then\n\
            systemd-tmpfiles ${DPKG_ROOT:+--root=\"$DPKG_ROOT\"} --create d.conf e.conf || true\nfi\n\
            systemd-sysusers ${DPKG_ROOT:+--root=\"$DPKG_ROOT\"} d.conf\nldconfig\n\
            chmod +x \"/etc/init.d/d\" >/dev/null || true\n\
            dpkg-maintscript-helper rm_conffile /etc/d 2.13.1-2\\~ -- \"$@\"\n\
            update-alternatives --install /usr/bin/x x /usr/bin/y 10 \\\n    --slave /usr/man/x x.1 /usr/man/y";
        let effects = section(text).unwrap();
        assert_eq!(effects.init.into_iter().collect::<Vec<_>>(), [("d".to_owned(), true), ("e".to_owned(), false)]);
        assert_eq!((effects.tmpfiles.len(), effects.sysusers.len()), (2, 1));
        let alternative = &effects.alternatives[0];
        assert_eq!((alternative.link.as_str(), alternative.priority), ("/usr/bin/x", 10));
        assert_eq!(alternative.slaves["x.1"], ("/usr/man/x".to_owned(), "/usr/man/y".to_owned()));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for body in [
            "rm -rf /",
            "if rm -rf /; then",
            "if [ -e $(touch /x) ]; then",
            "if [ -x \"$(command -v systemd-tmpfiles; rm x)\" ]; then",
            "deb-systemd-helper enable 'a.service' ; rm x",
            "deb-systemd-helper --user enable 'a.service'",
            "deb-systemd-helper enable --now 'a.service'",
            "systemctl --system daemon-reload && rm x",
            "ldconfig || rm x",
            "if [ a ] || rm x ; then",
            "update-rc.d ../x defaults",
            "update-rc.d x remove",
            "systemd-tmpfiles --create --prefix=/x a.conf",
            "systemd-tmpfiles --create /tmp/a.conf",
            "chmod +x /usr/bin/x",
            "update-alternatives --install /x x /y z",
            "update-alternatives --remove x /y",
            "dpkg-maintscript-helper rm_conffile `touch x`",
            "dpkg-maintscript-helper rm_conffile \\; x",
            "chmod +x /etc/init.d/x \\\n/usr/bin/y",
            "deb-systemd-invoke restart a.service && rm x",
            "deb-systemd-helper unmask a.service || rm x",
            "invoke-rc.d a start | tee /x",
            "invoke-rc.d a start & rm x",
            "invoke-rc.d a start&rm x",
            "update-rc.d x defaults && rm x",
            "dpkg-maintscript-helper rm_conffile /x && rm x",
            "if deb-systemd-helper --quiet was-enabled a && rm x; then",
            "if [ a || rm x ]; then",
            "if [ a ]||rm ]; then",
            "# a \\\nrm x",
            "ldconfig # a \\\nrm x",
            "deb-systemd-invoke restart a \\ \nrm x",
        ] {
            assert!(section(body).is_err(), "{body}");
        }
        for (text, expected) in [
            ("echo hello", "the line \"echo hello\""),
            ("# Automatically added by dh_other/1\n# End automatically added section", "a section of dh_other"),
        ] {
            assert_eq!(interpret(text, Run::New, &mut Effects::default()).unwrap().reason(), Some(expected));
        }
        let generated = "# Automatically added by dh_makeshlibs/1\nldconfig\n# End automatically added section\n";
        for (before, after) in [("exit 0\n", ""), ("if [ -n \"$2\" ]; then\n", "fi\n")] {
            let rest = interpret(&format!("{before}{generated}{after}"), Run::New, &mut Effects::default()).unwrap();
            assert_eq!(rest.reason(), Some("a section of dh_makeshlibs, which not every installation reaches"));
        }
        let text = format!("if [ -n \"$2\" ]; then\ntrue\nfi\n{generated}exit 0\n");
        assert_eq!(interpret(&text, Run::New, &mut Effects::default()).unwrap().reason(), None);
        assert!(interpret("# Automatically added by dh_installinit/1\n", Run::New, &mut Effects::default()).is_err());
    }
}
