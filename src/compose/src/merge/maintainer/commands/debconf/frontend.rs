//! Programs that talk to debconf, as those in Perl do by way of `Debconf::Client::ConfModule`.

use vmbake_shell::{Call, Files};

use super::super::System;
use super::{has_frontend, open, read};
use crate::merge::MergeError;
use crate::merge::debconf::{DebconfFault, unescape};

/// A program that talks to the frontend that runs, or else to one for itself.
pub(in crate::merge::maintainer::commands) struct Frontend<'s, 'a, 't> {
    system: &'s mut System<'a, 't>,
    pub(in crate::merge::maintainer::commands) files: &'s mut dyn Files,
    /// What the program writes to standard error.
    pub(in crate::merge::maintainer::commands) stderr: Vec<u8>,
    is_own: bool,
}

impl<'s, 'a, 't> Frontend<'s, 'a, 't> {
    pub(in crate::merge::maintainer::commands) fn of(
        system: &'s mut System<'a, 't>,
        call: &'s mut Call<'_>,
    ) -> Result<Self, MergeError> {
        let is_own = !has_frontend(call) || system.conversation.is_none();
        if is_own {
            open(system)?;
        }
        Ok(Self { system, files: &mut *call.files, stderr: Vec::new(), is_own })
    }

    /// Says the words as one line; gives the text of the reply.
    pub(in crate::merge::maintainer::commands) fn ask(&mut self, words: &[&str]) -> Result<String, DebconfFault> {
        let line = words.join(" ").replace('\n', " ");
        let files = &*self.files;
        let mut read = |path: &[u8]| read(files, b"/", path);
        let Some(conversation) = &mut self.system.conversation else { return Ok(String::new()) };
        let reply =
            conversation.say(&mut self.system.database.debconf, line.as_bytes(), &mut read)?.unwrap_or_default();
        let text = match reply.strip_prefix(b"1 ") {
            Some(text) => unescape(text),
            None => reply.splitn(2, |byte| *byte == b' ').nth(1).unwrap_or_default().to_vec(),
        };
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The program has ended.
    pub(in crate::merge::maintainer::commands) fn end(self) {
        if self.is_own {
            self.system.database.debconf.end();
            self.system.conversation = None;
        }
    }
}
