//! The syntax of scripts: the grammar of POSIX XCU 2.10 as implemented by dash, and that of bash 5.2.

mod nodes;
pub(crate) mod reader;
pub(crate) mod words;
mod here_document;
mod commands;
mod redirect;
mod compound;
mod conditional;
mod parameter;
mod assignment;
mod braces;
mod script;
mod check;
mod literal;

pub(crate) use commands::{Parser, assignment, is_declaring};
pub(crate) use nodes::{
    Anchor, Arm, ArmEnd, Assigned, Assignment, CaseChange, Condition, Descriptor, Element, Lines, Node, Operation,
    Parameter, Part, Redirect, Simple, Subscript, Target, Word,
};
pub(crate) use script::{Commands, script};

/// The language of one script, by its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Dash,
    Bash,
}

impl Language {
    pub(crate) fn is_bash(self) -> bool {
        self == Self::Bash
    }
}

/// Why a script cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SyntaxError {
    /// What was found, and what was expected, at a line.
    Unexpected { line: u32, reason: String },
    /// Syntax that is valid, and that the evaluator does not know.
    Unsupported { line: u32, what: String },
    /// Syntax nested more deeply than [`MAX_DEPTH`].
    TooDeep { line: u32 },
}

/// Deepest nesting of commands, words and substitutions: the parser calls itself that often.
pub(crate) const MAX_DEPTH: u32 = 100;
