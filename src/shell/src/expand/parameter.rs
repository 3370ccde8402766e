//! Parameter expansion (POSIX XCU 2.6.2).

use super::{Mode, Tilde, Unit, Units, bytes, push};
use crate::eval::Run;
use crate::host::Question;
use crate::pattern::Pattern;
use crate::random::PID;
use crate::shell::Shell;
use crate::syntax::words::is_name;
use crate::syntax::{Operation, Parameter, Part};

/// The value of a parameter.
pub(super) enum Value {
    Unset,
    One(Vec<u8>),
    /// `$@` or `$*`
    All(Vec<Vec<u8>>),
}

impl Shell<'_> {
    /// Expands a parameter.
    pub(super) fn parameter(&mut self, parameter: &Parameter, mode: Mode, out: &mut Units) -> Run<()> {
        self.state.line = parameter.line;
        if self.state.language.is_bash() {
            return self.bash_parameter(parameter, mode, out);
        }
        let name = &parameter.name;
        self.check_variable(name)?;
        let value = self.parameter_value(name)?;
        if matches!(value, Value::Unset) {
            self.ask(Question::Unset(name))?;
        }
        match &value {
            Value::One(text) if !matches!(parameter.operation, Operation::Value) => self.ask(Question::Value(text))?,
            Value::All(params) => {
                self.ask_separators()?;
                if depends_on_values(&parameter.operation) || matches!(parameter.operation, Operation::Length) {
                    params.iter().try_for_each(|param| self.ask(Question::Value(param)))?;
                }
            }
            _ => {}
        }
        let missing = |colon: bool| match &value {
            Value::Unset => true,
            Value::One(text) => colon && text.is_empty(),
            // dash looks at the length of all parameters and of what separates them.
            Value::All(params) => {
                let joins = name != b"*" || self.state.get(b"IFS") != Some(b"");
                colon && params.iter().all(Vec::is_empty) && !(joins && params.len() > 1)
            }
        };
        match &parameter.operation {
            Operation::Default(colon, word) if missing(*colon) => self.operand(word, mode, out),
            Operation::Alternative(colon, _) if missing(*colon) => Ok(()),
            Operation::Alternative(_, word) => self.operand(word, mode, out),
            Operation::Assign(colon, word) if missing(*colon) => self.assign_default(name, word, mode, out),
            Operation::Error(colon, word) if missing(*colon) => self.complain_unset(name, *colon, word),
            Operation::Bad => Err(self.shell_error(b"Bad substitution")),
            Operation::Length => {
                let len = match self.known(name, value)? {
                    // dash counts what `"$*"` would give.
                    Value::All(params) => params.iter().map(Vec::len).sum::<usize>() + params.len().saturating_sub(1),
                    Value::One(text) => {
                        self.require_length(&text)?;
                        text.len()
                    }
                    Value::Unset => 0,
                };
                push(out, len.to_string().as_bytes(), mode.value_mark());
                Ok(())
            }
            Operation::Trim { suffix, longest, pattern } => {
                let value = self.known(name, value)?;
                let inner = self.units(pattern, Mode::ONE, Tilde::Start)?;
                let pattern = Pattern::new(&inner);
                self.require_literal(&inner, &pattern)?;
                let trimmed = match value {
                    Value::One(text) => {
                        let trimmed = self.trim(&text, &pattern, *suffix, *longest)?;
                        self.require_alike(&text, &[&pattern], &[], &trimmed, |shell, text, patterns, _| {
                            patterns
                                .iter()
                                .try_fold(text.to_vec(), |text, pattern| shell.trim(&text, pattern, *suffix, *longest))
                        })?;
                        Value::One(trimmed)
                    }
                    Value::All(_) => return self.unsupported(b"a pattern for all parameters"),
                    Value::Unset => Value::Unset,
                };
                self.emit(name, trimmed, mode, out);
                Ok(())
            }
            Operation::Value => {
                let value = self.known(name, value)?;
                self.emit(name, value, mode, out);
                Ok(())
            }
            _ => {
                self.emit(name, value, mode, out);
                Ok(())
            }
        }
    }

    /// A value that `set -u` lets pass.
    fn known(&mut self, name: &[u8], value: Value) -> Run<Value> {
        if matches!(value, Value::Unset) && self.state.flags.nounset {
            return Err(self.shell_error(&[name, b": parameter not set"].concat()));
        }
        Ok(value)
    }

    pub(super) fn parameter_value(&mut self, name: &[u8]) -> Run<Value> {
        let state = &self.state;
        let one = |text: String| Ok(Value::One(text.into_bytes()));
        match name {
            b"@" | b"*" => Ok(Value::All(state.params.to_vec())),
            b"#" => one(state.params.len().to_string()),
            b"?" => match &self.assumed {
                Some(command) => {
                    let what = format!("the exit status of `{command}`");
                    Err(self.fatal(crate::ErrorKind::Unknown { what }))
                }
                None => one(state.status.to_string()),
            },
            b"$" => {
                self.random.add(PID);
                Ok(Value::One(PID.to_vec()))
            }
            b"!" => Ok(Value::Unset),
            b"-" if state.language.is_bash() => one(crate::builtins::letters_of_bash(&state.flags)),
            b"-" => one(crate::builtins::flag_letters(&state.flags)),
            [b'0', rest @ ..] if rest.iter().all(|digit| *digit == b'0') => Ok(Value::One(state.zero.to_vec())),
            b"PPID" if state.get(name).is_none() => {
                Err(self.fatal(crate::ErrorKind::Random { what: "$PPID".to_owned() }))
            }
            digits if digits.first().is_some_and(u8::is_ascii_digit) => {
                self.require_fixed(&[digits.to_vec()])?;
                let index = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<usize>().ok());
                let param = index.and_then(|index| state.params.get(index.checked_sub(1)?));
                Ok(param.map_or(Value::Unset, |param| Value::One(param.clone())))
            }
            name => Ok(state.get(name).map_or(Value::Unset, |value| Value::One(value.to_vec()))),
        }
    }

    /// Adds a value to what a word expands to.
    fn emit(&mut self, name: &[u8], value: Value, mode: Mode, out: &mut Units) {
        let mark = mode.value_mark();
        let params = match value {
            Value::Unset => return,
            Value::One(text) => return push(out, &text, mark),
            Value::All(params) => params,
        };
        let ifs = self.state.get(b"IFS").map(<[u8]>::to_vec);
        let separator = match &ifs {
            Some(ifs) if name == b"*" || !mode.fields => ifs.first().copied(),
            _ => Some(b' '),
        };
        let as_fields = mode.fields && (!mode.quoted || name == b"@");
        for (at, param) in params.iter().enumerate() {
            if at > 0 && as_fields {
                out.push(Unit::BREAK);
            } else if at > 0 {
                out.extend(separator.map(|byte| Unit(u16::from(byte) | mark)));
            }
            if param.is_empty() && as_fields && mode.quoted {
                out.push(Unit::EMPTY);
            }
            push(out, param, mark);
        }
    }

    /// The word behind `-`, `=` or `+`.
    pub(super) fn operand(&mut self, word: &[Part], mode: Mode, out: &mut Units) -> Run<()> {
        self.parts(word, Mode { expansion: true, ..mode }, Tilde::Start, out)
    }

    fn assign_default(&mut self, name: &[u8], word: &[Part], mode: Mode, out: &mut Units) -> Run<()> {
        if !is_name(name) {
            return Err(self.shell_error(&[name, b": bad variable name"].concat()));
        }
        let inner = Mode { fields: false, expansion: true, ..mode };
        let value = bytes(&self.units(word, inner, Tilde::Start)?);
        self.set(name, &value)?;
        push(out, &value, mode.value_mark());
        Ok(())
    }

    fn complain_unset(&mut self, name: &[u8], colon: bool, word: &[Part]) -> Run<()> {
        let text = bytes(&self.units(word, Mode::ONE, Tilde::Start)?);
        let text = match (word.is_empty(), colon) {
            (false, _) => text,
            (true, true) => b"parameter not set or null".to_vec(),
            (true, false) => b"parameter not set".to_vec(),
        };
        Err(self.shell_error(&[name, b": ", &text].concat()))
    }

    /// A value without the shortest or longest prefix or suffix that fits.
    pub(super) fn trim(&mut self, text: &[u8], pattern: &Pattern, suffix: bool, longest: bool) -> Run<Vec<u8>> {
        let len = text.len();
        let tries = (len + 1).saturating_mul(len.saturating_add(pattern.len()).max(1));
        self.spend(if pattern.is_special() { tries / 8 + 1 } else { len })?;
        let cuts: Vec<usize> = if pattern.is_special() {
            (0..=len).collect()
        } else {
            [
                len.checked_sub(pattern.len()).filter(|_| suffix),
                Some(pattern.len()).filter(|cut| !suffix && *cut <= len),
            ]
            .into_iter()
            .flatten()
            .collect()
        };
        // The shortest prefix ends first, the shortest suffix begins last.
        let forward = suffix == longest;
        let fits = |cut: &usize| pattern.matches(if suffix { &text[*cut..] } else { &text[..*cut] });
        let found = if forward { cuts.iter().copied().find(fits) } else { cuts.iter().rev().copied().find(fits) };
        Ok(match found {
            Some(cut) if suffix => text[..cut].to_vec(),
            Some(cut) => text[cut..].to_vec(),
            None => text.to_vec(),
        })
    }
}

/// Whether an operation looks at the values of all parameters or elements, not only at whether there are any.
pub(super) fn depends_on_values(operation: &Operation) -> bool {
    !matches!(
        operation,
        Operation::Value
            | Operation::Length
            | Operation::Substring { .. }
            | Operation::Default(false, _)
            | Operation::Alternative(false, _)
            | Operation::Assign(false, _)
            | Operation::Error(false, _)
    )
}
