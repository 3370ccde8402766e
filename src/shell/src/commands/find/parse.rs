//! Parses the expression of `find`.

use super::{Amount, Search, Test, format};
use crate::commands::regex::{Expression, Syntax};
use crate::commands::{count, modes, owners};
use crate::eval::{Run, Stop};
use crate::expand::literal_pattern;
use crate::files::{Follow, NodeKind};
use crate::pattern::Pattern;

/// Deepest nesting of parentheses.
const MAX_DEPTH: usize = 50;

impl Search<'_, '_> {
    pub(super) fn either(&mut self, args: &mut &[Vec<u8>], depth: usize) -> Run<Test> {
        let outer = std::mem::take(&mut self.acts);
        let mut tests = vec![self.both(args, depth)?];
        let mut acts = self.acts;
        while args.first().is_some_and(|arg| matches!(&arg[..], b"-o" | b"-or")) {
            *args = &args[1..];
            self.acts = false;
            tests.push(self.both(args, depth)?);
            // GNU find may perform such tests first, and then leave the action out.
            if acts && !self.acts {
                return self.shell.unsupported(b"tests without an action after -o, behind an action");
            }
            acts |= self.acts;
        }
        self.acts = outer | acts;
        Ok(Test::Or(tests))
    }

    fn both(&mut self, args: &mut &[Vec<u8>], depth: usize) -> Run<Test> {
        let (mut tests, mut is_complete) = (Vec::new(), false);
        while let Some(first) = args.first() {
            match &first[..] {
                b"-o" | b"-or" | b")" => break,
                b"-a" | b"-and" if is_complete => {
                    *args = &args[1..];
                    is_complete = false;
                }
                b"-a" | b"-and" => break,
                _ => {
                    tests.push(self.test(args, depth)?);
                    is_complete = true;
                }
            }
        }
        match is_complete {
            true => Ok(Test::And(tests)),
            false => self.wrong(b"an expression is missing"),
        }
    }

    fn operand(&mut self, args: &mut &[Vec<u8>]) -> Run<Vec<u8>> {
        let Some((first, rest)) = args.split_first() else { return self.wrong(b"an argument is missing") };
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
                    return self.wrong(b"a parenthesis is not closed");
                }
                inner
            }
            b"!" | b"-not" => Test::Not(Box::new(self.test(args, depth + 1)?)),
            b"-name" => Test::Name(literal_pattern(&self.operand(args)?)),
            b"-path" | b"-wholename" => Test::Path(literal_pattern(&self.operand(args)?)),
            b"-iname" => {
                let text = self.operand(args)?;
                Test::SmallName(self.small(&text)?)
            }
            b"-ipath" | b"-iwholename" => {
                let text = self.operand(args)?;
                Test::SmallPath(self.small(&text)?)
            }
            b"-lname" => Test::Target(literal_pattern(&self.operand(args)?), false),
            b"-ilname" => {
                let text = self.operand(args)?;
                Test::Target(self.small(&text)?, true)
            }
            b"-regex" => {
                let text = self.operand(args)?;
                self.regex(&text, false)?
            }
            b"-iregex" => {
                let text = self.operand(args)?;
                self.regex(&text, true)?
            }
            b"-regextype" => {
                let name = self.operand(args)?;
                self.syntax = self.regex_syntax(&name)?;
                Test::And(Vec::new())
            }
            b"-xtype" => {
                let text = self.operand(args)?;
                Test::OtherKind(self.kinds(&text)?)
            }
            b"-type" => {
                let text = self.operand(args)?;
                Test::Kind(self.kinds(&text)?)
            }
            b"-perm" => {
                let text = self.operand(args)?;
                self.mode(&text)?
            }
            b"-uid" => {
                let text = self.operand(args)?;
                Test::User(self.amount(&text)?)
            }
            b"-gid" => {
                let text = self.operand(args)?;
                Test::Group(self.amount(&text)?)
            }
            b"-links" => {
                let text = self.operand(args)?;
                Test::Links(self.amount(&text)?)
            }
            b"-user" => {
                let text = self.operand(args)?;
                let Some(id) = owners::user(self.shell, &text) else { return self.wrong(b"a user is not known") };
                Test::User(Amount { sign: b'=', number: id.into() })
            }
            b"-group" => {
                let text = self.operand(args)?;
                let Some(id) = owners::group(self.shell, &text) else { return self.wrong(b"a group is not known") };
                Test::Group(Amount { sign: b'=', number: id.into() })
            }
            b"-samefile" => {
                let text = self.operand(args)?;
                match self.look(&text, self.follow_operands) {
                    Ok(node) => Test::Same(node.id),
                    Err(error) => return self.wrong(&[&text[..], b": ", error.text().as_bytes()].concat()),
                }
            }
            b"-nouser" => Test::Unowned(true),
            b"-nogroup" => Test::Unowned(false),
            b"-empty" => Test::Empty,
            b"-newer" | b"-newermm" => {
                let text = self.operand(args)?;
                match self.look(&text, self.follow_operands) {
                    Ok(node) => Test::Newer(node.mtime, Some(node.id)),
                    Err(error) => return self.wrong(&[&text[..], b": ", error.text().as_bytes()].concat()),
                }
            }
            b"-newermt" => {
                let text = self.operand(args)?;
                match text.strip_prefix(b"@").and_then(crate::accounts::number) {
                    Some(secs) => Test::Newer((secs.into(), 0), None),
                    None => return self.shell.unsupported(&[b"-newermt ", &text[..]].concat()),
                }
            }
            b"-size" => {
                let text = self.operand(args)?;
                self.size(&text)?
            }
            b"-maxdepth" => {
                let text = self.operand(args)?;
                self.most = count(self.shell, &text)?;
                Test::And(Vec::new())
            }
            b"-mindepth" => {
                let text = self.operand(args)?;
                self.least = count(self.shell, &text)?;
                Test::And(Vec::new())
            }
            b"-depth" | b"-d" => {
                (self.depth_first, self.asks_depth) = (true, true);
                Test::And(Vec::new())
            }
            b"-follow" => {
                self.follow = Follow::Yes;
                Test::And(Vec::new())
            }
            // The user is root, who may read and write everything.
            b"-xdev" | b"-mount" | b"-true" | b"-noleaf" | b"-readable" | b"-writable" => Test::And(Vec::new()),
            b"-false" => Test::Or(Vec::new()),
            b"-prune" => {
                self.prunes = true;
                Test::Prune
            }
            b"-quit" => self.action(Test::Quit),
            b"-print" => self.action(Test::Print(b'\n')),
            b"-print0" => self.action(Test::Print(0)),
            b"-printf" => {
                let text = self.operand(args)?;
                let pieces = format::parse(self.shell, &text)?;
                self.action(Test::Format(pieces))
            }
            b"-delete" => {
                (self.depth_first, self.deletes) = (true, true);
                self.action(Test::Delete)
            }
            b"-exec" => self.exec(args)?,
            b"-execdir" => self.exec_in(args)?,
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

    fn exec_in(&mut self, args: &mut &[Vec<u8>]) -> Run<Test> {
        let path = self.shell.state.get(b"PATH").unwrap_or_default().to_vec();
        if path.split(|byte| *byte == b':').any(|entry| !entry.starts_with(b"/")) {
            return self.wrong(b"PATH has a directory that is not absolute, which -execdir refuses");
        }
        match self.exec(args)? {
            Test::Exec(command) => Ok(Test::ExecIn(command)),
            test => match self.collected.pop().filter(|_| matches!(test, Test::Collect(_))) {
                // find runs them as it leaves a directory, perhaps several times.
                Some((command, _)) if command.first().is_some_and(|name| name == b"cp") => {
                    Ok(Test::CollectByDirectory(command))
                }
                _ => self.shell.unsupported("-execdir with “+” for other commands than cp".as_bytes()),
            },
        }
    }

    /// Ends with a message, as find does.
    pub(super) fn wrong<T>(&mut self, what: &[u8]) -> Run<T> {
        super::super::complain(self.shell, "find", what)?;
        Err(Stop::Error)
    }

    /// A pattern in small letters.
    fn small(&self, text: &[u8]) -> Run<Pattern> {
        match text.windows(2).any(|pair| pair == b"[:") {
            true => self.shell.unsupported(&[b"the pattern ", text].concat()),
            false => Ok(literal_pattern(&text.to_ascii_lowercase())),
        }
    }

    fn regex_syntax(&mut self, name: &[u8]) -> Run<RegexSyntax> {
        Ok(match name {
            b"emacs" | b"findutils-default" => RegexSyntax::Emacs,
            b"posix-basic" | b"grep" | b"sed" | b"ed" => RegexSyntax::Of(Syntax::Grep),
            b"posix-extended" => RegexSyntax::Of(Syntax::Extended),
            b"posix-egrep" | b"egrep" => RegexSyntax::Of(Syntax::Egrep),
            b"gnu-awk" | b"posix-awk" | b"awk" | b"posix-minimal-basic" => {
                return self.shell.unsupported(&[b"-regextype ", name].concat());
            }
            _ => return self.wrong(b"a type of expressions is not known"),
        })
    }

    /// `-regex`, of the whole path.
    fn regex(&mut self, text: &[u8], ignore_case: bool) -> Run<Test> {
        let (text, syntax) = match self.syntax {
            RegexSyntax::Of(syntax) => (text.to_vec(), syntax),
            RegexSyntax::Emacs => match basic(text) {
                Some(text) => (text, Syntax::Grep),
                None => return self.shell.unsupported(&[b"-regex ", text].concat()),
            },
        };
        let refers = text.windows(2).any(|pair| pair[0] == b'\\' && pair[1].is_ascii_digit());
        if refers || text.contains(&b'\n') {
            return self.shell.unsupported(&[b"-regex ", &text[..]].concat());
        }
        let whole = match syntax {
            Syntax::Grep => [b"^\\(", &text[..], b"\\)$"].concat(),
            _ => [b"^(", &text[..], b")$"].concat(),
        };
        Ok(Test::Regex(Expression::new(self.shell, &whole, syntax, ignore_case)?))
    }

    /// A number, perhaps with a sign.
    fn amount(&mut self, text: &[u8]) -> Run<Amount> {
        let (sign, digits) = signed(text);
        match crate::accounts::number(digits) {
            Some(number) => Ok(Amount { sign, number: number.into() }),
            None => self.wrong(&[text, b": not a number"].concat()),
        }
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

    fn mode(&mut self, text: &[u8]) -> Run<Test> {
        if matches!(text, [b'+', digit, ..] if digit.is_ascii_digit()) {
            return self.wrong(&[b"invalid mode '", text, b"'"].concat());
        }
        let (sign, mode) = match text.split_first() {
            Some((sign @ (b'-' | b'/'), rest)) => (*sign, rest),
            _ => (b'=', text),
        };
        match modes::parse(mode, 0, false, 0) {
            Some(mode) => Ok(Test::Mode(sign, mode)),
            None => self.shell.unsupported(text),
        }
    }

    /// `-size`, in blocks of 512 bytes unless a letter names another unit.
    fn size(&mut self, text: &[u8]) -> Run<Test> {
        let (digits, unit) = match text.split_last() {
            Some((b'c', rest)) => (rest, 1),
            Some((b'w', rest)) => (rest, 2),
            Some((b'b', rest)) => (rest, 512),
            Some((b'k', rest)) => (rest, 1 << 10),
            Some((b'M', rest)) => (rest, 1 << 20),
            Some((b'G', rest)) => (rest, 1 << 30),
            _ => (text, 512),
        };
        self.amount(digits).map(|amount| Test::Size(amount, unit))
    }
}

/// How `-regex` is written.
#[derive(Clone, Copy)]
pub(super) enum RegexSyntax {
    /// As grep, but `+` and `?` repeat without a backslash, and neither intervals nor classes exist.
    Emacs,
    Of(Syntax),
}

/// An expression of Emacs in the syntax of grep; `None` for what has another meaning there.
fn basic(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    // Whether there is something to repeat.
    let mut repeats = false;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'+' | b'?' | b'*' if !repeats => return None,
            b'+' | b'?' => out.extend([b'\\', *byte]),
            b'\\' => {
                at += 1;
                let next = *text.get(at)?;
                match next {
                    b'+' | b'?' | b'{' | b'}' => out.push(next),
                    b'(' | b')' | b'|' | b'.' | b'*' | b'[' | b']' | b'^' | b'$' | b'\\' | b'/' | b'-' => {
                        out.extend([b'\\', next]);
                    }
                    _ => return None,
                }
                repeats = !matches!(next, b'(' | b'|');
                at += 1;
                continue;
            }
            b'[' => {
                let first = at + 1 + usize::from(text.get(at + 1) == Some(&b'^'));
                let end = text.iter().skip(first + 1).position(|byte| *byte == b']')? + first + 2;
                let set = &text[at..end];
                if set[1..].contains(&b'[') {
                    return None;
                }
                out.extend_from_slice(set);
                at = end - 1;
            }
            byte => out.push(*byte),
        }
        repeats = *byte != b'^';
        at += 1;
    }
    Some(out)
}

/// The sign of a number, and its digits.
fn signed(text: &[u8]) -> (u8, &[u8]) {
    match text.split_first() {
        Some((sign @ (b'+' | b'-'), rest)) => (*sign, rest),
        _ => (b'=', text),
    }
}
