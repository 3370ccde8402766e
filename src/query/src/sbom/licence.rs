//! License names of Debian's copyright files (DEP-5, "License field"): a synopsis in, an SPDX expression out.
//!
//! Names in the SPDX list are kept, regardless of case; Debian's names for licenses of that list are translated. All
//! others are custom licenses, for which the caller provides an identifier.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Debian's names that differ from SPDX, in lower case.
const ALIASES: &[(&str, &str)] = &[
    ("apache-1", "Apache-1.0"),
    ("apache-2", "Apache-2.0"),
    ("artistic", "Artistic-1.0-Perl"),
    ("artistic-2", "Artistic-2.0"),
    ("boost-1.0", "BSL-1.0"),
    ("cc0", "CC0-1.0"),
    ("expat", "MIT"),
    ("mpl-2", "MPL-2.0"),
    ("psf-2", "PSF-2.0"),
];

/// Families of the FSF with their versions, which SPDX spells with `-only` and `-or-later`; of those without invariant sections the
/// version stands in the middle.
const FAMILIES: [(&str, &str, &str); 5] = [
    ("gfdl-niv", "GFDL", "-no-invariants"),
    ("gfdl", "GFDL", ""),
    ("agpl", "AGPL", ""),
    ("lgpl", "LGPL", ""),
    ("gpl", "GPL", ""),
];

/// Maximum length of a license name, in bytes.
const MAX_NAME: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    And,
    Or,
}

impl Operator {
    fn of(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "and" => Some(Self::And),
            "or" | "and/or" | "|" => Some(Self::Or),
            _ => None,
        }
    }

    fn text(self) -> &'static str {
        if self == Self::And { " AND " } else { " OR " }
    }
}

/// An SPDX expression: one license, or several joined by one operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expression {
    operator: Option<Operator>,
    parts: BTreeSet<String>,
}

impl Expression {
    pub(super) fn one(id: String) -> Self {
        Self { operator: None, parts: BTreeSet::from([id]) }
    }

    /// Joins all of these with `AND`; `None` if empty.
    pub(super) fn all(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        let joined = Self::join(Operator::And, parts);
        (!joined.parts.is_empty()).then_some(joined)
    }

    fn join(operator: Operator, expressions: impl IntoIterator<Item = Self>) -> Self {
        let mut parts = BTreeSet::new();
        for one in expressions {
            match one.operator {
                Some(other) if other != operator && one.parts.len() > 1 => {
                    parts.insert(format!("({})", one.text()));
                }
                _ => parts.extend(one.parts),
            }
        }
        let operator = (parts.len() > 1).then_some(operator);
        Self { operator, parts }
    }

    pub(super) fn text(&self) -> String {
        let parts: Vec<&str> = self.parts.iter().map(String::as_str).collect();
        parts.join(self.operator.map_or("", Operator::text))
    }
}

/// Parses a synopsis. Names unknown to SPDX go to `unknown`, which returns an identifier. A synopsis
/// that cannot be parsed is one name.
pub(super) fn expression(synopsis: &str, unknown: &mut impl FnMut(&str) -> String) -> Expression {
    match tokens(synopsis) {
        Some(tokens) => parse(&tokens, unknown),
        None => one(synopsis, unknown),
    }
}

fn one(name: &str, unknown: &mut impl FnMut(&str) -> String) -> Expression {
    Expression::one(known(name).unwrap_or_else(|| unknown(name)))
}

/// A token of a synopsis. An operator after a comma binds less tightly than one without.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    Name(String),
    Operator(Operator, bool),
}

/// The alternating names and operators of a synopsis; `None` if they do not alternate. In a list such as `A, B and C` a comma is the operator that
/// comes next, and `and` at its end.
fn tokens(synopsis: &str) -> Option<Vec<Token>> {
    let mut reversed = Vec::new();
    let mut name = Vec::new();
    let mut next = Operator::And;
    let mut words = synopsis.split_whitespace().rev().peekable();
    while let Some(word) = words.next() {
        if let Some(operator) = Operator::of(word) {
            next = operator;
            let comma = words.peek().is_some_and(|word| word.ends_with(','));
            reversed.extend([finished(&mut name)?, Token::Operator(operator, comma)]);
        } else if word.ends_with(',') && !name.is_empty() {
            reversed.extend([finished(&mut name)?, Token::Operator(next, false)]);
            name.push(word);
        } else {
            name.push(word);
        }
    }
    reversed.push(finished(&mut name)?);
    reversed.reverse();
    Some(reversed)
}

/// Joins words to a name; the last word comes first.
fn finished(reversed: &mut Vec<&str>) -> Option<Token> {
    reversed.reverse();
    let name = std::mem::take(reversed).join(" ");
    let name = name.strip_suffix(',').unwrap_or(&name);
    (!name.is_empty() && !name.contains(',')).then(|| Token::Name(name.to_owned()))
}

fn parse(tokens: &[Token], unknown: &mut impl FnMut(&str) -> String) -> Expression {
    for (operator, comma) in
        [(Operator::Or, true), (Operator::And, true), (Operator::Or, false), (Operator::And, false)]
    {
        let is_here = |token: &Token| *token == Token::Operator(operator, comma);
        if tokens.iter().any(is_here) {
            let parts: Vec<_> = tokens.split(is_here).map(|part| parse(part, unknown)).collect();
            return Expression::join(operator, parts);
        }
    }
    match tokens.first() {
        Some(Token::Name(name)) => one(name, unknown),
        _ => one("", unknown),
    }
}

/// The SPDX identifier of a license.
fn known(name: &str) -> Option<String> {
    if name.len() > MAX_NAME {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    if let Some((licence, exception)) = lower.split_once(" with ") {
        let hyphened = exception.replace(" exception", "-exception");
        let mut exceptions = spdx::identifiers::EXCEPTIONS.iter().map(|known| known.name);
        let exception = exceptions.find(|known| known.eq_ignore_ascii_case(&hyphened))?;
        return Some(format!("{} WITH {}", known(licence)?, exception));
    }
    if let Some((_, id)) = ALIASES.iter().find(|(alias, _)| *alias == lower) {
        return Some((*id).to_owned());
    }
    if let Some(id) = family(&lower) {
        return Some(id);
    }
    match (list().get(&lower), lower.strip_suffix('+').and_then(|name| list().get(name))) {
        (Some(id), _) => Some((*id).to_owned()),
        (None, Some(id)) => Some(format!("{id}+")),
        (None, None) => None,
    }
}

/// `gpl-2+`, `lgplv2.1`, `gfdl-niv-1.3+`, `gpl-3.0-only`.
fn family(name: &str) -> Option<String> {
    let (prefix, base, middle) = FAMILIES.iter().find(|(prefix, ..)| name.starts_with(prefix))?;
    let rest = name.strip_prefix(prefix)?;
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    let rest = rest.strip_prefix('v').unwrap_or(rest);
    let (version, end) = match (rest.strip_suffix('+').or(rest.strip_suffix("-or-later")), rest.strip_suffix("-only")) {
        (Some(version), _) => (version, "or-later"),
        (None, Some(version)) => (version, "only"),
        (None, None) => (rest, "only"),
    };
    let version = if version.contains('.') { version.to_owned() } else { format!("{version}.0") };
    let id = format!("{base}-{version}{middle}-{end}");
    spdx::license_id(&id).map(|found| found.name.to_owned())
}

/// SPDX identifiers that are not deprecated, by lower case.
fn list() -> &'static BTreeMap<String, &'static str> {
    static LIST: OnceLock<BTreeMap<String, &'static str>> = OnceLock::new();
    LIST.get_or_init(|| {
        let names = spdx::identifiers::LICENSES.iter().map(|licence| licence.name);
        let current = names.filter_map(spdx::license_id).filter(|id| !id.is_deprecated());
        current.map(|id| (id.name.to_ascii_lowercase(), id.name)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(synopsis: &str) -> String {
        let text =
            expression(synopsis, &mut |name| format!("LicenseRef-{}", name.replace([' ', ',', '+'], "."))).text();
        spdx::Expression::parse(&text).unwrap_or_else(|error| panic!("{synopsis}: {text}: {error}"));
        text
    }

    #[test]
    fn synopses_become_expressions() {
        for (synopsis, expected) in [
            ("GPL-2+", "GPL-2.0-or-later"),
            ("GPL-3", "GPL-3.0-only"),
            ("LGPL-2.1+ or GPL-2", "GPL-2.0-only OR LGPL-2.1-or-later"),
            ("GFDL-NIV-1.3+", "GFDL-1.3-no-invariants-or-later"),
            ("Expat", "MIT"),
            ("BSD-3-clause", "BSD-3-Clause"),
            ("MPL-1.1+", "MPL-1.1+"),
            ("GPL-2+ with Classpath-exception-2.0", "GPL-2.0-or-later WITH Classpath-exception-2.0"),
            ("Apache-2.0 with LLVM exception", "Apache-2.0 WITH LLVM-exception"),
            ("GPL-2+ with OpenSSL exception", "LicenseRef-GPL-2..with.OpenSSL.exception"),
            ("A and B or C", "(LicenseRef-A AND LicenseRef-B) OR LicenseRef-C"),
            ("A or B, and C", "(LicenseRef-A OR LicenseRef-B) AND LicenseRef-C"),
            ("A or B, and C, or ISC", "((LicenseRef-A OR LicenseRef-B) AND LicenseRef-C) OR ISC"),
            ("ISC and ISC", "ISC"),
            ("public-domain", "LicenseRef-public-domain"),
            ("GPL-2, MIT", "GPL-2.0-only AND MIT"),
            ("A with B exception, ISC or MIT", "ISC OR LicenseRef-A.with.B.exception OR MIT"),
            ("GPL-2,MIT", "LicenseRef-GPL-2.MIT"),
            ("GPL-2 and , MIT", "LicenseRef-GPL-2.and...MIT"),
            ("or GPL-2", "LicenseRef-or.GPL-2"),
            ("GPL-9+", "LicenseRef-GPL-9."),
            ("GPL", "LicenseRef-GPL"),
        ] {
            assert_eq!(of(synopsis), expected, "{synopsis}");
        }
        let all = Expression::all(
            ["A or B", "ISC", "A or B", "MIT and ISC"].map(|one| expression(one, &mut |name| name.to_owned())),
        );
        assert_eq!(all.unwrap().text(), "(A OR B) AND ISC AND MIT");
        assert_eq!(Expression::all([]), None);
    }
}
