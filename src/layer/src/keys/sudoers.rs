//! Rules for sudo(8): text in, the first syntax error according to sudoers(5) out.
//!
//! A syntax error makes sudo ignore the file or reject all users. Stricter than Debian's visudo(8): no includes of other files, only
//! parameters in [`defaults`], and only the usual forms of values. Aliases may be defined in another file.

mod defaults;
mod lexer;

use std::collections::BTreeSet;

use crate::check::pointer;
use crate::findings::Findings;
use crate::position::child;
use crate::settings::Setting;
use crate::{Layer, Schema, Text};
use lexer::Lexer;

/// Permissions of the files, which sudo recommends.
const MODE: u16 = 0o440;

/// Kinds of aliases.
const ALIASES: [&str; 5] = ["User_Alias", "Runas_Alias", "Host_Alias", "Cmnd_Alias", "Cmd_Alias"];

/// The files of the rules.
pub(super) fn files(schema: &Schema) -> Vec<Setting> {
    let file = |(name, text): (&String, &Text)| {
        let setting = Setting::new(child("/sudoers", name), format!("/etc/sudoers.d/{name}"), text.as_str().to_owned());
        Setting { mode: Some(MODE), ..setting }
    };
    schema.sudoers.iter().map(file).collect()
}

pub(super) fn entries(schema: &Schema) -> Vec<(String, String)> {
    schema.sudoers.iter().map(|(name, text)| (name.clone(), text.as_str().to_owned())).collect()
}

pub(super) fn check(found: &mut Findings, layer: &Layer) {
    found.keys("/sudoers", layer.schema.sudoers.keys(), name);
    for (name, text) in &layer.schema.sudoers {
        found.value(child("/sudoers", name), fault(text.as_str()));
    }
    check_files(found, layer);
}

/// The name of a file of rules: sudo skips names with a dot, and those that end with `~`.
fn name(name: &str) -> Option<String> {
    let valid = !name.is_empty()
        && name.len() < 256
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    (!valid).then(|| {
        format!("expected a name of letters, digits, `-` and `_`, found {name:?}: sudo skips files with other names")
    })
}

/// Checks the files of rules that the layer has without the key `sudoers`.
fn check_files(found: &mut Findings, layer: &Layer) {
    for (path, file) in &layer.files {
        let Some(name) = path.strip_prefix("/etc/sudoers.d/").filter(|name| self::name(name).is_none()) else {
            continue;
        };
        if name == "README" || layer.schema.sudoers.contains_key(name) || layer.schema.expand.contains(path) {
            continue;
        }
        let fault = match str::from_utf8(&file.content) {
            Ok(text) => fault(text),
            Err(_) => Some("not UTF-8".to_owned()),
        };
        found.key(pointer(layer, path), fault.map(|reason| format!("{path:?}: {reason}")));
    }
}

/// The first line that is not valid.
fn fault(text: &str) -> Option<String> {
    let mut line = String::new();
    let mut aliases = BTreeSet::new();
    for (index, next) in text.lines().enumerate() {
        line.push_str(next);
        // A backslash at the end of a line continues it.
        if line.ends_with('\\') {
            line.pop();
            continue;
        }
        if let Err(reason) = entry(without_comment(&line).trim(), &mut aliases) {
            return Some(format!("line {}: {reason}", index + 1));
        }
        line.clear();
    }
    (!line.is_empty()).then(|| "expected a line after the backslash at the end, found the end of the rules".to_owned())
}

/// Drops a comment. `#` is also part of ids, of `#include`, and of what is quoted.
fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with("#include") {
        return line;
    }
    let (mut quoted, mut escaped) = (false, false);
    for (at, char) in line.char_indices() {
        match char {
            _ if escaped => {}
            '"' => quoted = !quoted,
            '#' if !quoted && !line[at + 1..].starts_with(|next: char| next.is_ascii_digit()) => return &line[..at],
            _ => {}
        }
        escaped = char == '\\' && !escaped;
    }
    line
}

fn entry(line: &str, aliases: &mut BTreeSet<(String, String)>) -> Result<(), String> {
    let first = line.split([' ', '\t']).next().unwrap_or_default();
    let rest = line[first.len()..].trim_start();
    if line.is_empty() {
        return Ok(());
    }
    if line.chars().any(|char| char.is_control() && char != '\t') {
        return Err("expected text without control characters, found one".to_owned());
    }
    match first {
        "@include" | "#include" => {
            return Err(format!(
                "expected rules, found {first}: if that file is missing, sudo fails for all users; put its rules here, or use @includedir"
            ));
        }
        "@includedir" | "#includedir" => return included(first, rest),
        _ => {}
    }
    let mut lexer = Lexer(rest);
    if ALIASES.contains(&first) {
        loop {
            let name = lexer.word();
            if !is_alias(name) {
                return Err(format!(
                    "expected an alias name that starts with a capital letter and contains only capital letters, digits and `_`, found {}",
                    shown(name)
                ));
            }
            let kind = if first.starts_with("Cm") { "Cmnd_Alias" } else { first };
            if name == "ALL" || !aliases.insert((kind.to_owned(), name.to_owned())) {
                return Err(format!("expected a new name for an alias, found {name}, which is already defined"));
            }
            lexer.expect('=')?;
            if first.starts_with("Cm") {
                commands(&mut lexer)?
            } else {
                list(&mut lexer)?
            }
            if !lexer.take(':') {
                return lexer.end();
            }
        }
    }
    if let Some(scope) = first.strip_prefix("Defaults")
        && (scope.is_empty() || scope.starts_with(['@', ':', '!', '>']))
    {
        scoped(scope)?;
        return defaults::check(rest);
    }
    let mut lexer = Lexer(line);
    list(&mut lexer)?;
    loop {
        list(&mut lexer)?;
        lexer.expect('=')?;
        commands(&mut lexer)?;
        if !lexer.take(':') {
            return lexer.end();
        }
    }
}

/// A directory of more rules, which may be missing.
fn included(word: &str, path: &str) -> Result<(), String> {
    let is_path = path.starts_with('/') && !path.contains(['"', '\\', ' ', '\t']);
    let is_own = path.trim_end_matches('/') == "/etc/sudoers.d";
    match is_path && !is_own {
        true => Ok(()),
        false => Err(format!(
            "{word}: expected the absolute path of a directory other than /etc/sudoers.d, without quotes and blanks, found {}",
            shown(path)
        )),
    }
}

/// For whom parameters are: hosts, users, commands or users that commands run as.
fn scoped(scope: &str) -> Result<(), String> {
    let Some(kind) = scope.chars().next() else { return Ok(()) };
    let mut lexer = Lexer(&scope[kind.len_utf8()..]);
    if kind != '!' {
        list(&mut lexer)?;
        return lexer.end();
    }
    match split(lexer.0, ',').into_iter().find(|command| !is_command(command.trim_start_matches('!'))) {
        Some(command) => Err(no_command(command)),
        None => Ok(()),
    }
}

/// The parts of a text between separators that are neither quoted nor escaped.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, char) in text.char_indices() {
        match char {
            _ if escaped => {}
            '"' => quoted = !quoted,
            _ if char == separator && !quoted => {
                parts.push(&text[start..at]);
                start = at + char.len_utf8();
            }
            _ => {}
        }
        escaped = char == '\\' && !escaped;
    }
    parts.push(&text[start..]);
    parts
}

/// Names with commas between them, each perhaps negated.
fn list(lexer: &mut Lexer<'_>) -> Result<(), String> {
    loop {
        while lexer.take('!') {}
        let word = lexer.word();
        if word.is_empty() {
            return Err(format!("expected the name of a user, group or host, found {}", shown(lexer.0)));
        }
        if let Some(expected) = expected_name(word) {
            return Err(format!("expected {expected}, found {word:?}"));
        }
        if !lexer.take(',') {
            return Ok(());
        }
    }
}

/// The expected form of an invalid user, group or host name.
fn expected_name(word: &str) -> Option<&'static str> {
    let is_quoted = word.len() > 2 && word.starts_with('"') && word.ends_with('"') && word.matches('"').count() == 2;
    if !is_quoted && word.contains('"') {
        return Some("a name with quotes around all of it, or none");
    }
    let plain = word.trim_matches('"');
    let id = plain.strip_prefix("%#").or_else(|| plain.strip_prefix('#'));
    if id.is_some_and(|id| id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_digit()) || id.parse::<u32>().is_err())
    {
        return Some("a number after `#`");
    }
    ["%", "%:", "+"].contains(&plain).then_some("a name after the sign")
}

/// Whether it is `ALL`, an alias, `sudoedit`, `list`, a pattern or an absolute path; arguments may follow.
fn is_command(command: &str) -> bool {
    let name = command.split([' ', '\t']).next().unwrap_or_default();
    // sudo has its own editor, and takes it without a path.
    let is_path = name.starts_with('/') && !name.ends_with("/sudoedit");
    let is_list = command == "list";
    name == "sudoedit" || is_list || is_path || is_pattern(name) || is_alias(command)
}

/// Whether it is a regular expression from `^` to `$` of the simple sort: characters, sets and groups, which all end.
fn is_pattern(text: &str) -> bool {
    let Some(inner) = text.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')) else { return false };
    let (mut depth, mut in_set, mut escaped, mut repeats) = (0_i32, false, false, true);
    for char in inner.chars() {
        match char {
            _ if escaped => {}
            '[' if in_set => return false,
            '[' => in_set = true,
            ']' => in_set = false,
            _ if in_set => {}
            '(' => depth += 1,
            ')' if depth == 0 => return false,
            ')' => depth -= 1,
            // Nothing is there to repeat.
            '*' | '+' | '?' | '{' if repeats => return false,
            _ => {}
        }
        repeats = !escaped && !in_set && matches!(char, '(' | '|' | '*' | '+' | '?' | '{' | '}');
        escaped = char == '\\' && !escaped && !in_set;
    }
    depth == 0 && !in_set && !escaped && !inner.contains('{')
}

fn no_command(found: &str) -> String {
    format!("expected ALL, the name of an alias or the absolute path of a command, found {}", shown(found))
}

/// A part of a line, for messages.
fn shown(text: &str) -> String {
    if text.trim().is_empty() { "nothing".to_owned() } else { format!("{text:?}") }
}

/// Commands with commas between them.
fn commands(lexer: &mut Lexer<'_>) -> Result<(), String> {
    loop {
        if lexer.take('(') {
            let inside = lexer.0;
            let Some((inside, rest)) = inside.split_once(')') else {
                return Err(format!("expected `)` after `({inside}`, found the end of the line"));
            };
            runas(inside)?;
            lexer.0 = rest;
        }
        while lexer.option()? || lexer.tag() {}
        while lexer.digest()? && lexer.take(',') {}
        while lexer.take('!') {}
        let command = lexer.command();
        if !is_command(command) {
            return Err(no_command(command));
        }
        if !lexer.take(',') {
            return Ok(());
        }
    }
}

/// Users and groups as which commands run: `(users)`, `(users:groups)` or `(:groups)`; in empty parentheses it is the caller.
fn runas(inside: &str) -> Result<(), String> {
    let parts = split(inside, ':');
    let is_empty = |part: &&str| part.trim().is_empty();
    if parts.len() > 2 || parts.len() == 2 && parts.last().is_some_and(is_empty) {
        return Err(format!("expected `(users)`, `(users:groups)` or `(:groups)`, found \"({inside})\""));
    }
    for (index, part) in parts.into_iter().enumerate().filter(|(_, part)| !is_empty(part)) {
        if index > 0 && part.contains(['%', '+']) {
            return Err(format!("expected names of groups without `%` or `+` after `:`, found {part:?}"));
        }
        let mut names = Lexer(part);
        list(&mut names)?;
        names.end()?;
    }
    Ok(())
}

/// `ALL`, or the name of an alias.
fn is_alias(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests;
