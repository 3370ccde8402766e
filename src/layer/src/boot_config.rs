//! Files from which systemd creates paths and accounts at boot: tmpfiles.d(5), sysusers.d(5) and systemd.preset(5).
//!
//! Stricter than systemd: quotes, escapes and specifiers are not evaluated.

/// Directories of configuration, in the order in which systemd reads them.
const ROOTS: [&str; 4] = ["/etc", "/run", "/usr/local/lib", "/usr/lib"];
/// The same for `user-tmpfiles.d`, which each user manager reads.
const USER_ROOTS: [&str; 3] = ["/etc/xdg", "/usr/local/share", "/usr/share"];
/// Lines for each user.
const USER_TMPFILES: &str = "user-tmpfiles.d";
/// Characters of patterns in paths.
const WILDCARDS: [char; 3] = ['*', '?', '['];
/// Letters of tmpfiles.d(5) that only exclude paths from being removed.
const EXCLUSIONS: [char; 2] = ['x', 'X'];
/// Letters of links and copies: later lines are followed through a link, and a copy has the mode and the content of any file of the machine.
const INDIRECT: [char; 2] = ['L', 'C'];
/// Letters of extended attributes, among them the capabilities of a file.
const ATTRIBUTES: [char; 2] = ['t', 'T'];
/// Letters of lines that follow a symbolic link which a pattern matches.
const FOLLOWING: [char; 2] = ['w', 'e'];
/// The sign of a line whose content is a credential of the machine.
const CREDENTIAL: char = '^';
/// Letters of device nodes, through which a path of the bundle reaches disks and memory.
const DEVICES: [char; 2] = ['b', 'c'];

/// A file of such a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootConfig {
    Tmpfiles,
    Sysusers,
    Preset,
}

/// A path or account that a line creates or changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BootEffect {
    /// A path, with the mode that it gets.
    Path { path: String, mode: u16 },
    /// A user, and a group of the same name.
    User(String),
    /// A group.
    Group(String),
    /// A user becomes a member of a group, or has it as the primary group.
    Member { user: String, group: String },
    /// Something that these rules do not read.
    Unknown,
}

impl BootConfig {
    /// Which of them is at a path without symbolic links.
    pub fn of(path: &str) -> Option<Self> {
        let (directory, name) = path.rsplit_once('/')?;
        let below = |roots: &[&str]| roots.iter().find_map(|root| directory.strip_prefix(root)?.strip_prefix('/'));
        if below(&USER_ROOTS) == Some(USER_TMPFILES) {
            return name.ends_with(".conf").then_some(Self::Tmpfiles);
        }
        match below(&ROOTS)? {
            "tmpfiles.d" if name.ends_with(".conf") => Some(Self::Tmpfiles),
            "sysusers.d" if name.ends_with(".conf") => Some(Self::Sysusers),
            "systemd/system-preset" | "systemd/user-preset" if name.ends_with(".preset") => Some(Self::Preset),
            _ => None,
        }
    }

    /// Whether a path with that beginning can be such a file.
    pub fn is_reached(beginning: &str) -> bool {
        let names = ["tmpfiles.d", "sysusers.d", "systemd/system-preset", "systemd/user-preset"];
        let usual = ROOTS.iter().flat_map(|root| names.map(|name| format!("{root}/{name}/")));
        let of_users = USER_ROOTS.iter().map(|root| format!("{root}/{USER_TMPFILES}/"));
        usual.chain(of_users).any(|dir| dir.starts_with(beginning) || beginning.starts_with(&dir))
    }

    /// Paths at which a file of the same name takes the place of one at `path`, or the other way round.
    pub fn others(self, path: &str) -> impl Iterator<Item = String> {
        let is_of_users = path.rsplit('/').nth(1) == Some(USER_TMPFILES);
        let roots: &[&str] = if is_of_users { &USER_ROOTS } else { &ROOTS };
        let inside = roots.iter().find_map(|root| path.strip_prefix(root)).unwrap_or_default().to_owned();
        roots.iter().map(move |root| format!("{root}{inside}"))
    }

    /// What the lines of a file create or change, each with its number.
    pub fn effects(self, text: &[u8]) -> Vec<(usize, BootEffect)> {
        // systemd ends a line at a carriage return or a NUL too, also at one that follows a comment, and no word at others.
        let is_control = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n');
        if let Some(end) = text.iter().position(is_control) {
            let before = text.iter().take(end).filter(|byte| **byte == b'\n').count();
            return vec![(before.saturating_add(1), BootEffect::Unknown)];
        }
        let lines = text.split(|byte| *byte == b'\n').map(|line| str::from_utf8(line).map(str::trim));
        let mut found = Vec::new();
        for (number, line) in (1..).zip(lines) {
            match line {
                Ok(line) if line.is_empty() || line.starts_with(['#', ';']) => {}
                Ok(line) => found.extend(self.line(line).into_iter().map(|effect| (number, effect))),
                Err(_) => found.push((number, BootEffect::Unknown)),
            }
        }
        found
    }

    fn line(self, line: &str) -> Vec<BootEffect> {
        let words: Vec<&str> = line.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        let word = |at: usize| words.get(at).copied().unwrap_or("-");
        // Text, comments and arguments may have them.
        let read = match self {
            Self::Tmpfiles => 5,
            Self::Sysusers => 3,
            Self::Preset => 0,
        };
        if read == 0 || words.iter().take(read).any(|word| word.contains(['"', '\'', '\\', '%'])) {
            return vec![BootEffect::Unknown];
        }
        let kind = word(0).chars().next().unwrap_or('-');
        match self {
            Self::Tmpfiles if EXCLUSIONS.contains(&kind) => Vec::new(),
            Self::Tmpfiles if is_beyond(word(0), kind, word(1)) => vec![BootEffect::Unknown],
            Self::Tmpfiles => {
                let digits = word(2).trim_start_matches([':', '~']);
                let path = word(1).split(WILDCARDS).next().unwrap_or_default();
                let path = if path == word(1) { path } else { path.rsplit_once('/').map_or("", |(parent, _)| parent) };
                match (u16::from_str_radix(digits, 8), digits) {
                    (Ok(mode), _) => vec![BootEffect::Path { path: path.to_owned(), mode }],
                    (Err(_), "-") => vec![BootEffect::Path { path: path.to_owned(), mode: 0 }],
                    _ => vec![BootEffect::Unknown],
                }
            }
            Self::Sysusers => match kind {
                'u' | 'g' if word(2).starts_with('/') => vec![BootEffect::Unknown],
                'u' => user(word(1), word(2)),
                'g' => vec![BootEffect::Group(word(1).to_owned())],
                'm' => vec![BootEffect::Member { user: word(1).to_owned(), group: word(2).to_owned() }],
                'r' => Vec::new(),
                _ => vec![BootEffect::Unknown],
            },
            Self::Preset => vec![BootEffect::Unknown],
        }
    }
}

/// The effects of a line of a user with its id, after which a colon and the primary group may follow.
fn user(name: &str, id: &str) -> Vec<BootEffect> {
    let mut effects = vec![BootEffect::User(name.to_owned())];
    if let Some((_, group)) = id.split_once(':') {
        let is_number = group.starts_with(|first: char| first.is_ascii_digit());
        effects.push(match is_number || group.is_empty() {
            true => BootEffect::Unknown,
            false => BootEffect::Member { user: name.to_owned(), group: group.to_owned() },
        });
    }
    effects
}

/// Whether a line has an effect that its path and mode do not tell: its type, with its signs, or what its path may lead to.
fn is_beyond(signs: &str, kind: char, path: &str) -> bool {
    let is_indirect = [INDIRECT, DEVICES, ATTRIBUTES].iter().any(|letters| letters.contains(&kind));
    let follows = FOLLOWING.contains(&kind) && path.contains(WILDCARDS);
    is_indirect || follows || signs.contains(CREDENTIAL) || is_evasive(path)
}

/// Whether a path may lead out of its directory: by `..`, by a pattern that may match it or a symbolic link before the last name, or by
/// braces, which may become either.
fn is_evasive(path: &str) -> bool {
    let is_parent = |part: &str| part == ".." || (part.starts_with('.') && part.contains(WILDCARDS));
    let directories = path.trim_end_matches('/').rsplit_once('/').map_or("", |(directories, _)| directories);
    path.contains(['{', '}']) || directories.contains(WILDCARDS) || path.split('/').any(is_parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_what_they_create() {
        let path = |path: &str, mode| BootEffect::Path { path: path.to_owned(), mode };
        let account = |name: &str| BootEffect::User(name.to_owned());
        let group = |name: &str| BootEffect::Group(name.to_owned());
        for (config, line, expected) in [
            (BootConfig::Tmpfiles, "d /run/a 0755 root root -", vec![path("/run/a", 0o755)]),
            (BootConfig::Tmpfiles, "D! /run/a :~4755", vec![path("/run/a", 0o4755)]),
            (BootConfig::Tmpfiles, "f+ /etc/a - - - - ../b \"c\"", vec![path("/etc/a", 0)]),
            (BootConfig::Tmpfiles, "L /opt/x/l - - - - /etc", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "C+ /opt/x/su - - - - /usr/bin/su", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "R /opt/x/*/../../../etc/zz", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "b /opt/x/sda 0666 - - - 8:0", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "c+- /opt/x/mem 0666 - - - 1:1", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "R /opt/x/{..,y}/{..,y}/etc/zz", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "R /opt/x/{.,y}./etc/zz", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "R /opt/x/.*/zz", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "R /opt/x/.[.]/zz", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "z /sys/x/* 0644", vec![path("/sys/x", 0o644)]),
            (BootConfig::Tmpfiles, "R /opt/x/*/", vec![path("/opt/x", 0)]),
            (BootConfig::Tmpfiles, "z /opt/x/*/shadow 0644", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "z /opt/x/[l]/shadow 0644", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "w /opt/x/* - - - - a", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "w /opt/x/a - - - - a", vec![path("/opt/x/a", 0)]),
            (BootConfig::Tmpfiles, "e /opt/x/? 0777", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "f^ /opt/x/a - - - - login.motd", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "t /opt/x/a - - - - security.capability=0sAQA", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "T+ /opt/x/a - - - - user.a=b", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "z /opt/x/a\u{c}0644\u{c}/b 0666", vec![BootEffect::Unknown]),
            (BootConfig::Sysusers, "g agents\u{b}-", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "x /tmp/a", vec![]),
            (BootConfig::Tmpfiles, "d \"/run/a b\"", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "d /run/%H", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "d /run/a mode", vec![BootEffect::Unknown]),
            (BootConfig::Tmpfiles, "# d /run/a", vec![]),
            (BootConfig::Sysusers, "u! agent 990 \"An agent\" /opt/a", vec![account("agent")]),
            (BootConfig::Sysusers, "g agents -", vec![group("agents")]),
            (
                BootConfig::Sysusers,
                "u agent -:disk",
                vec![account("agent"), BootEffect::Member { user: "agent".to_owned(), group: "disk".to_owned() }],
            ),
            (BootConfig::Sysusers, "u agent 990:6", vec![account("agent"), BootEffect::Unknown]),
            (BootConfig::Sysusers, "u agent /etc/shadow", vec![BootEffect::Unknown]),
            (BootConfig::Sysusers, "g agents /etc/shadow", vec![BootEffect::Unknown]),
            (
                BootConfig::Sysusers,
                "m agent sudo",
                vec![BootEffect::Member { user: "agent".to_owned(), group: "sudo".to_owned() }],
            ),
            (BootConfig::Sysusers, "r - 500-900", vec![]),
            (BootConfig::Preset, "enable *", vec![BootEffect::Unknown]),
        ] {
            let found: Vec<BootEffect> =
                config.effects(line.as_bytes()).into_iter().map(|(_, effect)| effect).collect();
            assert_eq!(found, expected, "{line}");
        }
        assert_eq!(BootConfig::Tmpfiles.effects(b"\n\xff\n"), [(2, BootEffect::Unknown)]);
        for text in ["\n# c\rf /etc/a", "#\n# c\0f /etc/a\n", "#\nx /tmp/a\r\n"] {
            for config in [BootConfig::Tmpfiles, BootConfig::Sysusers, BootConfig::Preset] {
                assert_eq!(config.effects(text.as_bytes()), [(2, BootEffect::Unknown)], "{text:?}");
            }
        }
    }

    #[test]
    fn systemd_reads_four_directories() {
        for (path, expected) in [
            ("/etc/tmpfiles.d/a.conf", Some(BootConfig::Tmpfiles)),
            ("/usr/lib/sysusers.d/a.conf", Some(BootConfig::Sysusers)),
            ("/usr/local/lib/systemd/system-preset/1.preset", Some(BootConfig::Preset)),
            ("/etc/tmpfiles.d/a", None),
            ("/etc/xdg/user-tmpfiles.d/a.conf", Some(BootConfig::Tmpfiles)),
            ("/usr/local/share/user-tmpfiles.d/a.conf", Some(BootConfig::Tmpfiles)),
            ("/usr/share/user-tmpfiles.d/a.conf", Some(BootConfig::Tmpfiles)),
            ("/usr/share/user-tmpfiles.d/a", None),
            ("/usr/lib/user-tmpfiles.d/a.conf", None),
            ("/usr/share/tmpfiles.d/a.conf", None),
            ("/etc/tmpfiles.d/a/b.conf", None),
            ("/opt/tmpfiles.d/a.conf", None),
        ] {
            assert_eq!(BootConfig::of(path), expected, "{path}");
        }
    }
}
