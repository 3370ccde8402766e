//! Braces of nft(8): a file whose blocks are not closed is refused as a whole, so that a machine has no firewall.

use super::Problem;

/// Checks braces, outside of quotes and comments.
pub(super) fn check_nftables(text: &str) -> Vec<Problem> {
    let (mut open, mut is_quoted) = (Vec::new(), false);
    let fault = |line: usize, reason: &str| vec![Problem::error(line, format!("is refused by nft: {reason}"))];
    for (number, line) in (1..).zip(text.split('\n')) {
        for byte in line.bytes() {
            match byte {
                b'"' => is_quoted = !is_quoted,
                _ if is_quoted => {}
                b'#' => break,
                b'{' => open.push(number),
                b'}' if open.pop().is_none() => return fault(number, "unexpected `}`"),
                _ => {}
            }
        }
    }
    match open.last() {
        Some(line) => fault(*line, "expected `}` for the block that starts here, found the end of the file"),
        None => Vec::new(),
    }
}
