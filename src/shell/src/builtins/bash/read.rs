//! `read` of bash.

use super::{assign_given, count, letters, make_target, open_descriptor};
use crate::builtins::read::{ask, divide};
use crate::descriptors::Handle;
use crate::eval::Run;
use crate::shell::Shell;

/// What `read` was asked for.
#[derive(Debug)]
struct Request {
    raw: bool,
    fd: u32,
    /// What ends the line; nothing with `-N`.
    delimiter: Option<u8>,
    most: Option<u64>,
    array: Option<Vec<u8>>,
}

/// `read [-ers] [-a array] [-d delim] [-n count] [-N count] [-p prompt] [-u fd] [name…]`
pub(in crate::builtins) fn read(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let Some((found, at)) = letters(shell, args, b"ers", b"adinNptu")? else { return Ok(2) };
    let mut request = Request { raw: false, fd: 0, delimiter: Some(b'\n'), most: None, array: None };
    for (letter, value) in found {
        match letter {
            b'r' => request.raw = true,
            b'a' => request.array = Some(value.to_vec()),
            b'd' => request.delimiter = Some(value.first().copied().unwrap_or(0)),
            b'n' | b'N' => {
                request.most = count(shell, value)?;
                if request.most.is_none() {
                    return Ok(1);
                }
                if letter == b'N' {
                    request.delimiter = None;
                }
            }
            b'u' => match open_descriptor(shell, value)? {
                Some(fd) => request.fd = fd,
                None => return Ok(1),
            },
            b't' => return shell.unsupported(b"a timeout"),
            _ => {}
        }
    }
    let names = &args[at..];
    if let Some(array) = &request.array
        && !make_target(shell, array)?
    {
        return Ok(1);
    }
    if let Some(first) = names.first().filter(|_| request.array.is_none())
        && crate::variables::divide_reference(first).is_none()
    {
        shell.complain(&[b"read: `", &first[..], b"': not a valid identifier"].concat())?;
        return Ok(1);
    }
    if matches!(shell.descriptor(request.fd), Some(Handle::Directory)) {
        shell.complain(b"read: read error: Is a directory")?;
        return Ok(1);
    }
    if request.most.is_some() || request.delimiter.is_some_and(|byte| byte.is_ascii_alphanumeric()) {
        let left = shell.peek(request.fd)?;
        shell.require_fixed(&[left])?;
    }
    let (text, ended) = text(shell, &request)?;
    ask(shell, &text)?;
    if !store(shell, &request, names, &text)? {
        return Ok(1);
    }
    Ok(u8::from(!ended))
}

/// Bytes with whether they may separate fields.
type Text = Vec<(u8, bool)>;

/// What is read, and whether it ended before the input did.
fn text(shell: &mut Shell<'_>, request: &Request) -> Run<(Text, bool)> {
    let mut text = Vec::new();
    loop {
        if request.most.is_some_and(|most| text.len() as u64 >= most) {
            return Ok((text, true));
        }
        let Some(byte) = shell.read_byte(request.fd)? else { return Ok((text, false)) };
        match byte {
            b'\\' if !request.raw => match shell.read_byte(request.fd)? {
                Some(b'\n') => {}
                Some(escaped) => text.push((escaped, false)),
                None => return Ok((text, false)),
            },
            byte if Some(byte) == request.delimiter => return Ok((text, true)),
            0 => {}
            byte => text.push((byte, true)),
        }
        if !byte.is_ascii() && request.most.is_some() {
            shell.ascii_only(&[byte])?;
        }
    }
}

/// Assigns what was read; the flag is false after an error.
fn store(shell: &mut Shell<'_>, request: &Request, names: &[Vec<u8>], text: &Text) -> Run<bool> {
    let bytes = |text: &[(u8, bool)]| text.iter().map(|(byte, _)| *byte).collect::<Vec<u8>>();
    shell.ask_separators()?;
    let ifs = shell.state.ifs();
    if let Some(array) = &request.array {
        // `-N` does not split the input.
        let values = match request.delimiter {
            None if text.is_empty() => Vec::new(),
            None => vec![bytes(text)],
            Some(_) => divide(text, &ifs, usize::MAX),
        };
        return shell.set_indexed(array, values);
    }
    let whole = names.is_empty() || request.delimiter.is_none();
    let reply = [b"REPLY".to_vec()];
    let names = if names.is_empty() { &reply[..] } else { names };
    let values = if whole { vec![bytes(text)] } else { divide(text, &ifs, names.len()) };
    for (at, name) in names.iter().enumerate() {
        if !assign_given(shell, name, values.get(at).map_or(&b""[..], Vec::as_slice))? {
            return Ok(false);
        }
    }
    Ok(true)
}
