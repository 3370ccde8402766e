//! `alias`. dash replaces aliases while it parses; here they are replaced when a command runs, and refused where the results could differ.

use std::rc::Rc;

use crate::eval::Run;
use crate::shell::Shell;
use crate::syntax::Language;
use crate::syntax::reader::Reader;
use crate::syntax::{Node, Parser, Simple, Word};

/// What a name stands for, from the line behind its definition on.
#[derive(Debug)]
pub(crate) struct Alias {
    words: Vec<Word>,
    script: Rc<str>,
    line: u32,
}

/// `alias name=words`, alone in its line and outside of any other command, so that nothing behind it has been parsed before.
pub(super) fn alias(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    if shell.budget.levels > 1 || shell.state.functions_running > 0 {
        return shell.unsupported(b"an alias inside of another command");
    }
    for arg in args {
        let Some(at) = arg.iter().position(|byte| *byte == b'=') else {
            return shell.unsupported(b"showing an alias");
        };
        let Some(words) = words(&arg[at + 1..]) else {
            return shell.unsupported(b"an alias that is not a simple command");
        };
        let alias = Alias { words, script: shell.state.script.clone(), line: shell.state.line };
        Rc::make_mut(&mut shell.state.aliases).insert(arg[..at].to_vec(), Rc::new(alias));
    }
    if args.is_empty() { shell.unsupported(b"showing an alias") } else { Ok(0) }
}

/// The words of a command that is nothing but words. A blank at the end would make the next word one that is looked up, too.
fn words(value: &[u8]) -> Option<Vec<Word>> {
    let mut reader = Reader::new(value, 1, 0, Language::Dash);
    let mut parser = Parser::new(&mut reader);
    let (node, end) = (parser.line().ok()??, parser.line().ok()?);
    let Node::Simple(simple) = node else { return None };
    let Simple { assignments, words, redirects, .. } = *simple;
    let plain = assignments.is_empty() && redirects.is_empty() && end.is_none();
    (plain && !words.is_empty() && !value.ends_with(b" ") && !value.ends_with(b"\t")).then_some(words)
}

impl Shell<'_> {
    /// The words of a command with its alias replaced, if it has one.
    pub(crate) fn without_alias(&self, simple: &Simple) -> Run<Option<Vec<Word>>> {
        let Some((first, rest)) = simple.words.split_first().filter(|_| !self.state.aliases.is_empty()) else {
            return Ok(None);
        };
        let Some(alias) = first.literal().and_then(|name| self.state.aliases.get(name)) else { return Ok(None) };
        if alias.script != self.state.script {
            return self.unsupported(b"an alias of another file");
        }
        if simple.line <= alias.line {
            return Ok(None);
        }
        let again = alias.words.first().filter(|word| **word != *first).and_then(Word::literal);
        if again.is_some_and(|name| self.state.aliases.contains_key(name)) {
            return self.unsupported(b"an alias of an alias");
        }
        Ok(Some([&alias.words[..], rest].concat()))
    }
}
