//! Whether a loop over the keys of an array depends on their order, which is that of the hash table of an awk.

use super::syntax::{Expr, Function, Statement};

/// What the body of a loop does for each key.
#[derive(Default)]
pub(super) struct Effects {
    /// Whether it prints, in the order of the keys.
    pub(super) prints: bool,
    /// Whether it counts.
    counts: bool,
    /// Whether it has conditions, which may read what it counts.
    chooses: bool,
    /// Whether it does something else that may depend on the keys before.
    other: bool,
}

impl Effects {
    pub(super) fn of(body: &Statement) -> Self {
        let mut effects = Self::default();
        effects.add(body);
        effects
    }

    /// Whether more than the order of what it prints depends on the order of the keys.
    pub(super) fn depend(&self) -> bool {
        self.other || self.counts && (self.prints || self.chooses)
    }

    fn add(&mut self, statement: &Statement) {
        match statement {
            Statement::Print(list) | Statement::Printf(list) => {
                self.prints = true;
                self.other |= list.iter().any(has_effect);
            }
            Statement::Expression(Expr::Step(target, ..)) if matches!(**target, Expr::Variable(_)) => {
                self.counts = true
            }
            Statement::Expression(expr) => self.other |= has_effect(expr),
            Statement::If(condition, then, otherwise) => {
                self.chooses = true;
                self.other |= has_effect(condition);
                self.add(then);
                otherwise.iter().for_each(|statement| self.add(statement));
            }
            Statement::Block(list) => list.iter().for_each(|statement| self.add(statement)),
            Statement::Delete(_, keys) => self.other |= keys.iter().flatten().any(has_effect),
            Statement::Continue => {}
            _ => self.other = true,
        }
    }
}

/// Whether an expression changes a variable, or is refused when it is evaluated.
fn has_effect(expr: &Expr) -> bool {
    let any = |list: &[Expr]| list.iter().any(has_effect);
    match expr {
        Expr::Number(_) | Expr::Text(_) | Expr::Regex(_) | Expr::Variable(_) => false,
        Expr::Assign(..) | Expr::Step(..) | Expr::Split(..) => true,
        Expr::Call(function, list) => {
            !matches!(
                function,
                Function::Index
                    | Function::Int
                    | Function::Length
                    | Function::Sprintf
                    | Function::Substr
                    | Function::Lower
                    | Function::Upper
            ) || any(list)
        }
        Expr::Element(_, list) | Expr::List(list) | Expr::In(list, _) => any(list),
        Expr::Field(inner) | Expr::Group(inner) | Expr::Not(inner) | Expr::Minus(inner) | Expr::Plus(inner) => {
            has_effect(inner)
        }
        Expr::Arithmetic(_, left, right)
        | Expr::Concatenation(left, right)
        | Expr::Comparison(_, left, right)
        | Expr::Match(_, left, right)
        | Expr::And(left, right)
        | Expr::Or(left, right) => has_effect(left) || has_effect(right),
        Expr::Conditional(condition, left, right) => has_effect(condition) || has_effect(left) || has_effect(right),
    }
}
