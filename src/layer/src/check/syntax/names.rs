//! Sources of names in nsswitch.conf(5): glibc takes its defaults if it does not understand a line of a database, and skips a source without
//! library.

use super::Problem;

/// Databases of glibc and of programs in Debian.
const DATABASES: [&str; 19] = [
    "aliases",
    "automount",
    "ethers",
    "group",
    "group_compat",
    "gshadow",
    "hosts",
    "initgroups",
    "netgroup",
    "networks",
    "passwd",
    "passwd_compat",
    "protocols",
    "publickey",
    "rpc",
    "services",
    "shadow",
    "shadow_compat",
    "sudoers",
];

/// Results of a service that a condition can name.
const STATUSES: [&str; 4] = ["success", "notfound", "unavail", "tryagain"];

const ACTIONS: [&str; 3] = ["return", "continue", "merge"];

/// A source of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameSource {
    /// Counted from 1.
    pub line: usize,
    pub database: String,
    /// The service, such as `files`.
    pub service: String,
}

/// The sources of all databases of glibc.
pub fn name_sources(text: &str) -> Vec<NameSource> {
    let mut found = Vec::new();
    for (line, text) in lines(text) {
        let Some((database, services)) = database(text) else { continue };
        let services = services_of(services).unwrap_or_default();
        let source = |service: &str| NameSource { line, database: database.to_owned(), service: service.to_owned() };
        found.extend(services.into_iter().map(source));
    }
    found
}

/// Checks names of databases, and conditions in brackets.
pub(super) fn check(text: &str) -> Vec<Problem> {
    let faults = lines(text).filter_map(|(line, text)| Some((line, fault(text)?)));
    faults
        .map(|(line, reason)| Problem::error(line, format!("is ignored by programs that look up names: {reason}")))
        .collect()
}

/// Lines without comments.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()));
    lines.filter(|(_, line)| !line.is_empty())
}

fn database(line: &str) -> Option<(&str, &str)> {
    let (database, services) = line.split_once(':')?;
    let database = database.trim();
    DATABASES.contains(&database).then_some((database, services))
}

fn fault(line: &str) -> Option<String> {
    let Some((written, _)) = line.split_once(':') else {
        return Some(format!("expected DATABASE: SERVICE..., found {line:?}"));
    };
    match database(line) {
        Some((_, services)) => services_of(services).err(),
        None => {
            let near = vmbake_common::spelling::near(written.trim(), DATABASES);
            near.first().map(|near| format!("unknown database {:?}; did you mean `{near}`?", written.trim()))
        }
    }
}

/// The services of a database, or what is wrong with its conditions.
fn services_of(text: &str) -> Result<Vec<&str>, String> {
    let (mut services, mut rest) = (Vec::new(), text.trim_start());
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let Some((conditions, after)) = inside.split_once(']') else {
                return Err("expected `]` after a condition, found the end of the line".to_owned());
            };
            if services.is_empty() {
                return Err(format!("expected a service before [{conditions}]"));
            }
            conditions_fault(conditions).map_or(Ok(()), Err)?;
            rest = after.trim_start();
            continue;
        }
        let (service, after) =
            rest.split_at(rest.find(|next: char| next.is_whitespace() || next == '[').unwrap_or(rest.len()));
        services.push(service);
        rest = after.trim_start();
    }
    Ok(services)
}

fn conditions_fault(text: &str) -> Option<String> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Some("expected STATUS=ACTION in brackets, found nothing".to_owned());
    }
    while !rest.is_empty() {
        let Some((status, after)) = rest.split_once('=') else {
            return Some(format!("expected STATUS=ACTION in brackets, found {rest:?}"));
        };
        let status = status.trim().trim_start_matches('!').trim_start();
        let after = after.trim_start();
        let (action, after) = after.split_at(after.find(char::is_whitespace).unwrap_or(after.len()));
        let is_one_of = |word: &str, known: &[&str]| known.iter().any(|known| known.eq_ignore_ascii_case(word));
        if !is_one_of(status, &STATUSES) {
            return Some(format!("expected one of {} before `=`, found {status:?}", STATUSES.join(", ")));
        }
        if !is_one_of(action, &ACTIONS) {
            return Some(format!("expected one of {} after `=`, found {action:?}", ACTIONS.join(", ")));
        }
        rest = after.trim_start();
    }
    None
}
