//! `shopt` and `set` of bash.

use std::rc::Rc;

use crate::eval::Run;
use crate::shell::Shell;
use crate::state::{Flags, shopt_name, shopt_names};

/// Options of `set`: their letters, names, and whether a new shell has them.
const OPTIONS: [(u8, &str); 27] = [
    (b'a', "allexport"),
    (b'B', "braceexpand"),
    (0, "emacs"),
    (b'e', "errexit"),
    (b'E', "errtrace"),
    (b'T', "functrace"),
    (b'h', "hashall"),
    (b'H', "histexpand"),
    (0, "history"),
    (0, "ignoreeof"),
    (0, "interactive-comments"),
    (b'k', "keyword"),
    (b'm', "monitor"),
    (b'C', "noclobber"),
    (b'n', "noexec"),
    (b'f', "noglob"),
    (0, "nolog"),
    (b'b', "notify"),
    (b'u', "nounset"),
    (b't', "onecmd"),
    (b'P', "physical"),
    (0, "pipefail"),
    (0, "posix"),
    (b'p', "privileged"),
    (b'v', "verbose"),
    (0, "vi"),
    (b'x', "xtrace"),
];

/// Those that are on in a script, and stay so.
const ON: [&str; 3] = ["braceexpand", "hashall", "interactive-comments"];

/// Whether bash has an option of `set`, and the interpreter implements that it has this value.
pub(super) fn is_known(name: &[u8], on: bool) -> Option<bool> {
    let (_, name) = OPTIONS.into_iter().find(|(_, found)| found.as_bytes() == name)?;
    let mut flags = Flags::default();
    Some(flag(&mut flags, name).is_some() || on == ON.contains(&name) || name == "hashall")
}

/// The name of an option by its letter.
pub(super) fn letter_name(letter: u8) -> Option<&'static str> {
    OPTIONS.into_iter().find(|(found, _)| *found == letter && letter != 0).map(|(_, name)| name)
}

fn flag<'f>(flags: &'f mut Flags, name: &str) -> Option<&'f mut bool> {
    Some(match name {
        "allexport" => &mut flags.allexport,
        "errexit" => &mut flags.errexit,
        "errtrace" => &mut flags.errtrace,
        "functrace" => &mut flags.functrace,
        "noclobber" => &mut flags.noclobber,
        "noglob" => &mut flags.noglob,
        "nounset" => &mut flags.nounset,
        "pipefail" => &mut flags.pipefail,
        "verbose" => &mut flags.verbose,
        "xtrace" => &mut flags.xtrace,
        _ => return None,
    })
}

/// Whether an option of `set` is on.
pub(crate) fn is_set(flags: &Flags, name: &str) -> bool {
    let mut flags = *flags;
    flag(&mut flags, name).map_or(ON.contains(&name), |flag| *flag)
}

/// What `$-` has in a script of bash.
pub(crate) fn letters_of_bash(flags: &Flags) -> String {
    const ORDER: &[u8] = b"abefhkmnptuvxBCEHPT";
    let set = |letter: &u8| letter_name(*letter).is_some_and(|name| is_set(flags, name));
    let source =
        [(flags.argument, 'c'), (flags.stdin, 's')].into_iter().filter_map(|(set, letter)| set.then_some(letter));
    ORDER.iter().copied().filter(set).map(char::from).chain(source).collect()
}

/// Sets an option of `set` by its name. The flag is false if there is none of that name.
fn set_option(shell: &mut Shell<'_>, name: &[u8], on: bool) -> Run<bool> {
    match is_known(name, on) {
        None => {
            shell.complain(&[name, b": invalid option name"].concat())?;
            return Ok(false);
        }
        Some(false) => return shell.unsupported(&[if on { &b"set -o "[..] } else { b"set +o " }, name].concat()),
        Some(true) => {}
    }
    let name = String::from_utf8_lossy(name).into_owned();
    if let Some(flag) = flag(&mut shell.state.flags, &name) {
        *flag = on;
    }
    Ok(true)
}

/// `set`
pub(super) fn set(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    if args.is_empty() {
        return shell.unsupported(b"a list of variables");
    }
    if shell.state.bash.trap_running.is_some() && args.iter().any(|arg| arg == b"pipefail") {
        return shell.unsupported(b"pipefail in a trap for ERR or RETURN");
    }
    if let Some(letter) = unknown_letter(args) {
        shell.complain(&[b"set: -", &[letter][..], b": invalid option"].concat())?;
        return Ok(2);
    }
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let (on, letters) = match arg.split_first() {
            Some((b'-', b"-")) => return Ok(set_params(shell, &args[at + 1..])),
            // The rest are parameters, if there are any.
            Some((b'-', b"")) => {
                (shell.state.flags.xtrace, shell.state.flags.verbose) = (false, false);
                at += 1;
                break;
            }
            Some((b'-', rest)) => (true, rest),
            Some((b'+', rest)) if !rest.is_empty() => (false, rest),
            _ => break,
        };
        at += 1;
        for letter in letters {
            let name = match letter {
                b'o' => {
                    let Some(name) = args.get(at) else {
                        list_of_set(shell, None, !on)?;
                        continue;
                    };
                    at += 1;
                    name.clone()
                }
                letter => match letter_name(*letter) {
                    Some(name) => name.as_bytes().to_vec(),
                    None => {
                        shell.complain(&[b"set: -", &[*letter][..], b": invalid option"].concat())?;
                        return Ok(2);
                    }
                },
            };
            if !set_option(shell, &name, on)? {
                return Ok(2);
            }
        }
    }
    if at < args.len() { Ok(set_params(shell, &args[at..])) } else { Ok(0) }
}

/// The first letter that is not an option: bash looks for one before it sets any.
fn unknown_letter(args: &[Vec<u8>]) -> Option<u8> {
    let mut args = args.iter();
    while let Some((sign @ (b'-' | b'+'), letters)) = args.next().and_then(|arg| arg.split_first()) {
        if letters.is_empty() || (*sign == b'-' && letters == b"-") {
            return None;
        }
        for letter in letters {
            match letter {
                b'o' => drop(args.next()),
                letter if letter_name(*letter).is_none() => return Some(*letter),
                _ => {}
            }
        }
    }
    None
}

/// The options of `set`, or those with this value.
fn list_of_set(shell: &mut Shell<'_>, value: Option<bool>, reusable: bool) -> Run<()> {
    for (_, name) in OPTIONS {
        let on = is_set(&shell.state.flags, name);
        if value.is_none_or(|value| value == on) {
            let line = set_line(name, on, reusable);
            shell.out(line.as_bytes())?;
        }
    }
    Ok(())
}

fn set_line(name: &str, on: bool, reusable: bool) -> String {
    if reusable { format!("set {} {name}\n", if on { "-o" } else { "+o" }) } else { plain_line(name, on) }
}

fn shopt_line(name: &str, on: bool, reusable: bool) -> String {
    if reusable { format!("shopt {} {name}\n", if on { "-s" } else { "-u" }) } else { plain_line(name, on) }
}

fn plain_line(name: &str, on: bool) -> String {
    format!("{name:<15}\t{}\n", if on { "on" } else { "off" })
}

fn set_params(shell: &mut Shell<'_>, params: &[Vec<u8>]) -> u8 {
    shell.state.params = Rc::new(params.to_vec());
    shell.state.bash.params_set = true;
    0
}

/// What the letters before the names of `shopt` say.
#[derive(Default)]
struct Request {
    change: Option<bool>,
    quiet: bool,
    reusable: bool,
    of_set: bool,
}

/// `shopt`
pub(super) fn shopt(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let mut request = Request::default();
    let mut names = args;
    while let Some(letters) = names.first().and_then(|arg| arg.strip_prefix(b"-")).filter(|arg| !arg.is_empty()) {
        names = &names[1..];
        if letters == b"-" {
            break;
        }
        for letter in letters {
            match letter {
                b's' if request.change != Some(false) => request.change = Some(true),
                b'u' if request.change != Some(true) => request.change = Some(false),
                b's' | b'u' => {
                    shell.complain(b"shopt: cannot set and unset shell options simultaneously")?;
                    return Ok(1);
                }
                b'q' => request.quiet = true,
                b'p' => request.reusable = true,
                b'o' => request.of_set = true,
                _ => return Ok(2),
            }
        }
    }
    if names.is_empty() {
        return list(shell, &request).map(|()| 0);
    }
    let mut status = 0;
    for name in names {
        status |= one_option(shell, &request, name)?;
    }
    Ok(status)
}

/// The options of `shopt` or `set`, or those with one value.
fn list(shell: &mut Shell<'_>, request: &Request) -> Run<()> {
    if request.quiet {
        return Ok(());
    }
    if request.of_set {
        return list_of_set(shell, request.change, request.reusable);
    }
    for name in shopt_names() {
        let on = shell.state.bash.shopt(name);
        if request.change.is_none_or(|value| value == on) {
            let line = shopt_line(name, on, request.reusable);
            shell.out(line.as_bytes())?;
        }
    }
    Ok(())
}

fn one_option(shell: &mut Shell<'_>, request: &Request, name: &[u8]) -> Run<u8> {
    let shown = String::from_utf8_lossy(name).into_owned();
    let known = if request.of_set { is_known(name, true).is_some() } else { shopt_name(name).is_some() };
    if !known {
        shell.complain(&[b"shopt: ", name, b": invalid shell option name"].concat())?;
        return Ok(1);
    }
    match (request.change, shopt_name(name)) {
        (Some(on), _) if request.of_set => return set_option(shell, name, on).map(|done| u8::from(!done)),
        (Some(true), Some("expand_aliases")) if !shell.state.bash.aliases.is_empty() => {
            return shell.unsupported(b"an alias that scripts expand");
        }
        (Some(on), Some(option)) => {
            return match shell.state.bash.set_shopt(option, on) {
                true => Ok(0),
                false => shell.unsupported(&[if on { &b"shopt -s "[..] } else { b"shopt -u " }, name].concat()),
            };
        }
        _ => {}
    }
    let on = if request.of_set { is_set(&shell.state.flags, &shown) } else { shell.state.bash.shopt(&shown) };
    if !request.quiet {
        let line = if request.of_set { set_line } else { shopt_line }(&shown, on, request.reusable);
        shell.out(line.as_bytes())?;
    }
    // `-p` looks at one option after the other, and fails as the question does.
    Ok(u8::from(!on))
}
