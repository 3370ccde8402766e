//! The files that pam-auth-update(8) writes: `/etc/pam.d/common-*`, and its state below `/var/lib/pam`.

use md5::Digest as _;

use super::managed::OfKind;
use super::profile::Profiles;

/// The lines around what is managed: above the first block, between both, above the second, and below.
pub(super) const PRIMARY: &str = "# here are the per-package modules (the \"Primary\" block)";
pub(super) const FALLBACK: &str = "# here's the fallback if no module succeeds";
pub(super) const ADDITIONAL: &str = "# and here are more per-package modules (the \"Additional\" block)";
pub(super) const END: &str = "# end of pam-auth-update config";

/// What the first block has where no profile has a line for it.
const PERMIT: &str = "[default=1]\t\t\tpam_permit.so\n";

/// One of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Auth,
    Account,
    Password,
    Session,
    Noninteractive,
}

impl Kind {
    pub(super) const ALL: [Self; 5] = [Self::Auth, Self::Account, Self::Password, Self::Session, Self::Noninteractive];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Account => "account",
            Self::Password => "password",
            Self::Session => "session",
            Self::Noninteractive => "session-noninteractive",
        }
    }

    /// The first word of its lines.
    pub(super) fn word(self) -> &'static str {
        if self == Self::Noninteractive { "session" } else { self.name() }
    }

    /// The start of the names of its fields in profiles.
    fn field(self) -> &'static str {
        match self {
            Self::Auth => "Auth",
            Self::Account => "Account",
            Self::Password => "Password",
            Self::Session => "Session",
            Self::Noninteractive => "Session-noninteractive",
        }
    }

    /// MD5 digests of what surrounds the blocks in the files of packages, and of those that only Debian 13 knows.
    fn pristine(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Auth => (&["8d4fe17e66ba25de16a117035d1396aa"], &[]),
            Self::Account => (&["3c0c362eaf3421848b679d63fd48c3fa"], &[]),
            Self::Password => (
                &[
                    "4d5c92d595a46b69cd61f18feb4c0574",
                    "50fce2113dfda83ac8bdd5a6e706caec",
                    "4bd7610f2e85f8ddaef79c7db7cb49eb",
                    "9ba753d0824276b44bcadfee1f87b6bc",
                ],
                &[],
            ),
            Self::Session => (
                &[
                    "f297c731a467822cbd86e1283263e8a3",
                    "240fb92986c885b327cdb21dd641da8c",
                    "4a25673e8b36f1805219027d3be02cd2",
                ],
                &["9e633425b1878897695217ecaf75e204"],
            ),
            Self::Noninteractive => (&["ad2b78ce1498dd637ef36469430b6ac6"], &["53c1ede0bf4c07879d3582d875917545"]),
        }
    }
}

/// What the files are made of.
pub(super) struct Writer<'a> {
    pub(super) profiles: &'a Profiles,
    pub(super) enabled: &'a [String],
    pub(super) is_13: bool,
}

impl Writer<'_> {
    /// Whether a file is that of a package, its blocks aside.
    pub(super) fn is_pristine(&self, kind: Kind, text: &str) -> bool {
        let (frame, _) = fill(text, |_| Ok(String::new())).unwrap_or_default();
        let digest: String = md5::Md5::digest(frame).iter().map(|byte| format!("{byte:02x}")).collect();
        let (all, of_13) = kind.pristine();
        all.contains(&digest.as_str()) || (self.is_13 && of_13.contains(&digest.as_str()))
    }

    /// Fills the blocks of a template. `None` where it lacks one of the lines around them.
    pub(super) fn file(&self, kind: Kind, template: &str, changes: &mut OfKind) -> Result<Option<String>, String> {
        let (text, is_whole) = fill(template, |block| self.block(kind, block, changes))?;
        Ok(is_whole.then_some(text))
    }

    /// The lines of a block: each jump leads behind the last one.
    fn block(&self, kind: Kind, block: &str, changes: &mut OfKind) -> Result<String, String> {
        let lines: Vec<String> = self
            .of_block(kind, |found| found == block)
            .iter()
            .flat_map(|(_, text)| text.lines().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        let is_primary = block == "Primary";
        if is_primary && lines.is_empty() {
            return Ok(format!("{}\t{PERMIT}", kind.word()));
        }
        // Behind the second block is nothing to jump to.
        let last = usize::from(!is_primary);
        let mut text = String::new();
        for (at, line) in lines.iter().enumerate() {
            let count = (lines.len() - at - last).to_string();
            text.push_str(&format!("{}\t{}", kind.word(), merge(line, &count, changes)?));
        }
        Ok(text)
    }

    /// The profiles with lines for a kind, as far as the type of their lines fits, and the lines: the first may have others.
    fn of_block(&self, kind: Kind, fits: impl Fn(&str) -> bool) -> Vec<(&String, &str)> {
        let field = kind.field();
        let typed = |name: &&String| {
            let found = self.profiles.field(name, &format!("{field}-Type"));
            !found.is_empty() && found != "0" && fits(found)
        };
        let found = self.enabled.iter().filter(typed).enumerate();
        let lines = found.map(|(at, name)| {
            let initial = self.profiles.field(name, &format!("{field}-Initial"));
            let is_initial = at == 0 && !initial.is_empty();
            (name, if is_initial { initial } else { self.profiles.field(name, field) })
        });
        lines.collect()
    }

    /// What is remembered of a kind, to recognize changes later.
    pub(super) fn state(&self, kind: Kind) -> String {
        let text = |found: &[(&String, &str)]| -> String {
            let found = found.iter().filter(|(_, lines)| !lines.is_empty());
            found.map(|(name, lines)| format!("Module: {name}\n{lines}\n")).collect()
        };
        let first = self.of_block(kind, |found| found != "Additional");
        let null = if first.is_empty() { format!("Module: null\n{PERMIT}") } else { String::new() };
        [text(&first), null, text(&self.of_block(kind, |found| found != "Primary"))].concat()
    }
}

/// Copies a text, but for the lines of its blocks, and tells whether it has all lines around them.
fn fill(text: &str, mut block: impl FnMut(&str) -> Result<String, String>) -> Result<(String, bool), String> {
    let mut markers =
        [(PRIMARY, Some("Primary")), (FALLBACK, None), (ADDITIONAL, Some("Additional")), (END, None)].iter();
    let mut next = markers.next();
    let (mut out, mut is_inside) = (String::new(), false);
    for line in text.split_inclusive('\n') {
        let reached = next.filter(|(marker, _)| line.starts_with(marker));
        if !is_inside || reached.is_some() {
            out.push_str(line);
        }
        if let Some((_, name)) = reached {
            is_inside = name.is_some();
            next = markers.next();
            out.push_str(&name.map_or_else(|| Ok(String::new()), &mut block)?);
        }
    }
    Ok((out, next.is_none()))
}

/// A line of a profile with the options that an administrator wants.
fn merge(line: &str, count: &str, changes: &mut OfKind) -> Result<String, String> {
    let (module, options) = parts(line).ok_or_else(|| format!("the line {line:?} of a profile"))?;
    let module = module.replace("end", count);
    let key = without_jump(&module);
    let mut none = Default::default();
    let added = changes.added.get_mut(&key).unwrap_or(&mut none);
    let removed = changes.removed.get(&key);
    let mut options: Vec<&str> = options.split_ascii_whitespace().collect();
    options.iter().for_each(|option| {
        added.remove(*option);
    });
    options.retain(|option| !removed.is_some_and(|removed| removed.contains(*option)));
    let words: Vec<&str> = options.into_iter().chain(added.iter().map(String::as_str)).collect();
    Ok(format!("{module} {}\n", words.join(" ")))
}

/// The control and the module of a line, and its options.
pub(super) fn parts(line: &str) -> Option<(&str, &str)> {
    let control = match line.strip_prefix('[') {
        Some(rest) => rest.find(']').filter(|end| *end > 0)? + 2,
        None => line.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').filter(|end| *end > 0)?,
    };
    let blank = |char: char| char.is_ascii_whitespace();
    let rest = line.get(control..)?;
    let name = rest.trim_start_matches(blank);
    if name.len() == rest.len() || name.is_empty() {
        return None;
    }
    let end = name.find(blank).unwrap_or(name.len());
    let module = line.get(..line.len() - name.len() + end)?;
    Some((module, name.get(end..)?.trim_start_matches(blank)))
}

/// Takes the first number out of what is in brackets, which is how far a line jumps.
pub(super) fn without_jump(line: &str) -> String {
    let digit = |char: char| char.is_ascii_digit();
    let found = line.find('[').and_then(|open| {
        let start = open + line.get(open..)?.find(digit)?;
        let end = start + line.get(start..)?.find(|char| !digit(char))?;
        line.get(end..)?.contains(']').then_some((start, end))
    });
    found.map_or_else(|| line.to_owned(), |(start, end)| [&line[..start], &line[end..]].concat())
}
