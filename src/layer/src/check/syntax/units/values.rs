//! Values of settings of units and daemons, by the kinds that `settings.txt` and `daemons.txt` have.

use super::super::calendar;
use super::super::directories::{is_time, microseconds};
use super::addresses::{is_address, is_network};
use super::expected::expected;
use super::names::is_in;
use super::{lexer, network, numbers, paths, resources, service, specifiers, words};
use crate::unit_install::{UnitForm, unit_form};
use paths::is_path;

/// Kinds whose values may have specifiers.
const EXPANDED: [&str; 39] = [
    "text",
    "path",
    "node",
    "condition",
    "file",
    "directory",
    "paths",
    "mounts",
    "names",
    "address",
    "account",
    "accounts",
    "unit",
    "units",
    "started",
    "device",
    "variables",
    "documentation",
    "pidfile",
    "bus",
    "links",
    "label",
    "binds",
    "images",
    "extensions",
    "options",
    "names_of_variables",
    "unset",
    "fields",
    "loaded",
    "imported",
    "input",
    "namespace",
    "affinity",
    "processors",
    "search",
    "absolute",
    "parameter",
    "calendar",
];

/// Kinds whose values may have escape sequences, of which systemd ignores the value if it does not know one.
const ESCAPED: [&str; 4] = ["variables", "unset", "fields", "input"];

/// Kinds of which an empty value is valid if its specifiers are.
const EMPTY: [&str; 8] = ["text", "parameter", "affinity", "processors", "input", "label", "documentation", "pidfile"];

/// Kinds that are not judged here: of texts, and of settings that are judged together with others.
const FREE: [&str; 5] = ["any", "text", "input", "commands", "install"];

/// What systemd expects instead of a value in a unit without an instance, where `%i` and `%I` are empty.
pub(super) fn fault_without_instance(kind: &str, value: &str) -> Option<String> {
    let is_judged = ["%i", "%I"].iter().any(|specifier| value.contains(specifier));
    fault_of(kind, value, true, false).filter(|_| is_judged)
}

/// What systemd expects instead of a value.
pub(super) fn fault(kind: &str, value: &str, has_specifiers: bool) -> Option<String> {
    fault_of(kind, value, has_specifiers, true)
}

fn fault_of(kind: &str, value: &str, has_specifiers: bool, has_instance: bool) -> Option<String> {
    let mut words = kind.split(' ');
    let name = words.next().unwrap_or_default();
    let arguments: Vec<&str> = words.collect();
    let mut alternatives = name.split('|');
    let name = alternatives.next().unwrap_or_default();
    let alternatives: Vec<&str> = alternatives.collect();
    let (name, is_optional) = name.strip_suffix('?').map_or((name, false), |name| (name, true));
    if alternatives.iter().any(|word| words::is_word(word, value)) {
        return None;
    }
    let expected = || expected(name, &arguments, &alternatives);
    if value.is_empty() {
        return (!is_optional && !FREE.contains(&name)).then(|| format!("{}, found nothing", expected()));
    }
    if let Some(unknown) = words::bad_escape(value).filter(|_| ESCAPED.contains(&name)) {
        return Some(format!("\\\\ for a backslash, {unknown} is not an escape sequence"));
    }
    if !has_specifiers || !EXPANDED.contains(&name) || !value.contains('%') {
        return (!is_valid(name, &arguments, value).unwrap_or(true)).then(expected);
    }
    if let Some(unknown) = service::unknown_specifier(value) {
        return Some(format!("%% for a percent sign, %{unknown} is not a specifier"));
    }
    let is_any_valid = specifiers::samples(value, has_instance).iter().any(|sample| match sample.is_empty() {
        true => EMPTY.contains(&name),
        false => is_valid(name, &arguments, sample).unwrap_or(true),
    });
    (!is_any_valid).then(expected)
}

/// Whether a value fits its kind; `None` if there is no such kind.
pub(super) fn is_valid(name: &str, arguments: &[&str], value: &str) -> Option<bool> {
    let is_word = is_valid_word(name, arguments, value).or_else(|| is_valid_name(name, arguments, value));
    is_word
        .or_else(|| is_valid_resource(name, arguments, value))
        .or_else(|| is_valid_list(name, arguments, value))
        .or_else(|| network::is_valid(name, arguments, value))
        .or_else(|| FREE.contains(&name).then_some(true))
}

/// Whether a value is a word, a number or a path.
fn is_valid_word(name: &str, arguments: &[&str], value: &str) -> Option<bool> {
    Some(match name {
        "words" => arguments.iter().any(|word| words::is_word(word, value)),
        "time" => is_time(value),
        "nanoseconds" => numbers::is_nanoseconds(arguments, value),
        "caseless" => arguments.iter().any(|word| word.eq_ignore_ascii_case(value)),
        "natural" => numbers::natural(value).is_some_and(|number| number > 0),
        "duration" => microseconds(value, "s").is_some_and(|time| time.is_finite() && time >= 1e6),
        "path" => is_path(value),
        "node" => is_path(value) && !paths::is_of_kernel(value),
        "ascii" | "parameter" => is_ascii(arguments, value),
        "policy" => words::is_policy(value, arguments),
        "pattern" => words::is_pattern(value),
        "calendar" => calendar::is_valid(value),
        "absolute" => is_path(value),
        "condition" => {
            is_path(value.strip_prefix('|').unwrap_or(value).trim_start().trim_start_matches('!').trim_start())
        }
        "file" => is_path(value.strip_prefix('-').unwrap_or(value)),
        "directory" => {
            let path = value.strip_prefix('-').unwrap_or(value);
            path == "~" || is_path(path)
        }
        "pidfile" => paths::is_normal(value) && !(value.starts_with('/') && paths::is_of_kernel(value)),
        "search" => paths::is_search(value),
        "opened" => paths::is_open_file(value),
        "program" => value.split_once(':').is_some_and(|(kind, path)| arguments.contains(&kind) && is_path(path)),
        "mode" => numbers::is_mode(value),
        "address" => is_address(value, arguments.contains(&"unix")),
        "signal" => numbers::is_signal(value),
        "account" => words::is_account(value),
        "unit" => words::is_unit(value, arguments),
        "started" => words::is_unit(value, arguments) && unit_form(value) != Some(UnitForm::Template),
        "tasks" => {
            value == "infinity"
                || numbers::is_percentage(value)
                || numbers::integer(value).is_some_and(|count| count > 0)
        }
        _ => return None,
    })
}

/// Whether a value has only characters of ASCII, up to a length.
fn is_ascii(arguments: &[&str], value: &str) -> bool {
    let most = arguments.first().and_then(|most| most.parse::<usize>().ok()).unwrap_or(usize::MAX);
    value.is_ascii() && value.len() <= most
}

/// Whether a value is a number, a name or data.
fn is_valid_name(name: &str, arguments: &[&str], value: &str) -> Option<bool> {
    Some(match name {
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
        "memory" => numbers::is_memory(value, true) && !(value == "infinity" && arguments.contains(&"finite")),
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
        "safe" => words::is_safe(value) && (value.is_ascii() || !arguments.contains(&"ascii")),
        "namespace" => words::is_namespace(value),
        "group" => {
            !value.contains('/')
                && !value.starts_with(['_', '.'])
                && !["cgroup.", "cpu."].iter().any(|begin| value.starts_with(begin))
        }
        _ => return None,
    })
}

/// Whether a value names resources.
fn is_valid_resource(name: &str, arguments: &[&str], value: &str) -> Option<bool> {
    Some(match name {
        "statuses" => resources::are_statuses(value),
        "device" => resources::is_device(value),
        "ports" => resources::are_ports(value),
        "processors" => resources::are_processors(value),
        "affinity" => value == "numa" || resources::are_processors(value),
        "nodes" => value == "all" || resources::are_processors(value),
        "rated" => resources::is_of_device("rate", arguments, value),
        "weighted" => resources::is_of_device("weight", arguments, value),
        "latency" => resources::is_of_device("time", arguments, value),
        "interface" => value == "*" || resources::is_interface(value, 15),
        "netlink" => resources::is_netlink(value, arguments),
        _ => return None,
    })
}

/// Whether the words of a value are valid.
fn is_valid_list(name: &str, arguments: &[&str], value: &str) -> Option<bool> {
    let all = |words: Option<Vec<String>>, is_valid: &dyn Fn(&str) -> bool| {
        words.is_some_and(|words| words.iter().all(|word| is_valid(word)))
    };
    let each = |is_valid: &dyn Fn(&str) -> bool| all(lexer::quoted(value), is_valid);
    let each_escaped = |is_valid: &dyn Fn(&str) -> bool| all(lexer::escaped(value), is_valid);
    let each_tuple = |is_valid: &dyn Fn(&str) -> bool| all(lexer::tuples(value), is_valid);
    let plain = || value.trim_start_matches('~').split_whitespace();
    Some(match name {
        "paths" => each(&paths::is_prefixed),
        "mounts" => each(&|word| word.split(':').next().is_some_and(is_path)),
        "options" => each_tuple(&|word| paths::is_option(word, arguments)),
        "links" => each(&is_path),
        "binds" => each(&paths::is_bind),
        "images" => each_tuple(&|word| paths::is_image(word, true, arguments)),
        "extensions" => each_tuple(&|word| paths::is_image(word, false, arguments)),
        "names" => each_tuple(&|word| paths::is_directory(word, arguments.contains(&"plain"))),
        "documentation" => each(&paths::is_documentation),
        "accounts" => each(&words::is_account),
        "networks" => each(&|word| is_network(word, arguments)),
        "strings" if arguments.contains(&"escaped") => each_escaped(&|_| true),
        "strings" => each(&|_| true),
        "capabilities" => plain().all(words::is_capability),
        "syscalls" => words::are_calls(value, !arguments.contains(&"plain")),
        "list" => words::is_word("bool", value) || plain().all(|word| word != "bool" && arguments.contains(&word)),
        "each" => {
            // A boolean stands alone.
            let has_several = lexer::quoted(value).is_some_and(|words| words.len() > 1);
            let known = || arguments.iter().filter(|word| !(has_several && **word == "bool"));
            each(&|word| known().any(|known| words::is_word(known, word)))
        }
        "units" => value.split_whitespace().all(|word| words::is_unit(word, arguments)),
        "variables" => each_escaped(&words::is_variable),
        "names_of_variables" => each(&words::is_variable_name),
        "unset" => each_escaped(&|word| words::is_variable(word) || words::is_variable_name(word)),
        "fields" => each_escaped(&words::is_field),
        "families" => each(&words::is_family),
        "filesystems" => {
            lexer::quoted(value).is_some() && plain().all(|word| !word.starts_with('@') || is_in("filesystems", word))
        }
        "interfaces" => all(lexer::quoted(value.trim_start_matches('~')), &|word| resources::is_interface(word, 127)),
        "sets" => each(&|word| resources::is_set(word, arguments)),
        _ => return None,
    })
}
