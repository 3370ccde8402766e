//! dpkg-realpath(1).

use vmbake_shell::{Call, Files};

use super::options::{self, Spec};
use super::{Command, Done, System, fails, status, unsupported};

const PROGRAM: &str = "dpkg-realpath";

const OPTIONS: [Spec; 2] = [("root", None, true), ("zero", Some(b'z'), false)];

/// More links than Linux follows are an error.
const MAX_LINKS: usize = 40;

pub(super) fn find(name: &str) -> Option<Command> {
    (name == PROGRAM).then_some(realpath as Command)
}

fn realpath(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(options) = options::parse(call, &OPTIONS) else { return unsupported(call) };
    if options.value("root").is_some_and(|root| !root.is_empty()) {
        return unsupported(call);
    }
    let [path] = &options.operands[..] else { return fails(call, PROGRAM, "need a pathname argument") };
    if path.is_empty() {
        return fails(call, PROGRAM, "need a pathname argument");
    }
    // A relative path begins at the root, too.
    let Some(mut found) = canonical(&*call.files, path.as_bytes()) else {
        return fails(call, PROGRAM, "too many levels of symbolic links");
    };
    found.push(if options.has("zero") { 0 } else { b'\n' });
    call.stdout.extend(found);
    status(0)
}

/// A path without links, as far as something is there; what is not there stays as it is.
pub(super) fn canonical(files: &dyn Files, path: &[u8]) -> Option<Vec<u8>> {
    let names = |path: &[u8]| -> Vec<Vec<u8>> { path.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec).collect() };
    let (mut found, mut left, mut links) = (Vec::new(), names(path), 0);
    while let Some(name) = left.pop() {
        match name.as_slice() {
            b"" | b"." => continue,
            b".." => {
                let at = found.iter().rposition(|byte| *byte == b'/').unwrap_or_default();
                found.truncate(at);
                continue;
            }
            _ => {}
        }
        let next = [&found[..], b"/", &name].concat();
        match files.read_link(&next) {
            Ok(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return None;
                }
                if target.starts_with(b"/") {
                    found.clear();
                }
                left.extend(names(&target));
            }
            Err(_) => found = next,
        }
    }
    Some(if found.is_empty() { b"/".to_vec() } else { found })
}
