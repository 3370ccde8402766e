//! Simple commands: words, redirections and assignments, in the order of dash.

use std::rc::Rc;

use super::{Run, Stop};
use crate::builtins::{self, Builtin};
use crate::expand::{Entry, Units};
use crate::run::Event;
use crate::shell::{PATH, Shell};
use crate::syntax::{Assigned, Assignment, Descriptor, Node, Part, Simple, Subscript, Word, is_declaring};

/// Builtins whose operands are numbers.
const NUMERIC: [&[u8]; 6] = [b"exit", b"return", b"shift", b"umask", b"break", b"continue"];

/// The meaning of a command name.
enum Found {
    Nothing,
    Function(Rc<Node>),
    Special(Builtin),
    Regular(Builtin),
    /// With whether it is looked for where programs are by default: `command -p`.
    Program {
        by_default: bool,
    },
}

/// An expanded word of a declaration.
enum Operand {
    /// Fields whose pathnames are not looked for yet.
    Fields(Vec<Units>),
    /// An assignment, with the value of an array.
    Assignment(Vec<u8>, Option<Vec<Entry>>),
}

impl Shell<'_> {
    pub(super) fn simple(&mut self, simple: &Simple, tested: bool) -> Run<u8> {
        if self.state.language.is_bash() {
            return self.simple_of_bash(simple, tested);
        }
        self.step()?;
        self.state.line = simple.line;
        self.state.substituted = 0;
        let replaced = self.without_alias(simple)?;
        let words = self.command_words(replaced.as_ref().unwrap_or(&simple.words))?;
        self.state.line = simple.line;
        // `command` takes functions away, and from special builtins that they end the shell.
        let prefix = builtins::command_prefix(&words);
        let argv = Rc::new(words[prefix..].to_vec());
        let found = self.find(&argv, &words[..prefix]);
        let outer = std::mem::replace(&mut self.command, argv.clone());
        let outer_tested = std::mem::replace(&mut self.tested, tested);
        let saved = self.state.descriptors.clone();
        let result = self.redirected_simple(simple, &found, &argv, tested);
        let result = self.require_known(result);
        let keeps = matches!(&found, Found::Special(_)) && argv.first().is_some_and(|name| name == b"exec");
        if !(keeps && result.is_ok()) {
            self.restore(&saved, &simple.redirects);
        } else if self.replaces_script(simple) {
            return self.unsupported(b"replacing the standard input from which the shell reads its script");
        }
        self.command = outer;
        self.tested = outer_tested;
        let status = result?;
        if !argv.is_empty() {
            let (script, words) = (self.state.script.clone(), argv.to_vec());
            self.commands.ran(&Event { script, line: simple.line, words, status });
        }
        Ok(status)
    }

    fn redirected_simple(&mut self, simple: &Simple, found: &Found, argv: &[Vec<u8>], tested: bool) -> Run<u8> {
        if !self.redirect(&simple.redirects)? {
            self.state.status = 2;
            return if matches!(found, Found::Special(_)) { Err(Stop::Error) } else { Ok(2) };
        }
        let lasting = matches!(found, Found::Nothing | Found::Special(_)) || simple.assignments.is_empty();
        if !lasting {
            self.enter_scope(true);
        }
        let result = self.assigned_simple(simple, found, argv, tested, lasting);
        if !lasting && !self.stays(&result) {
            self.leave_scope();
        }
        result
    }

    fn assigned_simple(
        &mut self,
        simple: &Simple,
        found: &Found,
        argv: &[Vec<u8>],
        tested: bool,
        lasting: bool,
    ) -> Run<u8> {
        for assignment in &simple.assignments {
            let name = &assignment.name;
            match &assignment.value {
                Assigned::Word(word) if !lasting => {
                    // An assignment in the value itself lasts.
                    let value = self.value(word)?;
                    self.save_before_command(name);
                    self.change(name, Some(value), true)?;
                }
                _ => self.assign(assignment)?,
            }
            self.trace_words(&[[name, &b"="[..], self.state.get(name).unwrap_or_default()].concat()], simple)?;
        }
        if !argv.is_empty() {
            self.trace_words(argv, simple)?;
        }
        self.assumed = None;
        match found {
            Found::Nothing => Ok(self.state.substituted),
            Found::Function(body) => self.call(body, &argv[1..], tested),
            Found::Special(builtin) => self.builtin(*builtin, argv, tested),
            Found::Regular(builtin) => {
                let scopes = self.state.locals.len();
                match self.builtin(*builtin, argv, tested) {
                    Err(Stop::Error) => {
                        self.leave_scopes(scopes);
                        Ok(2)
                    }
                    other => other,
                }
            }
            Found::Program { by_default } => self.command_program(simple, argv, *by_default),
        }
    }

    /// Whether `exec` with these redirections gives a shell another file to read its script from.
    pub(super) fn replaces_script(&self, simple: &Simple) -> bool {
        self.state.flags.stdin && simple.redirects.iter().any(|redirect| redirect.fd == Descriptor::Number(0))
    }

    /// Runs a builtin, which fails if its output is lost.
    fn builtin(&mut self, builtin: Builtin, argv: &[Vec<u8>], tested: bool) -> Run<u8> {
        self.require_numbers(argv)?;
        let outer = self.in_builtins;
        self.in_builtins += 1;
        let result = builtin(self, &argv[1..], tested);
        self.in_builtins = outer;
        let status = result?;
        if !std::mem::take(&mut self.lost) {
            return Ok(status);
        }
        self.complain(&[&argv[0][..], b": ", &argv[0], b": I/O error"].concat())?;
        Ok(status | 1)
    }

    /// Refuses a builtin that is given a number that is a random text.
    pub(super) fn require_numbers(&self, argv: &[Vec<u8>]) -> Run<()> {
        match argv.split_first() {
            Some((name, args)) if NUMERIC.contains(&&name[..]) => self.require_fixed(args),
            _ => Ok(()),
        }
    }

    /// Runs a program that a search finds.
    fn command_program(&mut self, simple: &Simple, argv: &[Vec<u8>], by_default: bool) -> Run<u8> {
        let Some(name) = argv.first() else { return Ok(0) };
        let own_path = simple.assignments.iter().any(|assignment| assignment.name == b"PATH");
        let place = match by_default {
            true => self.search(name, Some(PATH))?,
            // The shell remembers nothing of a search path that only the command has.
            false if own_path => self.search(name, None)?,
            false => self.place(name)?,
        };
        self.program_at(&place, argv)
    }

    /// The fields of a command's words. Operands of `export` and its like that are assignments are not split.
    pub(super) fn command_words(&mut self, words: &[Word]) -> Run<Vec<Vec<u8>>> {
        self.expanding_words(words, |shell| shell.expanded_words(words))
    }

    fn expanded_words(&mut self, words: &[Word]) -> Run<Vec<Vec<u8>>> {
        self.arrays.clear();
        let Some(first) = words.first() else { return Ok(Vec::new()) };
        let bash = self.state.language.is_bash();
        let assigns = match bash {
            true => is_declaring(words),
            false => matches!(first.literal(), Some(b"export" | b"readonly" | b"local" | b"declare" | b"typeset")),
        };
        if !assigns {
            return self.fields(words);
        }
        let (mut fields, mut waiting) = (Vec::new(), Vec::new());
        for (at, word) in words.iter().enumerate() {
            waiting.push(match crate::syntax::assignment(word, bash).filter(|_| at > 0) {
                Some(assignment) => self.operand_assignment(&assignment)?,
                None => Operand::Fields(self.split_word(word)?),
            });
            // dash looks for the pathnames of each word at once, bash when all words are expanded.
            if !bash {
                self.operand_fields(&mut waiting, &mut fields)?;
            }
        }
        self.operand_fields(&mut waiting, &mut fields)?;
        Ok(fields)
    }

    /// The fields of expanded words; values of arrays go to `arrays`, by the positions of their operands.
    fn operand_fields(&mut self, waiting: &mut Vec<Operand>, fields: &mut Vec<Vec<u8>>) -> Run<()> {
        for operand in waiting.drain(..) {
            match operand {
                Operand::Fields(expanded) => self.all_pathnames(&expanded, fields)?,
                Operand::Assignment(text, entries) => {
                    if let Some(entries) = entries {
                        self.arrays.insert(fields.len().saturating_sub(1), entries);
                    }
                    fields.push(text);
                }
            }
        }
        Ok(())
    }

    /// An operand such as `name[index]+=value`, expanded.
    fn operand_assignment(&mut self, assignment: &Assignment) -> Run<Operand> {
        let mut operand = assignment.name.clone();
        if let Some(index) = &assignment.index {
            let index = self.value(&Word::new(index.clone()))?;
            operand.extend([&b"["[..], &index, b"]"].concat());
        }
        operand.extend_from_slice(if assignment.append { b"+=" } else { b"=" });
        match &assignment.value {
            Assigned::Word(word) => {
                let is_star = |part: &Part| match part {
                    Part::Parameter(found) => {
                        &found.name[..] == b"*" || matches!(found.index, Some(Subscript::Star | Subscript::At))
                    }
                    _ => false,
                };
                if self.state.language.is_bash() && self.state.ifs().is_empty() && word.parts.iter().any(is_star) {
                    return self.unsupported(b"$* in a declaration, with an empty IFS");
                }
                operand.extend(self.value(word)?);
                Ok(Operand::Assignment(operand, None))
            }
            Assigned::Array(elements) => Ok(Operand::Assignment(operand, Some(self.entries(elements)?))),
        }
    }

    fn find(&self, argv: &[Vec<u8>], prefix: &[Vec<u8>]) -> Found {
        let Some(name) = argv.first() else { return Found::Nothing };
        let by_command = !prefix.is_empty();
        let program = Found::Program { by_default: prefix.iter().any(|word| word == b"-p") };
        if let Some(builtin) = builtins::special(name) {
            return if by_command { Found::Regular(builtin) } else { Found::Special(builtin) };
        }
        match self.state.functions.get(name).filter(|_| !by_command) {
            Some(body) => Found::Function(body.clone()),
            None => builtins::regular(name).map_or(program, Found::Regular),
        }
    }

    /// Calls a function of the script.
    fn call(&mut self, body: &Rc<Node>, args: &[Vec<u8>], tested: bool) -> Run<u8> {
        self.budget.enter_call().map_err(|kind| self.fatal(kind))?;
        let params = std::mem::replace(&mut self.state.params, Rc::new(args.to_vec()));
        let loops = std::mem::take(&mut self.state.loops);
        let getopts = std::mem::take(&mut self.state.getopts);
        self.enter_scope(false);
        self.state.functions_running += 1;
        let levels = self.budget.levels;
        let result = self.eval(body, tested);
        self.budget.levels = levels;
        self.state.functions_running -= 1;
        (self.state.params, self.state.loops, self.state.getopts) = (params, loops, getopts);
        if !self.stays(&result) {
            self.leave_scope();
        }
        self.budget.calls -= 1;
        match result {
            Err(Stop::Return) => Ok(self.state.status),
            other => other,
        }
    }

    /// Whether the shell of dash ends in a scope: its trap sees the variables of the scope.
    fn stays(&self, result: &Run<u8>) -> bool {
        matches!(result, Err(Stop::Exit | Stop::Error)) && !self.state.language.is_bash()
    }

    /// What `set -x` tells.
    pub(super) fn trace_words(&mut self, words: &[Vec<u8>], simple: &Simple) -> Run<()> {
        if !self.state.flags.xtrace {
            return Ok(());
        }
        // bash quotes words, repeats the sign and shows more than commands; dash shows all assignments of a command in one line.
        let is_other = self.state.language.is_bash()
            || self.state.get(b"PS4").is_some_and(|sign| sign != b"+ ")
            || simple.assignments.len() > 1
            || (!simple.assignments.is_empty() && !simple.words.is_empty());
        if is_other && self.is_captured(2) {
            return self.unsupported(b"a file or value with what `set -x` prints");
        }
        self.state.line = simple.line;
        let line = [&b"+ "[..], &words.join(&b' '), b"\n"].concat();
        self.err(&line)
    }
}
