//! User data for a baked machine: settings, a nonce and certificates of a kind in; a minimal `#cloud-config` that delivers
//! them to the machine out, with the size of its parts.
//!
//! Invariants: the settings are those of the kind's compiled plan, and have passed everything that the machine does
//! with them on first boot, as far as possible without it (`rehearsal`). The document has the host name and files, and
//! nothing else: no script and no download. A template becomes such a document when a server renders it. It is ASCII, the same
//! for the same input, and every YAML 1.1 or 1.2 parser reads the same bytes. The settings file is the last one: if it exists, so do the others. Messages contain a setting's value
//! only if the first-boot program would show it as well.

mod document;
mod error;
mod fields;
mod filled;
mod inputs;
mod names;
mod rehearsal;
mod size;
mod template;

pub use error::{Problem, UserDataError};
pub use inputs::setting;
pub use size::{Provider, Sizes};
pub use template::UserDataTemplate;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_firstboot::env;
use vmbake_firstboot::error::Error;
use vmbake_firstboot::plan::Plan;
use vmbake_firstboot::settings::is_host_name;

use document::{Document, Part};
use filled::Filled;
use template::{DEFINITION, Form};
use vmbake_layer::Layer;

/// Setting for the certificates of `--ca`, as base64 of PEM.
pub const AUTHORITY: &str = "NSTANCE_CA_CERT";
/// Setting for the keys of `--ssh-key`, one per line.
pub const SSH_KEYS: &str = "IMMUTABLE_SSH_AUTHORIZED_KEYS";
/// Option with the keys.
const SSH_KEY_OPTION: &str = "--ssh-key";
/// Setting with the provider whose limit applies, unless `--provider` is given.
const PROVIDER: &str = "PROVIDER_KIND";
/// Setting with the machine's name, which is also its host name.
const NAME: &str = "INSTANCE_ID";
/// Maximum length of a host name on Linux (`HOST_NAME_MAX` of limits.h).
const MAX_NAME: usize = 64;
/// Name of the nonce file in the plan.
const NONCE: &str = "nonce.jwt";

/// Inputs of user data.
#[derive(Clone, Debug, Default)]
pub struct UserDataRequest {
    /// Kind of image.
    pub kind: String,
    /// Settings with their origins; later ones take precedence.
    pub settings: Vec<(Origin, BTreeMap<String, String>)>,
    /// A file with the agent's registration token.
    pub nonce: Option<PathBuf>,
    /// A file with certificates, PEM.
    pub authority: Option<PathBuf>,
    /// A file with public keys for logging in.
    pub ssh_keys: Option<PathBuf>,
    /// Provider whose limit applies.
    pub provider: Option<Provider>,
    /// Server that fills placeholders in the settings, if any.
    pub template: Option<UserDataTemplate>,
}

/// Origin of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file with variables.
    File(PathBuf),
    /// A command-line option.
    Option(&'static str),
}

/// A document and information about it.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The exact bytes for the provider, or a template.
    pub user_data: String,
    /// Its size, for a template with the longest values.
    pub sizes: Sizes,
    /// Files that the machine will lack unless they are delivered in another way.
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

/// Creates the document; `plan` is that of the kind, compiled from `layers`.
pub fn render(request: &UserDataRequest, plan: &Plan, layers: &[Layer]) -> Result<Rendered, UserDataError> {
    let (settings, login) = gathered(request, plan)?;
    let values = match request.template {
        Some(_) => Some(Filled::new(request, plan, &settings)?),
        None => None,
    };
    let texts: BTreeMap<String, String> = match &values {
        Some(values) => values.samples(),
        None => settings.into_iter().map(|(name, (_, value))| (name, value)).collect(),
    };
    let provider = request.provider.or_else(|| texts.get(PROVIDER).and_then(|name| Provider::named(name)));
    if values.is_some()
        && (provider == Some(Provider::Google)
            || texts.get(PROVIDER).is_some_and(|name| name == Provider::Google.name()))
    {
        return Err(UserDataError::TemplateProvider);
    }
    let place = plan.optional_modes.keys().find(|path| path.rsplit('/').next() == Some(NONCE));
    let token = token(request, place)?;
    let provided: Vec<&str> =
        place.filter(|_| token.is_some() || values.is_some()).into_iter().map(String::as_str).collect();
    let mut warnings = examine(request, plan, layers, &texts, &provided)?;
    let named = texts.get(NAME).filter(|name| plan.variables.contains_key(NAME) && !name.is_empty());
    let host_name = named.filter(|name| name.len() <= MAX_NAME && is_host_name(name, MAX_NAME));
    if named.is_some() && host_name.is_none() {
        warnings.push(format!(
            "{NAME}: not a host name of at most {MAX_NAME} letters, digits, dots and dashes: the machine keeps the host name from its \
             provider"
        ));
    }
    let Some(values) = values else {
        let mut document = Document::default();
        host_name.into_iter().for_each(|name| document.host_name(name));
        if let (Some(token), Some(path)) = (token, place) {
            document.file(path, &[(Part::Nonce, token)]);
        }
        if let Some(inputs) = &plan.inputs {
            let line = |(name, value): (&String, &String)| Ok((part(name), env::assignment(name, value, false)?));
            let mut lines = texts.iter().map(line).collect::<Result<Vec<_>, Error>>()?;
            check_file(lines.iter().map(|(_, line)| line.len()).sum(), false)?;
            if lines.is_empty() {
                // Machines wait for a non-empty file.
                lines.push((Part::Settings, env::render([])?));
            }
            document.file(&inputs.user_data, &lines);
        }
        document.login(&login);
        let (user_data, parts) = document.finish();
        return Ok(Rendered { sizes: Sizes::new(provider, &parts, false), user_data, warnings });
    };
    check_file(values.longest_file()?, true)?;
    let document = |form| values.document(plan, host_name, place, form);
    let (_, parts) = document(Form::Longest)?.finish();
    Ok(Rendered {
        sizes: Sizes::new(provider, &parts, true),
        user_data: document(Form::Source)?.finish_template(DEFINITION),
        warnings,
    })
}

/// Refuses settings that exceed the machine's limit.
fn check_file(bytes: usize, is_longest: bool) -> Result<(), UserDataError> {
    match bytes as u64 > env::MAX_BYTES {
        true => Err(UserDataError::TooManySettings { bytes, is_longest }),
        false => Ok(()),
    }
}

/// The settings with their origins, and login keys that are not settings.
fn gathered(request: &UserDataRequest, plan: &Plan) -> Result<(Settings, Vec<String>), UserDataError> {
    let mut settings = combined(&request.settings)?;
    let takes = |name: &str| plan.variables.contains_key(name);
    let refused = |option| UserDataError::Option { option, kind: request.kind.clone() };
    let mut login = Vec::new();
    if let Some(path) = &request.ssh_keys {
        login = inputs::public_keys(path)?;
        if takes(SSH_KEYS) {
            add(&mut settings, SSH_KEYS, Origin::Option(SSH_KEY_OPTION), std::mem::take(&mut login).join("\n"))?;
        }
    }
    if let Some(path) = &request.authority {
        let value = inputs::certificates(path)?;
        takes(AUTHORITY).then_some(()).ok_or_else(|| refused("--ca"))?;
        add(&mut settings, AUTHORITY, Origin::Option("--ca"), value)?;
    }
    // The template would have no placeholders.
    if request.template.is_some() && (plan.inputs.is_none() || !login.is_empty()) {
        return Err(refused("--template"));
    }
    Ok((settings, login))
}

/// The given token, for which the plan needs a path.
fn token(request: &UserDataRequest, place: Option<&String>) -> Result<Option<String>, UserDataError> {
    let Some(path) = &request.nonce else { return Ok(None) };
    if request.template.is_some() {
        return Err(UserDataError::Message(Message::new(
            "a template cannot have a nonce: the server sets one for each machine",
        )));
    }
    let token = inputs::token(path)?;
    match place {
        Some(_) => Ok(Some(token)),
        None => Err(UserDataError::Option { option: "--nonce", kind: request.kind.clone() }),
    }
}

/// Effective value of a setting.
fn part(name: &str) -> Part {
    if name == AUTHORITY { Part::Authority } else { Part::Settings }
}

impl Rendered {
    /// Refuses documents that exceed the provider's limit.
    pub fn check_size(&self) -> Result<(), UserDataError> {
        match self.sizes.limit {
            Some(limit) if self.sizes.total > limit => {
                Err(UserDataError::TooLarge { sizes: Box::new(self.sizes.clone()), limit })
            }
            _ => Ok(()),
        }
    }
}

/// Checks the settings: all problems at once, and files that the machine will lack.
fn examine(
    request: &UserDataRequest,
    plan: &Plan,
    layers: &[Layer],
    settings: &BTreeMap<String, String>,
    provided: &[&str],
) -> Result<Vec<String>, UserDataError> {
    let mut problems = names::unknown(plan, settings);
    let texts = names::unwritable(plan, settings);
    let mut warnings = Vec::new();
    // Without a valid text, further checks are impossible.
    if texts.is_empty() && plan.inputs.is_some() {
        match rehearsal::rehearse(plan, layers, &request.kind, settings, provided) {
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

/// All settings; options take precedence over files.
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
        Some((first, _)) => Err(UserDataError::Message(message!("{name} is set by both {first} and {second}"))),
        None => Ok(()),
    }
}

/// The settings of a file with variables.
pub fn read_settings(path: &Path) -> Result<(Origin, BTreeMap<String, String>), UserDataError> {
    let bytes = inputs::read(path, env::MAX_BYTES)?;
    Ok((Origin::File(path.to_owned()), env::parse(path, &bytes)?))
}
