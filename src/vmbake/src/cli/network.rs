//! Options for network access: mirrors, the shared store, registries.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use clap::Args;
use serde::Deserialize;

use super::Failure;
use super::catalog::{CatalogArgs, INPUT_OPTIONS, SourcesArgs};
use vmbake_common::address;
use vmbake_common::catalog::Catalog;
use vmbake_common::input;
use vmbake_common::progress::{Event, emit};
use vmbake_oci::RepositoryName;
use vmbake_pin::sources::Sources;
use vmbake_store::http::{Client, Mirror, Mirrors};
use vmbake_store::registry::{Access, Credentials, Repository};
use vmbake_store::shared::{InvalidSharedName, SharedName, SharedStore};
use vmbake_store::store::Store;

/// Mirrors from the environment, separated by spaces.
const VARIABLE: &str = "VMBAKE_MIRRORS";
/// Location of the shared store, and `1` if it is writable.
const SHARED: &str = "VMBAKE_SHARED";
const SHARED_WRITE: &str = "VMBAKE_SHARED_WRITE";

#[derive(Clone, Debug, Args)]
pub(super) struct MirrorArgs {
    /// Use URL as a mirror of PREFIX; may be repeated; takes precedence over $VMBAKE_MIRRORS and the configuration file
    #[arg(long = "mirror", help_heading = INPUT_OPTIONS, value_name = "PREFIX=URL")]
    mirrors: Vec<Mirror>,
}

#[derive(Clone, Debug, Args)]
pub(super) struct RegistryArgs {
    /// Use plain HTTP (default for localhost)
    #[arg(long)]
    plain_http: bool,
    #[command(flatten)]
    mirrors: MirrorArgs,
}

#[derive(Clone, Debug, Args)]
pub(super) struct NetworkArgs {
    #[command(flatten)]
    mirrors: MirrorArgs,
    #[command(flatten)]
    sources: SourcesArgs,
    /// Artifact store [default: $XDG_CACHE_HOME/vmbake/store]
    #[arg(long, help_heading = INPUT_OPTIONS, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Shared store to read before upstreams: oci://HOST/REPOSITORY [default: $VMBAKE_SHARED, or the configuration file]
    #[arg(long, help_heading = INPUT_OPTIONS, value_name = "URL")]
    shared: Option<SharedName>,
    /// Upload new blobs to the shared store [default: $VMBAKE_SHARED_WRITE=1, or the configuration file]
    #[arg(long, help_heading = INPUT_OPTIONS)]
    shared_write: bool,
}

/// The configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    mirrors: BTreeMap<String, String>,
    /// URL of the shared store.
    shared: Option<String>,
    #[serde(default)]
    shared_write: bool,
}

#[derive(Debug, Default)]
struct Settings {
    mirrors: Vec<Mirror>,
    shared: Option<SharedName>,
    shared_write: bool,
}

impl NetworkArgs {
    /// The store, backed by the shared store.
    pub(super) fn store(&self) -> Result<Store, Failure> {
        let store = Store::open(self.store.clone())?;
        let config = config()?;
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let name = match (&self.shared, variable(SHARED)) {
            (Some(name), _) => Some(name.clone()),
            (None, Some(text)) => Some(text.parse().map_err(|error| format!("{SHARED}: {error}"))?),
            (None, None) => config.shared.clone(),
        };
        let Some(name) = name else { return Ok(store) };
        let writes =
            self.shared_write || config.shared_write || variable(SHARED_WRITE).is_some_and(|value| value == "1");
        let warn = |warning| emit(&Event::Warning { warning });
        let shared = SharedStore::new(name, self.mirrors.load(config)?, &Credentials::of_user(), writes, warn);
        Ok(store.sharing(Arc::new(shared)))
    }

    pub(super) fn sources_catalog(&self, catalog: &CatalogArgs) -> Catalog {
        self.sources.catalog(catalog)
    }

    pub(super) fn sources(&self, catalog: &CatalogArgs) -> Result<Sources, Failure> {
        self.sources.load(catalog)
    }

    /// A client with all mirrors, by precedence: command line, environment, configuration file, the host's apt.
    pub(super) fn client(&self, sources: &Sources) -> Result<Client, Failure> {
        let mut mirrors = self.mirrors.load(config()?)?;
        let built_in = Sources::load(&Catalog::built_in())?;
        add_host_mirrors(&mut mirrors, sources, &built_in, &index_targets().unwrap_or_default());
        Ok(Client::new(mirrors))
    }

    #[cfg(feature = "publish")]
    /// A client with the configured mirrors only, for downloads that are not from an apt archive.
    pub(super) fn direct_client(&self) -> Result<Client, Failure> {
        Ok(Client::new(self.mirrors.load(config()?)?))
    }

    /// Opens a repository for reading, with the user's credentials.
    pub(super) fn repository(&self, name: &RepositoryName, plain_http: bool) -> Result<Repository, Failure> {
        self.mirrors.repository(name, Access::Pull, plain_http)
    }
}

impl MirrorArgs {
    fn repository(&self, name: &RepositoryName, access: Access, plain_http: bool) -> Result<Repository, Failure> {
        let client = Client::new(self.load(config()?)?);
        let plain_http = plain_http || name.is_local();
        Ok(Repository::with_transport(&client, &Credentials::of_user(), name.clone(), access, plain_http))
    }

    /// Mirrors from command line, environment and configuration file.
    fn load(&self, config: Settings) -> Result<Mirrors, Failure> {
        let mut mirrors = Mirrors::default();
        for mirror in config.mirrors {
            mirrors.insert(mirror);
        }
        for text in std::env::var(VARIABLE).unwrap_or_default().split_whitespace() {
            mirrors.insert(text.parse().map_err(|error| format!("{VARIABLE}: {error}"))?);
        }
        for mirror in &self.mirrors {
            mirrors.insert(mirror.clone());
        }
        Ok(mirrors)
    }
}

impl RegistryArgs {
    /// Opens a repository with the user's credentials.
    pub(super) fn repository(&self, name: &RepositoryName, access: Access) -> Result<Repository, Failure> {
        self.mirrors.repository(name, access, self.plain_http)
    }
}

/// `$XDG_CONFIG_HOME/vmbake/config.json`, by default below `~/.config`.
fn config() -> Result<Settings, Failure> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let Some(folder) = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config"))) else {
        return Ok(Settings::default());
    };
    let path = folder.join("vmbake/config.json");
    match input::read(&path, input::MAX_INPUT) {
        Ok(text) => parse_config(&path, &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Settings::default()),
        Err(error) => Err(format!("{}: {error}", path.display()).into()),
    }
}

fn parse_config(path: &Path, text: &[u8]) -> Result<Settings, Failure> {
    let at = |error: String| format!("{}: {error}", path.display());
    let config: Config = serde_json::from_slice(text).map_err(|error| at(error.to_string()))?;
    let mirrors = config.mirrors.iter().map(|(prefix, target)| Mirror::new(prefix, target));
    let mirrors = mirrors.collect::<Result<_, _>>().map_err(|error| at(error.to_string()))?;
    let shared = config.shared.map(|text| text.parse()).transpose();
    let shared = shared.map_err(|error: InvalidSharedName| at(error.to_string()))?;
    Ok(Settings { mirrors, shared, shared_write: config.shared_write })
}

/// The indexes of the host's apt, one line each: origin, label and address of the archive. `None` without apt.
fn index_targets() -> Option<String> {
    let format = "$(ORIGIN) $(LABEL) $(REPO_URI)";
    let output = Command::new("apt-get").args(["indextargets", "--format", format]).output().ok()?;
    String::from_utf8(output.stdout).ok()
}

/// Adds the mirrors of the host's apt for archives at a built-in address. Other addresses, such as a snapshot, were chosen by the user, and
/// a mirror of the same origin has different contents.
fn add_host_mirrors(mirrors: &mut Mirrors, sources: &Sources, built_in: &Sources, targets: &str) {
    let archives = |of: &Sources| of.schema().archives.clone().into_values();
    let known: Vec<_> = archives(built_in).map(|archive| archive.url).collect();
    let (published, chosen): (Vec<_>, Vec<_>) = archives(sources).partition(|archive| known.contains(&archive.url));
    for archive in chosen {
        // The mirror of a built-in address must not match other addresses below it.
        let start = archive.url.start();
        let is_below = known.iter().any(|url| start.starts_with(&format!("{}/", url.start().trim_end_matches('/'))));
        if let Some(own) = Mirror::new(start, start).ok().filter(|_| is_below) {
            mirrors.insert_default(own);
        }
    }
    for archive in published {
        let Some(origin) = &archive.origin else { continue };
        let label = archive.label.as_ref().unwrap_or(origin);
        let found = host_mirror(targets, origin, label);
        if let Some(mirror) = found.and_then(|url| Mirror::new(archive.url.start(), &url).ok()) {
            mirrors.insert_default(mirror);
        }
    }
}

/// The host's apt mirror for an origin and label.
fn host_mirror(targets: &str, origin: &str, label: &str) -> Option<String> {
    targets.lines().find_map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
        [of, labelled, uri]
            if of == origin && labelled == label && uri.starts_with("http") && !address::has_userinfo(uri) =>
        {
            Some(uri.to_owned())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_is_of_the_archive_with_that_origin_and_label() {
        let targets =
            "Debian Debian http://m/debian/\nDebian Debian-Security http://m/security/\nOther Other file:/srv/other/\n";
        let found = |origin, label| host_mirror(targets, origin, label);
        assert_eq!(found("Debian", "Debian").as_deref(), Some("http://m/debian/"));
        assert_eq!(found("Debian", "Debian-Security").as_deref(), Some("http://m/security/"));
        assert_eq!(found("Debian", "Other"), None);
        assert_eq!(found("Other", "Other"), None, "a directory of the host is not a mirror");
    }

    #[test]
    fn an_address_that_the_user_gives_has_no_mirror_of_the_host() {
        let sources = |url: &str| {
            let text = format!(
                r#"{{"archives": {{"debian": {{"url": "{url}", "suite": "x", "component": "main", "keyring": "d.asc", "origin": "Debian"}}}}}}"#
            );
            Sources::parse(Path::new("s.json"), text.as_bytes()).unwrap()
        };
        let built_in = sources("https://ftp.debian.org/debian");
        for (url, rule, asked) in [
            ("https://ftp.debian.org/debian", None, "http://m/debian/x"),
            (
                "https://snapshot.debian.org/archive/debian/20260901T000000Z",
                None,
                "https://snapshot.debian.org/archive/debian/20260901T000000Z/x",
            ),
            ("https://ftp.debian.org/debian/past", None, "https://ftp.debian.org/debian/past/x"),
            (
                "https://snapshot.debian.org/archive/debian/1",
                Some("https://snapshot.debian.org=http://s"),
                "http://s/archive/debian/1/x",
            ),
            ("https://ftp.debian.org/debian/past", Some("https://ftp.debian.org=http://s"), "http://s/debian/past/x"),
        ] {
            let mut mirrors = Mirrors::default();
            rule.into_iter().for_each(|rule: &str| mirrors.insert(rule.parse().unwrap()));
            add_host_mirrors(&mut mirrors, &sources(url), &built_in, "Debian Debian http://m/debian/\n");
            assert_eq!(mirrors.map(&format!("{url}/x")), asked);
        }
    }

    #[test]
    fn the_configuration_file_is_strict() {
        let parse = |text: &str| parse_config(Path::new("c.json"), text.as_bytes());
        assert_eq!(parse(r#"{"mirrors": {"https://a.example": "http://m"}}"#).unwrap().mirrors.len(), 1);
        assert!(parse(r#"{"shared": "oci://r.example/a", "shared_write": true}"#).unwrap().shared.is_some());
        for wrong in [r#"{"mirror": {}}"#, r#"{"mirrors": {"a": "b"}}"#, r#"{"shared": "https://r.example/a"}"#, "x"] {
            assert!(parse(wrong).unwrap_err().to_string().starts_with("c.json: "), "{wrong}");
        }
    }
}
