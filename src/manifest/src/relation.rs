//! Relations between packages (Debian Policy 7, deb-control(5)): parses a field to groups of alternatives.

use debversion::Version;

/// A relation: a name with optional architecture and version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    pub text: String,
    /// The real or virtual package.
    pub name: String,
    /// The qualifier after a colon: an architecture, `any` or `native`.
    pub arch: Option<String>,
    /// The version constraint; absent means any.
    pub version: Option<(Operator, Version)>,
}

/// An operator of a version constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `<<`
    Earlier,
    /// `<=`
    EarlierOrEqual,
    /// `=`
    Equal,
    /// `>=`
    LaterOrEqual,
    /// `>>`
    Later,
}

/// The groups of a field, of each of which one relation must be satisfied; `None` if the field is invalid.
pub fn groups(text: &str) -> Option<Vec<Vec<Relation>>> {
    let group = |group: &str| group.split('|').map(Relation::parse).collect::<Option<Vec<_>>>();
    text.split(',').filter(|group| !group.trim().is_empty()).map(group).collect()
}

/// The text of a group.
pub fn text(group: &[Relation]) -> String {
    group.iter().map(|relation| relation.text.as_str()).collect::<Vec<_>>().join(" | ")
}

/// Whether a word is a valid name of a package or an architecture.
pub fn is_word(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

impl Relation {
    /// Parses `name[:arch] [(<op> version)]` only: binary packages have no lists of architectures or profiles.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (head, rest) = text.split_at(text.find([' ', '\t', '\n', '(']).unwrap_or(text.len()));
        let (name, arch) = head.split_once(':').map_or((head, None), |(name, arch)| (name, Some(arch)));
        if !is_word(name) || !arch.is_none_or(is_word) {
            return None;
        }
        let version = match rest.trim() {
            "" => None,
            rest => Some(comparison(rest.strip_prefix('(')?.strip_suffix(')')?.trim())?),
        };
        Some(Self { text: text.to_owned(), name: name.to_owned(), arch: arch.map(str::to_owned), version })
    }

    /// Whether a version satisfies the relation. An unversioned provision satisfies unversioned relations only.
    pub fn accepts(&self, version: Option<&Version>) -> bool {
        let Some((operator, wanted)) = &self.version else { return true };
        let Some(found) = version else { return false };
        match operator {
            Operator::Earlier => found < wanted,
            Operator::EarlierOrEqual => found <= wanted,
            Operator::Equal => found == wanted,
            Operator::LaterOrEqual => found >= wanted,
            Operator::Later => found > wanted,
        }
    }

    /// Whether a package of the architecture `theirs` with that `Multi-Arch` may satisfy a dependency of a package of
    /// the architecture `mine`, as in dpkg: `all` counts as the image's architecture, `:any` requires `Multi-Arch:
    /// allowed`, and `Multi-Arch: foreign` satisfies unqualified dependencies.
    pub fn fits_architecture(&self, mine: &str, theirs: &str, multi_arch: &str) -> bool {
        match self.arch.as_deref() {
            Some("any") => multi_arch == "allowed",
            Some(wanted) if wanted != "native" => wanted == theirs || theirs == "all",
            _ => multi_arch == "foreign" || mine == theirs || mine == "all" || theirs == "all",
        }
    }
}

/// Parses `<op> version`. The old `<` and `>` mean `<=` and `>=`, and no operator means `=`.
fn comparison(text: &str) -> Option<(Operator, Version)> {
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
    let parsed = version.parse::<Version>().ok().filter(|_| !version.contains(char::is_whitespace))?;
    Some((operator, parsed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::have;

    fn accepts(relation: &str, version: Option<&str>) -> bool {
        let version: Option<Version> = version.map(|version| version.parse().unwrap());
        Relation::parse(relation).unwrap().accepts(version.as_ref())
    }

    #[test]
    fn relations_compare_versions_as_dpkg() {
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
            ("libc6", None, true),
        ] {
            assert_eq!(accepts(text, version), expected, "{text} {version:?}");
        }
    }

    #[test]
    fn what_is_no_relation_of_a_binary_package() {
        for text in
            ["", "a b", "a (", "a (>= 1", "a (=> 1)", "a (>= )", "a [amd64]", "a <!nocheck>", "a (>= 1) x", "_", "a:"]
        {
            assert_eq!(Relation::parse(text), None, "{text}");
        }
        assert_eq!(
            groups("a | b (>= 1), c,\n d").map(|groups| groups.iter().map(Vec::len).collect()),
            Some(vec![2, 1, 1])
        );
        assert_eq!(groups("a | , b"), None);
    }

    #[test]
    fn architectures_fit_as_dpkg_has_it() {
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
            assert_eq!(relation.fits_architecture("amd64", found, multi), expected, "{relation:?} {found} {multi}");
        }
    }

    /// All pairs of versions of various forms.
    #[test]
    fn dpkg_orders_versions_in_the_same_way() {
        if !have(&["dpkg"]) {
            return;
        }
        let versions = ["1", "1.0", "1.0-0", "0:1", "1:0.1", "1~", "1~~a", "1~rc1-1", "1a", "1+b1", "1.0-1+deb13u1"];
        let versions = [versions.as_slice(), &["1.0-1~deb13u1", "1.01", "1-1-1", "10", "9", "1.a", "1.+"]].concat();
        for (found, wanted) in versions.iter().flat_map(|found| versions.iter().map(move |wanted| (found, wanted))) {
            let mut dpkg = std::process::Command::new("dpkg");
            let expected = dpkg.args(["--compare-versions", found, "lt", wanted]).status().unwrap().success();
            assert_eq!(accepts(&format!("x (<< {wanted})"), Some(found)), expected, "{found} << {wanted}");
        }
    }
}
