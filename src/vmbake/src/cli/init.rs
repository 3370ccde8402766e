//! `vmbake init`: creates a custom image.

use std::path::PathBuf;

use clap::Args;

use super::catalog::DIRECTORY;
use super::{Failure, Outcome};
use vmbake_common::catalog::Catalog;
use vmbake_common::escape;
use vmbake_common::progress::emit_message;
use vmbake_layer::{self as layer, LayerError, Layers};

const EXAMPLES: &str = "\
Examples:
  vmbake init web
  vmbake init web --os debian-13 --layers images/layers";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct InitArgs {
    /// Name of the image and its layer
    name: String,
    /// Operating system of the base image
    #[arg(long, default_value = "debian-13")]
    os: String,
    /// Directory of layers
    #[arg(long, value_name = "DIR", default_value = DIRECTORY)]
    layers: PathBuf,
}

pub(super) fn run(args: &InitArgs) -> Result<Outcome, Failure> {
    let InitArgs { name, os, layers } = args;
    if Layers::load(&Catalog::new(true, []))?.iter().any(|layer| layer.schema.name == *name) {
        return Err(LayerError::BuiltIn { name: name.clone() }.into());
    }
    let path = layer::init(layers, name, os)?;
    let more = if layers.as_os_str() == DIRECTORY { String::new() } else { format!(" --layers {}", layers.display()) };
    emit_message(&format!("{:>9}  {}", "wrote", escape::line(path.display().to_string())));
    for (what, command) in [
        ("next", format!("edit {}, then:", path.display())),
        ("", format!("vmbake update {name}{}{more}", system(os))),
        ("", format!("vmbake bake {name}{}{more}", system(os))),
        ("", format!("vmbake boot dist/{name}.{os}.amd64.qcow2")),
    ] {
        emit_message(&format!("{what:>9}  {}", escape::line(command)));
    }
    Ok(Outcome::Clean)
}

/// The `--os` option, unless it is the default.
fn system(os: &str) -> String {
    if os == "debian-13" { String::new() } else { format!(" --os {os}") }
}
