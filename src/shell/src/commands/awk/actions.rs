//! Statements of an awk program. Redirections, pipes and `getline` are refused.

use super::parser::Parser;
use super::syntax::{Expr, Statement};
use super::tokens::Token;
use crate::eval::Run;

impl Parser<'_, '_, '_> {
    pub(super) fn block(&mut self) -> Run<Statement> {
        self.expect("{")?;
        let mut statements = Vec::new();
        loop {
            self.newlines()?;
            if self.take("}")? {
                return Ok(Statement::Block(statements));
            }
            statements.push(self.statement()?);
        }
    }

    fn statement(&mut self) -> Run<Statement> {
        self.node()?;
        self.deeper(Self::statement_kind)
    }

    fn statement_kind(&mut self) -> Run<Statement> {
        if self.is("{") {
            return self.block();
        }
        if self.take(";")? {
            return Ok(Statement::Block(Vec::new()));
        }
        if self.take("if")? {
            return self.branches();
        }
        if self.take("while")? {
            let condition = self.condition()?;
            return Ok(Statement::While(condition, self.body()?));
        }
        if self.take("for")? {
            return self.for_loop();
        }
        let statement = if self.take("do")? {
            let body = self.body()?;
            self.newlines()?;
            self.expect("while")?;
            Statement::Do(body, self.parenthesized()?)
        } else {
            self.simple()?
        };
        self.end_of_statement()?;
        Ok(statement)
    }

    fn end_of_statement(&mut self) -> Run<()> {
        match self.token {
            Token::Newline | Token::Sign(";") => self.advance().map(|_| ()),
            Token::End | Token::Sign("}") => Ok(()),
            Token::Sign(">" | ">>" | "|") => self.wrong("a redirection or a pipe"),
            Token::Sign(sign) => self.wrong(&format!("“{sign}”")),
            _ => self.wrong("a statement without an end"),
        }
    }

    fn parenthesized(&mut self) -> Run<Expr> {
        self.expect("(")?;
        let condition = self.expression()?;
        self.expect(")")?;
        Ok(condition)
    }

    fn condition(&mut self) -> Run<Expr> {
        let condition = self.parenthesized()?;
        self.newlines()?;
        Ok(condition)
    }

    fn body(&mut self) -> Run<Box<Statement>> {
        self.newlines()?;
        self.loops += 1;
        let body = self.statement()?;
        self.loops -= 1;
        Ok(Box::new(body))
    }

    fn branches(&mut self) -> Run<Statement> {
        let condition = self.condition()?;
        let first = Box::new(self.statement()?);
        self.newlines()?;
        if !self.take("else")? {
            return Ok(Statement::If(condition, first, None));
        }
        self.newlines()?;
        Ok(Statement::If(condition, first, Some(Box::new(self.statement()?))))
    }

    fn for_loop(&mut self) -> Run<Statement> {
        self.expect("(")?;
        let first = if self.is(";") { None } else { Some(self.expression()?) };
        if self.take(")")? {
            let Some(Expr::In(keys, array)) = first else { return self.wrong("“for”") };
            let [Expr::Variable(variable)] = keys[..] else { return self.wrong("“for”") };
            return Ok(Statement::ForIn(variable, array, self.body()?));
        }
        self.expect(";")?;
        self.newlines()?;
        let condition = if self.is(";") { None } else { Some(self.expression()?) };
        self.expect(";")?;
        self.newlines()?;
        let step = if self.is(")") { None } else { Some(self.expression()?) };
        self.expect(")")?;
        Ok(Statement::For(first, condition, step, self.body()?))
    }

    fn simple(&mut self) -> Run<Statement> {
        let Token::Sign(sign) = self.token else { return Ok(Statement::Expression(self.expression()?)) };
        match sign {
            "print" | "printf" => {
                self.advance()?;
                let list = self.printed()?;
                match (sign, list.is_empty()) {
                    ("print", _) => Ok(Statement::Print(list)),
                    (_, false) => Ok(Statement::Printf(list)),
                    (_, true) => self.wrong("“printf” without a format"),
                }
            }
            "next" if self.in_rule => self.advance().map(|_| Statement::Next),
            "break" if self.loops > 0 => self.advance().map(|_| Statement::Break),
            "continue" if self.loops > 0 => self.advance().map(|_| Statement::Continue),
            "exit" => {
                self.advance()?;
                let ends = matches!(self.token, Token::Newline | Token::End | Token::Sign(";" | "}"));
                Ok(Statement::Exit(if ends { None } else { Some(self.expression()?) }))
            }
            "delete" => {
                self.advance()?;
                let Token::Name(name) = self.advance()? else { return self.wrong("“delete”") };
                let array = self.array(&name)?;
                let keys = if self.is("[") { Some(self.subscript()?) } else { None };
                Ok(Statement::Delete(array, keys))
            }
            _ => Ok(Statement::Expression(self.expression()?)),
        }
    }

    /// What `print` prints.
    fn printed(&mut self) -> Run<Vec<Expr>> {
        if matches!(self.token, Token::Newline | Token::End | Token::Sign(";" | "}" | ">" | ">>" | "|")) {
            return Ok(Vec::new());
        }
        self.printing = true;
        let mut list = self.list()?;
        self.printing = false;
        match list.pop() {
            Some(Expr::List(inner)) if list.is_empty() => Ok(inner),
            Some(last) => {
                list.push(last);
                Ok(list)
            }
            None => Ok(list),
        }
    }
}
