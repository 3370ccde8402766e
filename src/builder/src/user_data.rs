//! User data for a baked machine: settings, a nonce and certificates of a kind enter; the smallest `#cloud-config` that brings
//! them to the machine leaves, with the size of its parts.
//!
//! What holds: the settings are those that the compiled plan of the kind has, and have gone through what the machine itself does
//! with them on its first boot, as far as that can be done without it (`rehearsal`). The document has the host name and files, and
//! nothing else: no script and no download. It is ASCII, the same for the same input, and every reader of YAML 1.1 or 1.2 reads the
//! same bytes out of it. The file with the settings is the last one: where it is, the others are. No message has a setting's value in
//! it that the first-boot program would not show either.

mod document;
mod error;
mod inputs;
mod names;
mod rehearsal;
mod size;

pub use error::{Problem, UserDataError};
pub use inputs::setting;
pub use size::{Provider, Sizes};

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use vmbake_firstboot::env;
use vmbake_firstboot::error::Error;
use vmbake_firstboot::plan::Plan;
use vmbake_firstboot::settings::is_host_name;

use crate::layer::Layer;
use document::{Document, Part};

/// What takes the certificates of `--ca`, as base64 of PEM.
pub const AUTHORITY: &str = "NSTANCE_CA_CERT";
/// What takes the keys of `--ssh-key`, a line each.
pub const SSH_KEYS: &str = "IMMUTABLE_SSH_AUTHORIZED_KEYS";
/// What says which provider's limit counts, unless `--provider` does.
const PROVIDER: &str = "PROVIDER_KIND";
/// What the machine is called, by its host name too.
const NAME: &str = "INSTANCE_ID";
/// Longest host name of Linux, in bytes (`HOST_NAME_MAX` of limits.h).
const MAX_NAME: usize = 64;
/// Name of the file that takes the nonce: the plan says where it is.
const NONCE: &str = "nonce.jwt";

/// What a machine is to be told.
#[derive(Clone, Debug, Default)]
pub struct UserDataRequest {
    /// Kind of image.
    pub kind: String,
    /// Settings in the order in which they count, the last most, each with where it is from.
    pub settings: Vec<(Origin, BTreeMap<String, String>)>,
    /// A file with the token by which the agent registers.
    pub nonce: Option<PathBuf>,
    /// A file with certificates, PEM.
    pub authority: Option<PathBuf>,
    /// A file with public keys for logging in.
    pub ssh_keys: Option<PathBuf>,
    /// Whose limit counts.
    pub provider: Option<Provider>,
}

/// Where settings are from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file with variables.
    File(PathBuf),
    /// An option of that name.
    Option(&'static str),
}

/// A document and what there is to say about it.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// What the provider is given, byte for byte.
    pub user_data: String,
    /// Its size.
    pub sizes: Sizes,
    /// What the machine will lack unless somebody else brings it.
    pub warnings: Vec<String>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Option(name) => f.write_str(name),
        }
    }
}

/// Makes the document; `plan` is that of the kind and `layers` are those that it was compiled from.
pub fn render(request: &UserDataRequest, plan: &Plan, layers: &[Layer]) -> Result<Rendered, UserDataError> {
    let mut settings = combined(&request.settings)?;
    let takes = |name: &str| plan.variables.contains_key(name);
    let refused = |option| UserDataError::Option { option, kind: request.kind.clone() };
    let mut login = Vec::new();
    if let Some(path) = &request.ssh_keys {
        login = inputs::public_keys(path)?;
        if takes(SSH_KEYS) {
            add(&mut settings, SSH_KEYS, Origin::Option("--ssh-key"), std::mem::take(&mut login).join("\n"))?;
        }
    }
    if let Some(path) = &request.authority {
        let value = inputs::certificates(path)?;
        takes(AUTHORITY).then_some(()).ok_or_else(|| refused("--ca"))?;
        add(&mut settings, AUTHORITY, Origin::Option("--ca"), value)?;
    }
    let settings: BTreeMap<String, String> = settings.into_iter().map(|(name, (_, value))| (name, value)).collect();
    let nonce = request.nonce.as_deref().map(inputs::token).transpose()?;
    let place = plan.optional_modes.keys().find(|path| path.rsplit('/').next() == Some(NONCE));
    let nonce = match (&nonce, place) {
        (Some(_), None) => return Err(refused("--nonce")),
        (token, place) => token.as_ref().zip(place),
    };

    let brought: Vec<&str> = nonce.iter().map(|(_, path)| path.as_str()).collect();
    let mut warnings = examine(request, plan, layers, &settings, &brought)?;

    let mut document = Document::default();
    if let Some(name) = settings.get(NAME).filter(|name| takes(NAME) && !name.is_empty()) {
        if name.len() <= MAX_NAME && is_host_name(name) {
            document.host_name(name);
        } else {
            warnings.push(format!("{NAME} is no host name: the machine gets that of its provider"));
        }
    }
    if let Some((token, path)) = nonce {
        document.file(path, &[(Part::Nonce, token.clone())]);
    }
    if let Some(inputs) = &plan.inputs {
        let part = |name: &str| if name == AUTHORITY { Part::Authority } else { Part::Settings };
        let line = |(name, value): (&String, &String)| Ok((part(name), env::assignment(name, value, false)?));
        let mut lines = settings.iter().map(line).collect::<Result<Vec<_>, Error>>()?;
        if lines.is_empty() {
            // Machines wait for a file that says something.
            lines.push((Part::Settings, env::render([])?));
        }
        document.file(&inputs.user_data, &lines);
    }
    document.login(&login);
    let provider = request.provider.or_else(|| settings.get(PROVIDER).and_then(|name| Provider::named(name)));
    let (user_data, parts) = document.finish();
    Ok(Rendered { sizes: Sizes::new(provider, &parts), user_data, warnings })
}

impl Rendered {
    /// Refuses what the provider would not take.
    pub fn check_size(&self) -> Result<(), UserDataError> {
        match self.sizes.limit {
            Some(limit) if self.sizes.total > limit => {
                Err(UserDataError::TooLarge { sizes: Box::new(self.sizes.clone()), limit })
            }
            _ => Ok(()),
        }
    }
}

/// What is wrong with the settings, all at once; what a machine will lack.
fn examine(
    request: &UserDataRequest,
    plan: &Plan,
    layers: &[Layer],
    settings: &BTreeMap<String, String>,
    brought: &[&str],
) -> Result<Vec<String>, UserDataError> {
    let mut problems = names::unknown(plan, settings);
    let texts = names::unwritable(plan, settings);
    let mut warnings = Vec::new();
    // A text that cannot be written down is nothing to go on with.
    if texts.is_empty() && plan.inputs.is_some() {
        match rehearsal::rehearse(plan, layers, &request.kind, settings, brought) {
            Ok(lacking) => warnings = lacking,
            Err(stopping) => problems.extend(stopping.into_iter().map(Problem::FirstBoot)),
        }
    }
    problems.extend(texts);
    match problems.is_empty() {
        true if plan.inputs.is_none() && !settings.is_empty() => {
            Err(UserDataError::Unheard { kind: request.kind.clone() })
        }
        true => Ok(warnings),
        false => Err(UserDataError::Settings { kind: request.kind.clone(), problems }),
    }
}

type Settings = BTreeMap<String, (Origin, String)>;

/// All settings: what an option says counts more than what a file says.
fn combined(sources: &[(Origin, BTreeMap<String, String>)]) -> Result<Settings, UserDataError> {
    let mut all = Settings::new();
    for (origin, settings) in sources {
        for (name, value) in settings {
            if let Origin::File(_) = origin {
                all.insert(name.clone(), (origin.clone(), value.clone()));
            } else {
                all.retain(|known, (of, _)| known != name || matches!(of, Origin::Option(_)));
                add(&mut all, name, origin.clone(), value.clone())?;
            }
        }
    }
    Ok(all)
}

fn add(settings: &mut Settings, name: &str, second: Origin, value: String) -> Result<(), UserDataError> {
    match settings.insert(name.to_owned(), (second.clone(), value)) {
        Some((first, _)) => Err(UserDataError::Twice { name: name.to_owned(), first, second }),
        None => Ok(()),
    }
}

/// The settings of a file with variables.
pub fn read_settings(path: &Path) -> Result<(Origin, BTreeMap<String, String>), UserDataError> {
    let bytes = inputs::read(path, env::MAX_BYTES)?;
    Ok((Origin::File(path.to_owned()), env::parse(path, &bytes)?))
}
