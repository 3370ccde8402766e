//! dpkg(1), read-only: versions and architectures. Queries of packages are in `query`.

use debversion::Version;
use vmbake_shell::Call;

use super::query::{self, Action};
use super::{Command, Done, System, fails, status, unsupported, words};
use vmbake_manifest::relation;

const PROGRAM: &str = "dpkg";

/// Features of `--assert-…`.
const FEATURES: [&str; 8] = [
    "support-predepends",
    "working-epoch",
    "long-filenames",
    "multi-conrep",
    "multi-arch",
    "versioned-provides",
    "protected-field",
    "filesystem-safe-unpack",
];

pub(super) fn find(name: &str) -> Option<Command> {
    (name == PROGRAM).then_some(dpkg as Command)
}

fn dpkg(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(words) = words(call) else { return unsupported(call) };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some((action, rest)) = words.split_first() else { return unsupported(call) };
    let rest = rest.strip_prefix(&["--"]).unwrap_or(rest);
    match (*action, rest) {
        ("--compare-versions", [one, relation, other]) => return compare(call, one, relation, other),
        ("--compare-versions", _) => {
            return fails(call, PROGRAM, "--compare-versions takes three arguments: <version> <relation> <version>");
        }
        ("--print-architecture", []) => call.stdout.extend(format!("{}\n", system.database.arch).bytes()),
        ("--print-foreign-architectures", []) => {
            let all = system.target().text_or_empty("/var/lib/dpkg/arch")?;
            let foreign = all.lines().filter(|arch| !arch.is_empty() && *arch != system.database.arch);
            call.stdout.extend(foreign.flat_map(|arch| format!("{arch}\n").into_bytes()));
        }
        ("--validate-version", [version]) => return report_validity(call, "version", version, doubts(version.trim())),
        ("--validate-pkgname", [name]) => {
            let valid = relation::is_word(&name.replace('_', "-"));
            return report_validity(call, "package name", name, if valid { 0 } else { 2 });
        }
        ("-L" | "--listfiles", names) => return query::run(system, call, Action::Files, names),
        ("-S" | "--search", names) => return query::run(system, call, Action::Owners, names),
        ("-s" | "--status", names) => return query::run(system, call, Action::Status, names),
        ("-l" | "--list", names) => return query::run(system, call, Action::Table, names),
        ("--get-selections", names) => return query::run(system, call, Action::Selections, names),
        (action, []) if action.strip_prefix("--assert-").is_some_and(|name| FEATURES.contains(&name)) => {}
        _ => return unsupported(call),
    }
    status(0)
}

/// `--validate-…`: whether a word may be what it is for, by the status that dpkg ends with.
fn report_validity(call: &mut Call<'_>, what: &str, word: &str, ends: u8) -> Done {
    if ends > 0 {
        call.stderr.extend(format!("{PROGRAM}: error: {what} '{word}' is not valid\n").bytes());
    }
    status(ends)
}

/// What dpkg thinks of a version (deb-version(7)): 0 where it is one, 1 where dpkg takes it with a warning, 2 where it does not.
fn doubts(version: &str) -> u8 {
    let (epoch, rest) = version.split_once(':').map_or((None, version), |(epoch, rest)| (Some(epoch), rest));
    let (upstream, revision) = rest.rsplit_once('-').map_or((rest, None), |(upstream, rest)| (upstream, Some(rest)));
    let number = |epoch: &str| epoch.parse::<u32>().is_ok_and(|epoch| i32::try_from(epoch).is_ok());
    if epoch.is_some_and(|epoch| !number(epoch))
        || upstream.is_empty()
        || revision.is_some_and(str::is_empty)
        || version.contains(char::is_whitespace)
    {
        return 2;
    }
    let may =
        |text: &str, others: &[u8]| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte));
    let fine = upstream.starts_with(|first: char| first.is_ascii_digit())
        && may(upstream, b".+-:~")
        && may(revision.unwrap_or_default(), b".+~");
    u8::from(!fine)
}

/// How a version that is not there compares with one that is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Earlier,
    Later,
}

fn compare(call: &mut Call<'_>, one: &str, relation: &str, other: &str) -> Done {
    use std::cmp::Ordering::{Equal, Greater, Less};

    let (holds, missing): (&[_], _) = match relation {
        "lt" | "<<" => (&[Less], Missing::Earlier),
        // dpkg took `<` and `>` for these two when it was young.
        "le" | "<=" | "<" => (&[Less, Equal], Missing::Earlier),
        "eq" | "=" => (&[Equal], Missing::Earlier),
        "ne" => (&[Less, Greater], Missing::Earlier),
        "ge" | ">=" | ">" => (&[Greater, Equal], Missing::Earlier),
        "gt" | ">>" => (&[Greater], Missing::Earlier),
        "lt-nl" => (&[Less], Missing::Later),
        "le-nl" => (&[Less, Equal], Missing::Later),
        "ge-nl" => (&[Greater, Equal], Missing::Later),
        "gt-nl" => (&[Greater], Missing::Later),
        _ => return fails(call, PROGRAM, "--compare-versions bad relation"),
    };
    if matches!(relation, "<" | ">") {
        let message =
            format!("{PROGRAM}: warning: --compare-versions used with obsolete relation operator '{relation}'\n");
        call.stderr.extend(message.bytes());
    }
    let mut versions = Vec::new();
    for text in [one, other] {
        // dpkg warns of a version that is none, and compares it all the same.
        match text.parse::<Version>() {
            _ if text.is_empty() => versions.push(None),
            Ok(version) if doubts(text) == 0 => versions.push(Some(version)),
            _ => return unsupported(call),
        }
    }
    let order = match (&versions[..], missing) {
        ([None, Some(_)], Missing::Earlier) | ([Some(_), None], Missing::Later) => Less,
        ([Some(_), None], Missing::Earlier) | ([None, Some(_)], Missing::Later) => Greater,
        ([one, other], _) => one.cmp(other),
        _ => return unsupported(call),
    };
    status(u8::from(!holds.contains(&order)))
}
