//! The state of a running program: variables, arrays, the record, input and output.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::super::regex::Expression;
use super::parser::SPECIAL;
use super::record::{Input, Record};
use super::syntax::{Expr, Program};
use super::value::Value;
use crate::error::ErrorKind;
use crate::eval::Run;
use crate::host::Question;
use crate::shell::Shell;

/// Places of awk's variables, as [`SPECIAL`] has their names.
pub(super) const NF: usize = 0;
pub(super) const NR: usize = 1;
pub(super) const FNR: usize = 2;
pub(super) const FS: usize = 3;
pub(super) const OFS: usize = 4;
pub(super) const ORS: usize = 5;
pub(super) const RS: usize = 6;
pub(super) const SUBSEP: usize = 7;
pub(super) const CONVFMT: usize = 8;
pub(super) const OFMT: usize = 9;
pub(super) const FILENAME: usize = 10;
pub(super) const RSTART: usize = 11;
pub(super) const RLENGTH: usize = 12;

/// The array of the environment, as the parser numbers it.
pub(super) const ENVIRON: usize = 0;

/// Size of an element without its bytes.
const ELEMENT_BYTES: usize = 64;

/// What can be assigned to.
pub(super) enum Lvalue {
    Variable(usize),
    Field(usize),
    Element(usize, Rc<[u8]>),
}

pub(super) struct Machine<'s, 'h> {
    pub(super) shell: &'s mut Shell<'h>,
    pub(super) scalars: Vec<Value>,
    pub(super) arrays: Vec<BTreeMap<Rc<[u8]>, Value>>,
    /// Bytes of variables and arrays.
    bytes: usize,
    pub(super) record: Record,
    pub(super) input: Input,
    /// By range, whether its begin was found and its end was not.
    pub(super) ranges: Vec<bool>,
    pub(super) expressions: BTreeMap<Vec<u8>, Expression>,
    out: Vec<u8>,
    /// Whether something was written in the order of an array's keys.
    pub(super) is_unordered: bool,
    pub(super) status: u8,
}

impl<'s, 'h> Machine<'s, 'h> {
    pub(super) fn new(shell: &'s mut Shell<'h>, program: &Program, input: Input) -> Run<Self> {
        let mut scalars = vec![Value::Unset; program.scalars.len().max(SPECIAL.len())];
        for (place, text) in [(FS, " "), (OFS, " "), (ORS, "\n"), (RS, "\n"), (SUBSEP, "\x1c"), (CONVFMT, "%.6g")] {
            scalars[place] = Value::text(text.as_bytes());
        }
        scalars[OFMT] = Value::text(b"%.6g");
        scalars[FILENAME] = Value::text(b"");
        [NR, FNR, RSTART].iter().for_each(|place| scalars[*place] = Value::Number(0.0));
        scalars[RLENGTH] = Value::Number(-1.0);
        let environment = shell.state.exported();
        let mut machine = Self {
            shell,
            scalars,
            arrays: vec![BTreeMap::new(); program.arrays],
            bytes: 0,
            record: Record::default(),
            input,
            ranges: vec![false; program.ranges],
            expressions: BTreeMap::new(),
            out: Vec::new(),
            is_unordered: false,
            status: 0,
        };
        for (name, value) in environment {
            machine.set(&Lvalue::Element(ENVIRON, name.into()), Value::input(&value))?;
        }
        Ok(machine)
    }

    /// Where an expression's value is.
    pub(super) fn place(&mut self, expr: &Expr) -> Run<Lvalue> {
        match expr {
            Expr::Variable(place) => Ok(Lvalue::Variable(*place)),
            Expr::Element(array, keys) => Ok(Lvalue::Element(*array, self.key(keys)?)),
            Expr::Field(number) => {
                let number = self.eval(number)?;
                Ok(Lvalue::Field(self.field_number(&number)?))
            }
            _ => self.shell.unsupported(b"an assignment of awk to no variable"),
        }
    }

    /// The key that subscripts make.
    pub(super) fn key(&mut self, keys: &[Expr]) -> Run<Rc<[u8]>> {
        if let [only] = keys {
            let value = self.eval(only)?;
            return self.text(&value);
        }
        let separator = self.scalars[SUBSEP].clone();
        let separator = self.text(&separator)?;
        let mut key = Vec::new();
        for (at, expr) in keys.iter().enumerate() {
            let value = self.eval(expr)?;
            if at > 0 {
                key.extend(&separator[..]);
            }
            key.extend(&self.text(&value)?[..]);
            self.shell.spend_size(key.len(), 16)?;
        }
        self.shell.spend(key.len())?;
        Ok(key.into())
    }

    /// The value at a place. An element that is asked for is there from then on.
    pub(super) fn get(&mut self, place: &Lvalue) -> Run<Value> {
        match place {
            Lvalue::Variable(NF) => {
                self.split_record()?;
                Ok(Value::Number(super::number::count(self.record.fields.len())))
            }
            Lvalue::Variable(place) => Ok(self.scalars[*place].clone()),
            Lvalue::Field(number) => self.field(*number),
            Lvalue::Element(array, key) => {
                self.shell.spend(key.len())?;
                if let Some(found) = self.arrays[*array].get(key) {
                    return Ok(found.clone());
                }
                self.ask_element(*array, key)?;
                self.set(place, Value::Unset)?;
                Ok(Value::Unset)
            }
        }
    }

    /// Asks for a missing element of `ENVIRON`.
    pub(super) fn ask_element(&self, array: usize, key: &[u8]) -> Run<()> {
        if array == ENVIRON { self.shell.ask(Question::Unset(key)) } else { Ok(()) }
    }

    pub(super) fn set(&mut self, place: &Lvalue, value: Value) -> Run<()> {
        match place {
            Lvalue::Variable(NF) => self.set_field_count(&value),
            Lvalue::Variable(place) => {
                if *place == FS {
                    // A record is split as it was when it was read.
                    self.split_record()?;
                }
                self.account(self.scalars[*place].len(), value.len())?;
                self.scalars[*place] = value;
                Ok(())
            }
            Lvalue::Field(number) => self.set_field(*number, value),
            Lvalue::Element(array, key) => {
                let new = value.len() + key.len() + ELEMENT_BYTES;
                let old = self.arrays[*array].get(key).map_or(0, |old| old.len() + key.len() + ELEMENT_BYTES);
                self.account(old, new)?;
                self.arrays[*array].insert(key.clone(), value);
                Ok(())
            }
        }
    }

    pub(super) fn remove(&mut self, array: usize, key: &Rc<[u8]>) -> Run<()> {
        self.shell.spend(key.len())?;
        if let Some(old) = self.arrays[array].remove(key) {
            self.account(old.len() + key.len() + ELEMENT_BYTES, 0)?;
        }
        Ok(())
    }

    pub(super) fn clear(&mut self, array: usize) -> Run<()> {
        let old = std::mem::take(&mut self.arrays[array]);
        self.account(old.iter().map(|(key, value)| value.len() + key.len() + ELEMENT_BYTES).sum(), 0)
    }

    fn account(&mut self, old: usize, new: usize) -> Run<()> {
        self.shell.spend_size(new, 16)?;
        self.bytes = self.bytes.saturating_sub(old).saturating_add(new);
        let limit = self.shell.budget.limits.variables_bytes;
        if self.bytes > limit {
            let kind = ErrorKind::Limit { what: "bytes of variables", limit: u64::try_from(limit).unwrap_or(u64::MAX) };
            return Err(self.shell.fatal(kind));
        }
        Ok(())
    }

    /// Writes to standard output, at the end: a file would be written anew for each line.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Run<()> {
        self.shell.spend_size(self.out.len().saturating_add(bytes.len()), bytes.len())?;
        self.out.extend(bytes);
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Run<()> {
        let out = std::mem::take(&mut self.out);
        self.shell.out(&out)?;
        if self.is_unordered { self.shell.mark_output() } else { Ok(()) }
    }

    /// The text of a variable of awk.
    pub(super) fn special(&mut self, place: usize) -> Run<Rc<[u8]>> {
        let value = self.scalars[place].clone();
        self.text(&value)
    }
}
