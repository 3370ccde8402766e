//! Lines as `read_line()` of systemd divides them: a line ends behind any of newline, carriage return and NUL, or behind a run of different
//! ones; behind a NUL it always ends.

use super::MAX_LINE;

/// A line is longer than what the programs read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// The lines of a file without their ends.
pub(super) fn lines(content: &[u8]) -> impl Iterator<Item = Result<&[u8], TooLong>> {
    let mut left = content;
    std::iter::from_fn(move || {
        if left.is_empty() {
            return None;
        }
        let len = left.iter().position(|byte| is_end(*byte)).unwrap_or(left.len());
        if len >= MAX_LINE {
            left = &[];
            return Some(Err(TooLong));
        }
        let (line, rest) = left.split_at(len);
        left = rest.get(end(rest)..).unwrap_or_default();
        Some(Ok(line))
    })
}

fn is_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | 0)
}

/// Length of the end that is at the start.
fn end(content: &[u8]) -> usize {
    let mut len = 0;
    while let Some(byte) = content.get(len).filter(|byte| is_end(**byte)) {
        let before = &content[..len];
        if before.contains(byte) || before.contains(&0) {
            break;
        }
        len += 1;
    }
    len
}

#[cfg(test)]
mod tests {
    use super::super::MAX_LINE;
    use super::{TooLong, lines};

    #[test]
    fn lines_end_as_for_systemd() {
        for (content, expected) in [
            (&b""[..], &[][..]),
            (b"a", &["a"]),
            (b"a\n", &["a"]),
            (b"a\n\nb", &["a", "", "b"]),
            (b"a\r\nb\n\rc\rd", &["a", "b", "c", "d"]),
            (b"a\r\r\nb", &["a", "", "b"]),
            (b"a\0b\n\0c\0\nd", &["a", "b", "c", "", "d"]),
        ] {
            let found: Vec<_> =
                lines(content).map(|line| String::from_utf8_lossy(line.unwrap()).into_owned()).collect();
            assert_eq!(found, expected, "{content:?}");
        }
        let line = vec![b'a'; MAX_LINE];
        assert_eq!(lines(&line).collect::<Vec<_>>(), [Err(TooLong)]);
        assert_eq!(lines(&line[1..]).count(), 1);
    }
}
