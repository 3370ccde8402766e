//! Programs of other packages that scripts call: their effect on a system without a running kernel or services. A program that the image
//! lacks is not found, as on the machine.

use vmbake_shell::{Call, Follow, Outcome};

use super::{Command, DIRECTORIES, Done, System, status, systemd, unsupported, words};
use crate::merge::triggers;

pub(super) fn find(name: &str) -> Option<Command> {
    Some(match name {
        // They make caches of byte-code, which Python does without; images have none.
        "py3compile" | "pycompile" | "pyclean" | "pypy3compile" | "pypy3clean" => nothing,
        // Menus of window managers, labels of SELinux and the log are matters of a system that runs.
        "update-menus" | "restorecon" | "logger" => nothing,
        // apparmor.service loads the profiles on every boot.
        "apparmor_parser" => nothing,
        "aa-enabled" | "aa-status" | "selinuxenabled" => fails,
        // No process, no bus and no terminal is there.
        "stty" | "pidof" | "pgrep" | "pkill" | "killall" | "dbus-send" => fails,
        "apache2ctl" | "apachectl" => apache,
        "chattr" => chattr,
        "start-stop-daemon" => start_stop,
        "sysctl" => sysctl,
        "udevadm" => udevadm,
        "py3versions" => versions,
        "python3" => python,
        _ if name.starts_with("python3.") => python,
        "systemd-hwdb" => systemd::hwdb,
        _ if CACHES.contains(&name) => cache,
        _ => return None,
    })
}

/// What makes a cache of the files of all packages. The script of the package that has it runs it when it is configured and when it is set
/// off by those files.
const CACHES: [&str; 9] = [
    "fc-cache",
    "gdk-pixbuf-query-loaders",
    "gtk-update-icon-cache",
    "install-info",
    "update-desktop-database",
    "update-fonts-alias",
    "update-info-dir",
    "update-mime",
    "update-mime-database",
];

/// Leaves a cache to the machine, and the package configured: dpkg runs its script again there, as if its triggers were set off.
pub(super) fn cache(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if system.script.args.first() != Some(&"configure") {
        return waits(system, call);
    }
    let interests = triggers::interests(&system.target(), system.script.stem)?;
    if interests.is_empty() {
        return waits(system, call);
    }
    let done = nothing(system, call)?;
    if done == Outcome::Status(0) {
        system.database.left.entry(system.script.stem.to_owned()).or_default().extend(interests);
    }
    Ok(done)
}

/// Byte-code is made as programs run; anything else that Python does is the machine's.
fn python(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let words = words(call).unwrap_or_default();
    let compiles = |word: &String| word.ends_with("/py_compile.py") || word.ends_with("/compileall.py");
    let module = words.iter().skip_while(|word| *word != "-m").nth(1);
    let is_module = module.is_some_and(|name| name == "py_compile" || name == "compileall");
    if words.iter().any(compiles) || is_module { nothing(system, call) } else { waits(system, call) }
}

/// The versions of Python that Debian supports, or the one that is the default: one is all that a release has.
fn versions(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    const DEFAULTS: &str = "/usr/share/python3/debian_defaults";
    let text = system.target().text_or_empty(DEFAULTS)?;
    let field = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('='));
        value.map(|value| value.trim().replace(',', "")).unwrap_or_default()
    };
    let found = match words(call).unwrap_or_default().iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["-d" | "--default"] => field("default-version"),
        ["-s" | "--supported"] => field("supported-versions"),
        ["-i" | "--installed"] => {
            let is_there =
                |version: &&str| system.target().tree.resolve(format!("/usr/bin/{version}").as_bytes()).is_ok();
            field("supported-versions").split_whitespace().filter(is_there).collect::<Vec<_>>().join(" ")
        }
        _ => return unsupported(call),
    };
    let done = nothing(system, call)?;
    if done == Outcome::Status(0) {
        call.stdout.extend(format!("{found}\n").into_bytes());
    }
    Ok(done)
}

/// Whether the image has the program that a script calls.
pub(super) fn is_present(call: &Call<'_>) -> bool {
    let name = call.base_name();
    if call.name.starts_with(b"/") {
        return call.files.lookup(call.name, Follow::Yes).is_ok();
    }
    DIRECTORIES.iter().any(|dir| call.files.lookup(&[dir, &b"/"[..], name].concat(), Follow::Yes).is_ok())
}

/// Ends as the program does, unless the image lacks it.
pub(super) fn ends(call: &mut Call<'_>, outcome: Outcome) -> Done {
    if is_present(call) { Ok(outcome) } else { not_found(call) }
}

/// Ends as the shell does if there is no such program.
pub(super) fn not_found(call: &mut Call<'_>) -> Done {
    call.stderr.extend([call.name, &b": not found\n"[..]].concat());
    status(127)
}

fn nothing(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    ends(call, Outcome::Status(0))
}

fn fails(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    ends(call, Outcome::Status(1))
}

fn waits(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let reason = format!("{} has to run on the machine", String::from_utf8_lossy(call.base_name()));
    ends(call, Outcome::Deferred(reason))
}

/// A test of what packages configure finds nothing; what starts the server is not known here.
fn apache(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    match words(call).unwrap_or_default().iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["configtest" | "-t"] => ends(call, Outcome::Status(0)),
        _ => unsupported(call),
    }
}

/// ext4 has no copy-on-write to switch off.
fn chattr(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let words = words(call).unwrap_or_default();
    let mut options = words.iter().filter(|word| word.starts_with(['-', '+', '=']));
    match options.all(|option| matches!(option.as_str(), "+C" | "-f" | "-R")) && words.iter().any(|word| word == "+C") {
        true => ends(call, Outcome::Status(1)),
        false => unsupported(call),
    }
}

/// `--stop` finds no process; whatever else it does, it does on the machine.
fn start_stop(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let words = words(call).unwrap_or_default();
    let given = |names: [&str; 2]| words.iter().any(|word| names.contains(&word.as_str()));
    match (given(["--stop", "-K"]), given(["--oknodo", "-o"])) {
        (true, true) => nothing(system, call),
        (true, false) => fails(system, call),
        _ => waits(system, call),
    }
}

/// systemd-sysctl.service sets on every boot what files say; other parameters that a script sets or reads belong to the machine.
fn sysctl(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let words = words(call).unwrap_or_default();
    let loads =
        words.iter().any(|word| matches!(word.as_str(), "--system" | "-p" | "--load") || word.starts_with("--load="));
    if loads { nothing(system, call) } else { waits(system, call) }
}

/// It talks to a daemon that does not run, and says so with success.
fn udevadm(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    match words(call).unwrap_or_default().first().map(String::as_str) {
        Some("control" | "trigger" | "settle" | "--version") => nothing(system, call),
        _ => unsupported(call),
    }
}
