//! linux-update-symlinks(1): the links to the newest kernel and its initial RAM disk, and to the ones before, as `/etc/kernel-img.conf` wants
//! them.

use std::cmp::Ordering;

use vmbake_kmod::linux_version::compare;
use vmbake_shell::{Call, Files, Follow, NodeKind, Outcome};

use super::super::{Done, System, status, unsupported, words};
use super::versions::images;

const CONFIGURATION: &[u8] = b"/etc/kernel-img.conf";
const MAX_CONFIGURATION: usize = 1 << 20;
const KERNEL: &str = "vmlinuz";
const INITRD: &str = "initrd.img";

/// A kernel, and its initial RAM disk.
#[derive(Clone, Debug)]
struct Image {
    version: String,
    path: String,
    initrd: Option<String>,
}

/// `linux-update-symlinks install|upgrade|remove VERSION IMAGE`
pub(super) fn update(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let words = words(call).unwrap_or_default();
    let [change @ ("install" | "upgrade" | "remove"), version, path] =
        words.iter().map(String::as_str).collect::<Vec<_>>()[..]
    else {
        return unsupported(call);
    };
    let Some(directory) = destination(call.files) else { return status(0) };
    let has_initrd = call.variables.get(b"INITRD").is_none_or(|value| value != b"No");
    let own = Image {
        version: version.to_owned(),
        path: path.to_owned(),
        initrd: has_initrd.then(|| format!("/boot/{INITRD}-{version}")),
    };
    let sorted = sorted(call.files, change, own, &directory);
    let (old, current) = match &sorted[..] {
        [.., old, current] => (Some(old), Some(current)),
        [current] => (Some(current), Some(current)),
        [] => (None, None),
    };
    for (image, end) in [(old, ".old"), (current, "")] {
        for (name, source) in
            [(KERNEL, image.map(|image| &image.path)), (INITRD, image.and_then(|it| it.initrd.as_ref()))]
        {
            let link = format!("{directory}{name}{end}");
            if let Err(error) = set(call, &link, source.map(String::as_str)) {
                return Ok(Outcome::Unsupported(format!("{link}: {error}")));
            }
        }
    }
    status(0)
}

/// All kernels in the order of their versions, with the preferred one at the end.
fn sorted(files: &dyn Files, change: &str, own: Image, directory: &str) -> Vec<Image> {
    let is_file = |path: &str| files.lookup(path.as_bytes(), Follow::Yes).is_ok_and(|node| node.kind == NodeKind::File);
    let image = |(version, path): (String, String)| {
        let initrd = Some(format!("/boot/{INITRD}-{version}")).filter(|path| is_file(path));
        Image { version, path, initrd }
    };
    let mut sorted: Vec<Image> = images(files).into_iter().map(image).collect();
    let order = |left: &Image, right: &Image| compare(left.version.as_bytes(), right.version.as_bytes());
    sorted.sort_by(order);
    let place = sorted.iter().position(|other| order(&own, other) != Ordering::Greater).unwrap_or(sorted.len());
    let is_there = sorted.get(place).is_some_and(|other| order(&own, other).is_eq());
    if is_there {
        sorted.remove(place);
    }
    if change == "upgrade" {
        sorted.insert(place, own.clone());
    }
    for end in [".old", ""] {
        promote(files, &mut sorted, directory, &format!("{KERNEL}{end}"));
    }
    if change == "install" {
        sorted.push(own);
    }
    sorted
}

/// The kernel that a link leads to is preferred to others.
fn promote(files: &dyn Files, sorted: &mut Vec<Image>, directory: &str, link: &str) {
    let Ok(target) = files.read_link(format!("{directory}{link}").as_bytes()) else { return };
    let target = String::from_utf8_lossy(&target).into_owned();
    let target = if target.starts_with('/') { target } else { format!("{directory}{target}") };
    if let Some(place) = sorted.iter().position(|image| image.path == target) {
        let image = sorted.remove(place);
        sorted.push(image);
    }
}

/// Makes a link to a path, or removes it.
fn set(call: &mut Call<'_>, link: &str, source: Option<&str>) -> Result<(), vmbake_shell::Errno> {
    let is_there = call.files.lookup(link.as_bytes(), Follow::No).is_ok();
    let Some(source) = source else {
        return if is_there { call.files.remove(link.as_bytes()) } else { Ok(()) };
    };
    let source = relative(source, link);
    if call.files.read_link(link.as_bytes()).is_ok_and(|old| old == source.as_bytes()) {
        return Ok(());
    }
    if is_there {
        call.files.remove(link.as_bytes())?;
    }
    call.files.symlink(source.as_bytes(), link.as_bytes())?;
    call.stdout.extend(format!("I: {link} is now a symlink to {source}\n").bytes());
    Ok(())
}

/// A path as seen from the directory of a link.
fn relative(path: &str, link: &str) -> String {
    let names = |path: &str| path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let (path, mut directory) = (names(path), names(link));
    directory.pop();
    let common = path.iter().zip(&directory).take_while(|(left, right)| left == right).count();
    let up = directory[common..].iter().map(|_| "..".to_owned());
    up.chain(path[common..].iter().cloned()).collect::<Vec<_>>().join("/")
}

/// The directory of the links, with a slash at its end; `None` if none are wanted.
fn destination(files: &dyn Files) -> Option<String> {
    let content = files.read(CONFIGURATION, MAX_CONFIGURATION).unwrap_or_default();
    let (mut is_wanted, mut in_boot, mut directory) = (true, false, "/".to_owned());
    for line in String::from_utf8_lossy(&content).lines() {
        let line = line.split('#').next().unwrap_or_default();
        let Some((name, value)) = line.split_once('=') else { continue };
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim_start());
        let truth = match value.trim_end().to_ascii_lowercase().as_str() {
            "no" | "false" | "0" => Some(false),
            "yes" | "true" | "1" => Some(true),
            _ => None,
        };
        match (name.as_str(), truth) {
            ("do_symlinks", Some(truth)) => is_wanted = truth,
            ("link_in_boot", Some(truth)) => in_boot = truth,
            ("image_dest", _) => directory = value.split_whitespace().next().unwrap_or_default().to_owned(),
            _ => {}
        }
    }
    let directory = if in_boot { "/boot" } else { &directory };
    is_wanted.then(|| format!("{}/", directory.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_relative() {
        for (path, link, expected) in [
            ("/boot/vmlinuz-6.1", "/vmlinuz", "boot/vmlinuz-6.1"),
            ("/boot/vmlinuz-6.1", "/boot/vmlinuz", "vmlinuz-6.1"),
            ("/boot/vmlinuz-6.1", "/srv/boot/vmlinuz", "../../boot/vmlinuz-6.1"),
        ] {
            assert_eq!(relative(path, link), expected, "{path} {link}");
        }
    }
}
