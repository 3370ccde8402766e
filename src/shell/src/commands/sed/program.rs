//! Running a script of `sed` over lines.

use super::super::regex::Expression;
use super::super::split_lines;
use super::script::{Action, Address, Command};
use super::substitution::{Piece, Substitution};
use crate::eval::Run;
use crate::shell::Shell;

/// What a line and a command count for, in bytes of work. They are no steps: a script may have files of ten thousands of lines.
const ROUND: usize = 32;

/// What a run gives.
pub(super) struct Edited {
    pub(super) text: Vec<u8>,
    /// The status of `q`, which ends all.
    pub(super) status: Option<u8>,
}

struct Machine<'m> {
    lines: Vec<&'m [u8]>,
    commands: &'m [Command],
    /// Which ranges are open, by command: until which line, if that is known.
    ranges: Vec<Option<usize>>,
    /// Lines taken so far.
    number: usize,
    pattern: Vec<u8>,
    hold: Vec<u8>,
    out: Vec<u8>,
    after: Vec<u8>,
    substituted: bool,
    last: Option<&'m Expression>,
    quiet: bool,
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

/// Runs a script over a text.
pub(super) fn run(shell: &mut Shell<'_>, commands: &[Command], text: &[u8], quiet: bool) -> Run<Edited> {
    let mut machine = Machine {
        lines: split_lines(text).collect(),
        commands,
        ranges: vec![None; commands.len()],
        number: 0,
        pattern: Vec::new(),
        hold: Vec::new(),
        out: Vec::new(),
        after: Vec::new(),
        substituted: false,
        last: None,
        quiet,
    };
    let mut again = false;
    let mut status = None;
    while again || machine.number < machine.lines.len() {
        shell.spend(ROUND)?;
        if !again {
            machine.pattern = machine.take();
            machine.substituted = false;
        }
        again = false;
        match machine.cycle(shell)? {
            Cycle::Print => machine.end(!quiet),
            Cycle::Skip => machine.end(false),
            Cycle::Again => {
                machine.end(false);
                again = true;
            }
            Cycle::Quit(code, prints) => {
                machine.end(prints && !quiet);
                status = Some(code);
                break;
            }
        }
        shell.spend_size(machine.out.len(), machine.pattern.len() + 1)?;
    }
    // A last line without newline stays so.
    if machine.number == machine.lines.len()
        && !text.ends_with(b"\n")
        && machine.out.ends_with(b"\n")
        && !text.is_empty()
    {
        machine.out.pop();
    }
    Ok(Edited { text: machine.out, status })
}

impl<'m> Machine<'m> {
    fn take(&mut self) -> Vec<u8> {
        let line = self.lines.get(self.number).copied().unwrap_or_default();
        self.number += 1;
        line.strip_suffix(b"\n").unwrap_or(line).to_vec()
    }

    fn is_last(&self) -> bool {
        self.number >= self.lines.len()
    }

    fn end(&mut self, prints: bool) {
        if prints {
            self.print();
        }
        self.out.append(&mut self.after);
    }

    fn print(&mut self) {
        self.out.extend_from_slice(&self.pattern);
        self.out.push(b'\n');
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
            if let Some(cycle) = self.act(shell, command)? {
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
            Address::Last => self.is_last(),
            Address::Plus(_) => false,
            Address::Match(expression) => {
                let Some(expression) = expression.as_deref().or(self.last) else {
                    return shell.unsupported(b"an empty regular expression");
                };
                self.last = Some(expression);
                expression.is_match(shell, &self.pattern)?
            }
        })
    }

    fn selects(&mut self, shell: &mut Shell<'_>, at: usize, command: &'m Command) -> Run<bool> {
        let Some(from) = &command.from else { return Ok(true) };
        let Some(to) = &command.to else { return self.hits(shell, from) };
        if let Some(end) = self.ranges[at] {
            let ends = match to {
                Address::Line(_) | Address::Plus(_) => self.number >= end,
                to => self.hits(shell, to)?,
            };
            if ends {
                self.ranges[at] = None;
            }
            // A range whose last line is past by now has no more lines.
            return Ok(!matches!(to, Address::Line(_)) || self.number <= end || !ends);
        }
        if !self.hits(shell, from)? {
            return Ok(false);
        }
        self.ranges[at] = match to {
            Address::Line(line) if *line <= self.number => None,
            Address::Line(line) => Some(*line),
            Address::Plus(0) => None,
            Address::Plus(count) => Some(self.number.saturating_add(*count)),
            Address::Last if self.is_last() => None,
            _ => Some(usize::MAX),
        };
        Ok(true)
    }

    fn act(&mut self, shell: &mut Shell<'_>, command: &'m Command) -> Run<Option<Cycle>> {
        match &command.action {
            Action::Open(_) | Action::Close | Action::Label(_) | Action::Branch(..) => {}
            Action::Substitute(substitution) => self.substitute(shell, substitution)?,
            Action::Translate(table) => {
                self.pattern.iter_mut().for_each(|byte| *byte = table[usize::from(*byte)]);
            }
            Action::Delete => return Ok(Some(Cycle::Skip)),
            Action::DeleteFirst => match self.pattern.iter().position(|byte| *byte == b'\n') {
                None => return Ok(Some(Cycle::Skip)),
                Some(at) => {
                    self.pattern.drain(..=at);
                    return Ok(Some(Cycle::Again));
                }
            },
            Action::Print => self.print(),
            Action::PrintFirst => {
                let first = self.pattern.split(|byte| *byte == b'\n').next().unwrap_or_default().to_vec();
                self.out.extend([&first[..], b"\n"].concat());
            }
            Action::Number => self.out.extend(format!("{}\n", self.number).into_bytes()),
            Action::Next | Action::Append if self.is_last() => return Ok(Some(Cycle::Quit(0, true))),
            Action::Next => {
                self.end(!self.quiet);
                self.pattern = self.take();
            }
            Action::Append => {
                self.out.append(&mut self.after);
                let next = self.take();
                self.pattern.push(b'\n');
                self.pattern.extend(next);
                shell.spend_size(self.pattern.len(), self.pattern.len())?;
            }
            Action::Quit(status, prints) => return Ok(Some(Cycle::Quit(*status, *prints))),
            Action::Insert(text) => self.out.extend_from_slice(text),
            Action::AppendText(text) => self.after.extend_from_slice(text),
            Action::Change(text) => {
                if command.to.is_some() {
                    return shell.unsupported(b"c for a range");
                }
                self.out.extend_from_slice(text);
                return Ok(Some(Cycle::Skip));
            }
            Action::Hold(false) => self.hold = self.pattern.clone(),
            Action::Hold(true) => self.hold = [&self.hold[..], b"\n", &self.pattern].concat(),
            Action::Get(false) => self.pattern = self.hold.clone(),
            Action::Get(true) => self.pattern = [&self.pattern[..], b"\n", &self.hold].concat(),
            Action::Exchange => std::mem::swap(&mut self.hold, &mut self.pattern),
        }
        shell.spend_size(self.hold.len() + self.pattern.len(), self.hold.len() + self.pattern.len())?;
        Ok(None)
    }

    fn substitute(&mut self, shell: &mut Shell<'_>, substitution: &'m Substitution) -> Run<()> {
        let Some(expression) = substitution.expression.as_ref().or(self.last) else {
            return shell.unsupported(b"an empty regular expression");
        };
        self.last = Some(expression);
        let line = std::mem::take(&mut self.pattern);
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
                for piece in &substitution.replacement {
                    match piece {
                        Piece::Text(text) => out.extend_from_slice(text),
                        Piece::Group(group) => {
                            let place = places.get(*group).copied().flatten();
                            out.extend_from_slice(place.map_or(&b""[..], |(start, end)| &line[start..end]));
                        }
                    }
                }
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
        self.pattern = out;
        self.substituted |= changed;
        if changed && substitution.print {
            self.print();
        }
        Ok(())
    }
}
