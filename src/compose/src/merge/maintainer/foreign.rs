//! Programs of bundles: a maintainer script of another layer does not run or source what a bundle may change only with grants, because the
//! effects would be those of the package, which has no limits.
//!
//! Files are looked at where they are run, with all links that lead to them. What a script only reads is not restricted. The same bundle's
//! packages, and bundles with a grant of `/`, gain nothing.

use vmbake_disk::tree::Kind;
use vmbake_shell::Call;

use super::system::System;
use crate::merge::MergeError;
use crate::merge::owners::INFO;
use crate::merge::place::Target;
use crate::merge::place::limits::links;

/// Programs that run a file which an operand names.
const SHELLS: [&[u8]; 3] = [b"sh", b"dash", b"bash"];
/// The longest first line of a script that the kernel reads, in bytes.
const FIRST_LINE: usize = 256;

/// Fails if a script of dpkg's is itself of a bundle, or its interpreter is.
pub(super) fn check_script(target: &Target, call: &super::Call<'_>) -> Result<(), MergeError> {
    if target.grants.is_empty() {
        return Ok(());
    }
    let own = format!("{INFO}/{}.{}", call.stem, call.script);
    let interpreter = interpreter(call.source.get(..FIRST_LINE).unwrap_or(call.source));
    [Some(own.as_bytes()), interpreter].into_iter().flatten().try_for_each(|path| check(target, call, path))
}

/// Fails if a command means a program of a bundle.
pub(super) fn check_command(system: &System<'_, '_>, is_function: bool, call: &Call<'_>) -> Result<(), MergeError> {
    let target = system.target();
    if target.grants.is_empty() || is_function {
        return Ok(());
    }
    let operand = script_operand(call).map(|operand| call.path(operand));
    let paths = program(&target, call).into_iter().chain(operand);
    paths.into_iter().try_for_each(|path| check(&target, system.script, &path))
}

/// Fails if a sourced file, `call.name`, is of a bundle.
pub(super) fn check_sourced(system: &System<'_, '_>, call: &Call<'_>) -> Result<(), MergeError> {
    check(&system.target(), system.script, &call.path(call.name))
}

fn check(target: &Target, script: &super::Call<'_>, path: &[u8]) -> Result<(), MergeError> {
    let Some((found, layer)) = foreign(target, &target.origin().layer, path) else { return Ok(()) };
    Err(MergeError::ForeignProgram {
        package: script.package.to_owned(),
        script: script.script,
        path: vmbake_common::escape::name(&found),
        owner: target.bundles.describe(layer),
    })
}

/// What a bundle other than that of the layer `writer` has at `path` or as a link on the way, with its layer.
pub(super) fn foreign<'a>(target: &'a Target, writer: &str, path: &[u8]) -> Option<(Vec<u8>, &'a str)> {
    if target.grants.is_empty() {
        return None;
    }
    let is_limited = |layer: &str| {
        let is_all = |granted: &String| granted == "/";
        target.grants.get(layer).is_some_and(|grants| !grants.paths.iter().any(is_all))
    };
    // With one more name, the last one of the path counts as one on the way.
    let way = links(&target.tree, &[path, b"/x"].concat());
    let end = target.tree.resolve(path).ok().filter(|id| matches!(target.tree.inode(*id).kind, Kind::File(_)));
    let found = way.into_iter().chain(end.map(|id| (path.to_vec(), id)));
    let mut found = found.map(|(path, id)| (path, target.layer_of(id)));
    found.find(|(_, layer)| is_limited(layer) && !target.bundles.is_same(layer, writer))
}

/// The file that would be run: the one that a name with a slash means, or the first in the search path.
fn program(target: &Target, call: &Call<'_>) -> Option<Vec<u8>> {
    let named = call.file.or_else(|| call.name.contains(&b'/').then_some(call.name));
    if let Some(name) = named {
        return Some(call.path(name));
    }
    let search = call.variables.get(b"PATH")?;
    let mut places = search.split(|byte| *byte == b':').map(|dir| call.path(&[dir, b"/", call.name].concat()));
    places.find(|path| {
        let inode = target.tree.resolve(path).ok().map(|id| target.tree.inode(id));
        inode.is_some_and(|inode| matches!(inode.kind, Kind::File(_)) && inode.meta.mode & 0o111 != 0)
    })
}

/// The file that a shell is to run.
fn script_operand<'a>(call: &Call<'a>) -> Option<&'a [u8]> {
    if !SHELLS.contains(&call.base_name()) {
        return None;
    }
    let is_option = |word: &&Vec<u8>| word.len() > 1 && word.starts_with(b"-");
    let is_text = |word: &Vec<u8>| !word.starts_with(b"--") && word.contains(&b'c');
    if call.args.iter().take_while(is_option).any(is_text) {
        return None;
    }
    call.args.iter().find(|word| !word.starts_with(b"-") && !word.starts_with(b"+")).map(Vec::as_slice)
}

/// The program that the first line of a script names.
fn interpreter(start: &[u8]) -> Option<&[u8]> {
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    line.split(|byte| matches!(byte, b' ' | b'\t')).find(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};
    use vmbake_manifest::LayerGrants;

    use super::*;
    use crate::merge::database::Database;
    use crate::merge::maintainer::{self, Ran};
    use crate::merge::unit_grants::BundleLayers;

    const SEARCHED: &str = "/usr/local/sbin";

    /// A tree to which a bundle with `granted` paths has added programs and links, before the script of a package in `layer` runs.
    fn ran(granted: &str, layer: &str, files: &[(&str, &str)], script: &str) -> Result<Ran, String> {
        let tree = Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default());
        let mut target = Target::new(tree, Timestamp::default());
        let origin = |layer: &str| Origin { layer: layer.to_owned(), ..Origin::default() };
        let meta = target.meta(0o755);
        target.enter(origin("base"));
        for path in ["/usr/bin/rm", "/usr/bin/deb-systemd-helper", "/usr/bin/dash", "/etc/default/own"] {
            target.file(path, meta.clone(), Vec::new()).unwrap();
        }
        target.symlink("/usr/bin/sh", "dash").unwrap();
        target.symlink("/bin", "usr/bin").unwrap();
        target.enter(origin("acme.a"));
        for (path, content) in files {
            match content.strip_prefix("-> ") {
                Some(to) => target.symlink(path, to).unwrap(),
                None => target.file(path, meta.clone(), content.as_bytes().to_vec()).unwrap(),
            }
        }
        let grants = LayerGrants { paths: vec![granted.to_owned()], ..LayerGrants::default() };
        target.grants = BTreeMap::from([("acme.a".to_owned(), grants)]);
        let layers = BTreeSet::from(["acme.a".to_owned(), "acme.b".to_owned()]);
        target.bundles = BundleLayers::named("acme.agent", layers);
        target.enter(origin(layer));
        let mut database = Database::read(&target, "amd64").unwrap();
        let (source, args) = (script.as_bytes(), &["configure", ""]);
        let call = maintainer::Call {
            package: "p",
            stem: "p",
            arch: "amd64",
            script: "postinst",
            source,
            args,
            control: None,
        };
        maintainer::run(&mut target, &mut database, &call).map_err(|error| error.to_string())
    }

    const HOSTILE: &str = "#!/bin/sh\necho x >/etc/pwned\n";

    #[test]
    fn programs_of_bundles_are_not_run_by_packages_of_other_layers() {
        for (path, content, script) in [
            ("/usr/local/sbin/deb-systemd-helper", HOSTILE, "deb-systemd-helper enable x.service"),
            ("/usr/local/sbin/rm", HOSTILE, "rm -f /x"),
            ("/usr/local/bin/rm", "-> /usr/bin/dash", "rm -f /x"),
            ("/usr/bin/rm", HOSTILE, "rm -f /x"),
            ("/usr/bin/rm", "\u{7f}ELF", "rm -f /x"),
            ("/usr/bin/rm", HOSTILE, "/bin/rm -f /x"),
            ("/usr/local/sbin/rm", HOSTILE, "env rm -f /x"),
            ("/usr/local/sbin/rm", HOSTILE, "echo /x | xargs rm -f"),
            ("/usr/local/sbin/rm", HOSTILE, "rm -f /x || true"),
            ("/etc/default/x", "X=1\n", ". /etc/default/x"),
            ("/etc/default/x", "X=1\n", "cd /etc; . default/x"),
            ("/etc/default/x", "-> own", ". /etc/default/x"),
            ("/etc/default/own", "X=1\n", ". /etc/default/own"),
            ("/etc/hook", HOSTILE, "/etc/hook"),
            ("/etc/hook", HOSTILE, "sh -e /etc/hook"),
            ("/etc/hook", HOSTILE, "if [ -x /etc/hook ]; then /etc/hook; fi"),
            ("/usr/bin/sh", "\u{7f}ELF", ":"),
            ("/var/lib/dpkg/info/p.postinst", "", ":"),
        ] {
            let found = ran(SEARCHED, "node", &[(path, content)], &format!("#!/bin/sh\n{script}\n"));
            let expected = format!(
                "p: its postinst would run {path}, which layer acme.a of bundle acme.agent installed, in the name of p"
            );
            // /bin is a link.
            let found = found.map_err(|error| error.replace("run /bin/", "run /usr/bin/"));
            assert_eq!(found, Err(expected), "{script}");
        }
    }

    #[test]
    fn data_of_bundles_and_other_programs_are_used() {
        let files = [("/etc/x.conf", "X=1\n"), ("/usr/local/sbin/mv", HOSTILE), ("/opt/dir", "-> /usr")];
        for script in [
            "rm -f /x",
            "deb-systemd-helper was-enabled x.service || true",
            ". /etc/default/own",
            "grep -q X /etc/x.conf; cat /etc/x.conf >/etc/y",
            "sh -c 'true' /etc/x.conf",
            "test -x /usr/local/sbin/mv",
            "mkdir -p /opt/dir/y",
        ] {
            let found = ran(SEARCHED, "node", &files, &format!("#!/bin/sh\n{script}\n"));
            assert_eq!(found, Ok(Ran::Done), "{script}");
        }
        let own = [("/usr/local/sbin/tool", "#!/bin/sh\n:\n")];
        // The bundle's own packages, and bundles that may write everything.
        for (granted, layer) in [(SEARCHED, "acme.a"), (SEARCHED, "acme.b"), ("/", "node")] {
            assert_eq!(ran(granted, layer, &own, "#!/bin/sh\ntool\n"), Ok(Ran::Done), "{granted} {layer}");
        }
    }
}
