//! Formats of `--showformat`: text with fields in `${…}`.

use super::packages::Package;
use crate::merge::MergeError;
use crate::merge::maintainer::system::System;
use crate::merge::owners::INFO;

/// A part of a format.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// A field, and the width of its column: to the left where it is negative.
    Field(String, i32),
}

pub(super) struct Format(Vec<Part>);

/// No column is wider.
const WIDEST: i32 = 10_000;

impl Format {
    /// Default format of packages.
    pub(super) fn plain() -> Self {
        let field = |name: &str| Part::Field(name.to_owned(), 0);
        let text = |text: &str| Part::Text(text.to_owned());
        Self(vec![field("binary:Package"), text("\t"), field("Version"), text("\n")])
    }

    /// `None` where dpkg-query would not take it either.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (mut parts, mut plain) = (Vec::new(), String::new());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if let Some(inner) = rest.strip_prefix("${") {
                let (field, after) = inner.split_once('}')?;
                let (name, width) = field.split_once(';').map_or(Some((field, 0)), |(name, width)| {
                    Some((name, width.parse().ok().filter(|width: &i32| width.abs() <= WIDEST)?))
                })?;
                parts.push(Part::Text(std::mem::take(&mut plain)));
                parts.push(Part::Field(name.to_owned(), width));
                rest = after;
            } else if let Some(escaped) = rest.strip_prefix('\\') {
                let letter = escaped.chars().next()?;
                plain.push(match letter {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    other => other,
                });
                rest = escaped.get(letter.len_utf8()..)?;
            } else {
                plain.push(first);
                rest = rest.get(first.len_utf8()..)?;
            }
        }
        parts.push(Part::Text(plain));
        Some(Self(parts))
    }

    /// What it makes of a package.
    pub(super) fn of(&self, system: &System<'_, '_>, package: &Package<'_>) -> Result<String, MergeError> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(plain) => text += plain,
                Part::Field(name, width) => text += &column(&field(system, package, name)?, *width),
            }
        }
        Ok(text)
    }
}

fn column(text: &str, width: i32) -> String {
    let columns = usize::try_from(width.unsigned_abs()).unwrap_or_default();
    if width < 0 { format!("{text:<columns$}") } else { format!("{text:>columns$}") }
}

/// A field of the stanza, or one that dpkg computes; what is not known is empty.
fn field(system: &System<'_, '_>, package: &Package<'_>, name: &str) -> Result<String, MergeError> {
    let raw = |name: &str| package.field(name).unwrap_or_default().trim_start_matches('\n').to_owned();
    Ok(match name.to_ascii_lowercase().as_str() {
        "package" => package.name().to_owned(),
        "binary:package" => package.shown(system),
        "binary:summary" | "binary:synopsis" => raw("Description").lines().next().unwrap_or_default().to_owned(),
        "status" => package.status(),
        "db:status-abbrev" => package.letters(),
        "db:status-want" => package.want().to_owned(),
        "db:status-status" => package.state().to_owned(),
        "db:status-eflag" => package.flag().to_owned(),
        "db-fsys:files" => {
            let list = system.target().text_or_empty(&format!("{INFO}/{}.list", package.stem()))?;
            list.lines().map(|line| format!(" {line}\n")).collect()
        }
        "source:package" => source(package).0,
        "source:version" => source(package).1,
        "source:upstream-version" => upstream(&source(package).1).to_owned(),
        _ => raw(name),
    })
}

/// The source package and its version: where they are not said, they are the package's own.
fn source(package: &Package<'_>) -> (String, String) {
    let (name, version) = (package.name(), package.field("Version").unwrap_or_default());
    let Some(source) = package.field("Source") else { return (name.to_owned(), version.to_owned()) };
    let (name, other) = source.split_once(' ').unwrap_or((source, ""));
    let other = other.trim_matches(['(', ')', ' ']);
    (name.to_owned(), if other.is_empty() { version } else { other }.to_owned())
}

/// A version without its epoch and the revision of Debian.
fn upstream(version: &str) -> &str {
    let version = version.split_once(':').map_or(version, |(_, version)| version);
    version.rsplit_once('-').map_or(version, |(upstream, _)| upstream)
}
