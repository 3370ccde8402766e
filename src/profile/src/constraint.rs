//! `semverCompare`: a constraint and a version in, whether they match out.
//!
//! The grammar is that of Masterminds/semver 3.4, which OSM uses: groups of comparators separated by `||`, of which one must match
//! completely; comparators are separated by a comma or a space; `=`, `!=`, `>`, `<`, `>=`, `<=`, `~`, `^`, a range `1.2 - 1.4`; `x` or
//! nothing for parts that are ignored. A pre-release matches only a group with a comparator that has a pre-release. Stricter in one case: a
//! range whose end touches `||` is refused, since Masterminds parses it differently.

use std::cmp::Ordering;
use std::fmt;

use vmbake_common::semver::prerelease_order;

/// Longest constraint, in bytes.
const MAX_CONSTRAINT: usize = 256;
/// Longest spellings first.
const OPERATORS: [(&str, Operator); 12] = [
    ("!=", Operator::NotEqual),
    (">=", Operator::AtLeast),
    ("=>", Operator::AtLeast),
    ("<=", Operator::AtMost),
    ("=<", Operator::AtMost),
    ("~>", Operator::Tilde),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("=", Operator::Equal),
    ("", Operator::Equal),
];

/// A version of semver.org, 2.0.0; what it was built from does not count in comparisons.
#[derive(Clone, Debug)]
pub(super) struct SemanticVersion {
    numbers: [u64; 3],
    prerelease: String,
    build: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    AtLeast,
    AtMost,
    Tilde,
    Caret,
}

/// From where on the numbers of a comparator do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wild {
    Never,
    Major,
    Minor,
    Patch,
}

/// A comparator: what a version must be like.
#[derive(Clone, Debug)]
struct Comparator {
    operator: Operator,
    version: SemanticVersion,
    wild: Wild,
}

/// Whether a version fits a constraint; none if one of them is not valid.
pub(super) fn fits(constraint: &str, version: &str) -> Option<bool> {
    let version = SemanticVersion::loose(version)?;
    if constraint.len() > MAX_CONSTRAINT {
        return None;
    }
    let groups: Vec<Vec<Comparator>> = constraint.split("||").map(group).collect::<Option<_>>()?;
    let after_range = constraint.match_indices("||").any(|(at, _)| ends_in_range(&constraint[..at]));
    let fits = |group: &Vec<Comparator>| {
        let is_welcome = version.prerelease.is_empty() || group.iter().any(|one| !one.version.prerelease.is_empty());
        is_welcome && group.iter().all(|one| one.admits(&version))
    };
    (!after_range).then(|| groups.iter().any(fits))
}

/// Whether a text ends in a range, with no space behind.
fn ends_in_range(text: &str) -> bool {
    let before = text.trim_end_matches(|char: char| !char.is_ascii_whitespace()).trim_end();
    !text.ends_with(|char: char| char.is_ascii_whitespace()) && before.ends_with(" -")
}

impl SemanticVersion {
    /// A version that may have a `v`, zeros before its numbers, and lack the last ones.
    pub(super) fn loose(text: &str) -> Option<Self> {
        let (version, _, is_whole) = Self::partial(text)?;
        is_whole.then_some(version)
    }

    /// A version as semver.org has it.
    pub(super) fn strict(text: &str) -> Option<Self> {
        let version = Self::loose(text)?;
        (version.to_string() == text).then_some(version)
    }

    /// A version of which parts may not count, from where on they do not, and whether no part says so itself.
    fn partial(text: &str) -> Option<(Self, Wild, bool)> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
        let (core, prerelease) = text.split_once('-').map_or((text, None), |(core, rest)| (core, Some(rest)));
        let parts: Vec<&str> = core.split('.').collect();
        let is_wild = |part: &&str| matches!(*part, "x" | "X" | "*");
        let is_part =
            |part: &&str| is_wild(part) || (!part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
        let has_names = |text: &str| text.split('.').all(is_identifier);
        if parts.len() > 3
            || !parts.iter().all(is_part)
            || !prerelease.is_none_or(|text| has_names(text) && !text.split('.').any(is_padded))
            || !build.is_none_or(has_names)
        {
            return None;
        }
        let counted = parts.iter().position(is_wild).unwrap_or(parts.len());
        let mut numbers = [0; 3];
        for (number, part) in numbers.iter_mut().zip(parts.iter().take(counted)) {
            *number = part.parse().ok()?;
        }
        let wild = match counted {
            0 => Wild::Major,
            1 => Wild::Minor,
            2 => Wild::Patch,
            _ => Wild::Never,
        };
        let [prerelease, build] = [prerelease, build].map(|text| text.unwrap_or_default().to_owned());
        Some((Self { numbers, prerelease, build }, wild, counted == parts.len()))
    }

    fn order(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| prerelease_order(&self.prerelease, &other.prerelease))
    }
}

impl fmt::Display for SemanticVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        for (sign, text) in [('-', &self.prerelease), ('+', &self.build)] {
            if !text.is_empty() {
                write!(f, "{sign}{text}")?;
            }
        }
        Ok(())
    }
}

impl Comparator {
    fn read(operator: Operator, text: &str) -> Option<Self> {
        let (version, wild, _) = SemanticVersion::partial(text)?;
        Some(Self { operator, version, wild })
    }

    fn admits(&self, version: &SemanticVersion) -> bool {
        let ([major, minor, patch], [its_major, its_minor, its_patch]) = (version.numbers, self.version.numbers);
        let (pair, its_pair) = ((major, minor), (its_major, its_minor));
        let order = version.order(&self.version);
        let same_prerelease = version.prerelease == self.version.prerelease;
        match (self.operator, self.wild) {
            (Operator::Equal, Wild::Never) => order.is_eq(),
            (Operator::NotEqual, Wild::Never | Wild::Major) => order.is_ne(),
            (Operator::NotEqual, Wild::Minor) => major != its_major,
            (Operator::NotEqual, Wild::Patch) => pair != its_pair || !same_prerelease,
            (Operator::Greater, Wild::Never | Wild::Major) => order.is_gt(),
            (Operator::Greater, Wild::Minor) => major > its_major,
            (Operator::Greater, Wild::Patch) => pair > its_pair,
            (Operator::Less, _) => order.is_lt(),
            (Operator::AtLeast, _) => order.is_ge(),
            (Operator::AtMost, Wild::Never) => order.is_le(),
            (Operator::AtMost, Wild::Minor) => major <= its_major,
            (Operator::AtMost, Wild::Major | Wild::Patch) => pair <= its_pair,
            (Operator::Tilde | Operator::Equal, Wild::Never | Wild::Major) if self.version.numbers == [0; 3] => {
                order.is_ge()
            }
            (Operator::Tilde | Operator::Equal, Wild::Minor) => order.is_ge() && major == its_major,
            (Operator::Tilde | Operator::Equal, _) => order.is_ge() && pair == its_pair,
            (Operator::Caret, Wild::Minor) => order.is_ge() && major == its_major,
            (Operator::Caret, _) if its_major > 0 => order.is_ge() && major == its_major,
            (Operator::Caret, Wild::Patch) => order.is_ge() && pair == its_pair,
            (Operator::Caret, _) if its_minor > 0 => order.is_ge() && pair == its_pair,
            (Operator::Caret, _) => order.is_ge() && pair == its_pair && patch == its_patch,
        }
    }
}

/// The comparators between two `||`.
fn group(text: &str) -> Option<Vec<Comparator>> {
    let (mut found, mut rest, mut after_comma) = (Vec::new(), text.trim_ascii(), true);
    loop {
        let (spelling, operator) = OPERATORS.iter().find(|(spelling, _)| rest.starts_with(spelling))?;
        let (version, after) = token(rest.get(spelling.len()..)?.trim_ascii_start());
        let tail = after.trim_ascii_start();
        rest = match tail.strip_prefix('-') {
            Some(end) if after.len() > tail.len() && end.starts_with(|char: char| char.is_ascii_whitespace()) => {
                let (last, after) = token(end.trim_ascii_start());
                if !spelling.is_empty() || !after_comma {
                    return None;
                }
                found.push(Comparator::read(Operator::AtLeast, version)?);
                found.push(Comparator::read(Operator::AtMost, last)?);
                after
            }
            _ => {
                found.push(Comparator::read(*operator, version)?);
                after
            }
        };
        let trimmed = rest.trim_ascii_start();
        if trimmed.is_empty() {
            return Some(found);
        }
        after_comma = trimmed.starts_with(',');
        if !after_comma && trimmed.len() == rest.len() {
            return None;
        }
        rest = trimmed.strip_prefix(',').unwrap_or(trimmed).trim_ascii_start();
    }
}

/// What could be a version at the beginning, and the rest.
fn token(text: &str) -> (&str, &str) {
    let is_inside = |char: char| char.is_ascii_alphanumeric() || ".*+-".contains(char);
    text.split_at(text.find(|char| !is_inside(char)).unwrap_or(text.len()))
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Whether it is a number with a zero before it, which no prerelease has.
fn is_padded(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_are_those_of_masterminds() {
        for (constraint, inside, outside) in [
            (">=1.29", &["1.29.0", "2.0.0"][..], &["1.28.9", "1.29.0-rc.1"][..]),
            ("<1.29", &["1.28.9", "v0.1"], &["1.29.0", "1.29.1", "1.28.0-rc.1"]),
            (">1.2", &["1.3.0", "2.0.0"], &["1.2.9"]),
            ("<=1.2", &["1.2.9", "0.9.9"], &["1.3.0"]),
            ("!=1.2", &["1.3.0"], &["1.2.9"]),
            ("~1.34.0", &["1.34.0", "1.34.9"], &["1.35.0", "1.33.9"]),
            ("~1", &["1.0.0", "1.9.0"], &["2.0.0"]),
            ("^1.2", &["1.2.0", "1.9.9"], &["2.0.0", "1.1.9"]),
            ("^0.2.3", &["0.2.3", "0.2.9"], &["0.3.0", "0.2.2"]),
            ("^0.0.3", &["0.0.3"], &["0.0.4"]),
            ("1.2 - 1.4", &["1.2.0", "1.4.9"], &["1.5.0", "1.1.9"]),
            ("1.x || 3", &["1.9.0", "3.1.4"], &["2.0.0"]),
            (">=1.2, <2 !=1.5.0", &["1.2.0", "1.5.1"], &["1.5.0", "2.0.0"]),
            ("*", &["0.0.0", "9.9.9"], &["1.0.0-a"]),
            (">=1.2.3-beta.2 <2", &["1.2.3-beta.10", "1.2.3", "1.3.0-a"], &["1.2.3-beta.1", "1.2.3-alpha"]),
            ("=v1.2.3+a", &["1.2.3", "1.2.3+b"], &["1.2.4"]),
        ] {
            let found =
                inside.iter().map(|version| (version, true)).chain(outside.iter().map(|version| (version, false)));
            found.for_each(|(version, fit)| {
                assert_eq!(fits(constraint, version), Some(fit), "{constraint:?} {version}")
            });
        }
    }

    #[test]
    fn what_is_no_constraint_or_version_fits_nothing() {
        let long = "1 ".repeat(MAX_CONSTRAINT);
        for constraint in [
            "",
            "a",
            "1.2.3.4",
            ">>1",
            "1 ||",
            "1 -2",
            ">1 - 2",
            "3 1 - 2",
            "1 - 2||3 - 4",
            "1.2.3-01",
            "99999999999999999999",
            &long,
        ] {
            assert_eq!(fits(constraint, "1.2.3"), None, "{constraint:?}");
        }
        for version in ["", "1.x", "1.2.3.4", "1.2.3-", "1..2", "-1", "latest"] {
            assert_eq!(fits("*", version), None, "{version:?}");
        }
    }
}
