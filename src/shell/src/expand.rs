//! Expands words to fields: expansions, field splitting, pathnames, quote removal (POSIX XCU 2.6).

mod assign;
mod parameter;
mod arithmetic;
mod expression;
mod bash;
mod special;
mod fields;
mod pathname;

use std::rc::Rc;

pub(crate) use assign::Entry;
pub(crate) use bash::quoting;

use crate::builtins;
use crate::descriptors::Handle;
use crate::error::ErrorKind;
use crate::eval::{Run, Stop};
use crate::pattern::{Pattern, Style};
use crate::shell::Shell;
use crate::syntax::{Node, Part, Redirect, Word};

/// A byte of an expanded word with what it came from, or a mark between bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit(u16);

impl Unit {
    const QUOTED: u16 = 0x100;
    const SPLIT: u16 = 0x200;
    /// Ends a field: between the parameters of `$@`.
    pub(crate) const BREAK: Self = Self(0x400);
    /// Begins a field that may stay empty: quotes with nothing in them.
    pub(crate) const EMPTY: Self = Self(0x800);

    pub(crate) fn byte(self) -> Option<u8> {
        if self.0 & (Self::BREAK.0 | Self::EMPTY.0) != 0 { None } else { Some(self.0.to_be_bytes()[1]) }
    }

    /// Another byte with the same marks.
    pub(crate) fn with_byte(self, byte: u8) -> Self {
        Self((self.0 & 0xff00) | u16::from(byte))
    }

    pub(crate) fn is_quoted(self) -> bool {
        self.0 & Self::QUOTED != 0
    }

    pub(crate) fn is_split(self) -> bool {
        self.0 & Self::SPLIT != 0
    }
}

/// How bytes of a part are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mode {
    /// In double quotes, or where those rules hold.
    quoted: bool,
    /// Part of an expansion without quotes: literal bytes are split too.
    expansion: bool,
    /// Fields are wanted: otherwise `$@` is joined.
    fields: bool,
    /// The value of an assignment or here-string, where bash joins what it changed by `IFS`.
    assigns: bool,
    /// A here-document, where bash joins parameters by blanks.
    document: bool,
}

impl Mode {
    const WORD: Self = Self { quoted: false, expansion: false, fields: true, assigns: false, document: false };
    const ONE: Self = Self { quoted: false, expansion: false, fields: false, assigns: false, document: false };
    const ASSIGNED: Self = Self { assigns: true, ..Self::ONE };
    const DOCUMENT: Self = Self { document: true, ..Self::QUOTED };
    const QUOTED: Self = Self { quoted: true, expansion: false, fields: false, assigns: false, document: false };

    /// The mark of what an expansion gives.
    fn value_mark(self) -> u16 {
        if self.quoted { Unit::QUOTED } else { Unit::SPLIT }
    }

    fn literal_mark(self) -> u16 {
        match self {
            Self { quoted: true, .. } => Unit::QUOTED,
            Self { expansion: true, .. } => Unit::SPLIT,
            _ => 0,
        }
    }
}

/// What there was in the double quotes of a word of bash, which divides what it joined where both are in one word.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QuotedLists {
    /// `"$@"` and its like.
    separate: bool,
    /// An operation on `"$*"` and its like.
    joined: bool,
    /// A backslash from the word of an operation.
    backslash: bool,
    /// An operation that left nothing of a value.
    null: bool,
    /// Quotes with nothing but such operations, which bash keeps as a character in a word of `case`.
    null_quotes: bool,
}

/// Units of an expansion so far.
pub(crate) type Units = Vec<Unit>;

fn push(out: &mut Units, bytes: &[u8], mark: u16) {
    out.extend(bytes.iter().map(|byte| Unit(u16::from(*byte) | mark)));
}

/// The bytes of units, without marks.
pub(crate) fn bytes(units: &[Unit]) -> Vec<u8> {
    units.iter().filter_map(|unit| unit.byte()).collect()
}

impl Shell<'_> {
    /// All fields of words.
    pub(crate) fn fields(&mut self, words: &[Word]) -> Run<Vec<Vec<u8>>> {
        let mut fields = Vec::new();
        if !self.state.language.is_bash() {
            words.iter().try_for_each(|word| self.word_fields(word, &mut fields))?;
            return Ok(fields);
        }
        // bash looks for pathnames when all words are expanded.
        let mut expanded = Vec::new();
        for word in words {
            expanded.append(&mut self.split_word(word)?);
            self.limit_fields(expanded.len())?;
        }
        self.all_pathnames(&expanded, &mut fields)?;
        Ok(fields)
    }

    fn word_fields(&mut self, word: &Word, fields: &mut Vec<Vec<u8>>) -> Run<()> {
        let expanded = self.split_word(word)?;
        self.all_pathnames(&expanded, fields)
    }

    /// The pathnames of fields.
    pub(crate) fn all_pathnames(&mut self, expanded: &[Units], fields: &mut Vec<Vec<u8>>) -> Run<()> {
        for field in expanded {
            self.pathnames(field, fields)?;
            self.limit_fields(fields.len())?;
        }
        Ok(())
    }

    fn limit_fields(&self, count: usize) -> Run<()> {
        let limit = self.budget.limits.fields;
        match count > limit {
            true => Err(self.fatal(ErrorKind::Limit { what: "fields", limit: limit as u64 })),
            false => Ok(()),
        }
    }

    /// The fields of a word, before pathnames are looked for.
    pub(crate) fn split_word(&mut self, word: &Word) -> Run<Vec<Units>> {
        let outer = std::mem::take(&mut self.quoted_lists);
        let units = match word.parts.first() {
            Some(Part::Literal(first))
                if self.state.language.is_bash() && !word.from_braces && first.contains(&b'=') =>
            {
                self.word_units(first, &word.parts[1..])?
            }
            _ => self.units(&word.parts, Mode::WORD, Tilde::Start)?,
        };
        let lists = std::mem::replace(&mut self.quoted_lists, outer);
        if lists.backslash && lists.separate {
            return self.unsupported(b"a word in quotes with $@ or its like and with a backslash in an operation");
        }
        if lists.joined && lists.separate {
            return self.unsupported(b"a word in quotes with $@ or its like and with an operation on $* or its like");
        }
        self.spend(units.len())?;
        self.split(&units)
    }

    /// The units of a word of bash: in one that looks as an assignment, a tilde may follow `=` and `:`.
    fn word_units(&mut self, first: &[u8], rest: &[Part]) -> Run<Units> {
        let mut parts = vec![Part::Literal(first.to_vec())];
        parts.extend_from_slice(rest);
        let len = assignment_prefix(first);
        if len == 0 {
            return self.units(&parts, Mode::WORD, Tilde::Start);
        }
        let mut out = Vec::new();
        push(&mut out, &first[..len], Mode::WORD.literal_mark());
        parts[0] = Part::Literal(first[len..].to_vec());
        let value = if first.len() == len { &parts[1..] } else { &parts[..] };
        self.parts(value, Mode::WORD, Tilde::Assignment, &mut out)?;
        Ok(out)
    }

    /// A word as one field, without splitting: assignments, redirections, `case`.
    pub(crate) fn one(&mut self, word: &Word) -> Run<Vec<u8>> {
        Ok(bytes(&self.units(&word.parts, Mode::ONE, Tilde::Start)?))
    }

    /// The subject or a pattern of `case`, expanded by `expand`.
    pub(crate) fn case_word<T>(&mut self, word: &Word, expand: impl FnOnce(&mut Self) -> Run<T>) -> Run<T> {
        let outer = std::mem::take(&mut self.quoted_lists);
        let result = expand(self);
        let lists = std::mem::replace(&mut self.quoted_lists, outer);
        if lists.null_quotes && !matches!(&word.parts[..], [Part::DoubleQuoted(_)]) && self.state.language.is_bash() {
            return self.unsupported(b"a word of case with quotes in which an operation leaves nothing");
        }
        result
    }

    /// The value of an assignment.
    pub(crate) fn value(&mut self, word: &Word) -> Run<Vec<u8>> {
        Ok(bytes(&self.units(&word.parts, Mode::ASSIGNED, Tilde::Assignment)?))
    }

    /// The text of a here-string.
    pub(crate) fn here_string(&mut self, word: &Word) -> Run<Vec<u8>> {
        Ok(bytes(&self.units(&word.parts, Mode::ASSIGNED, Tilde::Start)?))
    }

    /// A word as a pattern.
    pub(crate) fn pattern(&mut self, parts: &[Part]) -> Run<Pattern> {
        let style = self.pattern_style();
        let units = self.units(parts, Mode::ONE, Tilde::Start)?;
        self.styled_pattern(&units, style)
    }

    /// A pattern of units. Each bracket and group is searched for its end.
    fn styled_pattern(&mut self, units: &[Unit], style: Style) -> Run<Pattern> {
        let count = |byte: u8| units.iter().filter(|unit| unit.byte() == Some(byte)).count();
        self.spend(units.len().saturating_mul(count(b'[')) / 8 + 1)?;
        if style.extended && count(b'(') > crate::pattern::MAX_GROUPS {
            return self.unsupported(b"a pattern with so many groups");
        }
        let pattern = Pattern::of(units, style);
        self.require_literal(units, &pattern)?;
        if pattern.is_irregular() {
            return self.unsupported(b"a pattern with a group behind * that may match nothing");
        }
        Ok(pattern)
    }

    /// A pattern of `${x#…}` and `${x^…}`, which always regards case.
    fn exact_pattern(&mut self, parts: &[Part]) -> Run<Pattern> {
        let style = Style { ignore_case: false, ..self.pattern_style() };
        let units = self.units(parts, Mode::ONE, Tilde::Start)?;
        self.styled_pattern(&units, style)
    }

    /// A pattern of `[[ ]]`, which always may have groups.
    pub(crate) fn conditional_pattern(&mut self, parts: &[Part]) -> Run<Pattern> {
        let style = Style { extended: true, ..self.pattern_style() };
        let units = self.units(parts, Mode::ONE, Tilde::Start)?;
        self.styled_pattern(&units, style)
    }

    /// The text of a here-document.
    pub(crate) fn document(&mut self, parts: &[Part]) -> Run<Vec<u8>> {
        Ok(bytes(&self.units(parts, Mode::DOCUMENT, Tilde::None)?))
    }

    /// The units that parts expand to.
    fn units(&mut self, parts: &[Part], mode: Mode, tilde: Tilde) -> Run<Units> {
        let mut out = Vec::new();
        self.parts(parts, mode, tilde, &mut out)?;
        Ok(out)
    }

    fn parts(&mut self, parts: &[Part], mode: Mode, tilde: Tilde, out: &mut Units) -> Run<()> {
        for (at, part) in parts.iter().enumerate() {
            let before = out.len();
            match part {
                Part::Literal(bytes) if tilde != Tilde::None && !mode.quoted && bytes.contains(&b'~') => {
                    self.tilde(bytes, at == 0, at + 1 == parts.len(), tilde, mode, out);
                }
                Part::Literal(bytes) => push(out, bytes, mode.literal_mark()),
                Part::Quoted(bytes) => {
                    if bytes.is_empty() {
                        out.push(Unit::EMPTY);
                    }
                    push(out, bytes, Unit::QUOTED);
                }
                Part::DoubleQuoted(inner) => self.double_quoted(inner, mode, out)?,
                Part::Parameter(parameter) => self.parameter(parameter, mode, out)?,
                Part::Command(node, lines) => {
                    let lost = self.state.bash.lines_lost;
                    // bash counts the lines of such commands from the end of the command around them, and not as they are written.
                    let is_plain = lines.first == lines.last && lines.first == self.state.line;
                    self.state.bash.lines_lost |= !is_plain || self.state.bash.spans_lines;
                    let text = self.substitute(node)?;
                    self.state.bash.lines_lost = lost;
                    push(out, &text, mode.value_mark());
                }
                Part::Process { input: true, node } => {
                    let (output, unordered) = self.output_of(node, true)?;
                    let path = self.process_path(output, unordered)?;
                    push(out, &path, Unit::QUOTED);
                }
                Part::Process { .. } => return self.unsupported(b">( )"),
                Part::Assignment(_) => return self.unsupported(b"an assignment here"),
                Part::Arithmetic(inner) => {
                    let text = bytes(&self.units(inner, Mode::QUOTED, Tilde::None)?);
                    let is_bash = self.state.language.is_bash();
                    let value = if is_bash { self.evaluate(&text) } else { self.arithmetic(&text) }?.to_string();
                    push(out, value.as_bytes(), mode.value_mark());
                }
            }
            self.spend_size(out.len(), out.len() - before)?;
        }
        Ok(())
    }

    /// `"…"`: an empty field, if there is nothing in it; but `"$@"` without parameters is not a field.
    fn double_quoted(&mut self, inner: &[Part], mode: Mode, out: &mut Units) -> Run<()> {
        let before = out.len();
        let outer = std::mem::take(&mut self.nothing_quoted);
        let outer_null = std::mem::take(&mut self.quoted_lists.null);
        self.parts(inner, Mode { quoted: true, ..mode }, Tilde::None, out)?;
        let nothing = std::mem::replace(&mut self.nothing_quoted, outer);
        let null = std::mem::replace(&mut self.quoted_lists.null, outer_null);
        self.quoted_lists.null_quotes |= null && out.len() == before;
        if self.state.language.is_bash() {
            if out.len() == before && !(mode.fields && nothing) {
                out.push(Unit::EMPTY);
            }
            return Ok(());
        }
        let only_at = |part: &Part| matches!(part, Part::Parameter(found) if found.name == b"@" && found.operation == crate::syntax::Operation::Value);
        if out.len() == before
            && !(mode.fields && matches!(inner, [only] if only_at(only)) && self.state.params.is_empty())
        {
            out.push(Unit::EMPTY);
        }
        Ok(())
    }

    /// `$(…)`: what a subshell writes, without newlines at its end.
    pub(crate) fn substitute(&mut self, node: &Rc<Node>) -> Run<Vec<u8>> {
        let errexit = !self.state.language.is_bash() || self.state.bash.shopt("inherit_errexit");
        let (mut text, unordered) = self.output_of(node, errexit)?;
        if unordered {
            self.expand_unordered()?;
        }
        self.state.substituted = self.state.output_status;
        if self.state.language.is_bash() {
            self.state.status = self.state.output_status;
        }
        text.retain(|byte| *byte != 0);
        while text.last() == Some(&b'\n') {
            text.pop();
        }
        Ok(self.commands.substituted(text))
    }

    /// What a subshell writes, and whether in an order that is not known; without `errexit` it does not end by failures.
    fn output_of(&mut self, node: &Rc<Node>, errexit: bool) -> Run<(Vec<u8>, bool)> {
        let (handle, collected) = Handle::output();
        let (line, command_line) = (self.state.line, self.state.command_line);
        let bash = self.state.language.is_bash();
        let tested = bash && self.tested;
        let nothing_quoted = self.nothing_quoted;
        let ends = tested && self.state.flags.errexit;
        let loops = self.state.loops;
        let status = self.expanding_ordered(|shell| {
            shell.subshell(|shell| {
                shell.set_descriptor(1, Some(handle));
                shell.state.bash.substitution = Some(shell.state.functions_running);
                shell.state.flags.errexit &= errexit;
                // Unlike in other subshells of bash, `break` and `continue` of the loops around it are valid, and end it.
                shell.state.loops = loops;
                let result = match node.lone_input().filter(|_| bash) {
                    Some(redirect) => shell.content_of(redirect, ends),
                    None => shell.eval(node, tested),
                };
                let leaves = matches!(result, Err(Stop::Break(_) | Stop::Continue(_)));
                if leaves && bash && shell.state.traps.contains_key(&builtins::EXIT) {
                    return shell.unsupported(b"a trap for EXIT in a substitution that ends by leaving a loop");
                }
                result
            })
        })?;
        self.nothing_quoted = nothing_quoted;
        self.state.output_status = status;
        (self.state.line, self.state.command_line) = (line, command_line);
        let unordered = self.take_mark(&collected);
        Ok((collected.take(), unordered))
    }

    /// `$(<file)` of bash: what is in the file. Where there is none, bash may end (`ends`) though the command is tested.
    fn content_of(&mut self, redirect: &Redirect, ends: bool) -> Run<u8> {
        self.state.status = u8::from(!self.redirect(std::slice::from_ref(redirect))?);
        if self.state.status != 0 && ends {
            return self.unsupported(b"$(<file) without the file below set -e");
        }
        if self.state.status == 0 {
            let content = self.read_all(0)?;
            self.out(&content)?;
        }
        Ok(self.state.status)
    }

    /// Literal bytes with a tilde in them: at their start, and in assignments behind colons.
    fn tilde(&mut self, literal: &[u8], first: bool, last: bool, tilde: Tilde, mode: Mode, out: &mut Units) {
        let mark = mode.literal_mark();
        let mut start = first;
        let mut rest = literal;
        while !rest.is_empty() {
            let len = rest
                .iter()
                .position(|byte| *byte == b':' && tilde == Tilde::Assignment)
                .map_or(rest.len(), |at| at + 1);
            let piece = &rest[..len];
            rest = &rest[len..];
            let end = piece.iter().position(|byte| matches!(byte, b'/' | b':')).unwrap_or(piece.len());
            let home = match piece.strip_prefix(b"~") {
                Some(_) if start && (end < piece.len() || last) => self.home(&piece[1..end]),
                _ => None,
            };
            match home {
                Some(home) => {
                    push(out, &home, Unit::QUOTED);
                    push(out, &piece[end..], mark);
                }
                None => push(out, piece, mark),
            }
            start = true;
        }
    }

    fn home(&self, user: &[u8]) -> Option<Vec<u8>> {
        match user {
            b"+" if self.state.language.is_bash() => return self.state.get(b"PWD").map(<[u8]>::to_vec),
            b"-" if self.state.language.is_bash() => return self.state.get(b"OLDPWD").map(<[u8]>::to_vec),
            user if self.state.language.is_bash() => {
                if let Some(directory) = self.stacked_directory(user) {
                    return Some(directory);
                }
            }
            _ => {}
        }
        if user.is_empty() {
            let home = self.state.get(b"HOME").map(<[u8]>::to_vec);
            if home.is_some() || !self.state.language.is_bash() {
                return home;
            }
            return crate::accounts::user_field(&*self.files, b"root", 5);
        }
        crate::accounts::user_field(&*self.files, user, 5)
    }
}

/// How many bytes at the start of a word are `name=`, `name+=` or `name[subscript]=`.
fn assignment_prefix(text: &[u8]) -> usize {
    let Some(equals) = text.iter().position(|byte| *byte == b'=') else { return 0 };
    let name = text[..equals].strip_suffix(b"+").unwrap_or(&text[..equals]);
    if crate::variables::divide_reference(name).is_some() { equals + 1 } else { 0 }
}

/// Positions where a tilde means a home directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tilde {
    None,
    Start,
    Assignment,
}

/// A decimal number of a format, 0 where there is none.
pub(crate) fn number(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |value: i64, digit| value.saturating_mul(10).saturating_add((digit - b'0').into()))
}

/// The pattern of a text without quotes: what programs take.
pub(crate) fn literal_pattern(text: &[u8]) -> Pattern {
    Pattern::new(&text.iter().map(|byte| Unit(u16::from(*byte))).collect::<Vec<_>>())
}
