//! Runs text: operands of `eval`, sourced files and scripts.

use std::rc::Rc;

use crate::error::ErrorKind;
use crate::eval::{Run, Stop};
use crate::shell::Shell;
use crate::syntax::reader::Reader;
use crate::syntax::{Commands, Parser, SyntaxError, script};

impl Shell<'_> {
    /// Runs a text as commands: `eval`, `trap`.
    pub(crate) fn eval_text(&mut self, text: &[u8], tested: bool) -> Run<u8> {
        self.spend_size(text.len(), text.len())?;
        let mut reader = Reader::new(text, self.state.line, 0, self.state.language);
        reader.extglob = self.state.bash.shopt("extglob");
        let mut status = 0;
        loop {
            match Parser::new(&mut reader).line() {
                Ok(None) => return Ok(status),
                Ok(Some(node)) => status = self.kept(false, |shell| shell.eval(&node, tested))?,
                Err(SyntaxError::Unexpected { reason, .. }) if self.state.language.is_bash() && fails_alone(text) => {
                    self.complain(&[b"syntax error: ", reason.as_bytes()].concat())?;
                    self.state.status = 2;
                    return Ok(2);
                }
                Err(SyntaxError::Unexpected { .. }) if self.state.language.is_bash() => {
                    return self.unsupported(b"a text with an error of syntax");
                }
                Err(error) => return Err(self.syntax_error(error)),
            }
        }
    }

    /// Runs what was read up to a line; what discards it ends here. Of a text inside of a script not all may end here, and in a subshell
    /// nothing does.
    fn kept(&mut self, is_script: bool, run: impl FnOnce(&mut Self) -> Run<u8>) -> Run<u8> {
        let loops = self.state.loops;
        match run(self) {
            Err(Stop::Discard) if is_script || self.state.bash.subshells == 0 => {}
            Err(Stop::DiscardAll) if is_script => {}
            other => return other,
        }
        self.state.loops = loops;
        Ok(self.state.status)
    }

    /// Runs the commands of a script or sourced file.
    pub(crate) fn eval_source(&mut self, source: &[u8]) -> Run<u8> {
        self.spend_size(source.len(), source.len())?;
        if self.state.language.is_bash() {
            return self.eval_bash(source, true, false);
        }
        let mut reader = Reader::new(source, 1, 0, self.state.language);
        let mut status = 0;
        loop {
            match Parser::new(&mut reader).line() {
                Ok(None) => return Ok(status),
                Ok(Some(node)) => status = self.kept(true, |shell| shell.eval(&node, false))?,
                Err(error) => return Err(self.syntax_error(error)),
            }
        }
    }

    /// Runs a script or sourced file of bash, all of which is parsed first.
    pub(crate) fn eval_bash(&mut self, source: &[u8], is_script: bool, tested: bool) -> Run<u8> {
        let Commands { nodes, ends, whole } = match script(source, self.state.bash.shopt("extglob")) {
            Ok(parsed) => parsed,
            Err(error) => return Err(self.syntax_error(error)),
        };
        let mut status = 0;
        // Blank lines and comments may follow the last command.
        let last_line = source.strip_suffix(b"\n").unwrap_or(source).split(|byte| *byte == b'\n').count();
        for (node, end) in nodes.iter().zip(ends) {
            if self.state.flags.stdin
                && self.state.bash.sourcing == 0
                && is_script
                && whole
                && usize::try_from(end) == Ok(last_line)
            {
                self.release_script();
            }
            let mut discarded = false;
            status = self.kept(is_script, |shell| {
                let result = shell.eval(node, tested);
                discarded = matches!(result, Err(Stop::Discard | Stop::DiscardAll));
                result
            })?;
            self.state.bash.lines_lost |= discarded && self.state.command_line != end;
        }
        if !whole {
            return self.unsupported(b"an exit that does not end the script");
        }
        Ok(status)
    }

    /// A script that dash could not parse either would end with status 2. That its author meant that is less likely than another
    /// shell's syntax, so it is given up.
    pub(crate) fn syntax_error(&mut self, error: SyntaxError) -> Stop {
        self.command = Rc::default();
        let (line, kind) = match error {
            SyntaxError::Unexpected { line, reason } => (line, ErrorKind::Syntax { reason }),
            SyntaxError::Unsupported { line, what } => (line, ErrorKind::Unsupported { what }),
            SyntaxError::TooDeep { line } => {
                let limit = crate::syntax::MAX_DEPTH.into();
                (line, ErrorKind::Limit { what: "levels of syntax", limit })
            }
        };
        self.state.line = line;
        self.fatal(kind)
    }
}

/// Whether an error of syntax in a text that is evaluated ends nothing but the text. Some errors in parentheses end the shell of bash, that of
/// a wrong name in a loop has another status, and after an open quote or `[[` bash misreads the next command.
fn fails_alone(text: &[u8]) -> bool {
    const ELSEWHERE: [&[u8]; 9] = [b"(", b"`", b"for", b"<<", b"function", b"'", b"\"", b"${", b"[["];
    let has = |wanted: &[u8]| text.windows(wanted.len()).any(|window| window == wanted);
    !ELSEWHERE.iter().any(|wanted| has(wanted))
}
