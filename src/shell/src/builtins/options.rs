//! `set`: options and positional parameters.

use std::rc::Rc;

use crate::eval::Run;
use crate::shell::Shell;
use crate::state::Flags;

const NAMES: [(u8, &[u8]); 7] = [
    (b'a', b"allexport"),
    (b'C', b"noclobber"),
    (b'e', b"errexit"),
    (b'f', b"noglob"),
    (b'u', b"nounset"),
    (b'x', b"xtrace"),
    (b'v', b"verbose"),
];

fn flag(flags: &mut Flags, letter: u8) -> Option<&mut bool> {
    Some(match letter {
        b'a' => &mut flags.allexport,
        b'C' => &mut flags.noclobber,
        b'e' => &mut flags.errexit,
        b'f' => &mut flags.noglob,
        b'u' => &mut flags.nounset,
        b'x' => &mut flags.xtrace,
        b'v' => &mut flags.verbose,
        _ => return None,
    })
}

/// What `$-` has, in the order of dash.
pub(crate) fn letters(flags: &Flags) -> String {
    let letters = [
        (flags.nounset, 'u'),
        (flags.allexport, 'a'),
        (flags.noclobber, 'C'),
        (flags.verbose, 'v'),
        (flags.xtrace, 'x'),
        (flags.stdin, 's'),
        (flags.noglob, 'f'),
        (flags.errexit, 'e'),
    ];
    letters.into_iter().filter_map(|(set, letter)| set.then_some(letter)).collect()
}

/// All options of dash, in the order of its lists. Those that are not in [`NAMES`] cannot be set here.
const LISTED: [&str; 18] = [
    "errexit",
    "noglob",
    "ignoreeof",
    "interactive",
    "monitor",
    "noexec",
    "stdin",
    "xtrace",
    "verbose",
    "vi",
    "emacs",
    "noclobber",
    "allexport",
    "notify",
    "nounset",
    "privileged",
    "nolog",
    "debug",
];

/// `set -o` and `set +o` without a name.
fn list(shell: &mut Shell<'_>, as_commands: bool) -> Run<()> {
    let mut flags = shell.state.flags;
    let mut text = String::from(if as_commands { "" } else { "Current option settings\n" });
    for name in LISTED {
        let letter = NAMES.iter().find(|(_, found)| *found == name.as_bytes()).map(|(letter, _)| *letter);
        let is_on = letter.and_then(|letter| flag(&mut flags, letter)).is_some_and(|flag| *flag);
        let is_on = is_on || (name == "stdin" && flags.stdin);
        text += &match (as_commands, is_on) {
            (true, true) => format!("set -o {name}\n"),
            (true, false) => format!("set +o {name}\n"),
            (false, true) => format!("{name:<16}on\n"),
            (false, false) => format!("{name:<16}off\n"),
        };
    }
    shell.out(text.as_bytes())
}

/// `set`
pub(super) fn set(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    if args.is_empty() {
        return shell.unsupported(b"a list of variables");
    }
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let (on, option_letters) = match arg.split_first() {
            Some((b'-', b"-")) => {
                shell.state.params = Rc::new(args[at + 1..].to_vec());
                shell.restart_options();
                return Ok(0);
            }
            Some((b'-', rest)) => (true, rest),
            Some((b'+', rest)) => (false, rest),
            _ => break,
        };
        at += 1;
        for letter in option_letters {
            let letter = match letter {
                b'o' => {
                    let Some(name) = args.get(at) else {
                        list(shell, !on)?;
                        continue;
                    };
                    at += 1;
                    match NAMES.iter().find(|(_, found)| found == name) {
                        Some((letter, _)) => *letter,
                        None => return shell.unsupported(&[b"-o ", &name[..]].concat()),
                    }
                }
                letter => *letter,
            };
            match flag(&mut shell.state.flags, letter) {
                Some(flag) => *flag = on,
                None => return shell.unsupported(&[b'-', letter]),
            }
            shell.state.flags.ends_on_failure &= on || letter != b'e';
        }
    }
    if at < args.len() {
        shell.state.params = Rc::new(args[at..].to_vec());
        shell.restart_options();
    }
    Ok(0)
}
