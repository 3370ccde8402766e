//! perl(1) with programs that scripts of Debian contain: an empty one, which tests whether it runs, and that of ucf up to Debian 12.

use vmbake_shell::{Call, Outcome};

use super::programs::{ends, is_present};
use super::{Command, Done, System};

/// Quotes each line for a regular expression, and ends it with two line feeds, one of which is that of `-l`.
const QUOTES: [&[u8]; 2] = [b"-nle", br#"print "\Q$_\E\n""#];

pub(super) fn find(name: &str, call: &Call<'_>) -> Option<Command> {
    let args: Vec<&[u8]> = call.args.iter().map(Vec::as_slice).collect();
    match args.as_slice() {
        _ if name != "perl" => None,
        [b"-e", b""] => Some(nothing),
        args if args == QUOTES => Some(quote),
        _ => None,
    }
}

fn nothing(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    ends(call, Outcome::Status(0))
}

fn quote(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if is_present(call) {
        let input = (call.stdin)();
        for line in
            input.strip_suffix(b"\n").unwrap_or(&input).split(|byte| *byte == b'\n').filter(|_| !input.is_empty())
        {
            call.stdout.extend(quotemeta(line));
            call.stdout.extend(b"\n\n");
        }
    }
    ends(call, Outcome::Status(0))
}

/// As the function of Perl does with bytes: anything but letters and digits of ASCII and `_` gets a backslash.
fn quotemeta(line: &[u8]) -> Vec<u8> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    line.iter().flat_map(|byte| if is_word(byte) { vec![*byte] } else { vec![b'\\', *byte] }).collect()
}
