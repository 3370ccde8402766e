//! Console output: bytes in; boot failures and relevant lines out.

use vmbake_common::escape;

/// Maximum kept length: the end of the output.
const MAX_KEPT: usize = 256 << 10;
/// Number of reported lines: the end, or the context of the first sign of failure.
const LINES: usize = 40;
/// Number of lines before the sign.
const BEFORE: usize = 10;
/// Signs of a failed boot.
const TROUBLE: [&str; 7] = [
    "Kernel panic",
    "You are in emergency mode",
    "Entering emergency mode",
    "Gave up waiting for root",
    "No bootable device",
    "grub rescue>",
    "BdsDxe: No bootable option or device was found",
];

/// The end of the console output.
#[derive(Debug, Default)]
pub struct Console {
    kept: Vec<u8>,
    trouble: Option<&'static str>,
}

impl Console {
    /// Appends output.
    pub fn push(&mut self, bytes: &[u8]) {
        let longest = TROUBLE.iter().map(|sign| sign.len()).max().unwrap_or_default();
        let from = self.kept.len().saturating_sub(longest);
        self.kept.extend_from_slice(bytes);
        if self.trouble.is_none() {
            let text = String::from_utf8_lossy(&self.kept[from..]);
            self.trouble = TROUBLE.into_iter().find(|sign| text.contains(sign));
        }
        let more = self.kept.len().saturating_sub(MAX_KEPT);
        // Amortized.
        if more > MAX_KEPT / 4 {
            self.kept.drain(..more);
        }
    }

    /// The sign of a failed boot, if any.
    pub fn trouble(&self) -> Option<&'static str> {
        self.trouble
    }

    /// The relevant lines, escaped.
    pub fn tail(&self) -> String {
        let text = escape::lines(&plain(&String::from_utf8_lossy(&self.kept)));
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let sign = self.trouble.and_then(|sign| lines.iter().position(|line| line.contains(sign)));
        let from = match sign {
            Some(at) => at.saturating_sub(BEFORE),
            None => lines.len().saturating_sub(LINES),
        };
        lines[from..].iter().take(LINES).map(|line| format!("{line}\n")).collect()
    }
}

/// Strips control sequences (ECMA-48, 5.4) and carriage returns.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' if chars.next_if_eq(&'[').is_some() => {
                // Parameter and intermediate bytes, up to the final byte.
                while chars.next_if(|char| (' '..='?').contains(char)).is_some() {}
                chars.next_if(|char| ('@'..='~').contains(char));
            }
            '\u{1b}' => {
                while chars.next_if(|char| (' '..='/').contains(char)).is_some() {}
                chars.next_if(|char| ('0'..='~').contains(char));
            }
            '\r' => {}
            '\t' => plain.push(' '),
            char => plain.push(char),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_of_trouble_may_come_in_pieces() {
        let mut console = Console::default();
        for number in 0..100 {
            console.push(format!("line {number}\r\n").as_bytes());
        }
        assert_eq!((console.trouble(), console.tail().lines().count()), (None, LINES));
        assert!(console.tail().ends_with("line 99\n"));
        console.push(b"[    1.0] Kernel pa");
        console.push(b"nic - not syncing\r\n");
        (0..100).for_each(|number| console.push(format!("more {number}\n").as_bytes()));
        assert_eq!(console.trouble(), Some("Kernel panic"));
        let tail = console.tail();
        assert!(
            tail.starts_with("line 90\n") && tail.contains("Kernel panic") && tail.ends_with("more 28\n"),
            "{tail}"
        );
    }

    #[test]
    fn what_is_kept_is_bounded_and_shown_as_text() {
        let mut console = Console::default();
        (0..5000).for_each(|_| console.push(&[b'a'; 1000]));
        assert!(console.kept.len() <= MAX_KEPT / 4 * 5 + 1000);
        let mut console = Console::default();
        console.push(b"\x1b[0;1;31m[FAILED]\x1b[0m a\x1b(B\x1b]0;title\x07\xff\r\n\x1b");
        assert_eq!(console.tail(), "[FAILED] a0;title\\x07\u{fffd}\n");
    }
}
