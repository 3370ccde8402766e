//! The phases of cloud-init: `bootcmd` and `runcmd` are one script each, and `cloud-init init` starts the provisioning phase.

use vmbake_shell::{Call, Files, Outcome};

use super::{Machine, Ran, What};
use crate::import::error::ImportError;
use crate::import::program::{Commands, place};

/// Parameters whose value differs from that on a machine.
const UNLIKE: [&str; 6] = ["$?", "${?", "$-", "${-", "$0", "${0"];

impl Machine<'_> {
    /// Runs commands as cloud-init does, as one script.
    pub(in crate::import) fn commands(
        &mut self,
        files: &mut dyn Files,
        commands: &Commands,
    ) -> Result<Ran, ImportError> {
        let lines = &commands.lines;
        let found = lines.iter().find_map(|line| UNLIKE.into_iter().find(|parameter| line.contains(parameter)));
        if let Some(parameter) = found {
            let what = format!(
                "{parameter} is not supported in commands: move the command to a script in `files`, and call the script"
            );
            return Err(ImportError::Tree { path: commands.name.to_owned(), what });
        }
        self.entries.extend(lines.iter().flat_map(|line| line.split_ascii_whitespace()).map(str::to_owned));
        // A line that fails stops the import, though the machine would go on.
        Ok(self.shell(files, (commands.name, &lines.join("\n")), Vec::new(), true))
    }

    /// Runs `bootcmd` as on another boot, where a line that fails stops nothing.
    pub(in crate::import) fn boot_again(&mut self, files: &mut dyn Files, commands: &Commands) -> Ran {
        self.shell(files, (commands.name, &commands.lines.join("\n")), Vec::new(), false)
    }

    /// Whether a command is `cloud-init init` with a fetched provisioning.
    pub(super) fn begins(&self, call: &Call<'_>) -> bool {
        let has = |word: &str| call.args.iter().any(|arg| arg == word.as_bytes());
        call.base_name() == b"cloud-init"
            && has("init")
            && !has("--local")
            && self.effects.fetched.iter().any(|fetched| fetched.what == What::Provisioning)
    }

    /// `bootcmd` and the files of the provisioning.
    pub(super) fn begin(&mut self, call: &mut Call<'_>) -> Outcome {
        let Some(phase) = self.next.take() else {
            return Outcome::Unsupported("init, which writes the files of the provisioning again,".to_owned());
        };
        match self.commands(call.files, &phase.bootcmd) {
            Ok(ran) => match self.nested(phase.bootcmd.name, ran) {
                Outcome::Status(0) => {}
                other => return other,
            },
            Err(error) => return Outcome::Refused(error.to_string()),
        }
        for file in &phase.files {
            let placed = place(call.files, file);
            if let Some(what) = call.files.unknown() {
                return Outcome::Refused(format!(
                    "{} depends on {what}, which is unknown during the import",
                    file.path
                ));
            }
            if let Err(error) = placed {
                return Outcome::Refused(format!("{}: {error}", file.path));
            }
        }
        self.dropped("the image already contains its result")
    }

    /// The result of a script that another one runs.
    pub(super) fn nested(&mut self, name: &str, ran: Ran) -> Outcome {
        match ran {
            Ok((0, _)) => Outcome::Status(0),
            Ok((status, stderr)) => {
                self.stderr = stderr;
                self.is_broken = true;
                Outcome::Refused(format!("{name} fails with status {status}"))
            }
            Err(error) => {
                // The first one knows best.
                self.failure.get_or_insert(*error);
                Outcome::Refused(format!("{name} cannot be imported"))
            }
        }
    }
}
