//! glib-compile-schemas(1) and gio-querymodules(1), where they have no files to read. A cache of files is left to the machine.

use vmbake_shell::Call;

use super::programs::{cache, is_present};
use super::{Command, Done, System, status, words};

pub(super) fn find(name: &str) -> Option<Command> {
    Some(match name {
        "glib-compile-schemas" => schemas,
        "gio-querymodules" => modules,
        _ => return None,
    })
}

/// Compiles the schemas of a directory. Without schemas, it removes the result of an earlier run.
fn schemas(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let [dir] = &words(call).unwrap_or_default()[..] else { return cache(system, call) };
    let is_schema = |name: &[u8]| name.ends_with(b".gschema.xml") || name.ends_with(b".enums.xml");
    if !is_present(call) || dir.starts_with('-') {
        return cache(system, call);
    }
    let Ok(names) = call.files.list(&call.path(dir.as_bytes())) else {
        let message = format!("Error opening directory \u{201c}{dir}\u{201d}: No such file or directory\n");
        call.stderr.extend_from_slice(message.as_bytes());
        return status(1);
    };
    if names.iter().any(|name| is_schema(name)) {
        return cache(system, call);
    }
    let message = match remove(call, dir, "gschemas.compiled") {
        true => "No schema files found: removed existing output file.\n",
        false => "No schema files found: doing nothing.\n",
    };
    call.stderr.extend_from_slice(message.as_bytes());
    status(0)
}

/// Lists what the modules of directories extend. Without modules, it removes the result of an earlier run.
fn modules(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let dirs = words(call).unwrap_or_default();
    if !is_present(call) || dirs.is_empty() || dirs.iter().any(|dir| dir.starts_with('-')) {
        return cache(system, call);
    }
    let mut listed = Vec::new();
    for dir in &dirs {
        let names = call.files.list(&call.path(dir.as_bytes()));
        if names.iter().flatten().any(|name| name.ends_with(b".so")) {
            return cache(system, call);
        }
        listed.push((dir, names.is_ok()));
    }
    for (dir, is_there) in listed {
        if is_there {
            remove(call, dir, "giomodule.cache");
        } else {
            let error = format!("Error opening directory \u{201c}{dir}\u{201d}: No such file or directory");
            call.stderr.extend_from_slice(format!("Unable to open directory {dir}: {error}\n").as_bytes());
        }
    }
    status(0)
}

/// Whether a file was removed from a directory.
fn remove(call: &mut Call<'_>, dir: &str, name: &str) -> bool {
    let path = call.path(format!("{dir}/{name}").as_bytes());
    call.files.remove(&path).is_ok()
}
