//! Runs a script of `sed` over lines.

use super::super::Input;
use super::super::regex::Expression;
use super::output::{Output, Outputs};
use super::script::{Action, Address, Command};
use super::substitution::Substitution;
use crate::eval::Run;
use crate::shell::Shell;

/// What a line and a command count for, in bytes of work. They are not steps: a script may have files of ten thousands of lines.
const ROUND: usize = 32;

/// A space: its text, and whether the line that it came from had an end.
#[derive(Debug, Clone)]
struct Space {
    text: Vec<u8>,
    ended: bool,
}

/// Which lines a range selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Range {
    /// None yet.
    Inactive,
    /// Until that line, if its number is known.
    Active(Option<usize>),
    /// It ended. One that begins with a line number does not begin again.
    Closed,
}

/// A script with what it keeps from one file to the next.
pub(super) struct Machine<'m> {
    commands: &'m [Command],
    /// The text that is gone through, and where its lines end.
    text: Vec<u8>,
    lines: Vec<usize>,
    /// The names of the files, by the number of the last line of each.
    names: Vec<(usize, Vec<u8>)>,
    ranges: Vec<Range>,
    /// Lines taken so far.
    number: usize,
    pattern: Space,
    hold: Space,
    pub(super) outputs: Outputs,
    after: Vec<After<'m>>,
    substituted: bool,
    last: Option<&'m Expression>,
    quiet: bool,
    /// What ends a line.
    end: u8,
    /// `w /dev/stdout`, where that is not what is edited.
    pub(super) standard: Option<Output>,
}

/// What is written at the end of a cycle.
enum After<'m> {
    Text(&'m [u8]),
    File(&'m [u8]),
}

/// How a cycle ends.
enum Cycle {
    /// With the pattern space printed, unless `-n`.
    Print,
    Skip,
    /// `D`: again without a new line.
    Again,
    Quit(u8, bool),
}

impl<'m> Machine<'m> {
    pub(super) fn new(commands: &'m [Command], quiet: bool, end: u8, in_place: bool) -> Self {
        let mut outputs = Outputs::default();
        outputs.edited.end = end;
        for command in commands {
            let file = match &command.action {
                Action::Write(file) | Action::WriteFirst(file) => Some(file),
                Action::Substitute(substitution) => substitution.file.as_ref(),
                _ => None,
            };
            if let Some(file) = file.filter(|file| *file != b"/dev/stdout") {
                outputs.files.insert(file.clone(), Output::ending(end));
            }
        }
        Self {
            commands,
            text: Vec::new(),
            lines: Vec::new(),
            names: Vec::new(),
            ranges: Vec::new(),
            number: 0,
            pattern: Space { text: Vec::new(), ended: true },
            hold: Space { text: Vec::new(), ended: true },
            outputs,
            after: Vec::new(),
            substituted: false,
            last: None,
            quiet,
            end,
            standard: in_place.then(|| Output::ending(end)),
        }
    }

    /// Goes through the lines of some files, and gives the status of `q`, which ends all.
    pub(super) fn run(&mut self, shell: &mut Shell<'_>, files: Vec<Input>) -> Run<Option<u8>> {
        let end = self.end;
        // Nothing is kept from one file to the next that is edited on its own.
        let starts_open = |command: &Command| matches!(command.from, Some(Address::Line(0)));
        let range = |command| if starts_open(command) { Range::Active(None) } else { Range::Inactive };
        self.ranges = self.commands.iter().map(range).collect();
        // Except whether the line in the hold space had an end.
        self.hold.text.clear();
        (self.text, self.lines, self.names, self.number) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for (name, text) in files {
            for line in text.split_inclusive(|byte| *byte == end) {
                self.text.extend_from_slice(line);
                self.lines.push(self.text.len());
            }
            self.names.push((self.lines.len(), name));
        }
        let mut again = false;
        while again || self.number < self.lines.len() {
            shell.spend(ROUND)?;
            if !again {
                self.pattern = self.take();
                self.substituted = false;
            }
            again = false;
            let cycle = self.cycle(shell)?;
            match cycle {
                Cycle::Print => self.finish(shell, !self.quiet)?,
                Cycle::Skip => self.finish(shell, false)?,
                Cycle::Again => {
                    self.finish(shell, false)?;
                    again = true;
                }
                Cycle::Quit(code, prints) => {
                    self.finish(shell, prints && !self.quiet)?;
                    if prints {
                        self.outputs.edited.complete();
                    }
                    return Ok(Some(code));
                }
            }
            shell.spend_size(self.outputs.edited.len(), self.pattern.text.len() + 1)?;
        }
        Ok(None)
    }

    /// The next line. The last one of each file may have no end.
    fn take(&mut self) -> Space {
        let end = |number: usize| self.lines.get(number).copied().unwrap_or(self.text.len());
        let start = self.number.checked_sub(1).map_or(0, end);
        let line = &self.text[start..end(self.number)];
        self.number += 1;
        let text = line.strip_suffix(&[self.end]);
        Space { text: text.unwrap_or(line).to_vec(), ended: text.is_some() }
    }

    /// Which of the files the current line is in.
    pub(super) fn current_file(&self) -> usize {
        self.names.iter().position(|(end, _)| self.number <= *end).unwrap_or_default()
    }

    /// How many bytes follow the current line in its file.
    pub(super) fn unread(&self) -> usize {
        let end = |lines: usize| lines.checked_sub(1).and_then(|at| self.lines.get(at).copied()).unwrap_or_default();
        let last = self.names.iter().map(|(last, _)| *last).find(|last| self.number <= *last);
        last.map_or(0, |last| end(last) - end(self.number))
    }

    fn is_last(&self) -> bool {
        self.number >= self.lines.len()
    }

    /// Ends a cycle: prints, and writes what was appended.
    fn finish(&mut self, shell: &mut Shell<'_>, prints: bool) -> Run<()> {
        if prints {
            self.print();
        }
        for after in std::mem::take(&mut self.after) {
            match after {
                After::Text(text) => self.outputs.edited.text(text),
                After::File(path) => {
                    if shell.stat(path, crate::files::Follow::Yes).is_ok_and(|node| node.is_file())
                        && let Ok(text) = shell.read_file(path)?
                    {
                        self.outputs.edited.text(&text);
                    }
                }
            }
        }
        Ok(())
    }

    fn print(&mut self) {
        let end = self.pattern.ended.then_some(self.end);
        self.outputs.edited.line(&self.pattern.text, end);
    }

    /// The part of the pattern space before its first newline, and whether a newline follows.
    fn first(&self) -> (&[u8], bool) {
        match self.pattern.text.iter().position(|byte| *byte == self.end) {
            Some(at) => (&self.pattern.text[..at], true),
            None => (&self.pattern.text, self.pattern.ended),
        }
    }

    fn write(&mut self, file: &[u8], text: &[u8], ended: bool) {
        let end = ended.then_some(self.end);
        match (file, &mut self.standard) {
            (b"/dev/stdout", Some(standard)) => standard.line(text, end),
            (b"/dev/stdout", None) => self.outputs.named_line(text, end),
            _ => self.outputs.files.entry(file.to_vec()).or_default().line(text, end),
        }
    }

    fn cycle(&mut self, shell: &mut Shell<'_>) -> Run<Cycle> {
        let commands = self.commands;
        let mut at = 0;
        while let Some(command) = commands.get(at) {
            shell.spend(ROUND)?;
            let selected = self.selects(shell, at, command)? != command.negated;
            at += 1;
            if !selected {
                if let Action::Open(end) = command.action {
                    at = end + 1;
                }
                continue;
            }
            if let Action::Branch(label, jumps) = &command.action {
                if jumps.is_none_or(|wanted| wanted == self.substituted) {
                    at = self.target(shell, label)?;
                }
                self.substituted &= jumps.is_none();
                continue;
            }
            let is_active = matches!(self.ranges[at - 1], Range::Active(_));
            if let Some(cycle) = self.act(shell, command, is_active)? {
                return Ok(cycle);
            }
        }
        Ok(Cycle::Print)
    }

    fn target(&self, shell: &Shell<'_>, label: &[u8]) -> Run<usize> {
        if label.is_empty() {
            return Ok(self.commands.len());
        }
        let found =
            self.commands.iter().position(|command| matches!(&command.action, Action::Label(own) if own == label));
        found.map_or_else(|| shell.unsupported(&[b"the label ", label].concat()), Ok)
    }

    fn hits(&mut self, shell: &mut Shell<'_>, address: &'m Address) -> Run<bool> {
        Ok(match address {
            Address::Line(line) => self.number == *line,
            Address::Step(first, step) => self.number >= *first && (self.number - first).is_multiple_of(*step),
            Address::Last => self.is_last(),
            Address::Plus(_) | Address::Multiple(_) => false,
            Address::Match(expression) => {
                let Some(expression) = expression.as_deref().or(self.last) else {
                    return shell.unsupported(b"an empty regular expression");
                };
                self.last = Some(expression);
                expression.is_match(shell, &self.pattern.text)?
            }
        })
    }

    fn selects(&mut self, shell: &mut Shell<'_>, at: usize, command: &'m Command) -> Run<bool> {
        let Some(from) = &command.from else { return Ok(true) };
        let Some(to) = &command.to else { return self.hits(shell, from) };
        if let Range::Active(end) = self.ranges[at] {
            return self.continues(shell, at, to, end);
        }
        let starts = match from {
            // Also behind that line, if another command took it.
            Address::Line(line) => self.ranges[at] == Range::Inactive && self.number >= *line,
            from => self.hits(shell, from)?,
        };
        if !starts {
            return Ok(false);
        }
        let end = match to {
            Address::Plus(0) | Address::Multiple(0) => {
                self.ranges[at] = Range::Closed;
                return Ok(true);
            }
            Address::Line(end) => {
                self.ranges[at] = if self.number >= *end { Range::Closed } else { Range::Active(Some(*end)) };
                return Ok(self.number <= *end || self.hits(shell, from)?);
            }
            Address::Plus(count) => Some(self.number.saturating_add(*count)),
            Address::Multiple(count) => Some((self.number / count).saturating_add(1).saturating_mul(*count)),
            _ => None,
        };
        self.ranges[at] = Range::Active(end);
        if matches!(to, Address::Last) { self.continues(shell, at, to, end) } else { Ok(true) }
    }

    /// Whether a range that began selects this line, which may be its last one.
    fn continues(&mut self, shell: &mut Shell<'_>, at: usize, to: &'m Address, end: Option<usize>) -> Run<bool> {
        let ends = match end {
            Some(end) => self.number >= end,
            None => self.hits(shell, to)?,
        };
        if ends {
            self.ranges[at] = Range::Closed;
        }
        // Other commands may have taken the last line: then one that is given by its number is past.
        Ok(!matches!(to, Address::Line(line) if self.number > *line))
    }

    fn act(&mut self, shell: &mut Shell<'_>, command: &'m Command, is_active: bool) -> Run<Option<Cycle>> {
        match &command.action {
            Action::Open(_) | Action::Close | Action::Label(_) | Action::Branch(..) | Action::Nothing => {}
            Action::Substitute(substitution) => self.substitute(shell, substitution)?,
            Action::Translate(table) => {
                self.pattern.text.iter_mut().for_each(|byte| *byte = table[usize::from(*byte)]);
            }
            Action::Delete => return Ok(Some(Cycle::Skip)),
            Action::DeleteFirst => match self.pattern.text.iter().position(|byte| *byte == self.end) {
                None => return Ok(Some(Cycle::Skip)),
                Some(at) => {
                    self.pattern.text.drain(..=at);
                    return Ok(Some(Cycle::Again));
                }
            },
            Action::Print => self.print(),
            Action::PrintFirst => {
                let (first, ended) = self.first();
                let (first, end) = (first.to_vec(), ended.then_some(self.end));
                self.outputs.edited.line(&first, end);
            }
            Action::Number => self.outputs.edited.text(format!("{}\n", self.number).as_bytes()),
            Action::Name => {
                let name = self.names.iter().find(|(end, _)| self.number <= *end).map_or(&b"-"[..], |(_, name)| name);
                self.outputs.edited.text(&[name, b"\n"].concat());
            }
            Action::List(width) => {
                let listed = listed(&self.pattern.text, *width);
                self.outputs.edited.text(&listed);
            }
            Action::Next | Action::Append if self.is_last() => return Ok(Some(Cycle::Print)),
            Action::Next => {
                self.finish(shell, !self.quiet)?;
                self.pattern = self.take();
            }
            Action::Append => {
                self.finish(shell, false)?;
                let next = self.take();
                self.pattern.text.push(self.end);
                self.pattern.text.extend(next.text);
                self.pattern.ended = next.ended;
                shell.spend_size(self.pattern.text.len(), self.pattern.text.len())?;
            }
            Action::Quit(status, prints) => return Ok(Some(Cycle::Quit(*status, *prints))),
            Action::Insert(text) => self.outputs.edited.text(text),
            Action::AppendText(text) => self.after.push(After::Text(text)),
            Action::Read(path) => self.after.push(After::File(path)),
            Action::Change(text) => {
                // That of a range comes at its end.
                if !is_active {
                    self.outputs.edited.text(text);
                }
                return Ok(Some(Cycle::Skip));
            }
            Action::Write(file) => {
                let Space { text, ended } = self.pattern.clone();
                self.write(file, &text, ended);
            }
            Action::WriteFirst(file) => {
                let (first, ended) = self.first();
                let first = first.to_vec();
                self.write(file, &first, ended);
            }
            other => self.hold(other),
        }
        let spaces = self.hold.text.len() + self.pattern.text.len();
        shell.spend_size(spaces, spaces)?;
        Ok(None)
    }

    /// What concerns the hold space, and `z`.
    fn hold(&mut self, action: &Action) {
        let joined = |one: &Space, other: &Space| [&one.text[..], &[self.end], &other.text].concat();
        match action {
            Action::Hold(false) => self.hold = self.pattern.clone(),
            Action::Hold(true) => {
                self.hold.text = joined(&self.hold, &self.pattern);
                self.hold.ended = self.pattern.ended;
            }
            Action::Get(false) => self.pattern = self.hold.clone(),
            Action::Get(true) => {
                self.pattern.text = joined(&self.pattern, &self.hold);
                self.pattern.ended = self.hold.ended;
            }
            Action::Exchange => std::mem::swap(&mut self.hold, &mut self.pattern),
            Action::Zap => self.pattern.text.clear(),
            _ => {}
        }
    }

    fn substitute(&mut self, shell: &mut Shell<'_>, substitution: &'m Substitution) -> Run<()> {
        let Some(expression) = substitution.expression.as_ref().or(self.last) else {
            return shell.unsupported(b"an empty regular expression");
        };
        self.last = Some(expression);
        let line = std::mem::take(&mut self.pattern.text);
        let mut out = Vec::new();
        let (mut copied, mut from, mut seen, mut changed) = (0, 0, 0, false);
        let mut last_end = None;
        while from <= line.len() {
            let Some(places) = expression.find(shell, &line, from)? else { break };
            let Some(Some((start, end))) = places.first().copied() else { break };
            if start == end && last_end == Some(start) {
                // Nothing is not found again right behind a match.
                from = end + 1;
                continue;
            }
            seen += 1;
            last_end = Some(end);
            if seen >= substitution.number {
                out.extend_from_slice(&line[copied..start]);
                let group = |group: usize| {
                    let place = places.get(group).copied().flatten();
                    place.map_or(&b""[..], |(start, end)| &line[start..end])
                };
                out.extend(substitution.replaced(group));
                copied = end;
                changed = true;
                if !substitution.global {
                    break;
                }
            }
            shell.spend_size(out.len(), 16)?;
            from = if end > start { end } else { end + 1 };
        }
        out.extend_from_slice(&line[copied..]);
        shell.spend_size(out.len(), out.len())?;
        self.pattern.text = out;
        self.substituted |= changed;
        if changed && substitution.print {
            self.print();
        }
        if let Some(file) = substitution.file.as_ref().filter(|_| changed) {
            let Space { text, ended } = self.pattern.clone();
            self.write(file, &text, ended);
        }
        Ok(())
    }
}

/// A text as `l` shows it, in lines of that width; 0 and 1 do not break lines.
fn listed(text: &[u8], width: usize) -> Vec<u8> {
    let most = if width > 1 { width - 1 } else { usize::MAX };
    let (mut out, mut column) = (Vec::new(), 0);
    for byte in text {
        let shown = match byte {
            b'\\' => b"\\\\".to_vec(),
            7 => b"\\a".to_vec(),
            8 => b"\\b".to_vec(),
            12 => b"\\f".to_vec(),
            b'\n' => b"\\n".to_vec(),
            b'\r' => b"\\r".to_vec(),
            b'\t' => b"\\t".to_vec(),
            11 => b"\\v".to_vec(),
            b' '..=b'~' => vec![*byte],
            byte => format!("\\{byte:03o}").into_bytes(),
        };
        if column + shown.len() > most {
            out.extend(b"\\\n");
            column = 0;
        }
        column += shown.len();
        out.extend(shown);
    }
    out.extend(b"$\n");
    out
}
