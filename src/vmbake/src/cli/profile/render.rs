//! `vmbake profile render`: renders a profile as the operating-system-manager does.

use std::path::PathBuf;

use clap::Args;

use super::super::{Failure, Outcome, files};
use super::assignment;
use vmbake_common::progress::{Event, emit, emit_message};
use vmbake_profile::{ControllerOptions, Deployment, MachinePhase, OperatingSystemConfig, Profile};

#[derive(Debug, Args)]
pub(in crate::cli) struct RenderArgs {
    /// OperatingSystemProfile, YAML
    file: PathBuf,
    /// MachineDeployment of the machines, YAML
    #[arg(long, value_name = "FILE")]
    machine_deployment: PathBuf,
    /// Set an option of the operating-system-manager; options for files expect a path
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// Print the cloud-config of a phase instead of the OperatingSystemConfig
    #[arg(long, value_name = "PHASE", value_parser = MachinePhase::NAMES)]
    user_data: Option<String>,
}

pub(super) fn run(args: &RenderArgs) -> Result<Outcome, Failure> {
    let profile = Profile::open(&args.file)?;
    let deployment = Deployment::open(&args.machine_deployment)?;
    let options = ControllerOptions::open(&args.set)?;
    let config = OperatingSystemConfig::render(profile, deployment, &options)?;
    if let Some(phase) = args.user_data.as_deref().and_then(MachinePhase::named) {
        let size = config.size(phase)?;
        emit_message(&size.to_string());
        // The other phase is fetched from the cluster.
        if phase == MachinePhase::Bootstrap {
            size.check()?;
        }
        return files::print(&config.user_data(phase)?);
    }
    for phase in MachinePhase::ALL {
        match config.size(phase) {
            Ok(size) if size.is_too_large() => emit_message(&format!("{size}, which exceeds the limit for user data")),
            Ok(size) => emit_message(&size.to_string()),
            Err(error) => emit(&Event::Warning { warning: format!("{}: {error}", phase.name()) }),
        }
    }
    files::print(&config.to_yaml())
}
