//! Marked blocks of lines in files that other programs also write.

use crate::error::Error;
use crate::plan::Block;
use crate::root::{Owner, Root};
use crate::template::{self, Fault, Scope, Writing};

/// Maximum length of a file, in bytes.
const MAX_FILE: u64 = 4 << 20;

/// Updates all blocks. If the addresses of a host cannot be resolved, its block stays unchanged; the
/// errors are returned after all blocks are done.
pub fn write(root: &Root, blocks: &[Block], scope: &Scope) -> Result<Vec<Fault>, Error> {
    let mut unresolved = Vec::new();
    for block in blocks {
        let fault = Error::fault(&block.path);
        let text = match template::holds(block.when.as_deref(), scope).map_err(&fault)? {
            false => None,
            true => match template::render(&block.text, scope, Writing::Lines) {
                Ok(text) => Some(text),
                Err(unknown @ Fault::Unresolved { .. }) => {
                    unresolved.push(unknown);
                    continue;
                }
                Err(other) => return Err(fault(other)),
            },
        };
        replace(root, block, text.as_deref())?;
    }
    Ok(unresolved)
}

fn replace(root: &Root, block: &Block, text: Option<&str>) -> Result<(), Error> {
    let found = root.find(&block.path)?;
    let owner = match &found {
        Some(found) => Owner { mode: found.mode, uid: found.uid, gid: found.gid },
        None => Owner { mode: 0o644, uid: 0, gid: 0 },
    };
    let old = root.read(&block.path, MAX_FILE)?.unwrap_or_default();
    let new = with_block(&old, &block.name, text.map(str::as_bytes));
    // Even if nothing is new: each write removes the temporary file of a killed run.
    match found {
        None if new.is_empty() => root.remove(&block.path).map(drop),
        _ => root.write(&block.path, &new, &owner).map(drop),
    }
}

/// `old` with the block's lines replaced in place, appended, or removed. A begin mark without an end mark
/// is removed alone.
fn with_block(old: &[u8], name: &str, text: Option<&[u8]>) -> Vec<u8> {
    let (begin, end) = (format!("# BEGIN {name}"), format!("# END {name}"));
    let lines: Vec<&[u8]> = old.split_inclusive(|byte| *byte == b'\n').collect();
    let is = |line: &[u8], mark: &str| line.trim_ascii() == mark.as_bytes();
    let mut block = Vec::new();
    if let Some(text) = text {
        block.extend_from_slice(format!("{begin}\n").as_bytes());
        block.extend_from_slice(text);
        if !text.is_empty() && !text.ends_with(b"\n") {
            block.push(b'\n');
        }
        block.extend_from_slice(format!("{end}\n").as_bytes());
    }
    let (mut new, mut placed, mut at) = (Vec::new(), false, 0);
    while let Some(line) = lines.get(at) {
        at += 1;
        if is(line, &begin) {
            let rest = &lines[at..];
            let next_begin = rest.iter().position(|line| is(line, &begin)).unwrap_or(rest.len());
            if let Some(length) = rest[..next_begin].iter().position(|line| is(line, &end)) {
                at += length + 1;
            }
            if !placed {
                new.extend_from_slice(&block);
                placed = true;
            }
        } else if !is(line, &end) {
            new.extend_from_slice(line);
        }
    }
    if !placed && !block.is_empty() {
        if !new.is_empty() && !new.ends_with(b"\n") {
            new.push(b'\n');
        }
        new.extend_from_slice(&block);
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(old: &str, text: Option<&str>) -> String {
        String::from_utf8(with_block(old.as_bytes(), "names", text.map(str::as_bytes))).unwrap()
    }

    #[test]
    fn a_block_is_added_replaced_in_place_and_removed() {
        let with = "127.0.0.1 localhost\n# BEGIN names\n10.0.0.1 a\n# END names\n";
        assert_eq!(replaced("127.0.0.1 localhost", Some("10.0.0.1 a\n")), with);
        assert_eq!(replaced(with, Some("10.0.0.1 a\n")), with);
        let more = format!("{with}# mine\n");
        assert_eq!(replaced(&more, Some("b")), more.replace("10.0.0.1 a", "b"));
        assert_eq!(replaced(&more, None), "127.0.0.1 localhost\n# mine\n");
        assert_eq!(replaced("x\n", None), "x\n");
    }

    #[test]
    fn damaged_marks_take_no_other_line_along() {
        assert_eq!(replaced("# BEGIN names\nmine\n", Some("a\n")), "# BEGIN names\na\n# END names\nmine\n");
        assert_eq!(replaced("mine\n# END names\n", None), "mine\n");
        let twice = "# BEGIN names\nlost\n# BEGIN names\na\n# END names\n";
        assert_eq!(replaced(twice, Some("b\n")), "# BEGIN names\nb\n# END names\nlost\n");
    }
}
