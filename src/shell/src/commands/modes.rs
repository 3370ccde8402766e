//! Modes as chmod(1) takes them: octal and symbolic.

/// The mode that a text makes of `old`; `None` where it is none. A symbolic mode without `ugoa` spares the bits of the umask.
pub(super) fn parse(text: &[u8], old: u16, directory: bool, umask: u16) -> Option<u16> {
    if !text.is_empty() && text.iter().all(|digit| (b'0'..=b'7').contains(digit)) {
        let mode = u16::from_str_radix(std::str::from_utf8(text).ok()?, 8).ok().filter(|mode| *mode <= 0o7777)?;
        // Four digits or fewer do not take set-id bits from a directory.
        let kept = if directory && text.len() <= 4 { old & 0o6000 } else { 0 };
        return Some(mode | kept);
    }
    text.split(|byte| *byte == b',').try_fold(old, |mode, clause| self::clause(clause, mode, directory, umask))
}

fn clause(clause: &[u8], old: u16, directory: bool, umask: u16) -> Option<u16> {
    let operator = clause.iter().position(|byte| matches!(byte, b'+' | b'-' | b'='))?;
    let (mut who, mut rest) = (0, &clause[operator..]);
    for letter in &clause[..operator] {
        who |= match letter {
            b'u' => 0o4700,
            b'g' => 0o2070,
            b'o' => 0o1007,
            b'a' => 0o7777,
            _ => return None,
        };
    }
    let spared = if operator == 0 { umask } else { 0 };
    let who = if operator == 0 { 0o7777 } else { who };
    let mut mode = old;
    while let Some((operator, after)) = rest.split_first() {
        let len = after.iter().position(|byte| matches!(byte, b'+' | b'-' | b'=')).unwrap_or(after.len());
        let bits = permissions(&after[..len], mode, directory)? & who & !spared;
        rest = &after[len..];
        mode = match operator {
            b'+' => mode | bits,
            b'-' => mode & !bits,
            // Set-id bits of a directory stay.
            _ => (mode & !(who & if directory { 0o1777 } else { 0o7777 })) | bits,
        };
    }
    Some(mode)
}

fn permissions(letters: &[u8], mode: u16, directory: bool) -> Option<u16> {
    if let [copy @ (b'u' | b'g' | b'o')] = letters {
        let bits = match copy {
            b'u' => mode >> 6,
            b'g' => mode >> 3,
            _ => mode,
        } & 7;
        return Some(bits << 6 | bits << 3 | bits);
    }
    letters.iter().try_fold(0, |bits, letter| {
        Some(
            bits | match letter {
                b'r' => 0o444,
                b'w' => 0o222,
                b'x' => 0o111,
                b'X' if directory || mode & 0o111 != 0 => 0o111,
                b'X' => 0,
                b's' => 0o6000,
                b't' => 0o1000,
                _ => return None,
            },
        )
    })
}
