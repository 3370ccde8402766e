//! Specifiers in values (systemd.unit(5)).

/// What stands for the instance of a template, or for the name of a unit or of the machine, which only the machine knows.
const UNKNOWN: [&str; 5] = ["x", "1", "10.0.0.1", "/x", "daily"];

/// Possible expansions of a value with specifiers. The value is valid if any of them is.
pub(super) fn samples(value: &str, has_instance: bool) -> Vec<String> {
    UNKNOWN.iter().map(|unknown| expand(value, unknown, has_instance)).collect()
}

fn expand(value: &str, unknown: &str, has_instance: bool) -> String {
    let (mut found, mut chars) = (String::new(), value.chars());
    while let Some(next) = chars.next() {
        if next != '%' {
            found.push(next);
            continue;
        }
        match chars.next() {
            Some('i' | 'I') if !has_instance => {}
            Some(letter) => match known(letter) {
                Some(text) => found.push_str(text),
                // Only these may have slashes.
                None if "IJP".contains(letter) => found.push_str(unknown),
                None if letter.is_ascii_alphanumeric() => found.push_str(unknown.trim_start_matches('/')),
                None => found.extend(['%', letter]),
            },
            None => found.push('%'),
        }
    }
    found
}

/// What a specifier is on machines, or an example of it.
fn known(letter: char) -> Option<&'static str> {
    Some(match letter {
        '%' => "%",
        't' => "/run",
        'S' => "/var/lib",
        'C' => "/var/cache",
        'L' => "/var/log",
        'E' => "/etc",
        'D' => "/usr/share",
        'T' => "/tmp",
        'V' => "/var/tmp",
        'h' => "/root",
        's' => "/bin/sh",
        'd' => "/run/credentials/x.service",
        'y' => "/etc/systemd/system/x.service",
        'Y' => "/etc/systemd/system",
        'f' => "/x",
        'c' | 'r' => "/system.slice",
        'R' => "/",
        'n' => "x.service",
        'u' | 'g' => "root",
        'U' | 'G' => "0",
        'm' | 'b' => "0123456789abcdef0123456789abcdef",
        'a' => "x86-64",
        'A' | 'B' | 'M' | 'W' => "",
        'o' => "debian",
        'w' => "13",
        'v' => "6.12.0",
        _ => return None,
    })
}
