//! Runs the rules and statements of a program.

use super::machine::{ENVIRON, Lvalue, Machine, OFS, ORS};
use super::order::Effects;
use super::record::Found;
use super::syntax::{Expr, Pattern, Program, Rule, Statement};
use super::value::Value;
use crate::eval::Run;
use crate::host::Question;

/// What a statement counts for, in bytes of work.
const COST: usize = 32;

/// How a program goes on behind a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Break,
    Continue,
    Next,
    Exit,
}

impl Machine<'_, '_> {
    /// Runs the program.
    pub(super) fn run(&mut self, program: &Program) -> Run<()> {
        let mut flow = self.all(&program.begin)?;
        if flow == Flow::On && (!program.rules.is_empty() || program.end.is_some()) {
            flow = match self.records(&program.rules)? {
                Some(flow) => flow,
                None => return self.flush(),
            };
        }
        if flow == Flow::Exit || flow == Flow::On {
            self.all(program.end.as_deref().unwrap_or_default())?;
        }
        self.flush()
    }

    fn all(&mut self, actions: &[Statement]) -> Run<Flow> {
        for action in actions {
            if self.execute(action)? == Flow::Exit {
                return Ok(Flow::Exit);
            }
        }
        Ok(Flow::On)
    }

    /// Goes through the input. `None` if a file cannot be read.
    fn records(&mut self, rules: &[Rule]) -> Run<Option<Flow>> {
        loop {
            match self.next_record()? {
                Found::More => {}
                Found::End => return Ok(Some(Flow::On)),
                Found::Failed => return Ok(None),
            }
            for rule in rules {
                if !self.selects(&rule.pattern)? {
                    continue;
                }
                let flow = match &rule.action {
                    Some(action) => self.execute(action)?,
                    None => self.print(&[])?,
                };
                match flow {
                    Flow::Exit => return Ok(Some(Flow::Exit)),
                    Flow::Next => break,
                    _ => {}
                }
            }
        }
    }

    fn selects(&mut self, pattern: &Pattern) -> Run<bool> {
        match pattern {
            Pattern::Always => Ok(true),
            Pattern::If(condition) => self.condition(condition),
            Pattern::Range(first, last, place) => {
                if !self.ranges[*place] && !self.condition(first)? {
                    return Ok(false);
                }
                self.ranges[*place] = !self.condition(last)?;
                Ok(true)
            }
        }
    }

    fn execute(&mut self, statement: &Statement) -> Run<Flow> {
        self.shell.spend(COST)?;
        self.shell.budget.enter_level().map_err(|kind| self.shell.fatal(kind))?;
        let flow = self.execute_kind(statement);
        self.shell.budget.levels -= 1;
        flow
    }

    fn execute_kind(&mut self, statement: &Statement) -> Run<Flow> {
        match statement {
            Statement::Expression(expr) => self.eval(expr).map(|_| Flow::On),
            Statement::Print(list) => self.print(list),
            Statement::Printf(list) => self.printf(list),
            Statement::If(condition, yes, no) => match (self.condition(condition)?, no) {
                (true, _) => self.execute(yes),
                (false, Some(no)) => self.execute(no),
                (false, None) => Ok(Flow::On),
            },
            Statement::While(condition, body) => self.repeat(Some(condition), None, body),
            Statement::Do(body, condition) => match self.execute(body)? {
                Flow::On | Flow::Continue => self.repeat(Some(condition), None, body),
                Flow::Break => Ok(Flow::On),
                flow => Ok(flow),
            },
            Statement::For(first, condition, step, body) => {
                if let Some(first) = first {
                    self.eval(first)?;
                }
                self.repeat(condition.as_ref(), step.as_ref(), body)
            }
            Statement::ForIn(variable, array, body) => self.for_in(*variable, *array, body),
            Statement::Block(statements) => {
                for statement in statements {
                    let flow = self.execute(statement)?;
                    if flow != Flow::On {
                        return Ok(flow);
                    }
                }
                Ok(Flow::On)
            }
            Statement::Delete(array, None) => self.clear(*array).map(|()| Flow::On),
            Statement::Delete(array, Some(keys)) => {
                let key = self.key(keys)?;
                self.remove(*array, &key).map(|()| Flow::On)
            }
            Statement::Break => Ok(Flow::Break),
            Statement::Continue => Ok(Flow::Continue),
            Statement::Next => Ok(Flow::Next),
            Statement::Exit(status) => self.exit(status.as_ref()),
        }
    }

    fn exit(&mut self, status: Option<&Expr>) -> Run<Flow> {
        if let Some(status) = status {
            let number = self.eval_number(status)?;
            let low = self.integer(number)?.rem_euclid(256);
            self.status = u8::try_from(low).unwrap_or_default();
        }
        Ok(Flow::Exit)
    }

    fn repeat(&mut self, condition: Option<&Expr>, step: Option<&Expr>, body: &Statement) -> Run<Flow> {
        loop {
            self.shell.spend(COST)?;
            if let Some(condition) = condition
                && !self.condition(condition)?
            {
                return Ok(Flow::On);
            }
            match self.execute(body)? {
                Flow::On | Flow::Continue => {}
                Flow::Break => return Ok(Flow::On),
                flow => return Ok(flow),
            }
            if let Some(step) = step {
                self.eval(step)?;
            }
        }
    }

    /// Goes through the keys that an array has now, in the order of their bytes: the order of real awks is unspecified.
    fn for_in(&mut self, variable: usize, array: usize, body: &Statement) -> Run<Flow> {
        if array == ENVIRON {
            self.shell.ask(Question::Environment(b""))?;
        }
        let keys: Vec<_> = self.arrays[array].keys().cloned().collect();
        self.shell.spend(keys.len().saturating_mul(16))?;
        // Scripts such as ucf unset the variables that they do not know, one after the other.
        if keys.len() > 1 && array != ENVIRON {
            let effects = Effects::of(body);
            if effects.depend() {
                return self
                    .shell
                    .unsupported("“for (… in …)” whose effect may depend on the order of keys".as_bytes());
            }
            self.is_unordered |= effects.prints;
        }
        for key in keys {
            self.shell.spend(key.len())?;
            self.set(&Lvalue::Variable(variable), Value::Text(key))?;
            match self.execute(body)? {
                Flow::On | Flow::Continue => {}
                Flow::Break => return Ok(Flow::On),
                flow => return Ok(flow),
            }
        }
        Ok(Flow::On)
    }

    fn print(&mut self, list: &[Expr]) -> Run<Flow> {
        let separator = self.special(OFS)?;
        let values = if list.is_empty() { vec![self.field(0)?] } else { self.values(list)? };
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                self.write(&separator)?;
            }
            let text = self.printed(value)?;
            self.write(&text)?;
        }
        let end = self.special(ORS)?;
        self.write(&end)?;
        Ok(Flow::On)
    }

    fn printf(&mut self, list: &[Expr]) -> Run<Flow> {
        let values = self.values(list)?;
        let Some((format, rest)) = values.split_first() else { return Ok(Flow::On) };
        let format = self.text(format)?;
        let text = self.format(&format, rest)?;
        self.write(&text)?;
        Ok(Flow::On)
    }
}
