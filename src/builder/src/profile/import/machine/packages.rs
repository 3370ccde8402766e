//! `apt-get` of a script: the packages of an image, which the bake installs.

use vmbake_shell::{Call, Outcome};

use super::Machine;
use crate::profile::import::report::StatementClass;

/// Directories in which Debian packages install no files.
const LOCAL: [&str; 2] = ["/opt", "/usr/local"];

impl Machine<'_> {
    /// `apt` and `apt-get`.
    pub(super) fn apt(&mut self, call: &mut Call<'_>) -> Outcome {
        let mut words = call.args.iter().map(|arg| String::from_utf8_lossy(arg).into_owned());
        let (mut operands, mut recommends) = (Vec::new(), true);
        while let Some(word) = words.next() {
            match word.as_str() {
                "-o" | "--option" => drop(words.next()),
                "-y"
                | "--yes"
                | "-q"
                | "-qq"
                | "--quiet"
                | "-f"
                | "--fix-broken"
                | "--allow-downgrades"
                | "--allow-change-held-packages"
                | "--assume-yes" => {}
                "--no-install-recommends" => recommends = false,
                "--install-recommends" => recommends = true,
                option if option.starts_with("-o") || option.starts_with("--option=") => {}
                option if option.starts_with('-') => return Outcome::Unsupported(option.to_owned()),
                _ => operands.push(word),
            }
        }
        match operands.split_first() {
            Some((verb, [])) if verb == "update" => self.dropped("manifests say which packages there are"),
            Some((verb, [])) if matches!(verb.as_str(), "clean" | "autoclean") => {
                self.dropped("no package is left to be cleaned up")
            }
            Some((verb, packages)) if verb == "install" && !packages.is_empty() => {
                // Packages that are not Debian's may have files there.
                if self.rules.archive.is_some() {
                    LOCAL.iter().for_each(|path| call.files.may_have_more(path.as_bytes()));
                }
                self.install(packages, recommends)
            }
            Some((verb, _)) if matches!(verb.as_str(), "upgrade" | "dist-upgrade" | "full-upgrade") => {
                Outcome::Refused("an image changes by being baked again: run `vmbake update` and bake".to_owned())
            }
            Some((verb, _)) => Outcome::Unsupported(verb.clone()),
            None => Outcome::Unsupported("no command".to_owned()),
        }
    }

    fn install(&mut self, packages: &[String], recommends: bool) -> Outcome {
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
                return Outcome::Unsupported(format!("the package {}", crate::escape::line(package.clone())));
            }
            match (self.rules.packages.get(name), version) {
                (Some(None), _) => {}
                (Some(Some(other)), _) => names.push(other.clone()),
                (None, Some(version)) => names.push(format!("{name}={version}")),
                (None, None) => names.push(name.to_owned()),
            }
        }
        if recommends && self.rules.recommends != Some(false) {
            let bare = names.iter().map(|name| name.split('=').next().unwrap_or_default().to_owned());
            self.effects.recommends.extend(bare);
        }
        let reason = match names.is_empty() {
            true => "a rule leaves these packages out".to_owned(),
            false => format!("packages {}", names.join(" ")),
        };
        let class = if names.is_empty() { StatementClass::Dropped } else { StatementClass::Baked };
        self.effects.packages.extend(names);
        self.note(class, reason)
    }
}
