//! `vmbake profile`: profiles of the operating-system-manager.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Failure, Outcome, examples, files};
use crate::profile::{ControllerOptions, Deployment, MachinePhase, OperatingSystemConfig, Profile};
use crate::progress::{Event, remark, tell};

#[derive(Debug, Subcommand)]
pub(super) enum ProfileCommand {
    /// Print what the operating-system-manager makes of a profile, and on stderr how large the user data is
    #[command(after_help = examples::PROFILE_RENDER)]
    Render(RenderArgs),
}

#[derive(Debug, Args)]
pub(super) struct RenderArgs {
    /// OperatingSystemProfile, YAML
    file: PathBuf,
    /// MachineDeployment that the machines belong to, YAML
    #[arg(long, value_name = "FILE")]
    machine_deployment: PathBuf,
    /// Option of the operating-system-manager, by its name; what is a file there is one here
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// Print the cloud-config of a phase in place of the OperatingSystemConfig
    #[arg(long, value_name = "PHASE", value_parser = MachinePhase::NAMES)]
    user_data: Option<String>,
}

pub(super) fn run(what: ProfileCommand) -> Result<Outcome, Failure> {
    let ProfileCommand::Render(args) = what;
    let profile = Profile::open(&args.file)?;
    let deployment = Deployment::open(&args.machine_deployment)?;
    let options = ControllerOptions::open(&args.set)?;
    let config = OperatingSystemConfig::render(profile, deployment, &options)?;
    if let Some(phase) = args.user_data.as_deref().and_then(MachinePhase::named) {
        let size = config.size(phase)?;
        remark(&size.to_string());
        // The other one is fetched from the cluster.
        if phase == MachinePhase::Bootstrap {
            size.check()?;
        }
        return files::print(&config.user_data(phase)?);
    }
    for phase in MachinePhase::ALL {
        match config.size(phase) {
            Ok(size) if size.is_too_large() => remark(&format!("{size}, too large for its user data")),
            Ok(size) => remark(&size.to_string()),
            Err(error) => tell(&Event::Warning { warning: format!("{}: {error}", phase.name()) }),
        }
    }
    files::print(&config.to_yaml())
}

/// The name and the value of one option.
fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
