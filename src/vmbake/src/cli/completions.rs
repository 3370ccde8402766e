//! `vmbake completions`: shell completion scripts.

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use super::{Cli, Failure, Outcome, files};

const EXAMPLES: &str = "\
Examples:
  vmbake completions bash > ~/.local/share/bash-completion/completions/vmbake
  vmbake completions zsh > ~/.zfunc/_vmbake
  vmbake completions fish > ~/.config/fish/completions/vmbake.fish";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompletionsArgs {
    /// Shell to generate the script for
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "vmbake", &mut script);
    files::print(&String::from_utf8(script)?)
}
