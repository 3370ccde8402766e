//! Blocks and statements of nft(8): a file that nft does not read is refused as a whole, so that a machine has no firewall.
//!
//! Rules themselves are not checked.

mod variables;

use vmbake_common::spelling::near;

use super::Problem;
pub use variables::{NftInclude, includes};

/// Words that begin a statement. Others may be names of tables, to which a rule is added.
const COMMANDS: [&str; 32] = [
    "add",
    "chain",
    "counter",
    "create",
    "ct",
    "define",
    "delete",
    "describe",
    "destroy",
    "element",
    "flowtable",
    "flush",
    "get",
    "include",
    "insert",
    "limit",
    "list",
    "map",
    "monitor",
    "quota",
    "redefine",
    "rename",
    "replace",
    "reset",
    "rule",
    "secmark",
    "set",
    "synproxy",
    "table",
    "undefine",
    "import",
    "export",
];

/// Words that begin a statement of a table.
const IN_TABLE: [&str; 16] = [
    "chain",
    "comment",
    "counter",
    "ct",
    "define",
    "flags",
    "flowtable",
    "include",
    "limit",
    "map",
    "quota",
    "redefine",
    "secmark",
    "set",
    "synproxy",
    "undefine",
];

/// What can be flushed.
const FLUSHED: [&str; 7] = ["chain", "flow", "map", "meter", "ruleset", "set", "table"];

/// Characters that nft refuses everywhere.
const JUNK: [char; 3] = ['\0', '\r', '\u{feff}'];

const FAMILIES: [&str; 6] = ["arp", "bridge", "inet", "ip", "ip6", "netdev"];
const TYPES: [&str; 3] = ["filter", "nat", "route"];
const HOOKS: [&str; 7] = ["egress", "forward", "ingress", "input", "output", "postrouting", "prerouting"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    File,
    Table,
    Chain,
    /// Elements of a set, which do not end the statement, and what is not judged.
    Other,
}

/// What is read so far.
#[derive(Default)]
struct Reader {
    /// Blocks with the lines where they begin.
    open: Vec<(Block, usize)>,
    statement: String,
    /// The line of the statement.
    start: usize,
    /// Whether a block ended, so that a newline or `;` must follow.
    is_ended: bool,
    found: Vec<Problem>,
}

/// Checks braces outside of quotes and comments, first words of statements, and the types of chains.
pub(super) fn check(text: &str) -> Vec<Problem> {
    let (mut reader, mut is_quoted) = (Reader::default(), false);
    for (number, line) in (1..).zip(text.split('\n')) {
        if let Some(found) = line.chars().find(|next| JUNK.contains(next)) {
            reader.fault(
                number,
                &format!("unexpected character {found:?}; use text with newlines only, without a byte order mark"),
            );
            return reader.found;
        }
        let joined = line.strip_suffix('\\');
        for next in joined.unwrap_or(line).chars() {
            let is_comment = next == '#' && !is_quoted;
            if reader.is_ended && !next.is_ascii_whitespace() && !is_comment {
                if next != ';' {
                    reader.fault(number, &format!("expected a newline or `;` after `}}`, found {next:?}"));
                    return reader.found;
                }
                reader.is_ended = false;
            }
            match next {
                '"' => is_quoted = !is_quoted,
                _ if is_quoted => {}
                '#' => break,
                '{' => {
                    reader.begin(number);
                    continue;
                }
                '}' if reader.open.is_empty() => {
                    reader.fault(number, "unexpected `}`");
                    return reader.found;
                }
                '}' => {
                    reader.end();
                    continue;
                }
                ';' if reader.block() != Block::Other => {
                    reader.judge();
                    continue;
                }
                _ => {}
            }
            reader.push(number, next);
        }
        reader.is_ended &= joined.is_some();
        match joined {
            Some(_) => reader.push(number, ' '),
            None if reader.block() == Block::Other => reader.push(number, ' '),
            None => reader.judge(),
        }
    }
    if reader.found.is_empty() {
        variables::faults(text).into_iter().for_each(|(line, reason)| reader.fault(line, &reason));
    }
    if is_quoted {
        reader.fault(text.lines().count(), "expected a closing quote, found the end of the file");
    }
    if let Some((_, line)) = reader.open.last().copied() {
        reader.fault(line, "expected `}` for the block that starts here, found the end of the file");
    }
    reader.found
}

impl Reader {
    fn fault(&mut self, line: usize, reason: &str) {
        self.found.push(Problem::error(line, format!("is refused by nft: {reason}")));
    }

    fn block(&self) -> Block {
        self.open.last().map_or(Block::File, |(block, _)| *block)
    }

    fn push(&mut self, line: usize, next: char) {
        if self.statement.trim().is_empty() {
            self.start = line;
        }
        self.statement.push(next);
    }

    /// Begins a block, of which the statement so far is the header.
    fn begin(&mut self, line: usize) {
        let has = |word: &str| self.statement.split_whitespace().take(2).any(|known| known == word);
        let block = match self.block() {
            Block::File if has("table") => Block::Table,
            Block::File | Block::Table if has("chain") => Block::Chain,
            _ => Block::Other,
        };
        match block {
            Block::Other => self.push(line, '{'),
            _ => {
                self.start = if self.statement.trim().is_empty() { line } else { self.start };
                self.statement.push('{');
                self.judge();
            }
        }
        self.open.push((block, line));
    }

    fn end(&mut self) {
        match self.open.pop() {
            Some((Block::Other, line)) => {
                self.push(line, '}');
                // Anonymous sets and elements are a part of a statement; a block of a table ends one.
                self.is_ended = self.block() == Block::Table;
            }
            ended => {
                self.is_ended = true;
                self.open.extend(ended);
                self.judge();
                self.open.pop();
            }
        }
    }

    /// Judges a complete statement.
    fn judge(&mut self) {
        let text = std::mem::take(&mut self.statement);
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some((first, rest)) = words.split_first() else { return };
        let reason = match self.block() {
            Block::File => unknown_command(first, rest),
            Block::Table if !IN_TABLE.contains(first) && first.starts_with(|next: char| next.is_ascii_alphabetic()) => {
                Some(format!("unknown statement {first:?} in a table{}", hint(first, &IN_TABLE)))
            }
            Block::Chain if *first == "type" => hook_fault(rest),
            Block::Chain if *first == "policy" => policy_fault(rest),
            _ => None,
        };
        if let Some(reason) = reason {
            self.fault(self.start, &reason);
        }
    }
}

/// A word that is not a command, but is followed by what follows one.
fn unknown_command(first: &str, rest: &[&str]) -> Option<String> {
    let follows = rest.first().is_some_and(|next| *next == "ruleset" || FAMILIES.contains(next) || *next == "table");
    let is_header = rest.last().is_some_and(|last| last.ends_with('{'));
    if first == "flush" && !rest.first().is_some_and(|what| FLUSHED.contains(what)) {
        return Some(format!("expected one of {} after `flush`, found {:?}", FLUSHED.join(", "), rest.join(" ")));
    }
    let hint = hint(first, &COMMANDS);
    (!COMMANDS.contains(&first) && !FAMILIES.contains(&first) && (follows || is_header && !hint.is_empty()))
        .then(|| format!("unknown statement {first:?}{hint}"))
}

/// What is wrong with `type TYPE hook HOOK priority NUMBER`.
fn hook_fault(words: &[&str]) -> Option<String> {
    let expected = |what: &str, words: &[&str], found: Option<&&str>| {
        let found = found.map_or_else(|| "the end of the statement".to_owned(), |found| format!("{found:?}"));
        Some(format!("expected {what} {}, found {found}", words.join(", ")))
    };
    let is = |at: usize, known: &[&str]| words.get(at).is_some_and(|word| known.contains(word));
    if !is(0, &TYPES) {
        return expected("one of the types", &TYPES, words.first());
    }
    if !is(1, &["hook"]) {
        return expected("the word", &["hook"], words.get(1));
    }
    if !is(2, &HOOKS) {
        return expected("one of the hooks", &HOOKS, words.get(2));
    }
    let rest = words.iter().skip_while(|word| **word != "priority").skip(1);
    let rest: Vec<&&str> = rest.collect();
    match rest.as_slice() {
        [] => expected("the word", &["priority"], words.get(3)),
        rest if rest.contains(&&"policy") => Some("expected `;` between the priority and the policy".to_owned()),
        _ => None,
    }
}

fn policy_fault(words: &[&str]) -> Option<String> {
    let is_valid = matches!(words, [policy] if ["accept", "drop"].contains(policy) || policy.starts_with('$'));
    (!is_valid).then(|| format!("expected policy accept or drop, found {:?}", words.join(" ")))
}

fn hint(word: &str, known: &[&'static str]) -> String {
    let near = near(word, known.iter().copied());
    near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}
