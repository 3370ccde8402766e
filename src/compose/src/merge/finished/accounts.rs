//! Lines of sysusers.d(5): the files of the finished tree in, an error out for a line of a layer that systemd-sysusers(8) cannot do, or for
//! which it takes another id.

use super::of_layer;
use crate::merge::MergeError;
use crate::merge::config::Config;
use crate::merge::named_accounts::has_account;
use crate::merge::place::Target;
pub use vmbake_layer::Layer;

const HINT: &str = "use ids that no account has, and a group that exists or has its own line, such as `g NAME 901`; `users` and `groups` of a \
     layer make accounts in the image itself";

/// The first three fields of a line.
struct Line<'a> {
    path: &'a str,
    number: usize,
    kind: String,
    name: String,
    id: String,
}

/// Fails for the first such line.
pub(super) fn check(target: &Target, layers: &[Layer]) -> Result<(), MergeError> {
    let configs = Config::all(target, "sysusers.d").unwrap_or_default();
    let lines: Vec<Line> = configs.iter().flat_map(lines).collect();
    let tables = ["/etc/passwd", "/etc/group"].map(|path| target.text_or_empty(path).unwrap_or_default());
    for (at, line) in lines.iter().enumerate() {
        let Some(layer) = of_layer(target, layers, line.path) else { continue };
        let earlier = lines.iter().take(at).find(|earlier| earlier.kind == line.kind && earlier.name == line.name);
        let what = match (line.kind.as_str(), earlier) {
            ("u" | "g", Some(earlier)) if earlier.id != line.id => Some(format!(
                "systemd-sysusers ignores the line: {}:{} has another id for {}",
                earlier.path, earlier.number, line.name
            )),
            ("u" | "g", _) => taken(line, &tables).or_else(|| missing_group(target, layers, line, &lines, &tables[1])),
            _ => None,
        };
        if let Some(what) = what {
            let path = format!("{}:{}", line.path, line.number);
            return Err(MergeError::Unread { path, layer: layer.to_owned(), what, hint: HINT });
        }
    }
    Ok(())
}

/// The lines of a file. Modifiers of types do not matter here.
fn lines(config: &Config) -> Vec<Line<'_>> {
    let lines = config.numbered().filter_map(|(number, words)| {
        let mut words = words.into_iter();
        let (kind, name, id) = (words.next()?, words.next()?, words.next().unwrap_or_default());
        let kind = kind.trim_end_matches('!').to_owned();
        Some(Line { path: &config.path, number, kind, name, id })
    });
    lines.collect()
}

/// Another account that has the id: then systemd-sysusers takes a free one.
fn taken(line: &Line, tables: &[String; 2]) -> Option<String> {
    let (table, what) = if line.kind == "u" { (&tables[0], "user") } else { (&tables[1], "group") };
    let id = line.id.split(':').next().unwrap_or_default();
    let entries: Vec<[&str; 3]> = table.lines().filter_map(entry).collect();
    if id.parse::<u32>().is_err() || entries.iter().any(|[name, ..]| *name == line.name) {
        return None;
    }
    let [other, ..] = entries.iter().find(|[.., found]| *found == id)?;
    Some(format!("systemd-sysusers gives {} another id: the {what} {other} has the id {id}", line.name))
}

/// Name, password and id of a line of passwd(5) or group(5).
fn entry(line: &str) -> Option<[&str; 3]> {
    let mut fields = line.split(':');
    Some([fields.next()?, fields.next()?, fields.next()?])
}

/// The group of a user that nothing makes: then systemd-sysusers does not make the user.
fn missing_group(target: &Target, layers: &[Layer], line: &Line, lines: &[Line], groups: &str) -> Option<String> {
    let (_, group) = line.id.split_once(':').filter(|_| line.kind == "u")?;
    let is_made = |other: &Line| other.id == group && (other.kind == "g" || other.kind == "u");
    let is_there = match group.parse::<u32>() {
        Ok(_) => groups.lines().filter_map(entry).any(|[.., id]| id == group) || lines.iter().any(is_made),
        // Specifiers depend on the machine.
        Err(_) => group.contains('%') || has_account(target, layers, "group", group),
    };
    (!is_there).then(|| {
        format!("systemd-sysusers does not create the user {}: expected a group {group}, found none", line.name)
    })
}
