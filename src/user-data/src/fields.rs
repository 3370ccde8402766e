//! The fields of Nstance's user data, each with a sample and an assumed longest value.

use vmbake_firstboot::env;

/// A field that the server sets for each machine.
#[derive(Clone, Debug)]
pub(super) enum Field {
    /// A field with known values.
    Known(&'static KnownField),
    /// The provider, which determines the checks.
    Provider,
    /// A variable or an image, by its path.
    Named(String),
}

#[derive(Debug)]
pub(super) struct KnownField {
    /// Its path in the data of the template.
    pub(super) path: &'static str,
    /// Its setting; empty if none.
    pub(super) setting: &'static str,
    /// A sample value.
    pub(super) sample: &'static str,
    /// The longest value, in bytes.
    max: usize,
}

/// The provider's path.
const PROVIDER: &str = ".Provider.Kind";
/// Its longest name.
const MAX_PROVIDER: usize = "proxmox".len();
/// Prefixes of paths that end with a name, with the longest value of such a field: delivered settings are not longer, and references
/// to Compute Engine images are the longest ones.
const NAMED: [(&str, usize); 2] = [(".Vars.", 4096), (".Image.", 256)];
/// Bytes of a line of PEM (RFC 7468, section 2).
const PEM_LINE: usize = 64;
const AUTHORITY: &str = ".Cluster.CACert";

/// Cluster names have at most 32 bytes in Nstance; addresses are a host name of at most 253 bytes and a port. The others are
/// generous assumptions: instance names have 29 bytes, and a nonce, a JSON web token signed by Ed25519, has some 700.
pub(super) const FIELDS: [KnownField; 13] = [
    field(".Cluster.ID", "CLUSTER_ID", "cluster", 32),
    field(AUTHORITY, "NSTANCE_CA_CERT", "-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----\n", 4096),
    field(INSTANCE, "INSTANCE_ID", "knc0000000001r010000000000000", 64),
    field(".Instance.Kind", "", "knc", 32),
    field(".Instance.Arch", "", "amd64", 16),
    field(".Instance.Type", "PROVIDER_INSTANCE_TYPE", "t4g.medium", 64),
    field(".Provider.Region", "PROVIDER_REGION", "us-west-2", 64),
    field(".Provider.Zone", "PROVIDER_ZONE", "us-west-2a", 64),
    field(".Server.Shard", "", "us-west-2a", 64),
    field(".Server.RegistrationAddr", "NSTANCE_SERVER_REGISTRATION_ADDR", "10.0.0.1:8992", 259),
    field(".Server.AgentAddr", "NSTANCE_SERVER_AGENT_ADDR", "10.0.0.1:8994", 259),
    field(".Server.OperatorAddr", "", "10.0.0.1:8993", 259),
    field(NONCE, "", "header.payload.signature", 1024),
];

pub(super) const INSTANCE: &str = ".Instance.ID";
pub(super) const NONCE: &str = ".Nonce";

const fn field(path: &'static str, setting: &'static str, sample: &'static str, max: usize) -> KnownField {
    KnownField { path, setting, sample, max }
}

/// The field with that path, or of that setting.
pub(super) fn find(name: &str) -> Option<Field> {
    let is_named = |(begin, _): &(&str, usize)| name.strip_prefix(begin).is_some_and(env::is_name);
    if name == PROVIDER {
        return Some(Field::Provider);
    }
    if NAMED.iter().any(is_named) {
        return Some(Field::Named(name.to_owned()));
    }
    let known = FIELDS.iter().find(|known| !name.is_empty() && (known.path == name || known.setting == name));
    known.map(Field::Known)
}

/// All paths, for messages.
pub(super) fn paths() -> String {
    let named = NAMED.iter().map(|(begin, _)| format!("{begin}NAME"));
    let all = FIELDS.iter().map(|known| known.path.to_owned()).chain([PROVIDER.to_owned()]).chain(named);
    all.collect::<Vec<_>>().join(", ")
}

impl Field {
    /// Its path in the data of the template.
    pub(super) fn path(&self) -> &str {
        match self {
            Self::Known(known) => known.path,
            Self::Provider => PROVIDER,
            Self::Named(path) => path,
        }
    }

    /// The longest value: letters, and certificates in lines.
    pub(super) fn longest(&self) -> String {
        let max = match self {
            Self::Known(known) if known.path == AUTHORITY => {
                let line = "x".repeat(PEM_LINE) + "\n";
                return line.chars().cycle().take(known.max).collect();
            }
            Self::Known(known) => known.max,
            Self::Provider => MAX_PROVIDER,
            Self::Named(path) => NAMED.iter().find(|(begin, _)| path.starts_with(begin)).map_or(0, |(_, max)| *max),
        };
        "x".repeat(max)
    }
}
