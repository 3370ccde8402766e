//! Resolves a path on a machine: only the links of the merged `/usr` are followed.

use super::machine::Found;

/// Directories that Debian merged into `/usr`.
const MERGED: [&str; 6] = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// A resolved path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResolvedPath {
    /// The path without links.
    pub(super) path: String,
    /// Missing parents, uppermost first.
    pub(super) missing: Vec<String>,
}

/// Paths that determine the resolution of `path`: itself and all parents, also below `/usr`.
pub(super) fn questions(path: &str) -> impl Iterator<Item = String> {
    let merged = merged(path).then(|| format!("/usr{path}"));
    [Some(path.to_owned()), merged].into_iter().flatten().flat_map(|path| {
        let ends: Vec<usize> = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]).collect();
        ends.into_iter().map(move |end| path[..end].to_owned())
    })
}

/// Resolves `path`, or returns the obstacle.
pub(super) fn resolve(path: &str, found: &Found) -> Result<ResolvedPath, String> {
    let top = format!("/{}", path.split('/').nth(1).unwrap_or_default());
    let is_link = found.nodes.get(&top).is_some_and(|node| node.kind == "l" && node.target == format!("usr{top}"));
    let path = if merged(path) && is_link { format!("/usr{path}") } else { path.to_owned() };
    let mut missing = Vec::new();
    for (end, _) in path.match_indices('/').skip(1) {
        let above = &path[..end];
        match found.nodes.get(above) {
            None => missing.push(above.to_owned()),
            Some(node) if node.kind == "d" => {}
            Some(node) if node.kind == "l" => {
                return Err(format!("{above} is a symbolic link to {} on the machine", node.target));
            }
            Some(_) => return Err(format!("{above} is not a directory on the machine")),
        }
    }
    Ok(ResolvedPath { path, missing })
}

fn merged(path: &str) -> bool {
    let mut parts = path.split('/').skip(1);
    parts.next().is_some_and(|top| MERGED.contains(&top)) && parts.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::machine::FoundNode;

    fn found(nodes: &[(&str, &str, &str)]) -> Found {
        let node = |kind: &str, target: &str| FoundNode {
            kind: kind.to_owned(),
            target: target.to_owned(),
            ..FoundNode::default()
        };
        let nodes = nodes.iter().map(|(path, kind, target)| ((*path).to_owned(), node(kind, target))).collect();
        Found { nodes, ..Found::default() }
    }

    #[test]
    fn no_link_leads_elsewhere() {
        let machine = found(&[
            ("/lib", "l", "usr/lib"),
            ("/usr", "d", ""),
            ("/usr/lib", "d", ""),
            ("/opt", "d", ""),
            ("/opt/link", "l", "/etc"),
            ("/opt/file", "f", ""),
            ("/sbin", "l", "/evil"),
        ]);
        for (path, expected) in [
            ("/opt/a", Ok(("/opt/a", vec![]))),
            ("/lib/a/b/c", Ok(("/usr/lib/a/b/c", vec!["/usr/lib/a", "/usr/lib/a/b"]))),
            ("/srv/a", Ok(("/srv/a", vec!["/srv"]))),
            ("/opt/link/a", Err("/opt/link is a symbolic link to /etc on the machine")),
            ("/opt/file/a", Err("/opt/file is not a directory on the machine")),
            ("/sbin/a", Err("/sbin is a symbolic link to /evil on the machine")),
        ] {
            let expected = expected.map_err(str::to_owned).map(|(path, missing)| ResolvedPath {
                path: path.to_owned(),
                missing: missing.into_iter().map(str::to_owned).collect(),
            });
            assert_eq!(resolve(path, &machine), expected, "{path}");
        }
        assert_eq!(questions("/lib/a").collect::<Vec<_>>(), ["/lib", "/lib/a", "/usr", "/usr/lib", "/usr/lib/a"]);
        assert_eq!(questions("/a").collect::<Vec<_>>(), ["/a"]);
    }
}
