//! Package relations (Debian Policy 7, deb-control(5)): whether everything that is going to be installed fits together.

use debversion::Version;

use super::MergeError;
use super::status::Status;
use crate::compose::stage::{Control, StagedArtifact, StagedContent};

/// A package, real or provided.
struct Present<'a> {
    /// The package that is it, or provides it.
    owner: &'a Control,
    name: String,
    /// None where it is provided without one.
    version: Option<String>,
}

/// Checks `Depends`, `Pre-Depends`, `Conflicts` and `Breaks` of all packages to be installed against those of the base
/// and each other, and of the base's against them. What they take the place of does not count.
pub(super) fn check(status: &Status, artifacts: &[StagedArtifact]) -> Result<(), MergeError> {
    let new: Vec<&Control> = artifacts
        .iter()
        .filter_map(|artifact| match &artifact.content {
            StagedContent::Deb(deb) => Some(&deb.control),
            _ => None,
        })
        .collect();
    if new.is_empty() {
        return Ok(());
    }
    let stays = |old: &&Control| !new.iter().any(|control| name(control) == name(old));
    let old: Vec<&Control> = status.installed().filter(stays).collect();
    let there: Vec<&Control> = status.unpacked().filter(stays).collect();
    let all = presents(old.iter().chain(&new).copied())?;
    let fresh = presents(new.iter().copied())?;
    let met = presents(there.iter().chain(&new).copied())?;
    for control in &new {
        if let Some(relation) = unmet(control, &all)?.into_iter().next() {
            return Err(MergeError::Depends { package: name(control).to_owned(), relation });
        }
        avoids(control, &met)?;
        parse(control, "Replaces")?;
    }
    there.iter().try_for_each(|control| avoids(control, &fresh))?;
    match status.installed().count() == old.len() {
        true => Ok(()),
        false => keeps(&old, &presents(status.installed())?, &all),
    }
}

/// Fails where a package of the base needs what only an earlier version of an upgraded package was. What it did not have
/// before either is nothing that a bake took away.
fn keeps(old: &[&Control], before: &[Present<'_>], after: &[Present<'_>]) -> Result<(), MergeError> {
    for control in old {
        let lost = unmet(control, after)?;
        let lacked = if lost.is_empty() { Vec::new() } else { unmet(control, before)? };
        if let Some(relation) = lost.into_iter().find(|relation| !lacked.contains(relation)) {
            return Err(MergeError::Loses { package: name(control).to_owned(), relation });
        }
    }
    Ok(())
}

/// Whether `new` may take files of `old`: its `Replaces` names it, and its version fits.
pub(super) fn replaces(new: &Control, old: &Control) -> Result<bool, MergeError> {
    let version = old.get("Version").map(str::to_owned);
    let present = Present { owner: old, name: name(old).to_owned(), version };
    Ok(parse(new, "Replaces")?.iter().flatten().any(|relation| relation.matches(&present)))
}

fn name(control: &Control) -> &str {
    control.get("Package").unwrap_or_default()
}

/// The packages themselves and what they provide: a provision is of one version or of none.
fn presents<'a>(controls: impl Iterator<Item = &'a Control>) -> Result<Vec<Present<'a>>, MergeError> {
    let mut all = Vec::new();
    for owner in controls {
        let version = owner.get("Version").map(str::to_owned);
        all.push(Present { owner, name: name(owner).to_owned(), version });
        for provided in parse(owner, "Provides")?.into_iter().flatten() {
            let version = match provided.version {
                Some((Operator::Equal, version)) => Some(version),
                Some(_) => continue,
                None => None,
            };
            all.push(Present { owner, name: provided.name, version });
        }
    }
    Ok(all)
}

/// What a package needs and `present` has not.
fn unmet(control: &Control, present: &[Present<'_>]) -> Result<Vec<String>, MergeError> {
    let mut unmet = Vec::new();
    for field in ["Pre-Depends", "Depends"] {
        for group in parse(control, field)? {
            let meets = |relation: &Relation| {
                present.iter().any(|found| relation.matches(found) && relation.fits_architecture(control, found.owner))
            };
            if !group.iter().any(meets) {
                unmet.push(group.iter().map(|relation| relation.text.as_str()).collect::<Vec<_>>().join(" | "));
            }
        }
    }
    Ok(unmet)
}

fn avoids(control: &Control, present: &[Present<'_>]) -> Result<(), MergeError> {
    for field in ["Conflicts", "Breaks"] {
        for relation in parse(control, field)?.iter().flatten() {
            // A package never conflicts with itself, nor with what it provides itself.
            let others = present.iter().filter(|found| name(found.owner) != name(control));
            if let Some(found) = others.into_iter().find(|found| relation.matches(found)) {
                let found = found.owner.get("Version").unwrap_or_default().to_owned();
                let (package, relation) = (name(control).to_owned(), relation.text.clone());
                return Err(MergeError::Conflicts { package, relation, found });
            }
        }
    }
    Ok(())
}

/// The groups of a field, each of which one of its relations satisfies.
fn parse(control: &Control, field: &'static str) -> Result<Vec<Vec<Relation>>, MergeError> {
    let text = control.get(field).unwrap_or_default();
    let group = |group: &str| group.split('|').map(Relation::parse).collect::<Option<Vec<_>>>();
    let groups = text.split(',').filter(|group| !group.trim().is_empty());
    let parsed: Option<Vec<_>> = groups.map(group).collect();
    parsed.ok_or_else(|| MergeError::Relation { package: name(control).to_owned(), field, text: text.to_owned() })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Earlier,
    EarlierOrEqual,
    Equal,
    LaterOrEqual,
    Later,
}

/// One relation: a name, perhaps an architecture, and a comparison with a version.
#[derive(Debug, PartialEq, Eq)]
struct Relation {
    text: String,
    name: String,
    arch: Option<String>,
    version: Option<(Operator, String)>,
}

impl Relation {
    /// `name[:arch] [(<op> version)]`, and nothing else: binary packages have no lists of architectures or profiles.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (head, rest) = text.split_at(text.find([' ', '\t', '\n', '(']).unwrap_or(text.len()));
        let (name, arch) = head.split_once(':').map_or((head, None), |(name, arch)| (name, Some(arch)));
        let plain = |word: &str| {
            word.starts_with(|c: char| c.is_ascii_alphanumeric())
                && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        };
        if !plain(name) || !arch.is_none_or(plain) {
            return None;
        }
        let version = match rest.trim() {
            "" => None,
            rest => Some(comparison(rest.strip_prefix('(')?.strip_suffix(')')?.trim())?),
        };
        Some(Self { text: text.to_owned(), name: name.to_owned(), arch: arch.map(str::to_owned), version })
    }

    /// Whether a present package satisfies the relation. An unversioned provision satisfies no versioned one.
    fn matches(&self, candidate: &Present<'_>) -> bool {
        if self.name != candidate.name {
            return false;
        }
        let Some((operator, wanted)) = &self.version else { return true };
        let found = candidate.version.as_ref().and_then(|version| version.parse::<Version>().ok());
        let (Some(found), Ok(wanted)) = (found, wanted.parse::<Version>()) else { return false };
        match operator {
            Operator::Earlier => found < wanted,
            Operator::EarlierOrEqual => found <= wanted,
            Operator::Equal => found == wanted,
            Operator::LaterOrEqual => found >= wanted,
            Operator::Later => found > wanted,
        }
    }

    /// Whether a dependency of `package` may be satisfied by `found`, as dpkg has it: `all` counts as the image's
    /// architecture, `:any` needs `Multi-Arch: allowed`, and `Multi-Arch: foreign` serves whoever names none.
    fn fits_architecture(&self, package: &Control, found: &Control) -> bool {
        let arch = |control: &Control| control.get("Architecture").unwrap_or_default().to_owned();
        let (mine, theirs, kind) = (arch(package), arch(found), found.get("Multi-Arch").unwrap_or_default());
        match self.arch.as_deref() {
            Some("any") => kind == "allowed",
            Some(wanted) if wanted != "native" => wanted == theirs || theirs == "all",
            _ => kind == "foreign" || mine == theirs || mine == "all" || theirs == "all",
        }
    }
}

/// `<op> version`. The old `<` and `>` mean `<=` and `>=`, and no operator means `=`.
fn comparison(text: &str) -> Option<(Operator, String)> {
    let (operator, version) = text.split_at(text.find(|c| !matches!(c, '<' | '>' | '=')).unwrap_or(text.len()));
    let operator = match operator {
        "<<" => Operator::Earlier,
        "<=" | "<" => Operator::EarlierOrEqual,
        "=" | "" => Operator::Equal,
        ">=" | ">" => Operator::LaterOrEqual,
        ">>" => Operator::Later,
        _ => return None,
    };
    let version = version.trim();
    version.parse::<Version>().ok().filter(|_| !version.contains(char::is_whitespace))?;
    Some((operator, version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::have;

    #[test]
    fn relations_compare_versions_as_dpkg() {
        let owner = Control::default();
        let present = |version: Option<&str>| Present {
            owner: &owner,
            name: "libc6".to_owned(),
            version: version.map(str::to_owned),
        };
        for (text, version, expected) in [
            ("libc6", Some("2.41-12"), true),
            ("libc6 (>= 2.38)", Some("2.41-12"), true),
            ("libc6:any(>=2.41-12)", Some("2.41-12"), true),
            ("libc6 (>> 2.41-12)", Some("2.41-12"), false),
            ("libc6 (<< 2.41~)", Some("2.41~rc1"), false),
            ("libc6 (>= 1:1)", Some("2.41"), false),
            ("libc6 (2.41)", Some("2.41"), true),
            ("libc6 (< 2.41)", Some("2.41"), true),
            ("libc6 (= 2.41)", None, false),
            ("libc7", Some("2.41"), false),
        ] {
            assert_eq!(Relation::parse(text).unwrap().matches(&present(version)), expected, "{text} {version:?}");
        }
    }

    #[test]
    fn what_is_no_relation_of_a_binary_package() {
        for text in
            ["", "a b", "a (", "a (>= 1", "a (=> 1)", "a (>= )", "a [amd64]", "a <!nocheck>", "a (>= 1) x", "_", "a:"]
        {
            assert_eq!(Relation::parse(text), None, "{text}");
        }
    }

    #[test]
    fn architectures_fit_as_dpkg_has_it() {
        let control = |arch: &str, multi: &str| {
            Control::parse(&format!("Package: x\nArchitecture: {arch}\nMulti-Arch: {multi}\n")).unwrap()
        };
        for (relation, found, multi, expected) in [
            ("x", "amd64", "no", true),
            ("x", "all", "no", true),
            ("x", "arm64", "no", false),
            ("x", "arm64", "foreign", true),
            ("x:any", "amd64", "same", false),
            ("x:any", "arm64", "allowed", true),
            ("x:native", "amd64", "no", true),
            ("x:amd64", "all", "no", true),
            ("x:arm64", "amd64", "foreign", false),
        ] {
            let relation = Relation::parse(relation).unwrap();
            let fits = relation.fits_architecture(&control("amd64", "no"), &control(found, multi));
            assert_eq!(fits, expected, "{relation:?} {found} {multi}");
        }
    }

    /// Versions of every shape, each with each.
    #[test]
    fn dpkg_orders_versions_in_the_same_way() {
        if !have(&["dpkg"]) {
            return;
        }
        let versions = ["1", "1.0", "1.0-0", "0:1", "1:0.1", "1~", "1~~a", "1~rc1-1", "1a", "1+b1", "1.0-1+deb13u1"];
        let versions = [versions.as_slice(), &["1.0-1~deb13u1", "1.01", "1-1-1", "10", "9", "1.a", "1.+"]].concat();
        let owner = Control::default();
        for (found, wanted) in versions.iter().flat_map(|found| versions.iter().map(move |wanted| (found, wanted))) {
            let mut dpkg = std::process::Command::new("dpkg");
            let expected = dpkg.args(["--compare-versions", found, "lt", wanted]).status().unwrap().success();
            let present = Present { owner: &owner, name: "x".to_owned(), version: Some((*found).to_owned()) };
            let relation = Relation::parse(&format!("x (<< {wanted})")).unwrap();
            assert_eq!(relation.matches(&present), expected, "{found} << {wanted}");
        }
    }
}
