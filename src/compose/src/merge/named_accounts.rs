//! Accounts that the finished image has, and those that systemd-sysusers(8) or the first boot makes on the machine.

use super::config::Config;
use super::place::Target;
pub use vmbake_layer::Layer;

/// Whether there is a `user` or `group`.
pub(super) fn has_account(target: &Target, layers: &[Layer], what: &str, name: &str) -> bool {
    let file = if what == "user" { "/etc/passwd" } else { "/etc/group" };
    let is_there = target.text(file).is_ok_and(|text| text.lines().any(|line| line.split(':').next() == Some(name)));
    is_there || is_of_first_boot(layers, name) || is_of_sysusers(target, what, name)
}

fn is_of_first_boot(layers: &[Layer], name: &str) -> bool {
    let mut plans = layers.iter().filter_map(|layer| layer.schema.first_boot.as_ref());
    plans.any(|plan| plan.users.contains_key(name) || plan.accounts.contains_key(name))
}

fn is_of_sysusers(target: &Target, what: &str, name: &str) -> bool {
    let configs = Config::all(target, "sysusers.d").unwrap_or_default();
    configs.iter().flat_map(Config::lines).flatten().any(|(_, words)| {
        let word = |at: usize| words.get(at).map_or("", String::as_str);
        match word(0).trim_end_matches(['!', '-']) {
            "u" => word(1) == name && (what == "user" || !word(2).contains(':')),
            "g" => word(1) == name && what == "group",
            "m" => word(if what == "user" { 1 } else { 2 }) == name,
            _ => false,
        }
    })
}
