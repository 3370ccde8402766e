//! Accounts of services, as the image has them.

use std::collections::BTreeSet;

use super::loaded::Loaded;
use super::{Fault, Image};
use crate::merge::config::Config;
use crate::merge::named_accounts::has_account;

const HINT: &str = "add the account to `users` or `groups` of a layer, or to a file in /usr/lib/sysusers.d";

/// Sources of accounts in nsswitch.conf(5) that the image itself has.
const LOCAL: [&str; 4] = ["files", "compat", "systemd", "db"];

/// An account that a service has instead of root's.
pub(super) struct Identity {
    pub(super) name: String,
    /// Its id, unless the machine chooses it.
    pub(super) uid: Option<u32>,
    pub(super) gids: BTreeSet<u32>,
}

/// A line of passwd(5) or group(5).
struct Line<'a> {
    name: &'a str,
    id: u32,
    /// The group of a user, or the members of a group.
    rest: &'a str,
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, _, id, rest) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        Some(Line { name, id: id.parse().ok()?, rest })
    })
}

impl Image<'_> {
    pub(super) fn unknown_accounts(&self, unit: &Loaded) -> Vec<Fault> {
        let section = unit.section();
        let named = |key: &str, what: &'static str| {
            let settings = if key == "SupplementaryGroups" {
                unit.list(&section, key)
            } else {
                unit.last(&section, key).into_iter().collect()
            };
            let words = settings.into_iter().flat_map(move |setting| {
                setting.value.split_whitespace().map(move |name| (setting, what, name.to_owned()))
            });
            words.collect::<Vec<_>>()
        };
        let is_dynamic = unit.is_true("DynamicUser");
        let own = if is_dynamic { Vec::new() } else { [named("User", "user"), named("Group", "group")].concat() };
        let of_socket = [named("SocketUser", "user"), named("SocketGroup", "group")].concat();
        let all = own.into_iter().chain(named("SupplementaryGroups", "group")).chain(of_socket);
        let unknown = all.filter(|(_, what, name)| !self.is_known(what, name));
        unknown
            .map(|(setting, what, name)| {
                let message = format!("{}={name}, but the image does not have the {what} {name}", setting.key);
                Fault::of(setting, message, HINT).may_pass(self.may_be_added(what, &name))
            })
            .collect()
    }

    fn is_known(&self, what: &str, name: &str) -> bool {
        let is_named = !name.contains('%') && !name.bytes().all(|byte| byte.is_ascii_digit());
        !is_named || has_account(self.target, self.layers, what, name)
    }

    /// Whether another source, cloud-init or a program of the layers may add an account.
    fn may_be_added(&self, what: &str, name: &str) -> bool {
        let database = if what == "user" { "passwd" } else { "group" };
        let text = self.target.text("/etc/nsswitch.conf").unwrap_or_default();
        let line = text.lines().find_map(|line| line.trim().strip_prefix(database)?.trim_start().strip_prefix(':'));
        let mut sources = line.unwrap_or("files").split('#').next().unwrap_or_default().split_whitespace();
        let has_others = sources.any(|source| !source.starts_with('[') && !LOCAL.contains(&source));
        let end = if what == "user" { "user" } else { "group" };
        let records = ["/etc/userdb", "/usr/lib/userdb"].map(|dir| format!("{dir}/{name}.{end}"));
        has_others || records.iter().any(|path| self.exists(path)) || self.made.may_add_account(name)
    }

    /// The account of a service; `None` for root, and for one of which the image knows too little.
    pub(super) fn identity(&self, unit: &Loaded) -> Option<Identity> {
        let is_dynamic = unit.is_true("DynamicUser");
        let user = unit.of_service("User").map(|setting| setting.value.as_str());
        let name = user.or(is_dynamic.then(|| unit.stem()))?;
        let bypasses =
            unit.list("Service", "AmbientCapabilities").iter().any(|setting| setting.value.contains("CAP_DAC_"));
        if name.contains('%') || bypasses || ["root", "0"].contains(&name) {
            return None;
        }
        let (passwd, group) = (self.target.text("/etc/passwd").ok()?, self.target.text("/etc/group").ok()?);
        let entry = lines(&passwd).find(|line| line.name == name || line.id.to_string() == name);
        let is_of_sysusers = || has_account(self.target, &[], "user", name);
        if entry.is_none() && !is_dynamic && !is_of_sysusers() {
            return None;
        }
        let own = unit.of_service("Group").map(|setting| setting.value.clone());
        let mut names: BTreeSet<String> = own.iter().cloned().collect();
        let more = unit.list("Service", "SupplementaryGroups");
        names.extend(more.iter().flat_map(|setting| setting.value.split_whitespace()).map(str::to_owned));
        if entry.is_none() {
            names.extend(self.groups_of_sysusers(name));
        }
        let is_member = |line: &Line| line.rest.split(',').any(|member| member == name);
        let listed = lines(&group).filter(|line| names.contains(line.name) || is_member(line));
        let mut gids: BTreeSet<u32> = listed.map(|line| line.id).collect();
        gids.extend(names.iter().filter_map(|name| name.parse::<u32>().ok()));
        gids.extend(entry.as_ref().filter(|_| own.is_none()).and_then(|entry| entry.rest.parse::<u32>().ok()));
        let uid = entry.map(|entry| entry.id).or_else(|| name.parse().ok());
        Some(Identity { name: name.to_owned(), uid, gids })
    }

    /// The groups in which sysusers.d(5) puts a user.
    fn groups_of_sysusers(&self, user: &str) -> Vec<String> {
        let configs = Config::all(self.target, "sysusers.d").unwrap_or_default();
        let lines = configs.iter().flat_map(Config::lines).flatten();
        let groups = lines.filter_map(|(_, words)| {
            let word = |at: usize| words.get(at).map_or("", String::as_str);
            let group = match word(0).trim_end_matches(['!', '-']) {
                "m" if word(1) == user => word(2),
                "u" if word(1) == user => word(2).split_once(':').map_or(user, |(_, group)| group),
                _ => return None,
            };
            Some(group.to_owned())
        });
        groups.collect()
    }
}
