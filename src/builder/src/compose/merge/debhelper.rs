//! The sections that debhelper adds to maintainer scripts (its `autoscripts`, compat levels 9 to 14, as Debian 12 and 13
//! are built), read as what they do on a new installation.
//!
//! Every line must be one of the shapes known here. Conditions are not evaluated: what only an upgrade or a running
//! system would do has no effect here, and the rest is what `configure` does for a package that was not there before.

use std::collections::BTreeSet;

use debversion::Version;

use super::effects::{Effects, Run};
use super::lex::{BLANKS, Token, code, tokens};
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
    for (number, raw) in text.split('\n').enumerate() {
        let line = raw.trim_matches(BLANKS);
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
                // A line that goes on is one with the next. A comment never does, nor what is in quotes.
                let goes_on = |line: &&str| code(line).is_some_and(|code| !code.comment);
                match raw.trim_start_matches(BLANKS).strip_suffix('\\').filter(goes_on) {
                    Some(line) => lines.push_str(line),
                    None => lines.extend([line, "\n"]),
                }
            }
            (None, None) if number == 0 && line.starts_with("#!") && !is_shell(line) => {
                rest.0.push(format!("the line {line:?}"));
            }
            (None, None) if is_idle(line, run) => {
                ended |= line == "exit 0";
                match line.split(BLANKS).next() {
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

/// Whether the first line names a shell, which stops at a failure or not.
fn is_shell(line: &str) -> bool {
    let words: Vec<&str> = line.trim_start_matches("#!").split(BLANKS).filter(|word| !word.is_empty()).collect();
    let options =
        |text: &str| text.strip_prefix('-').is_some_and(|text| text.bytes().all(|byte| b"eux".contains(&byte)));
    match words.as_slice() {
        ["/bin/sh" | "/bin/bash" | "/bin/dash" | "/usr/bin/sh" | "/usr/bin/bash" | "/usr/bin/dash"] => true,
        ["/bin/sh" | "/bin/bash" | "/bin/dash" | "/usr/bin/sh" | "/usr/bin/bash" | "/usr/bin/dash", only] => {
            options(only)
        }
        _ => false,
    }
}

/// Whether a line outside of all sections does nothing: that of the script's frame, or one that speaks to a running system
/// or runs ldconfig, as in scripts that their authors wrote after debhelper's.
fn is_idle(line: &str, run: Run<'_>) -> bool {
    let frame = matches!(line, "" | "set -e" | "set -eu" | "exit 0" | ":" | "true")
        || (line.starts_with('#') && !line.contains('\0'));
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
    for line in lines.split('\n') {
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

/// Whether these are names, not options, and mean themselves to a shell.
fn plain(names: &[&str]) -> bool {
    !names.is_empty() && literal(names) && names.iter().all(|name| !name.starts_with('-') && !name.contains('/'))
}

/// Whether words are what stands there: without parameters, patterns, home directories and blanks.
fn literal(words: &[&str]) -> bool {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"/._:+-@".contains(&byte);
    words.iter().all(|word| !word.is_empty() && word.bytes().all(safe))
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
        ["update-alternatives", "--install", arguments @ ..] if !literal(arguments) => return false,
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

/// The words of a line with one command or condition. The ends `>/dev/null`, `|| true`, `|| exit 1` and `|| exit $?` are dropped, `; then`
/// becomes a word, and so do `&&` and `||` in a condition.
fn words(line: &str) -> Option<Vec<String>> {
    let mut tokens = tokens(line)?;
    for end in [&["||", "true"][..], &["||", "exit", "1"], &["||", "exit", "$?"], &[">", "/dev/null"]] {
        if tokens.ends_with(&end.iter().map(|text| token(text)).collect::<Vec<_>>()) {
            tokens.truncate(tokens.len() - end.len());
        }
    }
    let test = tokens.starts_with(&[token("if"), token("[")]);
    if tokens.ends_with(&[token(";"), token("then")]) {
        tokens.remove(tokens.len() - 2);
    } else if tokens.last() == Some(&token("then")) && tokens.len() > 1 {
        return None;
    }
    let word = |token| match token {
        Token::Word(word) => Some(word),
        Token::Operator(joins @ ("&&" | "||")) if test => Some(joins.to_owned()),
        Token::Operator(_) => None,
    };
    tokens.into_iter().map(word).collect()
}

/// What [`tokens`] makes of such a text.
fn token(text: &str) -> Token {
    match text {
        "||" => Token::Operator("||"),
        ">" => Token::Operator(">"),
        ";" => Token::Operator(";"),
        word => Token::Word(word.to_owned()),
    }
}

#[cfg(test)]
mod tests;
