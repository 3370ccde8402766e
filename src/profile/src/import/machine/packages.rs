//! `apt-get` in scripts: records packages, which the bake installs.

use std::collections::BTreeSet;

use vmbake_shell::{Call, Outcome};

use super::Machine;
use crate::import::report::StatementClass;

/// Directories in which Debian packages install no files.
const LOCAL: [&str; 2] = ["/opt", "/usr/local"];

impl Machine<'_> {
    /// `apt` and `apt-get`.
    pub(super) fn apt(&mut self, call: &mut Call<'_>) -> Outcome {
        let mut words = call.args.iter().map(|arg| String::from_utf8_lossy(arg).into_owned());
        let (mut operands, mut install) = (Vec::new(), Install { recommends: true, keeps_conffiles: false });
        let mut assumes_yes = false;
        while let Some(word) = words.next() {
            match word.as_str() {
                "-o" | "--option" => match words.next() {
                    Some(option) if is_plain_option(&option) => {
                        assumes_yes |= is_yes(&option);
                        install.keeps_conffiles |= keeps_conffiles(&option);
                    }
                    option => return Outcome::Unsupported(format!("-o {}", option.unwrap_or_default())),
                },
                "-y" | "--yes" | "-qq" | "--assume-yes" => assumes_yes = true,
                "-q" | "--quiet" | "-f" | "--fix-broken" | "--allow-downgrades" | "--allow-change-held-packages" => {}
                "--no-install-recommends" => install.recommends = false,
                "--install-recommends" => install.recommends = true,
                option
                    if option.strip_prefix("-o").or(option.strip_prefix("--option=")).is_some_and(is_plain_option) =>
                {
                    assumes_yes |= is_yes(option);
                    install.keeps_conffiles |= keeps_conffiles(option);
                }
                option if option.starts_with('-') => return Outcome::Unsupported(option.to_owned()),
                _ => operands.push(word),
            }
        }
        match operands.split_first() {
            Some((verb, [])) if verb == "update" => self.dropped("manifests pin the packages"),
            Some((verb, [])) if matches!(verb.as_str(), "clean" | "autoclean") => {
                self.dropped("the image contains no downloaded packages")
            }
            // Without a terminal, the answer is no.
            Some((verb, [_, ..])) if verb == "install" && !assumes_yes => {
                Outcome::Unsupported("install without -y, which stops if more packages are needed,".to_owned())
            }
            Some((verb, packages)) if verb == "install" && !packages.is_empty() => {
                // Packages that are not Debian's may have files there.
                if self.rules.archive.is_some() {
                    LOCAL.iter().for_each(|path| call.files.may_have_more(path.as_bytes()));
                }
                let outcome = self.install(packages, &install);
                call.files.packages_come();
                self.has_all_programs = true;
                outcome
            }
            Some((verb, _)) if matches!(verb.as_str(), "upgrade" | "dist-upgrade" | "full-upgrade") => {
                Outcome::Refused("images are not upgraded in place: run `vmbake update` and bake again".to_owned())
            }
            Some((verb, _)) => Outcome::Unsupported(verb.clone()),
            None => Outcome::Unsupported("no command".to_owned()),
        }
    }

    fn install(&mut self, packages: &[String], install: &Install) -> Outcome {
        let mut names = Vec::new();
        for package in packages {
            let (name, version) =
                package.split_once('=').map_or((package.as_str(), None), |(name, version)| (name, Some(version)));
            let is_name = |name: &str| {
                name.len() > 1
                    && name
                        .bytes()
                        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte))
                    && name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
                    && !name.ends_with('-')
            };
            if !is_name(name) {
                return Outcome::Unsupported(format!("the package {}", vmbake_common::escape::line(package.clone())));
            }
            match (self.rules.packages.get(name), version) {
                (Some(None), _) => {}
                (Some(Some(other)), _) => names.push(other.clone()),
                (None, Some(version)) => names.push(format!("{name}={version}")),
                (None, None) => names.push(name.to_owned()),
            }
        }
        let bare = names.iter().map(|name| name.split('=').next().unwrap_or_default().to_owned());
        if install.recommends && self.rules.recommends != Some(false) {
            self.effects.recommends.extend(bare.clone());
        }
        // The first installation decides: later ones find the files that dpkg knows.
        let is_new =
            |name: &String| !self.effects.packages.iter().any(|known| known.split('=').next() == Some(name.as_str()));
        let kept: Vec<String> = bare.filter(|name| install.keeps_conffiles && is_new(name)).collect();
        self.effects.keep_conffiles.extend(kept);
        let reason = match names.is_empty() {
            true => "a rule leaves these packages out".to_owned(),
            false => format!("packages {}", names.join(" ")),
        };
        let class = if names.is_empty() { StatementClass::Dropped } else { StatementClass::Baked };
        self.effects.packages.extend(names);
        self.note(class, reason)
    }

    /// `apt-mark`.
    pub(super) fn apt_mark(&mut self, call: &Call<'_>) -> Outcome {
        let words: Vec<String> = call.args.iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect();
        let Some((verb, names)) = words.split_first() else { return Outcome::Unsupported("no command".to_owned()) };
        let is_name = |name: &String| {
            name.starts_with(|char: char| char.is_ascii_alphanumeric()) && !name.contains(['*', ':', '?'])
        };
        if names.is_empty() || !names.iter().all(is_name) {
            return Outcome::Unsupported(format!("{verb} {}", vmbake_common::escape::line(names.join(" "))));
        }
        let names = names.iter().filter_map(|name| match self.rules.packages.get(name) {
            Some(other) => other.clone(),
            None => Some(name.clone()),
        });
        match verb.as_str() {
            "hold" => {
                self.effects.held.extend(names);
                self.note(StatementClass::Baked, "held in the image")
            }
            "unhold" => {
                let names: BTreeSet<String> = names.collect();
                self.effects.held.retain(|name| !names.contains(name));
                self.note(StatementClass::Baked, "not held in the image")
            }
            "manual" => self.dropped("packages change only when an image is baked"),
            other => Outcome::Unsupported(other.to_owned()),
        }
    }
}

/// How `apt-get install` installs packages.
struct Install {
    recommends: bool,
    /// Whether dpkg keeps configuration files that exist, without a question.
    keeps_conffiles: bool,
}

/// Whether a setting of apt has dpkg keep configuration files that exist.
fn keeps_conffiles(option: &str) -> bool {
    option.to_ascii_lowercase().contains("dpkg::options::=--force-conf")
}

/// Whether a setting of apt answers its questions with yes.
fn is_yes(option: &str) -> bool {
    let option = option.to_ascii_lowercase();
    ["true", "yes", "1"].iter().any(|yes| option.ends_with(&format!("apt::get::assume-yes={yes}")))
}

/// Beginnings of settings of apt that change neither which packages are installed nor what else is done.
const PLAIN_SETTINGS: [&str; 6] =
    ["acquire::", "apt::color", "apt::get::assume-yes", "debug::nolocking", "dpkg::lock::timeout", "dpkg::use-pty"];
/// The same of automatic upgrades, in files.
const PERIODIC: [&str; 2] = ["apt::periodic::", "unattended-upgrade::"];

/// Whether `NAME=VALUE` is such a setting, or says which of two files of a configuration is kept.
fn is_plain_option(option: &str) -> bool {
    let option = option.to_ascii_lowercase();
    matches!(option.as_str(), "dpkg::options::=--force-confdef" | "dpkg::options::=--force-confold")
        || PLAIN_SETTINGS.iter().any(|setting| option.starts_with(setting))
}

/// A file of the profile that decides which packages apt installs, or does more than that, with the line.
pub(in crate::import) fn decides_packages(path: &str, text: &[u8]) -> Option<String> {
    if path == "/etc/apt/preferences" || path.starts_with("/etc/apt/preferences.d/") {
        return Some("package pins".to_owned());
    }
    if path != "/etc/apt/apt.conf" && !path.starts_with("/etc/apt/apt.conf.d/") {
        return None;
    }
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', '/']));
    let is_plain = |line: &str| {
        let lower = line.to_ascii_lowercase();
        let name = lower.split_ascii_whitespace().next().unwrap_or_default();
        let is_one = line.ends_with(';') && line.matches(';').count() == 1 && !line.contains(['{', '}']);
        is_one && PLAIN_SETTINGS.iter().chain(&PERIODIC).any(|setting| name.starts_with(setting))
    };
    lines.filter(|line| !is_plain(line)).map(vmbake_common::escape::line).next()
}
