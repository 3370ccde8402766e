//! Parses expressions of an awk program by precedence. Expressions that gawk and mawk parse differently are refused.

use super::machine::NF;
use super::parser::Parser;
use super::syntax::{Arithmetic, Comparison, Expr, Function};
use super::tokens::Token;
use crate::eval::Run;

/// The precedence of concatenation, which has no operator.
const CONCATENATION: u8 = 6;

impl Parser<'_, '_, '_> {
    /// An expression of any precedence.
    pub(super) fn expression(&mut self) -> Run<Expr> {
        self.deeper(|parser| {
            let condition = parser.binary(1)?;
            if !parser.take("?")? {
                return Ok(condition);
            }
            parser.node()?;
            parser.newlines()?;
            let yes = parser.expression()?;
            parser.newlines()?;
            parser.expect(":")?;
            parser.newlines()?;
            let no = parser.expression()?;
            Ok(Expr::Conditional(Box::new(condition), Box::new(yes), Box::new(no)))
        })
    }

    /// Expressions with commas between them.
    pub(super) fn list(&mut self) -> Run<Vec<Expr>> {
        let mut list = vec![self.expression()?];
        while self.take(",")? {
            self.newlines()?;
            list.push(self.expression()?);
        }
        Ok(list)
    }

    fn precedence(&self) -> Option<u8> {
        Some(match self.token {
            Token::Sign("||") => 1,
            Token::Sign("&&") => 2,
            Token::Sign("in") => 3,
            Token::Sign("~" | "!~") => 4,
            Token::Sign(">") if self.printing => return None,
            Token::Sign("<" | "<=" | "==" | "!=" | ">" | ">=") => 5,
            Token::Sign("$" | "(" | "++" | "--") => CONCATENATION,
            Token::Number(_) | Token::Text(_) | Token::Name(_) | Token::Call(_) | Token::Function(_) => CONCATENATION,
            Token::Sign("+" | "-") => 7,
            Token::Sign("*" | "/" | "%") => 8,
            _ => return None,
        })
    }

    fn binary(&mut self, least: u8) -> Run<Expr> {
        let mut left = self.unary()?;
        while let Some(precedence) = self.precedence().filter(|precedence| *precedence >= least) {
            self.node()?;
            if precedence == CONCATENATION {
                let right = self.binary(precedence + 1)?;
                left = Expr::Concatenation(Box::new(left), Box::new(right));
                continue;
            }
            let Token::Sign(sign) = self.advance()? else { return self.wrong("an operator") };
            if sign == "in" {
                let array = self.array_name()?;
                left = Expr::In(vec![left], array);
                continue;
            }
            if matches!(sign, "&&" | "||") {
                self.newlines()?;
            }
            let (first, right) = (Box::new(left), Box::new(self.binary(precedence + 1)?));
            left = match sign {
                "||" => Expr::Or(first, right),
                "&&" => Expr::And(first, right),
                "~" | "!~" => Expr::Match(sign == "~", first, right),
                sign => match (comparison(sign), arithmetic(sign)) {
                    (Some(operator), _) => Expr::Comparison(operator, first, right),
                    (_, Some(operator)) => Expr::Arithmetic(operator, first, right),
                    _ => return self.wrong("an operator"),
                },
            };
        }
        Ok(left)
    }

    fn array_name(&mut self) -> Run<usize> {
        match self.advance()? {
            Token::Name(name) => self.array(&name),
            _ => self.wrong("“in” without an array"),
        }
    }

    fn unary(&mut self) -> Run<Expr> {
        let Token::Sign(sign @ ("!" | "-" | "+")) = self.token else { return self.power() };
        self.node()?;
        self.advance()?;
        let operand = Box::new(self.deeper(Self::unary)?);
        match sign {
            "-" => Ok(Expr::Minus(operand)),
            "+" => Ok(Expr::Plus(operand)),
            // gawk would negate the comparison.
            _ if self.precedence().is_some_and(|precedence| (3..=CONCATENATION).contains(&precedence)) => {
                self.wrong("“!” before a comparison without parentheses")
            }
            _ => Ok(Expr::Not(operand)),
        }
    }

    fn power(&mut self) -> Run<Expr> {
        let base = self.postfix()?;
        if !self.take("^")? {
            return Ok(base);
        }
        self.node()?;
        let exponent = self.deeper(Self::unary)?;
        Ok(Expr::Arithmetic(Arithmetic::Power, Box::new(base), Box::new(exponent)))
    }

    /// A primary expression, and what may be done to it if it is a place: an assignment, too, wherever it stands.
    fn postfix(&mut self) -> Run<Expr> {
        if let Token::Sign(sign @ ("++" | "--")) = self.token {
            self.advance()?;
            let place = self.deeper(Self::primary)?;
            return self.step(place, sign, true);
        }
        let place = self.deeper(Self::primary)?;
        let Token::Sign(sign) = self.token else { return Ok(place) };
        if !place.is_place() {
            return Ok(place);
        }
        if matches!(sign, "++" | "--") {
            // mawk would step NF and not the field.
            if matches!(&place, Expr::Field(number) if is_field_count(number)) {
                return self.wrong(&format!("“$NF{sign}”"));
            }
            self.advance()?;
            return self.step(place, sign, false);
        }
        let operator = match sign {
            "=" => None,
            "+=" | "-=" | "*=" | "/=" | "%=" | "^=" => arithmetic(&sign[..1]),
            _ => return Ok(place),
        };
        self.node()?;
        self.advance()?;
        self.newlines()?;
        Ok(Expr::Assign(Box::new(place), operator, Box::new(self.expression()?)))
    }

    fn step(&mut self, place: Expr, sign: &str, before: bool) -> Run<Expr> {
        self.node()?;
        if !place.is_place() {
            return self.wrong(&format!("“{sign}” of an operand that is not a variable"));
        }
        Ok(Expr::Step(Box::new(place), if sign == "++" { 1.0 } else { -1.0 }, before))
    }

    fn primary(&mut self) -> Run<Expr> {
        self.node()?;
        match self.token {
            Token::Sign("/") => return self.regex(0),
            Token::Sign("/=") => return self.regex(1),
            _ => {}
        }
        match self.advance()? {
            Token::Number(value) => Ok(Expr::Number(value)),
            Token::Text(text) => Ok(Expr::Text(text)),
            Token::Name(name) if self.is("[") => {
                let array = self.array(&name)?;
                Ok(Expr::Element(array, self.subscript()?))
            }
            Token::Name(name) => Ok(Expr::Variable(self.scalar(&name)?)),
            Token::Function(function) => self.call(function),
            Token::Sign("$") => {
                let operand = match self.token {
                    Token::Sign("++" | "--") => self.deeper(Self::postfix)?,
                    Token::Sign("-" | "+" | "!") => return self.wrong("an operator after “$”"),
                    _ => self.deeper(Self::primary)?,
                };
                Ok(Expr::Field(Box::new(operand)))
            }
            Token::Sign("(") => self.group(),
            Token::Sign(sign) => self.wrong(&format!("“{sign}”")),
            Token::Call(name) => self.wrong(&format!("the function {}", crate::error::show(&name))),
            Token::Newline | Token::End => self.wrong("a missing expression"),
        }
    }

    fn regex(&mut self, behind: usize) -> Run<Expr> {
        let text = match self.lexer.regex(behind) {
            Ok(text) => text,
            Err(why) => return self.wrong(why),
        };
        self.advance()?;
        Ok(Expr::Regex(text))
    }

    /// Parses where a `>` compares.
    fn enclosed<T>(&mut self, parse: impl FnOnce(&mut Self) -> Run<T>) -> Run<T> {
        let printing = std::mem::replace(&mut self.printing, false);
        let result = parse(self);
        self.printing = printing;
        result
    }

    fn group(&mut self) -> Run<Expr> {
        let mut list = self.enclosed(Self::list)?;
        self.expect(")")?;
        if list.len() == 1 {
            return match list.pop() {
                Some(inner) => Ok(Expr::Group(Box::new(inner))),
                None => self.wrong("parentheses"),
            };
        }
        if self.take("in")? {
            return Ok(Expr::In(list, self.array_name()?));
        }
        Ok(Expr::List(list))
    }

    /// `[…]`
    pub(super) fn subscript(&mut self) -> Run<Vec<Expr>> {
        self.expect("[")?;
        let list = self.enclosed(Self::list)?;
        self.expect("]")?;
        Ok(list)
    }

    fn call(&mut self, function: Function) -> Run<Expr> {
        if !self.take("(")? {
            return if function == Function::Length {
                Ok(Expr::Call(function, Vec::new()))
            } else {
                self.wrong("a function without parentheses")
            };
        }
        if function == Function::Split {
            return self.enclosed(Self::split);
        }
        let list = if self.is(")") { Vec::new() } else { self.enclosed(Self::list)? };
        self.expect(")")?;
        let (least, most) = function.arity();
        let place = !matches!(function, Function::Sub | Function::Gsub) || list.get(2).is_none_or(Expr::is_place);
        if list.len() < least || list.len() > most || !place {
            return self.wrong("the arguments of a function");
        }
        Ok(Expr::Call(function, list))
    }

    fn split(&mut self) -> Run<Expr> {
        let text = Box::new(self.expression()?);
        self.expect(",")?;
        let Token::Name(name) = self.advance()? else { return self.wrong("“split” without an array") };
        let array = self.array(&name)?;
        let separator = if self.take(",")? { Some(Box::new(self.expression()?)) } else { None };
        self.expect(")")?;
        Ok(Expr::Split(text, array, separator))
    }
}

fn is_field_count(expr: &Expr) -> bool {
    match expr {
        Expr::Group(inner) => is_field_count(inner),
        expr => matches!(expr, Expr::Variable(NF)),
    }
}

fn comparison(sign: &str) -> Option<Comparison> {
    Some(match sign {
        "<" => Comparison::Less,
        "<=" => Comparison::LessEqual,
        "==" => Comparison::Equal,
        "!=" => Comparison::NotEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterEqual,
        _ => return None,
    })
}

fn arithmetic(sign: &str) -> Option<Arithmetic> {
    Some(match sign {
        "+" => Arithmetic::Add,
        "-" => Arithmetic::Subtract,
        "*" => Arithmetic::Multiply,
        "/" => Arithmetic::Divide,
        "%" => Arithmetic::Remainder,
        "^" => Arithmetic::Power,
        _ => return None,
    })
}
