//! a2query(1): enabled modules, sites and configurations.

use vmbake_shell::{Call, Follow};

use super::{CONF, CONFIG, MODULE, Object, SITE, STATE};
use crate::merge::maintainer::commands::options::{self, Options, Spec};
use crate::merge::maintainer::commands::{Done, status, unsupported};

const OPTIONS: [Spec; 5] = [
    ("module", Some(b'm'), true),
    ("site", Some(b's'), true),
    ("conf", Some(b'c'), true),
    ("mpm", Some(b'M'), false),
    ("quiet", Some(b'q'), false),
];

/// What can have happened to a thing, and who did it.
pub(super) const MARKS: [(&str, &str); 4] =
    [("enabled", "maint"), ("enabled", "admin"), ("disabled", "maint"), ("disabled", "admin")];

pub(super) fn query(call: &mut Call<'_>) -> Done {
    let Some(options) = options::parse(call, &OPTIONS).filter(|options| options.operands.is_empty()) else {
        return unsupported(call);
    };
    if options.has("mpm") {
        let all = enabled(call, &MODULE).unwrap_or_default();
        let mut mpms = all.iter().filter_map(|name| name.strip_prefix("mpm_"));
        let text = format!("{}\n", mpms.next().unwrap_or("invalid"));
        say(call, &options, &text);
        return status(0);
    }
    for object in [&MODULE, &SITE, &CONF] {
        if let Some(name) = options.value(object.name) {
            return one(call, &options, object, name);
        }
    }
    unsupported(call)
}

fn one(call: &mut Call<'_>, options: &Options, object: &Object, name: &str) -> Done {
    let Some(all) = enabled(call, object) else { return status(1) };
    let name = name.strip_prefix("mod").unwrap_or(name).replace(".conf", "").replace(".load", "");
    let found: Vec<&String> = all.iter().filter(|found| name.is_empty() || **found == name).collect();
    for found in &found {
        let text = format!("{found} (enabled by {})\n", person(marked(call, object, "enabled", found)));
        say(call, options, &text);
    }
    if !found.is_empty() {
        return status(0);
    }
    let by = marked(call, object, "disabled", &name);
    if !options.has("quiet") {
        let by = by.map(|by| format!(" (disabled by {})", person(Some(by)))).unwrap_or_default();
        call.stderr.extend(format!("No {} matches {name}{by}\n", object.name).bytes());
    }
    status(match by {
        Some("admin") => 32,
        Some(_) => 33,
        None => 1,
    })
}

/// The names of what is enabled.
fn enabled(call: &Call<'_>, object: &Object) -> Option<Vec<String>> {
    let names = call.files.list(format!("{CONFIG}/{}-enabled", object.dir).as_bytes()).ok()?;
    let name = |name: &Vec<u8>| Some(std::str::from_utf8(name).ok()?.strip_suffix(object.suffix)?.to_owned());
    Some(names.iter().filter_map(name).collect())
}

/// Who did that last.
fn marked(call: &Call<'_>, object: &Object, what: &str, name: &str) -> Option<&'static str> {
    let mark = |by: &str| format!("{STATE}/{}/{what}_by_{by}/{name}", object.name);
    ["maint", "admin"].into_iter().find(|by| call.files.lookup(mark(by).as_bytes(), Follow::Yes).is_ok())
}

fn person(by: Option<&str>) -> &'static str {
    match by {
        Some("maint") => "maintainer script",
        Some(_) => "site administrator",
        None => "unknown",
    }
}

fn say(call: &mut Call<'_>, options: &Options, text: &str) {
    if !options.has("quiet") {
        call.stdout.extend(text.bytes());
    }
}
