//! linux-version(1): lists, sorts and compares the versions of kernels.

use std::cmp::Ordering;

use vmbake_kmod::linux_version::compare;
use vmbake_shell::{Call, Files};

use super::super::{Done, System, status, unsupported, words};

/// Prefixes of the names of kernels.
const IMAGES: [&str; 2] = ["vmlinux-", "vmlinuz-"];
const BOOT: &str = "/boot";

pub(super) fn linux_version(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let words = words(call).unwrap_or_default();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["list"] => {
            let list: String = images(call.files).into_iter().map(|(version, _)| format!("{version}\n")).collect();
            call.stdout.extend(list.bytes());
            status(0)
        }
        ["list", "--paths"] => {
            let list: String = images(call.files).iter().map(|(version, path)| format!("{version} {path}\n")).collect();
            call.stdout.extend(list.bytes());
            status(0)
        }
        ["compare", left, operator, right] => {
            let order = compare(left.as_bytes(), right.as_bytes());
            let holds = match operator {
                "lt" => order == Ordering::Less,
                "le" => order != Ordering::Greater,
                "eq" => order == Ordering::Equal,
                "ge" => order != Ordering::Less,
                "gt" => order == Ordering::Greater,
                _ => return unsupported(call),
            };
            status(u8::from(!holds))
        }
        ["sort", ref rest @ ..] => {
            let (is_reverse, versions) = match rest {
                ["--reverse", versions @ ..] => (true, versions),
                versions => (false, versions),
            };
            if versions.iter().any(|version| version.starts_with("--")) {
                return unsupported(call);
            }
            sort(call, is_reverse, versions)
        }
        _ => unsupported(call),
    }
}

/// Sorts versions, or the lines of the input by the version up to the first space of each.
fn sort(call: &mut Call<'_>, is_reverse: bool, versions: &[&str]) -> Done {
    let mut lines: Vec<Vec<u8>> = match versions {
        [] => (call.stdin)().split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect(),
        versions => versions.iter().map(|version| format!("{version}\n").into_bytes()).collect(),
    };
    let version = |line: &[u8]| line.split(|byte| matches!(byte, b' ' | b'\n')).next().unwrap_or_default().to_vec();
    lines.sort_by(|left, right| {
        let order = compare(&version(left), &version(right));
        if is_reverse { order.reverse() } else { order }
    });
    call.stdout.extend(lines.concat());
    status(0)
}

/// The kernels in `/boot`, with their paths, in the order of Perl's glob, which ignores case.
pub(super) fn images(files: &dyn Files) -> Vec<(String, String)> {
    let names = files.list(BOOT.as_bytes()).unwrap_or_default();
    let mut names: Vec<String> = names.into_iter().filter_map(|name| String::from_utf8(name).ok()).collect();
    names.retain(|name| IMAGES.iter().any(|start| name.starts_with(start)) && !name.ends_with(".sig"));
    names.sort_by_key(|name| (name.to_lowercase(), name.clone()));
    let image = |name: String| {
        let version = IMAGES.iter().find_map(|start| name.strip_prefix(start)).unwrap_or_default();
        (version.to_owned(), format!("{BOOT}/{name}"))
    };
    names.into_iter().map(image).collect()
}
