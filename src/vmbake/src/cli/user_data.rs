//! `vmbake user-data`: the user data of baked machines.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use vmbake_common::message;
use vmbake_firstboot::env;
use vmbake_firstboot::plan::{Format, Plan};

use super::bundle::inspect::locate;
use super::catalog::{CatalogArgs, LayersArgs};
use super::network::RegistryArgs;
use super::{Failure, Outcome, files};
use vmbake_bundle::contents::LAYERS;
use vmbake_bundle::lock::BundleLock;
use vmbake_bundle::packed::PackedContents;
use vmbake_common::escape;
use vmbake_common::progress::{Event, emit, emit_message};
use vmbake_layer::first_boot::compile;
use vmbake_layer::{Layer, Layers};
use vmbake_store::registry::Access;
use vmbake_user_data::{
    Origin, Provider, Sizes, UserDataError, UserDataRequest, UserDataTemplate, read_settings, render, setting,
};

const KEYS_EXAMPLES: &str = "\
Examples:
  vmbake user-data keys --kind knd
  vmbake user-data keys --kind knd --json";

#[derive(Debug, Subcommand)]
pub(super) enum UserData {
    /// Print the cloud-config of a machine; print the sizes of its parts to stderr
    Render(RenderArgs),
    /// List the settings of a kind
    #[command(after_help = KEYS_EXAMPLES)]
    Keys(KindArgs),
}

#[derive(Debug, Args)]
pub(super) struct KindArgs {
    /// Kind of image: the name of its top layer
    #[arg(long)]
    kind: String,
    /// Operating system of the image
    #[arg(long, default_value = "debian-13")]
    os: String,
    /// Bundle in the image, as for `vmbake bake`; may be repeated
    #[arg(long = "with", value_name = "BUNDLE")]
    with: Vec<PathBuf>,
    /// Directory of bundles.lock.json, which pins the versions of bundles without a tag
    #[arg(long, value_name = "DIR", default_value = "manifests")]
    manifests: PathBuf,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    layers: LayersArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const RENDER_EXAMPLES: &str = "\
Examples:
  vmbake user-data render --kind node --ssh-key ~/.ssh/id_ed25519.pub > user-data
  vmbake user-data render --kind knd --env settings.env --nonce nonce --ca ca.pem --provider aws > user-data
  vmbake user-data render --kind knc --template nstance --set PROVIDER_KIND=aws --set AWS_ACCOUNT_ID=123456789012 > knc.user-data";

#[derive(Debug, Args)]
#[command(after_help = RENDER_EXAMPLES)]
pub(super) struct RenderArgs {
    #[command(flatten)]
    kind: KindArgs,
    /// Set a value; overrides --env. Visible to other users of this host: pass secrets in files
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<OsString>,
    /// Set a value from a file; encoded if the setting is in base64
    #[arg(long, value_name = "KEY=FILE")]
    file: Vec<OsString>,
    /// File of settings: KEY=VALUE lines in the syntax common to shells and systemd
    #[arg(long, value_name = "FILE")]
    env: Option<PathBuf>,
    /// File with the registration token of the machine
    #[arg(long, value_name = "FILE", conflicts_with = "template")]
    nonce: Option<PathBuf>,
    /// File with the server's CA certificates, PEM
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// File with public keys for login, in the format of authorized_keys
    #[arg(long, value_name = "FILE")]
    ssh_key: Option<PathBuf>,
    /// Provider whose size limit applies [default: PROVIDER_KIND]
    #[arg(long, value_parser = Provider::NAMES)]
    provider: Option<String>,
    /// Print a template that this server renders for each machine. Settings can contain its placeholders, such as {{ .Cluster.ID }}, and some do
    /// by default. Sizes are reported for the longest values
    #[arg(long, value_parser = UserDataTemplate::NAMES)]
    template: Option<String>,
}

pub(super) fn run(what: UserData) -> Result<Outcome, Failure> {
    match what {
        UserData::Render(args) => render_one(args),
        UserData::Keys(args) => keys(&args),
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    user_data: &'a str,
    parts: &'a Sizes,
    limit: Option<usize>,
}

fn render_one(args: RenderArgs) -> Result<Outcome, Failure> {
    let (plan, layers) = planned(&args.kind)?;
    let mut settings = Vec::new();
    if let Some(path) = &args.env {
        settings.push(read_settings(path)?);
    }
    for (number, text) in (1..).zip(&args.file) {
        let mut named = assignment("--file", number, text)?;
        for (name, value) in &mut named {
            *value = setting(&plan, name, Path::new(value), args.template.is_some())?;
        }
        settings.push((Origin::Option("--file"), named));
    }
    for (number, text) in (1..).zip(&args.set) {
        settings.push((Origin::Option("--set"), assignment("--set", number, text)?));
    }
    let request = UserDataRequest {
        kind: args.kind.kind,
        settings,
        nonce: args.nonce,
        authority: args.ca,
        ssh_keys: args.ssh_key,
        provider: args.provider.as_deref().and_then(Provider::named),
        template: args.template.as_deref().and_then(UserDataTemplate::named),
    };
    let rendered = render(&request, &plan, &layers)?;
    for warning in &rendered.warnings {
        emit(&Event::Warning { warning: warning.to_string() });
    }
    if args.kind.json {
        rendered.check_size()?;
        let answer = Answer { user_data: &rendered.user_data, parts: &rendered.sizes, limit: rendered.sizes.limit };
        return files::print_json(&answer);
    }
    emit_message(rendered.sizes.to_string().trim_end());
    rendered.check_size()?;
    files::print(&rendered.user_data)
}

/// Parses one setting. Messages must not contain the text, which can be a secret.
fn assignment(option: &str, number: usize, text: &OsString) -> Result<BTreeMap<String, String>, UserDataError> {
    let mut parts = text.as_bytes().splitn(2, |byte| *byte == b'=');
    let name = parts.next().and_then(|name| str::from_utf8(name).ok()).filter(|name| env::is_name(name));
    let (Some(name), Some(value)) = (name, parts.next()) else {
        return Err(UserDataError::Message(message!(
            "{}: expected NAME=VALUE with a name of letters, digits and underscores",
            format!("{option}, the {number}. one")
        )));
    };
    match str::from_utf8(value) {
        Ok(value) => Ok(BTreeMap::from([(name.to_owned(), value.to_owned())])),
        Err(_) => Err(UserDataError::Message(message!("--set: {name}: expected UTF-8"))),
    }
}

/// The plan of a kind and its layers. Its architecture-dependent parts, paths of libraries, do not matter here.
fn planned(args: &KindArgs) -> Result<(Plan, Vec<Layer>), Failure> {
    let mut layers = args.layers.load(&args.catalog)?.resolve(&args.kind, &args.os)?;
    let named: Vec<PathBuf> = layers.iter().flat_map(|layer| &layer.schema.bundles).map(PathBuf::from).collect();
    let (mut catalog, mut more, mut bundles) = (args.layers.catalog(&args.catalog), Vec::new(), Vec::new());
    let lock = BundleLock::load(&args.manifests)?;
    // A bake verifies their signatures; here they only provide settings.
    for bundle in named.iter().chain(&args.with) {
        let place = locate(bundle, |name| {
            let name = lock.locate(name, &args.manifests)?;
            Ok((args.registry.repository(&name.repository, Access::Pull)?, name))
        })?;
        let packed = PackedContents::read(place, &catalog, None)?;
        packed.require_sound()?;
        catalog = catalog.with(packed.folder.path().join(LAYERS));
        more.extend(packed.contents.own_names());
        bundles.push(packed);
    }
    if !bundles.is_empty() {
        layers = Layers::load(&catalog)?.resolve_with(&args.kind, &args.os, &more)?;
    }
    Ok((compile(&layers, "{multiarch}")?.plan, layers))
}

#[derive(Serialize)]
struct Key<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    default: &'a str,
    required: bool,
    mutable: bool,
    #[serde(skip_serializing_if = "is_false")]
    empty: bool,
    #[serde(skip_serializing_if = "is_false")]
    unlisted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    one_of: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    aliases: &'a [String],
}

fn keys(args: &KindArgs) -> Result<Outcome, Failure> {
    let (plan, _) = planned(args)?;
    let keys = plan.variables.iter().map(|(name, variable)| Key {
        name,
        default: &variable.default,
        required: variable.required,
        mutable: variable.mutable,
        empty: variable.empty,
        unlisted: variable.unlisted,
        format: variable.format,
        one_of: &variable.one_of,
        aliases: &variable.aliases,
    });
    if args.json {
        return files::print_json(&keys.collect::<Vec<_>>());
    }
    files::show(&keys.map(|key| escape::line(line(&key)) + "\n").collect::<String>())
}

fn is_false(value: &bool) -> bool {
    !value
}

fn line(key: &Key<'_>) -> String {
    let mut words = Vec::new();
    if key.required {
        words.push("required".to_owned());
    }
    if key.mutable {
        words.push("may change on a running machine".to_owned());
    }
    if key.empty {
        words.push("may be empty".to_owned());
    }
    if !key.one_of.is_empty() {
        words.push(format!("one of {}", key.one_of.join(", ")));
    }
    // Formats are named as in layer.json.
    words.extend(key.format.and_then(|format| Some(serde_json::to_value(format).ok()?.as_str()?.to_owned())));
    if !key.default.is_empty() {
        words.push(format!("default {}", key.default));
    }
    if !key.aliases.is_empty() {
        words.push(format!("also {}", key.aliases.join(", ")));
    }
    match words.is_empty() {
        true => key.name.to_owned(),
        false => format!("{}: {}", key.name, words.join("; ")),
    }
}
