//! Errors of bash, and how far each aborts a script.

use crate::eval::{Run, Stop};
use crate::shell::Shell;

impl Shell<'_> {
    /// Reports an error of bash that ends the shell with `set -e`, whatever tests it: `report_error` of bash.
    pub(crate) fn report(&mut self, message: &[u8]) -> Run<()> {
        self.complain(message)?;
        if self.ends_by_errors() { Err(Stop::Exit) } else { Ok(()) }
    }

    /// Whether errors of bash end the shell; then its status says that there was one.
    pub(crate) fn ends_by_errors(&mut self) -> bool {
        let ends = self.errors_ignored == 0 && self.state.language.is_bash() && self.exits_on_failure();
        if ends {
            self.state.status = self.state.status.max(1);
        }
        ends
    }

    /// Reports such an error, and ends the running line without `set -e`.
    pub(crate) fn discard_reported(&mut self, message: &[u8]) -> Stop {
        match self.report(message) {
            Ok(()) => {
                self.state.status = 1;
                Stop::Discard
            }
            Err(stop) => {
                self.state.bash.reported = matches!(stop, Stop::Exit);
                stop
            }
        }
    }

    /// Ends the running line of a script of bash with status 1.
    pub(crate) fn discard(&mut self, message: &[u8]) -> Stop {
        match self.complain(message) {
            Ok(()) => {
                self.state.status = 1;
                Stop::Discard
            }
            Err(stop) => stop,
        }
    }

    /// What a missing parameter ends the shell with.
    pub(crate) fn fatal_status(&self) -> u8 {
        if self.state.flags.errexit { 1 } else { self.state.bash.fatal_status }
    }

    /// An unset parameter below `set -u`: the shell ends.
    pub(crate) fn unbound(&mut self, name: &[u8]) -> Stop {
        // Bash keeps the `$` of those that are not in braces.
        let is_plain = !matches!(name, [b'1'..=b'9' | b'!']);
        let message = [name, b": unbound variable"].concat();
        match if is_plain { self.complain_exactly(&message) } else { self.complain(&message) } {
            Ok(()) => {
                self.state.status = self.fatal_status();
                self.force_end()
            }
            Err(stop) => stop,
        }
    }

    /// Ends the shell because of a parameter. Without `set -e`, commands that run end first.
    pub(crate) fn force_end(&mut self) -> Stop {
        self.state.bash.forced = true;
        self.state.bash.unwinds = !self.state.flags.errexit;
        Stop::Exit
    }

    /// An assignment failed where it is a command, which has been reported.
    pub(crate) fn assignment_failed(&mut self) -> Stop {
        self.state.status = 1;
        Stop::Discard
    }
}
