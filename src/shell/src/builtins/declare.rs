//! `declare`, `typeset`, `local`, `export` and `readonly` of bash.

mod print;

use std::rc::Rc;

use crate::eval::{Run, Stop};
use crate::expand::Entry;
use crate::shell::Shell;
use crate::state::Variable;
use crate::syntax::words::is_name;
use crate::variables::{Array, Associative};

/// Which of the builtins runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Declare,
    Local,
    Export,
    Readonly,
}

/// Options of `declare`: a letter is set by `-` and unset by `+`.
#[derive(Debug, Default)]
struct Options {
    set: Vec<u8>,
    unset: Vec<u8>,
}

impl Options {
    fn has(&self, letter: u8) -> bool {
        self.set.contains(&letter)
    }
}

/// An operand such as `name[subscript]+=value`.
struct Operand<'a> {
    name: &'a [u8],
    subscript: Option<&'a [u8]>,
    append: bool,
    value: Option<&'a [u8]>,
}

impl<'a> Operand<'a> {
    fn parse(text: &'a [u8]) -> Option<Self> {
        let len = text.iter().position(|byte| matches!(byte, b'=' | b'[' | b'+')).unwrap_or(text.len());
        let (name, mut rest) = text.split_at(len);
        let mut subscript = None;
        if rest.starts_with(b"[") {
            let close = (1..rest.len()).find(|at| {
                rest[*at] == b']' && matches!(rest.get(at + 1..), Some([] | [b'=', ..] | [b'+', b'=', ..]))
            })?;
            subscript = Some(&rest[1..close]);
            rest = &rest[close + 1..];
        }
        let (append, value) = match rest {
            [] => (false, None),
            [b'=', value @ ..] => (false, Some(value)),
            [b'+', b'=', value @ ..] => (true, Some(value)),
            _ => return None,
        };
        is_name(name).then_some(Self { name, subscript, append, value })
    }
}

/// `declare`, `typeset`
pub(super) fn declare(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    run(shell, Kind::Declare, args)
}

/// `local`
pub(super) fn local(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    if shell.state.functions_running == 0 {
        declare_lists(shell, args)?;
        shell.complain(b"local: can only be used in a function")?;
        return Ok(1);
    }
    run(shell, Kind::Local, args)
}

/// Lists that bash assigns, as `declare` would, before `local` sees that no function runs.
fn declare_lists(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<()> {
    let lists = std::mem::take(&mut shell.arrays);
    if lists.is_empty() {
        return Ok(());
    }
    let options = args.iter().take_while(|arg| arg.starts_with(b"-") || arg.starts_with(b"+"));
    let mut declared: Vec<Vec<u8>> = options.cloned().collect();
    let known = |letter: &u8| b"aAilu".contains(letter);
    if !declared.iter().all(|option| option.starts_with(b"-") && option.len() > 1 && option[1..].iter().all(known)) {
        return shell.unsupported(b"local of a list with these options, outside of functions");
    }
    for (at, entries) in lists {
        shell.arrays.insert(declared.len(), entries);
        declared.push(args.get(at).cloned().unwrap_or_default());
    }
    run(shell, Kind::Declare, &declared).map(|_| ())
}

/// `export`
pub(super) fn export(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    run(shell, Kind::Export, args)
}

/// `readonly`
pub(super) fn readonly(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    run(shell, Kind::Readonly, args)
}

fn run(shell: &mut Shell<'_>, kind: Kind, args: &[Vec<u8>]) -> Run<u8> {
    let mut arrays = std::mem::take(&mut shell.arrays);
    let mut options = Options::default();
    let known: &[u8] = match kind {
        Kind::Declare | Kind::Local => b"aAilurxntgpfFI",
        Kind::Export => b"aAnpf",
        Kind::Readonly => b"aAfnp",
    };
    let mut at = 0;
    while let Some(arg) = args.get(at).filter(|arg| arg.len() > 1 && matches!(arg[0], b'-' | b'+')) {
        if arg == b"--" {
            at += 1;
            break;
        }
        if arg[0] == b'+' && !matches!(kind, Kind::Declare | Kind::Local) {
            break;
        }
        for letter in &arg[1..] {
            if *letter == b'c' && known.contains(&b'i') {
                return shell.unsupported(b"-c");
            }
            if !known.contains(letter) {
                shell.complain(&[b"declare: -", &[*letter][..], b": invalid option"].concat())?;
                return Ok(2);
            }
            if arg[0] == b'-' { options.set.push(*letter) } else { options.unset.push(*letter) }
        }
        at += 1;
    }
    let operands = &args[at..];
    if kind == Kind::Readonly && options.has(b'n') {
        return shell.unsupported(b"readonly -n");
    }
    if options.has(b'f') || options.has(b'F') {
        return functions(shell, kind, &options, operands);
    }
    if operands.is_empty() {
        return shell.unsupported(b"a list of variables");
    }
    if options.has(b'p') && kind != Kind::Declare {
        return shell.unsupported(b"-p");
    }
    let mut status = 0;
    for (number, operand) in (at..).zip(operands) {
        shell.step()?;
        let entries = arrays.remove(&number);
        let done = if options.has(b'p') {
            shell.print_declaration(operand)?
        } else if kind == Kind::Local && operand == b"-" {
            shell.save_flags();
            true
        } else {
            one(shell, kind, &options, operand, entries)?
        };
        status |= u8::from(!done);
    }
    Ok(status)
}

/// `declare -f` and `declare -F` with names: whether these are functions.
fn functions(shell: &mut Shell<'_>, kind: Kind, options: &Options, names: &[Vec<u8>]) -> Run<u8> {
    let silent = matches!(shell.descriptor(1), None | Some(crate::descriptors::Handle::Null));
    if kind != Kind::Declare || names.is_empty() || !(silent || options.has(b'F')) || options.set.len() > 1 {
        return shell.unsupported(b"functions as text");
    }
    let mut status = 0;
    for name in names {
        if !shell.state.functions.contains_key(name) {
            status = 1;
        } else if options.has(b'F') {
            shell.out(&[&name[..], b"\n"].concat())?;
        }
    }
    Ok(status)
}

/// Declares one name; the flag is false if that failed, which has been reported.
fn one(shell: &mut Shell<'_>, kind: Kind, options: &Options, text: &[u8], entries: Option<Vec<Entry>>) -> Run<bool> {
    let operand = match Operand::parse(text) {
        Some(operand) if operand.subscript.is_none() || matches!(kind, Kind::Declare | Kind::Local) => operand,
        _ => {
            shell.complain(&[b"`", text, b"': not a valid identifier"].concat())?;
            return Ok(false);
        }
    };
    let name = operand.name.to_vec();
    let local = match kind {
        Kind::Local => true,
        Kind::Declare => shell.state.functions_running > 0 && !options.has(b'g'),
        _ => false,
    };
    if local {
        if !shell.make_local(&name, options.has(b'I'))? {
            return Ok(false);
        }
        if (options.has(b'a') || options.has(b'A')) && !options.has(b'I') {
            drop_scalar(shell, &name, options.has(b'A'));
        }
        return apply(shell, kind, options, &operand, entries);
    }
    if options.has(b'g') {
        if options.has(b'x') && shell.state.locals.iter().any(|scope| scope.has(&name)) {
            return shell.unsupported(b"declare -gx of a name that is also local");
        }
        return shell.with_global(&name, |shell| apply(shell, kind, options, &operand, entries));
    }
    apply(shell, kind, options, &operand, entries)
}

/// A local variable that becomes an array loses its value.
fn drop_scalar(shell: &mut Shell<'_>, name: &[u8], associative: bool) {
    let variable = entry(shell, name);
    if variable.array.is_none() && !variable.readonly && variable.value.take().is_some() {
        variable.array = Some(Rc::new(match associative {
            true => Array::Associative(Associative::default()),
            false => Array::Indexed(Default::default()),
        }));
    }
}

fn apply(
    shell: &mut Shell<'_>,
    kind: Kind,
    options: &Options,
    operand: &Operand<'_>,
    entries: Option<Vec<Entry>>,
) -> Run<bool> {
    if options.has(b'n') && kind != Kind::Export {
        return refer(shell, options, operand, entries.is_some());
    }
    if options.unset.contains(&b'n') {
        entry(shell, operand.name).attributes.nameref = false;
        return Ok(true);
    }
    let name = shell.target(operand.name)?;
    let assigns = entries.is_some() || operand.value.is_some();
    let declares = matches!(kind, Kind::Declare | Kind::Local);
    if assigns && !(if declares { shell.may_declare(&name)? } else { shell.may_change(&name)? }) {
        // A list ends the line, as an assignment would, and with `set -e` the shell, whatever tests it.
        return match entries {
            Some(_) if shell.ends_by_errors() => Err(Stop::Exit),
            Some(_) => Err(shell.assignment_failed()),
            None => {
                // It is exported all the same.
                if kind == Kind::Export {
                    shell.mark_exported(&name);
                }
                Ok(false)
            }
        };
    }
    let compound = |value: &[u8]| value.starts_with(b"(") && value.ends_with(b")");
    let arrays =
        options.has(b'a') || options.has(b'A') || shell.state.variables.get(&name).is_some_and(|v| v.array.is_some());
    if entries.is_none() && arrays && operand.value.is_some_and(compound) {
        return shell.unsupported(b"the value of an array in quotes");
    }
    // `export` and `readonly` look at these options where they assign.
    if (declares || assigns) && !kind_of_array(shell, (kind, options), &name, operand.subscript.is_some())? {
        return if entries.is_some() { Err(shell.assignment_failed()) } else { Ok(false) };
    }
    change_attributes(shell, options, &name)?;
    match assigned(shell, operand, &name, entries) {
        Ok(false) => Ok(false),
        // The error of an expression leaves the attributes that were asked for.
        Err(Stop::DiscardAll) if declares => {
            finish(shell, kind, options, &name)?;
            Err(Stop::DiscardAll)
        }
        Err(stop) => Err(stop),
        Ok(true) => finish(shell, kind, options, &name),
    }
}

fn assigned(shell: &mut Shell<'_>, operand: &Operand<'_>, name: &[u8], entries: Option<Vec<Entry>>) -> Run<bool> {
    match (entries, operand.value, operand.subscript) {
        (Some(_), _, Some(_)) => shell.unsupported(b"a list for an element of an array"),
        (Some(entries), _, None) => shell.assign_compound(name, entries, operand.append),
        (None, Some(value), Some(subscript)) => {
            let subscript = shell.given_subscript(subscript)?;
            shell.assign_element(name, &subscript, value, operand.append)
        }
        (None, Some(value), None) => shell.assign_text(name, value, operand.append),
        (None, None, _) => Ok(true),
    }
}

/// Makes an array of a variable where options or the subscript want that.
fn kind_of_array(shell: &mut Shell<'_>, (kind, options): (Kind, &Options), name: &[u8], subscript: bool) -> Run<bool> {
    let becomes_readonly = kind == Kind::Readonly || options.has(b'r');
    if options.unset.iter().any(|letter| matches!(letter, b'a' | b'A')) {
        shell.complain(&[name, b": cannot destroy array variables in this way"].concat())?;
        return Ok(false);
    }
    if options.has(b'A') && !shell.make_associative(name)? {
        if becomes_readonly {
            return shell.unsupported(b"an array of another type that becomes read-only");
        }
        shell.complain(&[name, b": cannot convert indexed to associative array"].concat())?;
        return Ok(false);
    }
    if options.has(b'a') && !options.has(b'A') && shell.is_associative(name) {
        if becomes_readonly {
            return shell.unsupported(b"an array of another type that becomes read-only");
        }
        shell.complain(&[name, b": cannot convert associative to indexed array"].concat())?;
        return Ok(false);
    }
    if (options.has(b'a') && !options.has(b'A')) || subscript {
        shell.make_indexed(name)?;
    }
    Ok(true)
}

fn entry<'s>(shell: &'s mut Shell<'_>, name: &[u8]) -> &'s mut Variable {
    Rc::make_mut(&mut shell.state.variables).entry(name.to_vec()).or_default()
}

fn change_attributes(shell: &mut Shell<'_>, options: &Options, name: &[u8]) -> Run<()> {
    shell.own_variables()?;
    let attributes = &mut entry(shell, name).attributes;
    let both = options.has(b'l') && options.has(b'u');
    if options.has(b'l') || options.has(b'u') {
        attributes.lower = options.has(b'l') && !both;
        attributes.upper = options.has(b'u') && !both;
    }
    attributes.integer |= options.has(b'i');
    attributes.trace |= options.has(b't');
    for letter in &options.unset {
        match letter {
            b'l' => attributes.lower = false,
            b'u' => attributes.upper = false,
            b'i' => attributes.integer = false,
            b't' => attributes.trace = false,
            _ => {}
        }
    }
    Ok(())
}

/// Exports and read-only variables, after the assignment.
fn finish(shell: &mut Shell<'_>, kind: Kind, options: &Options, name: &[u8]) -> Run<bool> {
    if options.unset.contains(&b'r') && shell.state.variables.get(name).is_some_and(|found| found.readonly) {
        shell.complain(&[name, b": readonly variable"].concat())?;
        return Ok(false);
    }
    let variable = entry(shell, name);
    match kind {
        Kind::Export => variable.exported = !options.has(b'n'),
        Kind::Readonly => variable.readonly = true,
        Kind::Declare | Kind::Local => {
            variable.readonly |= options.has(b'r');
            variable.exported = (variable.exported || options.has(b'x')) && !options.unset.contains(&b'x');
        }
    }
    Ok(true)
}

/// `declare -n name=target`
fn refer(shell: &mut Shell<'_>, options: &Options, operand: &Operand<'_>, list: bool) -> Run<bool> {
    let others = options.set.iter().any(|letter| !matches!(letter, b'n' | b'g'));
    if list || others || operand.subscript.is_some() || operand.append {
        return shell.unsupported(b"a reference with other attributes");
    }
    let name = operand.name;
    if shell.state.variables.get(name).is_some_and(|found| found.array.is_some() || found.readonly) {
        return shell.unsupported(b"a reference that replaces another variable");
    }
    match operand.value {
        None => return shell.unsupported(b"a reference without a target"),
        Some(target) if !is_name(target) => return shell.unsupported(b"a reference to what is not a name"),
        Some(target) if target == name => return shell.unsupported(b"a reference to itself"),
        Some(target) => shell.store(name, Some(target.to_vec()))?,
    }
    entry(shell, name).attributes.nameref = true;
    Ok(true)
}
