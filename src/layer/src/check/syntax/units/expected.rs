//! What kinds of values are called in messages.

/// What a kind is called in messages, together with words that the setting takes as well.
pub(super) fn expected(name: &str, arguments: &[&str], alternatives: &[&str]) -> String {
    let kind = of_kind(name, arguments);
    match alternatives {
        [] => kind,
        [word] => format!("{kind}, or {}", list(&[word])),
        words => format!("{kind}, or one of {}", list(words)),
    }
}

/// Words with commas.
fn list(words: &[&str]) -> String {
    let words = words.iter().map(|word| match *word {
        "bool" => "yes, no".to_owned(),
        "negative" => "no".to_owned(),
        "weight" => "a number from 1 to 10000".to_owned(),
        "hexadecimal" => "a hexadecimal number".to_owned(),
        word if word.contains("..") => match word.split_once("..") {
            Some(("", most)) => format!("a number up to {most}"),
            Some((least, most)) => format!("a number from {least} to {most}"),
            None => word.to_owned(),
        },
        word if word.ends_with([':', '/']) => format!("{word}..."),
        word => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn of_kind(name: &str, arguments: &[&str]) -> String {
    let text = match name {
        "words" | "list" | "each" | "caseless" => return format!("one of {}", list(arguments)),
        "ip" | "ips" => {
            return format!("{}, as in {}", if name == "ip" { "an address" } else { "addresses" }, example(arguments));
        }
        "prefix" | "prefixes" | "masks" => {
            return format!(
                "an address and the length of its prefix, as in {}/{}",
                example(arguments),
                if arguments.contains(&"4") { 24 } else { 64 }
            );
        }
        "range" => return format!("a number or a range of numbers from {}", arguments.join(" to ")),
        "integers" => return format!("numbers from {}", arguments.join(" to ")),
        "amount" | "rate" | "span" if arguments.len() > 1 => return limits(name, arguments),
        "nanoseconds" if arguments.len() > 1 => {
            return format!("a time from {}ns to {}ns", arguments[0], arguments[1]);
        }
        "natural" => "a number of at least 1",
        "amount" => "a size such as 10M",
        "rate" => "a rate such as 10M",
        "span" => "a time such as 5min",
        "server" => "an address such as 10.0.0.1:53#dns.example.org",
        "servers" => "addresses such as 10.0.0.1:53#dns.example.org",
        "endpoint" => "HOST:PORT",
        "host" => "a host name",
        "hosts" => "host names or addresses",
        "domains" | "suffixes" => "domain names",
        "protocol" => "a protocol such as tcp, or its number",
        "circuit" => "string:TEXT",
        "mac" | "macs" => "an address such as 00:11:22:33:44:55",
        "ifname" => "the name of a network interface",
        "ifnames" | "patterns" => "names of network interfaces",
        "percentage" | "permille" => "a percentage such as 12.5%",
        "hexadecimal" => return format!("a hexadecimal number of at most {} digits", arguments.join("")),
        "class" => "MAJOR:MINOR in hexadecimal",
        "bytes_of" => "hexadecimal digits",
        "key" => "a key of 32 bytes in base64",
        "raw" => "bytes such as 00:1f:ff",
        "map" => "pairs of numbers such as 1-2",
        "mark" => "a number, or MARK/MASK",
        "url" => "an address such as https://NAME",
        "zone" => "the name of a time zone",
        "option" => "NUMBER:TYPE:VALUE",
        "amounts" => "sizes such as 10M",
        "listener" => "an address, perhaps with udp: or tcp: before it and a port after it",
        "hop" => "ADDRESS@INTERFACE",
        "hops" => "ID:WEIGHT",
        "token" => "an address, eui64 or prefixstable",
        "mac_or_ip" => "an address such as 239.0.0.1 or 01:00:5e:00:00:01",
        "link" => "the name or number of a network interface",
        "hostname" => "a host name",
        "levels" => "a level such as info, or TARGET:LEVEL",
        "metrics" => "a number, or HIGH:MEDIUM:LOW",
        "users" => "the name or id of a user, or a range of ids",
        "table" => "a number from 1 to 4294967295, or the name of a table",
        "tables" => "NAME:NUMBER",
        "duid" => "vendor, uuid, link-layer, link-layer-time or a number up to 65535",
        "properties" => "NAME=VALUE",
        "integer" => return format!("a number from {}", arguments.join(" to ")),
        "unit" | "units" | "started" if !arguments.is_empty() => {
            return format!("the name of a .{} unit", arguments.join(" or ."));
        }
        "time" | "nanoseconds" => "a time such as 5min",
        "path" | "file" | "condition" => "an absolute path without ..",
        "node" => "an absolute path that is not below /dev, /proc or /sys",
        "paths" | "mounts" | "links" => "absolute paths without ..",
        "ascii" | "parameter" => return format!("at most {} ASCII characters", arguments.join("")),
        "options" => "PARTITION:OPTIONS",
        "policy" => "PARTITION=POLICY between colons, such as root=verity+signed:usr=absent",
        "pattern" => "a regular expression",
        "calendar" => "a time such as Mon *-*-* 03:00",
        "directory" => "~ or an absolute path without ..",
        "names" => "relative paths",
        "mode" => "an octal mode such as 0755",
        "address" if arguments.contains(&"unix") => "an absolute path or @NAME",
        "address" => "a port, ADDRESS:PORT, an absolute path or @NAME",
        "signal" => "a signal such as SIGTERM",
        "statuses" => "exit statuses or signals such as 143 or SIGTERM",
        "processors" => "numbers of processors such as 0-3,8",
        "nodes" => "numbers of memory nodes such as 0-1, or all",
        "affinity" => "numbers of processors such as 0-3,8, or numa",
        "rated" => "a path and a size such as 10M",
        "weighted" => return format!("a path and a weight from {}", arguments.join(" to ")),
        "latency" => "a path and a time such as 25ms",
        "interface" => "the name of a network interface",
        "interfaces" => "names of network interfaces",
        "netlink" => "a netlink family such as route, and optionally a number",
        "sets" => return format!("SOURCE:FAMILY:TABLE:SET with a source of {}", arguments.join(", ")),
        "binds" => "SOURCE:DESTINATION:rbind with absolute paths",
        "images" => "absolute paths of images, places where they are mounted and options",
        "extensions" => "absolute paths of images and options",
        "opened" => "PATH:NAME:OPTIONS with one of read-only, append and truncate",
        "search" => "absolute paths between colons",
        "absolute" => "an absolute path without ..",
        "program" => return format!("TYPE:PATH with one of {}", list(arguments)),
        "pidfile" => "a path without ..",
        "safe" => "a text without quotes and backslashes",
        "strings" => "words with balanced quotes",
        "documentation" => "addresses such as https://NAME or man:NAME(8)",
        "errno" => "an error such as EPERM or kill",
        "names_of_variables" => "names of variables",
        "unset" => "names of variables or NAME=VALUE",
        "fields" => "FIELD=VALUE with a field in upper case",
        "loaded" => "NAME:SOURCE, with a source that is an absolute path or a name",
        "credential" => "NAME:VALUE",
        "imported" => "a name, which may end with *",
        "data" => "base64",
        "input" => "text with escape sequences such as \\n",
        "hash" => "32 hexadecimal digits or more, or an absolute path",
        "signature" => "base64: and data, or an absolute path",
        "bus" => "a name such as org.example.Name",
        "label" => "a name without colons",
        "namespace" => "a name without slashes and blanks",
        "group" => "the name of a control group",
        "filesystems" => "types of file systems or groups of them such as @network",
        "duration" => "a time of at least 1s",
        "quota" => "a percentage such as 150%",
        "device" => "a device below /dev, char-NAME or block-NAME, and rights such as rw",
        "ports" => "ports such as tcp:80 or ipv6:udp:1024-2048",
        "capabilities" => "capabilities such as CAP_NET_BIND_SERVICE",
        "syscalls" => "known system calls or groups such as @system-service, with an error only after ~",
        "tasks" => "a number, a percentage or infinity",
        "networks" => "addresses such as 10.0.0.0/8, any or localhost",
        "accounts" => "names or ids of accounts",
        "account" => "the name or id of an account",
        "limit" => "a limit, infinity or SOFT:HARD with a soft limit that is not above the hard one",
        "memory" if arguments.contains(&"finite") => "a size such as 512M, or a percentage",
        "size" | "memory" => "a size such as 512M, a percentage or infinity",
        "bytes" => "a size such as 512M",
        "percent" => "a percentage such as 20%",
        "unit" => "the name of a unit such as NAME.service",
        "units" => "names of units such as NAME.service",
        "variables" => "NAME=VALUE",
        "families" => "families such as AF_INET",
        _ => "a value",
    };
    text.to_owned()
}

/// An address of the families of a kind.
fn example(arguments: &[&str]) -> &'static str {
    if arguments.contains(&"4") { "10.0.0.1" } else { "2001:db8::1" }
}

/// The limits of sizes in bytes, of rates, and of times in microseconds.
fn limits(name: &str, arguments: &[&str]) -> String {
    let unit = if name == "span" { " microseconds" } else { "" };
    let what = match name {
        "span" => "time",
        "rate" => "rate",
        _ => "size",
    };
    format!("a {what} from {}{unit} to {}{unit}", arguments[0], arguments[1])
}
