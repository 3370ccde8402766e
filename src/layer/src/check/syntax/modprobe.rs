//! Lines of modprobe.d(5): the text of a file in, those out that modprobe ignores.

use vmbake_common::spelling::near;

use super::Problem;

/// Commands, and how many words need to follow.
const COMMANDS: [(&str, usize); 7] =
    [("alias", 2), ("blacklist", 1), ("install", 2), ("options", 2), ("remove", 2), ("softdep", 2), ("weakdep", 2)];

/// Checks commands and the number of their words.
pub(super) fn check(text: &str) -> Vec<Problem> {
    let faults = rules(text).into_iter().filter_map(|(line, rule)| Some((line, fault(&rule)?)));
    faults.map(|(line, reason)| Problem::error(line, format!("is ignored by modprobe: {reason}"))).collect()
}

/// Lines that are neither empty nor comments, with their numbers. A backslash at the end of a line continues it.
fn rules(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut open) = (Vec::new(), None::<(usize, String)>);
    for (number, line) in (1..).zip(text.split('\n')) {
        let (start, mut rule) = open.take().unwrap_or((number, String::new()));
        match line.strip_suffix('\\') {
            Some(continued) => {
                rule.push_str(continued);
                open = Some((start, rule));
            }
            None => {
                rule.push_str(line);
                found.push((start, rule));
            }
        }
    }
    found.retain(|(_, rule)| !rule.trim_matches([' ', '\t']).is_empty() && !rule.starts_with('#'));
    found
}

fn fault(rule: &str) -> Option<String> {
    let words: Vec<&str> = rule.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
    let (command, rest) = words.split_first()?;
    let Some((_, needed)) = COMMANDS.iter().find(|(known, _)| known == command) else {
        let hint =
            near(command, COMMANDS.map(|(known, _)| known)).first().map(|near| format!("; did you mean `{near}`?"));
        return Some(format!("unknown command {command:?}{}", hint.unwrap_or_default()));
    };
    // Of a command, nothing may be left after its blanks.
    let has_empty_command = rest.len() == 1 && ["install", "remove"].contains(command) && rule.ends_with([' ', '\t']);
    if rest.len() < *needed && !has_empty_command {
        return Some(format!("expected {needed} words after {command}, found {}", rest.len()));
    }
    let is_returned = rule.ends_with('\r');
    is_returned
        .then(|| "the line ends with a carriage return, which is a part of its last word; use newlines only".to_owned())
}
