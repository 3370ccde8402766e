//! `[[ … ]]` of bash.

use super::Run;
use crate::builtins::{bash_binary as binary, bash_unary as unary};
use crate::host::Question;
use crate::shell::Shell;
use crate::syntax::Condition;

impl Shell<'_> {
    pub(super) fn condition(&mut self, condition: &Condition) -> Run<bool> {
        self.step()?;
        match condition {
            Condition::Not(inner) => Ok(!self.condition(inner)?),
            Condition::All(parts) => {
                for part in parts {
                    if !self.condition(part)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Condition::Any(parts) => {
                for part in parts {
                    if self.condition(part)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Condition::Word(word) => {
                let word = self.one(word)?;
                self.ask(Question::Value(&word))?;
                Ok(!word.is_empty())
            }
            Condition::Unary(operator, word) => {
                let operand = match &operator[..] {
                    b"-n" | b"-z" => self.expanding_free(|shell| shell.one(word))?,
                    _ => self.one(word)?,
                };
                unary(self, operator, &operand)
            }
            Condition::Binary(left, operator, right) => {
                let subject = self.one(left)?;
                self.ask(Question::Value(&subject))?;
                match &operator[..] {
                    b"=" | b"==" | b"!=" => {
                        let pattern = self.conditional_pattern(&right.parts)?;
                        self.spend(pattern.work(subject.len()))?;
                        self.require_same_match(&pattern, &subject)?;
                        Ok(pattern.matches(&subject) == (operator != b"!="))
                    }
                    b"=~" => self.regular_match(&subject, &right.parts),
                    b"" => self.unsupported(b"this condition"),
                    _ => {
                        let right = self.one(right)?;
                        binary(self, &subject, operator, &right)
                    }
                }
            }
        }
    }
}
