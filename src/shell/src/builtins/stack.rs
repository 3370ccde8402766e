//! `pushd`, `popd`, `dirs` and `caller` of bash.

use std::rc::Rc;

use crate::eval::Run;
use crate::shell::Shell;

/// `pushd [directory]`
pub(super) fn pushd(shell: &mut Shell<'_>, args: &[Vec<u8>], tested: bool) -> Run<u8> {
    let old = shell.state.cwd.to_vec();
    let target = match args {
        [] => match shell.state.bash.directories.last().cloned() {
            Some(target) => target,
            None => {
                shell.complain(b"pushd: no other directory")?;
                return Ok(1);
            }
        },
        [target] if !target.starts_with(b"-") && !target.starts_with(b"+") => target.clone(),
        _ => return shell.unsupported(b"options, or a rotation of the stack"),
    };
    if super::directory::cd(shell, &[b"--".to_vec(), target], tested)? != 0 {
        return Ok(1);
    }
    let stack = Rc::make_mut(&mut shell.state.bash.directories);
    if args.is_empty() {
        stack.pop();
    }
    stack.push(old);
    print(shell)
}

/// `popd`
pub(super) fn popd(shell: &mut Shell<'_>, args: &[Vec<u8>], tested: bool) -> Run<u8> {
    if !args.is_empty() {
        return shell.unsupported(b"operands");
    }
    let Some(target) = shell.state.bash.directories.last().cloned() else {
        shell.complain(b"popd: directory stack empty")?;
        return Ok(1);
    };
    if super::directory::cd(shell, &[b"--".to_vec(), target], tested)? != 0 {
        return Ok(1);
    }
    Rc::make_mut(&mut shell.state.bash.directories).pop();
    print(shell)
}

impl Shell<'_> {
    /// The directory that `~0`, `~+1` or `~-1` expands to.
    pub(crate) fn stacked_directory(&self, text: &[u8]) -> Option<Vec<u8>> {
        let (from_end, digits) = match text.split_first()? {
            (b'-', digits) => (true, digits),
            (b'+', digits) => (false, digits),
            _ => (false, text),
        };
        let index: usize = std::str::from_utf8(digits)
            .ok()
            .filter(|_| digits.first().is_some_and(u8::is_ascii_digit))?
            .parse()
            .ok()?;
        let stack = &self.state.bash.directories;
        let index = if from_end { stack.len().checked_sub(index)? } else { index };
        match index.checked_sub(1) {
            None => Some(self.state.cwd.to_vec()),
            Some(below) => stack.iter().rev().nth(below).cloned(),
        }
    }
}

/// `dirs [-c | -p]`
pub(super) fn dirs(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    match args {
        [] => print(shell),
        [option] if option == b"-c" => {
            shell.state.bash.directories = Rc::default();
            Ok(0)
        }
        [option] if option == b"-p" => {
            let text = listed(shell).concat();
            shell.out(&text).map(|()| 0)
        }
        _ => shell.unsupported(b"these operands"),
    }
}

/// The stack, from the top, with `~` for the home directory; each with a newline.
fn listed(shell: &Shell<'_>) -> Vec<Vec<u8>> {
    let home = shell.state.get(b"HOME").filter(|home| home.len() > 1);
    let shown = |path: &[u8]| match home.and_then(|home| path.strip_prefix(home)) {
        Some(rest) if rest.is_empty() || rest.starts_with(b"/") => [b"~", rest, b"\n"].concat(),
        _ => [path, b"\n"].concat(),
    };
    let below = shell.state.bash.directories.iter().rev();
    std::iter::once(&shell.state.cwd[..]).chain(below.map(Vec::as_slice)).map(shown).collect()
}

fn print(shell: &mut Shell<'_>) -> Run<u8> {
    let mut text = listed(shell).concat();
    let len = text.len().saturating_sub(1);
    text[..len].iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
    shell.out(&text).map(|()| 0)
}

/// `caller [number]`: where the running function was called.
pub(super) fn caller(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    shell.require_lines(b"line numbers")?;
    let frames = shell.state.bash.frames.clone();
    let script = |at: usize| match at.checked_sub(1) {
        Some(at) => frames[at].source.as_bytes().to_vec(),
        None => shell.state.zero.to_vec(),
    };
    let text = match args {
        [] => match frames.split_last() {
            Some((frame, rest)) => [frame.line.to_string().as_bytes(), b" ", &script(rest.len()), b"\n"].concat(),
            None => b"0 NULL\n".to_vec(),
        },
        [number] => {
            let Some(number) = super::number(number).and_then(|number| usize::try_from(number).ok()) else {
                return shell.unsupported(number);
            };
            let Some(at) = frames.len().checked_sub(number.saturating_add(1)) else { return Ok(1) };
            let function = at.checked_sub(1).map_or(&b"main"[..], |at| &frames[at].function);
            [frames[at].line.to_string().as_bytes(), b" ", function, b" ", &script(at), b"\n"].concat()
        }
        _ => return shell.unsupported(b"more than one operand"),
    };
    shell.out(&text).map(|()| 0)
}
