//! Settings of logrotate(8): a text enters, the lines at which logrotate drops the file or a section leave.

use super::{File, Problem, access};

/// Directives that a shell script follows, up to `endscript`.
const SCRIPTS: [&str; 5] = ["prerotate", "postrotate", "firstaction", "lastaction", "preremove"];

/// Checks who may write the file, braces and scripts.
pub(super) fn check(file: &File) -> Vec<Problem> {
    let mut found: Vec<Problem> = access::of_logrotate(file).into_iter().collect();
    let (mut is_open, mut script) = (false, None);
    let mut fault = |line: usize, reason: &str| {
        found.push(Problem::error(line, format!("is not read by logrotate: {reason}")));
    };
    for (index, line) in file.text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        let word = line.split([' ', '\t', '=']).next().unwrap_or_default();
        match line.chars().next() {
            _ if script.is_some() => {
                if word == "endscript" {
                    script = None;
                }
            }
            None | Some('#') => {}
            Some('}') if !is_open => fault(number, "unexpected `}`"),
            Some('}') => is_open = false,
            Some('/' | '"' | '\'') if is_open => fault(number, "expected a directive or `}`, found a path"),
            Some('/' | '"' | '\'') => is_open = line.contains('{'),
            Some('{') if is_open => fault(number, "unexpected `{`"),
            Some('{') => is_open = true,
            Some(_) if SCRIPTS.contains(&word) => script = Some(number),
            Some(_) => {}
        }
    }
    if let Some(number) = script {
        fault(number, "expected `endscript` after the script, found the end of the file");
    }
    found
}
