//! Parameters of bash: arrays, references, and operations that dash lacks.

mod operations;
pub(crate) mod quoting;
mod regular;
mod substring;

use std::collections::BTreeSet;

use super::parameter::depends_on_values;
use super::{Mode, Tilde, Unit, Units, bytes, push, special};
use crate::eval::{Run, Stop};
use crate::host::Question;
use crate::shell::Shell;
use crate::syntax::words::is_name;
use crate::syntax::{Operation, Parameter, Part, Subscript};
use crate::variables::{Key, divide_reference};

/// The value of a parameter.
#[derive(Debug, Clone)]
enum Value {
    Unset,
    One(Vec<u8>),
    /// `$@`, `$*`, all elements of an array; with `star` they are joined by `IFS` in quotes.
    All(Vec<Vec<u8>>, bool),
}

/// The subscript of a parameter, expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Index {
    None,
    All { star: bool },
    One(Vec<u8>),
}

/// A parameter after references and subscripts are resolved.
#[derive(Debug, Clone)]
struct Subject {
    name: Vec<u8>,
    index: Index,
    /// How messages name it.
    shown: Vec<u8>,
}

impl Shell<'_> {
    /// Expands a parameter in a script of bash.
    pub(super) fn bash_parameter(&mut self, parameter: &Parameter, mode: Mode, out: &mut Units) -> Run<()> {
        match &parameter.operation {
            Operation::Bad => return Err(self.discard_reported(&[&parameter.name[..], b": bad substitution"].concat())),
            Operation::Names { star } => {
                let names = self.names(&parameter.name)?;
                let names = self.changed(Value::All(names, *star), mode, true);
                return self.emit_value(names, mode, out);
            }
            Operation::Keys => {
                let keys = self.keys(&parameter.name)?;
                let star = matches!(parameter.index, Some(Subscript::Star));
                let keys = self.changed(Value::All(keys, star), mode, mode.quoted);
                return self.emit_value(keys, mode, out);
            }
            _ => {}
        }
        let subject = self.subject(parameter)?;
        let is_list = &subject.name[..] == b"@" || subject.index == Index::All { star: false };
        let is_text = !mode.fields && !mode.quoted && !mode.assigns && !mode.document;
        if is_list && is_text && self.state.ifs().iter().any(|byte| !b" \t\n".contains(byte)) {
            // In `[[ ]]`, bash also splits the text around it.
            return self.unsupported(b"$@ or an array as one text, with this IFS");
        }
        // If it is not an array, its length is checked before the subscript.
        if self.state.flags.nounset
            && matches!((&parameter.operation, &subject.index), (Operation::Length, Index::One(_)))
            && !self.is_assigned_array(&subject.name)?
            && self.state.get(&subject.name).is_none()
        {
            return Err(self.discard_reported(&[&subject.name[..], b": unbound variable"].concat()));
        }
        self.check_variable(&subject.name)?;
        let value = match self.subject_value(&subject)? {
            Value::All(values, _) if mode.document && &subject.name[..] == b"*" => Value::All(values, false),
            value => value,
        };
        if matches!(value, Value::Unset) {
            self.ask(Question::Unset(&subject.name))?;
        }
        match &value {
            Value::One(text) if !matches!(parameter.operation, Operation::Value) => self.ask(Question::Value(text))?,
            Value::All(values, _) if depends_on_values(&parameter.operation) => {
                values.iter().try_for_each(|value| self.ask(Question::Value(value)))?;
            }
            _ => {}
        }
        self.operate(parameter, &subject, value, mode, out)
    }

    fn operate(
        &mut self,
        parameter: &Parameter,
        subject: &Subject,
        value: Value,
        mode: Mode,
        out: &mut Units,
    ) -> Run<()> {
        match &parameter.operation {
            Operation::Default(colon, word) if is_missing(&value, *colon) => self.bash_operand(word, mode, out),
            Operation::Alternative(colon, _) if is_missing(&value, *colon) => {
                let is_nothing = matches!(value, Value::All(values, false) if values.is_empty());
                self.nothing_quoted |= is_nothing;
                self.quoted_lists.separate |= is_nothing && mode.quoted && mode.fields;
                Ok(())
            }
            Operation::Alternative(_, word) => self.bash_operand(word, mode, out),
            Operation::Assign(colon, word) if is_missing(&value, *colon) => {
                // The assigned value is one text, also that of an array without elements.
                let nothing = self.nothing_quoted;
                self.assign_missing(subject, word, mode, out)?;
                self.nothing_quoted = nothing;
                Ok(())
            }
            Operation::Error(colon, word) if is_missing(&value, *colon) => self.missing(subject, *colon, word),
            Operation::Default(..) | Operation::Assign(..) | Operation::Error(..) => self.emit_value(value, mode, out),
            Operation::Value => {
                let value = self.bound(subject, value)?;
                self.emit_value(value, mode, out)
            }
            Operation::Length => {
                let length = self.length(subject, value)?;
                push(out, length.to_string().as_bytes(), mode.value_mark());
                Ok(())
            }
            Operation::Substring { offset, length } => {
                let value = self.bound(subject, value)?;
                let before = value.clone();
                let value = self.slice(subject, value, offset, length.as_deref())?;
                self.require_random_values(&before, &value)?;
                self.null_value(&value, mode, out);
                let value = self.changed(value, mode, mode.quoted);
                self.emit_value(value, mode, out)
            }
            Operation::Transform(letter) => {
                let value = self.bound(subject, value)?;
                let before = value.clone();
                let value = self.transform(subject, value, *letter)?;
                if *letter != b'a' {
                    self.require_random_values(&before, &value)?;
                }
                if *letter != b'a' {
                    self.null_value(&value, mode, out);
                }
                let value = self.changed(value, mode, true);
                self.emit_value(value, mode, out)
            }
            other => {
                let value = self.bound(subject, value)?;
                // The pattern is not even expanded.
                if matches!(value, Value::Unset) {
                    return Ok(());
                }
                let was_null = matches!(&value, Value::One(text) if text.is_empty());
                let value = self.each(value, other)?;
                if !(was_null && matches!(other, Operation::Trim { .. })) {
                    self.null_value(&value, mode, out);
                }
                let joins = mode.quoted || matches!(other, Operation::Trim { .. });
                let value = self.changed(value, mode, joins);
                self.emit_value(value, mode, out)
            }
        }
    }

    /// Refuses values that an operation made of random ones, and in which these are not found again.
    fn require_random_values(&self, before: &Value, after: &Value) -> Run<()> {
        match (before, after) {
            (Value::One(before), Value::One(after)) => self.require_random(before, after),
            (Value::All(before, _), Value::All(after, _)) if before.len() == after.len() => {
                before.iter().zip(after).try_for_each(|(before, after)| self.require_random(before, after))
            }
            _ => Ok(()),
        }
    }

    /// An operation in quotes that leaves nothing of a value gives a field all the same.
    fn null_value(&mut self, value: &Value, mode: Mode, out: &mut Units) {
        match value {
            Value::One(text) if text.is_empty() && mode.quoted && mode.fields => out.push(Unit::EMPTY),
            Value::One(text) if text.is_empty() && mode.quoted => self.quoted_lists.null = true,
            _ => {}
        }
    }

    /// The word of an operation. In quotes it gives a field whatever is in it, so `"${x-"$@"}"` is one without parameters.
    fn bash_operand(&mut self, word: &[Part], mode: Mode, out: &mut Units) -> Run<()> {
        let outer = self.nothing_quoted;
        let before = out.len();
        self.operand(word, mode, out)?;
        self.quoted_lists.backslash |= mode.quoted && out[before..].iter().any(|unit| unit.byte() == Some(b'\\'));
        if mode.quoted {
            self.nothing_quoted = outer;
        }
        Ok(())
    }

    /// Values after an operation: where they are assigned, bash joins them as those of `$*`.
    fn changed(&mut self, value: Value, mode: Mode, joins: bool) -> Value {
        let is_joined = matches!(&value, Value::All(values, true) if values.len() > 1);
        self.quoted_lists.joined |= is_joined && mode.quoted && mode.fields;
        match value {
            Value::All(values, false) if mode.assigns && joins && !self.state.ifs().is_empty() => {
                Value::All(values, true)
            }
            value => value,
        }
    }

    /// The parameter that an expansion is about.
    fn subject(&mut self, parameter: &Parameter) -> Run<Subject> {
        let name = parameter.name.clone();
        let index = match &parameter.index {
            None => Index::None,
            Some(Subscript::At) => Index::All { star: false },
            Some(Subscript::Star) => Index::All { star: true },
            Some(Subscript::Expression(parts)) => Index::One(self.subscript_text(&name, parts)?),
        };
        let shown = match &index {
            Index::One(index) => [&name[..], b"[", index, b"]"].concat(),
            _ => name.clone(),
        };
        let direct = Subject { name, index, shown };
        if !parameter.indirect {
            return Ok(direct);
        }
        let subject = self.indirect(direct)?;
        if matches!(parameter.operation, Operation::Assign(..)) && subject.name == parameter.name {
            return self.unsupported(b"an assignment by ${! } through a variable without a value");
        }
        Ok(subject)
    }

    /// `${!x}`: the parameter that the value of another names.
    fn indirect(&mut self, direct: Subject) -> Run<Subject> {
        let is_reference = self.state.variables.get(&direct.name).is_some_and(|found| found.attributes.nameref);
        if is_reference {
            return self.unsupported(b"${! } of a reference");
        }
        let text = match self.subject_value(&direct)? {
            Value::One(text) => text,
            // What is declared may have no value.
            Value::Unset if !is_name(&direct.name) || self.state.variable(&direct.name).is_some() => {
                return Ok(Subject { shown: [b"!", &direct.name[..]].concat(), ..direct });
            }
            Value::Unset => {
                return Err(self.discard_reported(&[&direct.shown[..], b": invalid indirect expansion"].concat()));
            }
            Value::All(..) => return self.unsupported(b"${! } of more than one value"),
        };
        let is_special = matches!(&text[..], b"@" | b"*" | b"#" | b"?" | b"-" | b"$" | b"!");
        let is_position = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        let shown = [b"!", &direct.name[..]].concat();
        if is_special || is_position {
            return Ok(Subject { name: text, index: Index::None, shown });
        }
        let Some((name, index)) = divide_reference(&text) else {
            return Err(self.discard_reported(&[&text[..], b": invalid variable name"].concat()));
        };
        let index = match index {
            None => Index::None,
            Some(b"@") => Index::All { star: false },
            Some(b"*") => Index::All { star: true },
            Some(index) => Index::One(self.given_subscript(index)?),
        };
        Ok(Subject { name: name.to_vec(), index, shown })
    }

    fn subject_value(&mut self, subject: &Subject) -> Run<Value> {
        let one = |found: Option<Vec<u8>>| found.map_or(Value::Unset, Value::One);
        let name = &subject.name[..];
        if matches!(name, b"@" | b"*") {
            return Ok(Value::All(self.state.params.to_vec(), name == b"*"));
        }
        if !is_name(name) {
            return self.positional(name);
        }
        if self.state.variables.get(name).is_none()
            && let Some(elements) = self.special_array(name)?
        {
            return match &subject.index {
                Index::All { star } => Ok(Value::All(elements, *star)),
                Index::None => Ok(one(elements.into_iter().next())),
                Index::One(index) => {
                    let at = self.evaluate(index)?;
                    let len = i64::try_from(elements.len()).unwrap_or(i64::MAX);
                    let at = if at < 0 { at.saturating_add(len) } else { at };
                    Ok(one(usize::try_from(at).ok().and_then(|at| elements.get(at).cloned())))
                }
            };
        }
        match &subject.index {
            Index::None => self.scalar_value(name).map(one),
            Index::One(index) => {
                let element = self.element(name, index)?.map(|value| value.to_vec());
                match element {
                    None if !self.state.variables.contains_key(name) => {
                        let whole = self.special_variable(name)?;
                        Ok(one(whole.filter(|_| &index[..] == b"0")))
                    }
                    element => Ok(one(element)),
                }
            }
            Index::All { star } => {
                if !self.state.variables.contains_key(name)
                    && let Some(value) = self.special_variable(name)?
                {
                    return Ok(Value::All(vec![value], *star));
                }
                let elements = self.elements(name)?;
                Ok(Value::All(elements.iter().map(|(_, value)| value.to_vec()).collect(), *star))
            }
        }
    }

    /// A parameter that is not a variable.
    fn positional(&mut self, name: &[u8]) -> Run<Value> {
        Ok(match self.parameter_value(name)? {
            super::parameter::Value::One(text) => Value::One(text),
            _ => Value::Unset,
        })
    }

    /// A value that `set -u` lets pass.
    fn bound(&mut self, subject: &Subject, value: Value) -> Run<Value> {
        if matches!(value, Value::Unset) && self.state.flags.nounset {
            return Err(self.unbound(&subject.shown));
        }
        Ok(value)
    }

    fn length(&mut self, subject: &Subject, value: Value) -> Run<usize> {
        match value {
            Value::All(values, _) => {
                if self.state.flags.nounset && is_name(&subject.name) && !self.is_assigned_array(&subject.name)? {
                    return Err(self.discard_reported(&[&subject.name[..], b": unbound variable"].concat()));
                }
                Ok(values.len())
            }
            // An element of an array may be missing.
            Value::Unset if self.state.flags.nounset && matches!(subject.index, Index::One(_)) => {
                match self.is_assigned_array(&subject.name)? {
                    true => Ok(0),
                    false => Err(self.discard_reported(&[&subject.shown[..], b": unbound variable"].concat())),
                }
            }
            value => match self.bound(subject, value)? {
                Value::One(text) => {
                    self.ascii_only(&text)?;
                    self.require_length(&text)?;
                    Ok(text.len())
                }
                _ => Ok(0),
            },
        }
    }

    /// Whether a variable is an array with a value. With `set -u`, others have no length even if they are set.
    fn is_assigned_array(&mut self, name: &[u8]) -> Run<bool> {
        match self.state.variable(name) {
            Some(found) => Ok(found.array.is_some() && !found.is_invisible()),
            None => Ok(self.special_array(name)?.is_some()),
        }
    }

    /// `${!prefix@}`
    fn names(&mut self, prefix: &[u8]) -> Run<Vec<Vec<u8>>> {
        if special::begins_special(prefix) {
            return self.unsupported(&[b"${!", prefix, b"*} with variables of bash itself"].concat());
        }
        self.ask(Question::Environment(prefix))?;
        self.spend(self.state.variables.len() * 8)?;
        // A variable that a local one without a value hides is among them.
        let hidden = self.state.locals.iter().flat_map(|scope| &scope.saved);
        let hidden = hidden.filter_map(|(name, found)| Some((name, found.as_ref()?)));
        let all = self.state.variables.iter().chain(hidden);
        let named = all.filter(|(name, found)| name.starts_with(prefix) && !found.is_invisible());
        Ok(named.map(|(name, _)| name.clone()).collect::<BTreeSet<_>>().into_iter().collect())
    }

    /// `${!x[@]}`
    fn keys(&mut self, name: &[u8]) -> Run<Vec<Vec<u8>>> {
        if !self.state.variables.contains_key(name)
            && let Some(elements) = self.special_array(name)?
        {
            return Ok((0..elements.len()).map(|at| at.to_string().into_bytes()).collect());
        }
        Ok(self.elements(name)?.iter().map(|(key, _)| Key::text(key)).collect())
    }

    fn assign_missing(&mut self, subject: &Subject, word: &[Part], mode: Mode, out: &mut Units) -> Run<()> {
        let Subject { name, index, .. } = subject;
        if !is_name(name) {
            return Err(self.discard_reported(&[b"$", &name[..], b": cannot assign in this way"].concat()));
        }
        let inner = Mode { fields: false, expansion: true, ..mode };
        let value = bytes(&self.units(word, inner, Tilde::Start)?);
        let assigned = match index {
            Index::None => self.assign_text(name, &value, false)?,
            Index::One(index) => self.assign_element(name, index, &value, false)?,
            Index::All { .. } => return self.unsupported(b"an assignment to all elements"),
        };
        if !assigned {
            self.state.status = 2;
            return Err(Stop::Discard);
        }
        let value = self.subject_value(subject)?;
        self.emit_value(value, mode, out)
    }

    fn missing(&mut self, subject: &Subject, colon: bool, word: &[Part]) -> Run<()> {
        self.state.status = 1;
        let text = bytes(&self.units(word, Mode::ONE, Tilde::Start)?);
        let status = self.state.status;
        let text = match (word.is_empty(), colon) {
            (false, _) => text,
            (true, true) => b"parameter null or not set".to_vec(),
            (true, false) => b"parameter not set".to_vec(),
        };
        self.complain_exactly(&[&subject.shown[..], b": ", &text].concat())?;
        // With `set -e`, a substitution in the message decides.
        let substituted = self.state.flags.errexit && status > 1;
        self.state.status = if substituted { status } else { self.fatal_status() };
        Err(self.force_end())
    }

    /// Adds a value to what a word expands to.
    fn emit_value(&mut self, value: Value, mode: Mode, out: &mut Units) -> Run<()> {
        let mark = mode.value_mark();
        let (values, star) = match value {
            Value::Unset => return Ok(()),
            Value::One(text) => {
                push(out, &text, mark);
                return Ok(());
            }
            Value::All(values, star) => (values, star),
        };
        self.ask_separators()?;
        self.nothing_quoted |= values.is_empty() && !star;
        self.quoted_lists.separate |= !star && mode.quoted && mode.fields;
        let ifs = self.state.ifs();
        let separator = if star || (mode.fields && !mode.quoted) { ifs.first().copied() } else { Some(b' ') };
        // Without quotes the separator is split again; an empty IFS keeps fields apart.
        let as_fields = mode.fields && (if mode.quoted { !star } else { ifs.is_empty() });
        if mode.expansion && !mode.quoted && mode.fields && values.len() > 1 && !star && separator != Some(b' ') {
            return self.unsupported(b"$@ in the word of an expansion, with this IFS");
        }
        for (at, value) in values.iter().enumerate() {
            if at > 0 && as_fields {
                out.push(Unit::BREAK);
            } else if at > 0 {
                out.extend(separator.map(|byte| Unit(u16::from(byte) | mark)));
            }
            if value.is_empty() && as_fields && mode.quoted {
                out.push(Unit::EMPTY);
            }
            push(out, value, mark);
            self.spend_size(out.len(), value.len())?;
        }
        Ok(())
    }
}

/// Whether `-`, `=`, `?` and `+` see no value; of several values what `$*` would give counts.
fn is_missing(value: &Value, colon: bool) -> bool {
    match value {
        Value::Unset => true,
        Value::One(text) => colon && text.is_empty(),
        Value::All(values, _) => match values.as_slice() {
            [] => true,
            [only] => colon && only.is_empty(),
            _ => false,
        },
    }
}
