//! `vmbake verify oci`: verifies an image of an OCI layout, from its digest to its layers.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::super::{Failure, Outcome};
use vmbake_common::digest::Digest;
use vmbake_common::input;
use vmbake_oci::{Descriptor, Image, OciError, Platform, check_layer, read_document};

/// Maximum length of `oci-layout`, which has 30 bytes.
const MAX_MARKER: u64 = 4096;

const EXAMPLES: &str = "\
Examples:
  vmbake verify oci --platform linux/amd64 \\
      --digest sha256:8aa48c2df3cc3ace73655a988463850b5ccec4d56e182e4985aaa3347a1ebabf layout";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct Args {
    /// Digest of an index or of a manifest
    #[arg(long)]
    digest: Digest,
    /// Platform of the image
    #[arg(long, value_name = "OS/ARCH")]
    platform: Platform,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Directory with an OCI image layout
    layout: PathBuf,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Marker {
    image_layout_version: String,
}

pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    check_marker(&args.layout)?;
    let image = Image::find(args.digest, &args.platform, &|blob| read_document(blob, open(&args.layout, blob)?))?;
    let mut bytes = 0;
    for (layer, diff_id) in &image.layers {
        bytes += check_layer(layer, diff_id, open(&args.layout, layer)?)?;
    }
    let facts = [
        ("root", image.root.digest.to_string().into()),
        ("manifest", image.manifest.digest.to_string().into()),
        ("config", image.config.digest.to_string().into()),
        ("layers", image.layers.len().into()),
        ("bytes", bytes.into()),
    ];
    super::print(&facts, args.json)?;
    Ok(Outcome::Clean)
}

fn check_marker(layout: &Path) -> Result<(), Failure> {
    let path = layout.join("oci-layout");
    let marker: Marker = serde_json::from_slice(&super::read(&path, MAX_MARKER)?)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    if marker.image_layout_version != "1.0.0" {
        let version = marker.image_layout_version;
        return Err(format!("{}: expected layout version 1.0.0, found {version:?}", path.display()).into());
    }
    Ok(())
}

fn open(layout: &Path, blob: &Descriptor) -> Result<File, OciError> {
    let path = layout.join("blobs").join(blob.digest.algorithm()).join(blob.digest.hex());
    input::open_regular(&path).map_err(|source| OciError::Blob { digest: Box::new(blob.digest), source: source.into() })
}
