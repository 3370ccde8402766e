//! The expression of `find`, parsed.

use super::{Piece, Search, Test};
use crate::commands::regex::{Expression, Syntax};
use crate::commands::{count, modes, owners};
use crate::eval::Run;
use crate::expand::literal_pattern;
use crate::files::{Follow, NodeKind};

/// Deepest nesting of parentheses.
const MAX_DEPTH: usize = 50;

impl Search<'_, '_> {
    pub(super) fn either(&mut self, args: &mut &[Vec<u8>], depth: usize) -> Run<Test> {
        let mut tests = vec![self.both(args, depth)?];
        while args.first().is_some_and(|arg| matches!(&arg[..], b"-o" | b"-or")) {
            *args = &args[1..];
            tests.push(self.both(args, depth)?);
        }
        Ok(Test::Or(tests))
    }

    fn both(&mut self, args: &mut &[Vec<u8>], depth: usize) -> Run<Test> {
        let mut tests = Vec::new();
        while let Some(first) = args.first() {
            match &first[..] {
                b"-o" | b"-or" | b")" => break,
                b"-a" | b"-and" => *args = &args[1..],
                _ => tests.push(self.test(args, depth)?),
            }
        }
        Ok(Test::And(tests))
    }

    fn operand(&self, args: &mut &[Vec<u8>]) -> Run<Vec<u8>> {
        let Some((first, rest)) = args.split_first() else { return self.shell.unsupported(b"a missing argument") };
        *args = rest;
        Ok(first.clone())
    }

    fn test(&mut self, args: &mut &[Vec<u8>], depth: usize) -> Run<Test> {
        let name = self.operand(args)?;
        if depth > MAX_DEPTH {
            return self.shell.unsupported(b"so many parentheses");
        }
        Ok(match &name[..] {
            b"(" => {
                let inner = self.either(args, depth + 1)?;
                if self.operand(args)? != b")" {
                    return self.shell.unsupported(b"a parenthesis that is not closed");
                }
                inner
            }
            b"!" | b"-not" => Test::Not(Box::new(self.test(args, depth + 1)?)),
            b"-name" => Test::Name(literal_pattern(&self.operand(args)?)),
            b"-path" | b"-wholename" => Test::Path(literal_pattern(&self.operand(args)?)),
            b"-regex" => self.regex(&self.operand(args)?)?,
            b"-type" => Test::Kind(self.kinds(&self.operand(args)?)?),
            b"-perm" => self.mode(&self.operand(args)?)?,
            b"-user" | b"-uid" => {
                let text = self.operand(args)?;
                let Some(id) = owners::user(self.shell, &text) else { return self.shell.unsupported(&text) };
                Test::User(id)
            }
            b"-group" | b"-gid" => {
                let text = self.operand(args)?;
                let Some(id) = owners::group(self.shell, &text) else { return self.shell.unsupported(&text) };
                Test::Group(id)
            }
            b"-nouser" => Test::Unowned(true),
            b"-nogroup" => Test::Unowned(false),
            b"-empty" => Test::Empty,
            b"-newer" => {
                let text = self.operand(args)?;
                match self.shell.stat(&text, Follow::Yes) {
                    Ok(node) => Test::Newer(node.mtime),
                    Err(_) => return self.shell.unsupported(&text),
                }
            }
            b"-size" => self.size(&self.operand(args)?)?,
            b"-maxdepth" => {
                self.most = count(self.shell, &self.operand(args)?)?;
                Test::And(Vec::new())
            }
            b"-mindepth" => {
                self.least = count(self.shell, &self.operand(args)?)?;
                Test::And(Vec::new())
            }
            b"-depth" => {
                self.depth_first = true;
                Test::And(Vec::new())
            }
            b"-follow" => {
                self.follow = Follow::Yes;
                Test::And(Vec::new())
            }
            b"-xdev" | b"-mount" | b"-true" | b"-noleaf" => Test::And(Vec::new()),
            b"-false" => Test::Or(Vec::new()),
            b"-prune" => Test::Prune,
            b"-print" => self.action(Test::Print(b'\n')),
            b"-print0" => self.action(Test::Print(0)),
            b"-printf" => {
                let pieces = self.format(&self.operand(args)?)?;
                self.action(Test::Format(pieces))
            }
            b"-delete" => {
                self.depth_first = true;
                self.action(Test::Delete)
            }
            b"-exec" => self.exec(args)?,
            other => return self.shell.unsupported(other),
        })
    }

    fn action(&mut self, test: Test) -> Test {
        self.acts = true;
        test
    }

    fn exec(&mut self, args: &mut &[Vec<u8>]) -> Run<Test> {
        self.acts = true;
        let mut command = Vec::new();
        loop {
            let word = self.operand(args)?;
            if word == b";" {
                return Ok(Test::Exec(command));
            }
            if word == b"+" && command.last().is_some_and(|last| last == b"{}") {
                command.pop();
                self.collected.push((command, Vec::new()));
                return Ok(Test::Collect(self.collected.len() - 1));
            }
            command.push(word);
        }
    }

    /// An expression in the syntax of Emacs, as far as it is that of grep -E.
    fn regex(&mut self, text: &[u8]) -> Run<Test> {
        let differs = |pair: &[u8]| pair[0] == b'\\' && !b".*[]^$+?\\/-".contains(&pair[1]);
        if text.iter().any(|byte| b"(){}|".contains(byte)) || text.windows(2).any(differs) || text.ends_with(b"\\") {
            return self.shell.unsupported(&[b"-regex ", text].concat());
        }
        let whole = [b"^(", text, b")$"].concat();
        Ok(Test::Regex(Expression::new(self.shell, &whole, Syntax::Extended, false)?))
    }

    fn format(&self, text: &[u8]) -> Run<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut bytes = text.iter().copied();
        while let Some(byte) = bytes.next() {
            pieces.push(match byte {
                b'%' => match bytes.next() {
                    Some(b'p') => Piece::Path,
                    Some(b'f') => Piece::Name,
                    Some(b'%') => Piece::Text(b"%".to_vec()),
                    _ => return self.shell.unsupported(&[b"-printf ", text].concat()),
                },
                b'\\' => match bytes.next() {
                    Some(b'n') => Piece::Text(b"\n".to_vec()),
                    Some(b't') => Piece::Text(b"\t".to_vec()),
                    Some(b'\\') => Piece::Text(b"\\".to_vec()),
                    _ => return self.shell.unsupported(&[b"-printf ", text].concat()),
                },
                byte => Piece::Text(vec![byte]),
            });
        }
        Ok(pieces)
    }

    fn kinds(&self, text: &[u8]) -> Run<Vec<NodeKind>> {
        text.split(|byte| *byte == b',')
            .map(|letter| match letter {
                b"f" => Ok(NodeKind::File),
                b"d" => Ok(NodeKind::Directory),
                b"l" => Ok(NodeKind::Symlink),
                b"p" => Ok(NodeKind::Fifo),
                b"s" => Ok(NodeKind::Socket),
                b"c" => Ok(NodeKind::CharDevice),
                b"b" => Ok(NodeKind::BlockDevice),
                other => self.shell.unsupported(&[b"-type ", other].concat()),
            })
            .collect()
    }

    fn mode(&self, text: &[u8]) -> Run<Test> {
        let (sign, mode) = match text.split_first() {
            Some((sign @ (b'-' | b'/'), rest)) => (*sign, rest),
            _ => (b'=', text),
        };
        match modes::parse(mode, 0, false, 0) {
            Some(mode) => Ok(Test::Mode(sign, mode)),
            None => self.shell.unsupported(text),
        }
    }

    /// `-size`, in bytes (`c`), kibibytes (`k`) or blocks of 512 bytes; only `0` and bytes need no rounding.
    fn size(&self, text: &[u8]) -> Run<Test> {
        let (sign, rest) = match text.split_first() {
            Some((sign @ (b'+' | b'-'), rest)) => (*sign, rest),
            _ => (b'=', text),
        };
        let digits = rest.strip_suffix(b"c").unwrap_or(rest);
        match crate::accounts::number(digits) {
            Some(number) if number == 0 || rest.ends_with(b"c") => Ok(Test::Size(sign, number.into())),
            _ => self.shell.unsupported(&[b"-size ", text].concat()),
        }
    }
}
