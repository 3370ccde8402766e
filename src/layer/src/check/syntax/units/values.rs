//! Values of settings of units, by the kinds that `settings.txt` has. Values with a specifier are only known on the machine.

use super::super::directories::is_time;
use super::addresses::{is_address, is_network};
use super::expected::expected;
use super::names::is_in;
use super::{numbers, paths, resources, service, words};
use paths::is_path;

/// Kinds whose values may have specifiers.
const EXPANDED: [&str; 31] = [
    "text",
    "path",
    "condition",
    "file",
    "directory",
    "paths",
    "names",
    "address",
    "account",
    "accounts",
    "unit",
    "units",
    "variables",
    "documentation",
    "pidfile",
    "bus",
    "links",
    "label",
    "binds",
    "images",
    "extensions",
    "names_of_variables",
    "unset",
    "fields",
    "loaded",
    "imported",
    "input",
    "namespace",
    "group",
    "affinity",
    "processors",
];

/// Kinds whose values may have escape sequences, of which systemd ignores the value if it does not know one.
const ESCAPED: [&str; 4] = ["variables", "unset", "fields", "input"];

/// Kinds of which systemd ignores a value that is empty, or no valid name, after its specifiers are replaced.
const NAMES: [&str; 5] = ["account", "accounts", "namespace", "bus", "names_of_variables"];

/// What systemd expects instead of a value in a unit without an instance, where `%i` and `%I` are empty.
pub(super) fn fault_without_instance(kind: &str, value: &str) -> Option<String> {
    let name = kind.trim_end_matches('?');
    let replaced = value.replace("%i", "").replace("%I", "");
    let is_judged = NAMES.contains(&name) && !value.contains("%%") && replaced != value;
    fault(name, &replaced).filter(|_| is_judged)
}

/// What systemd expects instead of a value.
pub(super) fn fault(kind: &str, value: &str) -> Option<String> {
    let mut words = kind.split(' ');
    let name = words.next().unwrap_or_default();
    let arguments: Vec<&str> = words.collect();
    let (name, is_optional) = name.strip_suffix('?').map_or((name, false), |name| (name, true));
    if value.is_empty() {
        return (!is_optional && name != "any").then(|| format!("{}, found nothing", expected(name, &arguments)));
    }
    if let Some(unknown) = words::bad_escape(value).filter(|_| ESCAPED.contains(&name)) {
        return Some(format!("\\\\ for a backslash, {unknown} is not an escape sequence"));
    }
    if EXPANDED.contains(&name) && value.contains('%') {
        let unknown = service::unknown_specifier(value);
        return unknown.map(|unknown| format!("%% for a percent sign, %{unknown} is not a specifier"));
    }
    (!is_valid(name, &arguments, value)).then(|| expected(name, &arguments))
}

/// Whether a value is a word, a number or a path.
fn is_valid(name: &str, arguments: &[&str], value: &str) -> bool {
    match name {
        "words" => arguments.iter().any(|word| words::is_word(word, value)),
        "time" => is_time(value),
        "duration" => is_time(value) && value != "infinity" && !value.bytes().all(|byte| byte == b'0'),
        "path" => is_path(value),
        "absolute" => value.starts_with(['/', '%']),
        "condition" => {
            is_path(value.strip_prefix('|').unwrap_or(value).trim_start().trim_start_matches('!').trim_start())
        }
        "file" => is_path(value.strip_prefix('-').unwrap_or(value)),
        "directory" => {
            let path = value.strip_prefix('-').unwrap_or(value);
            path == "~" || is_path(path)
        }
        "pidfile" => paths::is_normal(value),
        "search" => paths::is_search(value),
        "opened" => paths::is_open_file(value),
        "program" => value.split_once(':').is_some_and(|(_, path)| path.starts_with(['/', '%'])),
        "mode" => u32::from_str_radix(value, 8).is_ok_and(|mode| mode <= 0o7777),
        "address" => is_address(value),
        "signal" => numbers::is_signal(value),
        "account" => words::is_account(value),
        "unit" => words::is_unit(value, arguments),
        "tasks" => {
            value == "infinity"
                || numbers::is_percentage(value)
                || numbers::integer(value).is_some_and(|count| count > 0)
        }
        "integer" => {
            let limits: Vec<i64> = arguments.iter().filter_map(|limit| limit.parse().ok()).collect();
            let is_inside = |number| {
                limits.first().is_none_or(|low| *low <= number) && limits.get(1).is_none_or(|high| number <= *high)
            };
            numbers::integer(value).is_some_and(is_inside)
        }
        "limit" => numbers::is_limit(arguments.first().unwrap_or(&""), value),
        "size" => numbers::is_size(value),
        "bytes" => numbers::is_bytes(value),
        "memory" => numbers::is_memory(value, true),
        "percent" => numbers::is_percentage(value),
        "quota" => numbers::is_quota(value),
        "errno" => value == "kill" || words::is_errno(value),
        "loaded" => words::is_loaded(value),
        "credential" => words::is_set(value, arguments.contains(&"encrypted")),
        "imported" => words::is_imported(value),
        "data" => words::is_base64(value),
        "hash" => words::is_hash(value),
        "signature" => value.starts_with('/') || value.strip_prefix("base64:").is_some_and(words::is_base64),
        "bus" => words::is_bus_name(value),
        "label" => words::is_label(value),
        "namespace" => !value.contains(|next: char| next == '/' || next.is_whitespace()) && value != ".",
        "group" => !value.contains('/') && !["cgroup.", "cpu."].iter().any(|begin| value.starts_with(begin)),
        _ => is_valid_resource(name, arguments, value) && is_valid_list(name, arguments, value),
    }
}

/// Whether a value names resources.
fn is_valid_resource(name: &str, arguments: &[&str], value: &str) -> bool {
    match name {
        "statuses" => resources::are_statuses(value),
        "device" => resources::is_device(value),
        "ports" => resources::are_ports(value),
        "processors" => resources::are_processors(value),
        "affinity" => value == "numa" || resources::are_processors(value),
        "nodes" => value == "all" || resources::are_processors(value),
        "rated" => resources::is_of_device("rate", value),
        "weighted" => resources::is_of_device("weight", value),
        "latency" => resources::is_of_device("time", value),
        "interface" => value == "*" || resources::is_interface(value, 15),
        "netlink" => resources::is_netlink(value, arguments),
        _ => true,
    }
}

/// Whether the words of a value are valid.
fn is_valid_list(name: &str, arguments: &[&str], value: &str) -> bool {
    let each = |is_valid: &dyn Fn(&str) -> bool| {
        service::words(value).is_some_and(|words| words.iter().all(|word| is_valid(word)))
    };
    let plain = || value.trim_start_matches('~').split_whitespace();
    match name {
        "paths" => each(&|word| word.trim_start_matches(['-', '+']).starts_with('/')),
        "links" => each(&is_path),
        "binds" => each(&paths::is_bind),
        "images" => each(&|word| paths::is_image(word, true, arguments)),
        "extensions" => each(&|word| paths::is_image(word, false, arguments)),
        "names" => each(&|word| word.split(':').all(paths::is_relative)),
        "documentation" => each(&paths::is_documentation),
        "accounts" => each(&words::is_account),
        "networks" => each(&is_network),
        "capabilities" => plain().all(words::is_capability),
        "syscalls" => words::are_calls(value),
        "list" => words::is_word("bool", value) || plain().all(|word| arguments.contains(&word)),
        "each" => each(&|word| arguments.iter().any(|known| words::is_word(known, word))),
        "units" => value.split_whitespace().all(|word| words::is_unit(word, arguments)),
        "variables" => each(&words::is_variable),
        "names_of_variables" => each(&words::is_variable_name),
        "unset" => each(&|word| words::is_variable(word) || words::is_variable_name(word)),
        "fields" => each(&words::is_field),
        "families" => each(&words::is_family),
        "filesystems" => plain().all(|word| !word.starts_with('@') || is_in("filesystems", word)),
        "interfaces" => plain().all(|word| word.contains('%') || resources::is_interface(word, 127)),
        "sets" => each(&resources::is_set),
        _ => true,
    }
}
