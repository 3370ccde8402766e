//! The differences as printed by `--json`, and their rendering as text.

use std::fmt;

use serde::Serialize;

use vmbake_common::escape;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Paths of the root file systems, sorted.
    pub paths: Vec<PathChange>,
    /// Packages by name and architecture, with versions.
    pub packages: Vec<Change>,
    /// Artifacts of the embedded manifests, and `os.image`, with versions and digests.
    pub artifacts: Vec<Change>,
    /// Layers of the embedded records of origins, with versions and digests.
    pub layers: Vec<Change>,
    /// Parts that could not be compared, and why.
    pub notes: Vec<String>,
}

/// A path that differs between the images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathChange {
    pub path: String,
    /// `added`, `removed` or `changed`.
    pub change: &'static str,
    /// Its type; the new one if it changed.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Differences, if it is in both images.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<Property>,
}

/// A different property of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Property {
    /// `type`, `mode`, `owner`, `size`, `target`, `device`, `names` (how many hard links), `mtime`, `xattr` or `content`.
    pub name: &'static str,
    /// Value in the first image; contents are not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Value in the second image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// A named entry that differs between the images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    pub name: String,
    /// Value in the first image; absent if added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Value in the second image; absent if removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl Difference {
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.packages.is_empty() && self.artifacts.is_empty() && self.layers.is_empty()
    }

    /// A one-line summary.
    pub fn summary(&self) -> String {
        let paths = |change| self.paths.iter().filter(|path| path.change == change).count();
        let (added, removed, changed) = (paths("added"), paths("removed"), paths("changed"));
        let [packages, artifacts, layers] = [&self.packages, &self.artifacts, &self.layers].map(Vec::len);
        format!(
            "paths: {added} added, {removed} removed, {changed} changed; \
             packages: {packages}; artifacts: {artifacts}; layers: {layers}"
        )
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.paths.iter().try_for_each(|path| writeln!(f, "{path}"))?;
        for (what, changes) in [("package", &self.packages), ("artifact", &self.artifacts), ("layer", &self.layers)] {
            changes.iter().try_for_each(|change| writeln!(f, "{what} {change}"))?;
        }
        Ok(())
    }
}

impl fmt::Display for PathChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<7} {}", self.change, self.path)?;
        if self.properties.is_empty() {
            return write!(f, " ({})", self.kind);
        }
        let properties: Vec<String> = self.properties.iter().map(ToString::to_string).collect();
        write!(f, ": {}", properties.join("; "))
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.name)?;
        match (&self.from, &self.to) {
            (None, Some(to)) if self.name == "content" => f.write_str(to),
            (from, to) => write_both(f, from.as_deref(), to.as_deref()),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.from.as_deref().map(escape::line), self.to.as_deref().map(escape::line));
        write!(f, "{}: ", escape::line(&self.name))?;
        write_both(f, from.as_deref(), to.as_deref())
    }
}

fn write_both(f: &mut fmt::Formatter<'_>, from: Option<&str>, to: Option<&str>) -> fmt::Result {
    write!(f, "{} -> {}", from.unwrap_or("none"), to.unwrap_or("none"))
}
