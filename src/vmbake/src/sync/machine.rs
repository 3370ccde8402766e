//! The state of a machine: its documents in, state to compare layers with out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use vmbake_firstboot::plan::{self, Plan};

use super::desired::split;
use super::script::{SECTION, Script};
use super::ssh::{self, Answer, Login};
use super::state::{self, State};
use super::{Destination, SyncError};
use vmbake_common::digest::Digest;
use vmbake_compose::merge;
use vmbake_compose::origin::{self, Record};
use vmbake_layer::Schema;
use vmbake_manifest::Manifest;

const FUNCTIONS: &str = include_str!("probe.sh");

/// The program that configures a machine.
pub(super) const PROGRAM: &str = "/opt/podplane/bin/firstboot";

/// Ends the state of an active unit.
pub(super) const ACTIVE: &str = " active";

/// The identity of a machine.
const MACHINE_ID: &str = "/etc/machine-id";

/// A machine that was baked.
pub(super) struct Installed {
    pub(super) login: Login,
    pub(super) hostname: String,
    pub(super) manifest: Manifest,
    pub(super) record: Record,
    pub(super) plan: Plan,
    pub(super) plan_text: serde_json::Value,
    pub(super) state: State,
    /// SHA-256 of the state's file; empty if there is none.
    pub(super) state_hex: String,
    pub(super) users: BTreeSet<String>,
    pub(super) groups: BTreeMap<String, String>,
}

/// Files that a bake changes for many layers.
const SHARED: [&str; 8] = [
    "/etc/passwd",
    "/etc/group",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/subuid",
    "/etc/subgid",
    "/etc/os-release",
    "/usr/lib/os-release",
];

impl Installed {
    /// Whether a file is derived from the plan, which is sent only if it differs.
    pub(super) fn is_plan_file(&self, path: &str) -> bool {
        path == plan::PATH || self.plan.inputs.as_ref().is_some_and(|inputs| inputs.defaults == path)
    }

    /// Whether a file or link at `path` is the one that sync created.
    pub(super) fn sent(&self, path: &str, there: &FoundNode) -> bool {
        self.state.files.get(path).is_some_and(|sent| {
            sent.created && there.digest().is_some_and(|found| found == sent.digest || sent.earlier.contains(&found))
        })
    }

    /// Whether a file of a layer at `path` would replace a file of the machine or of vmbake, such as accounts and records.
    pub(super) fn is_reserved(&self, path: &str) -> bool {
        let below_usr = format!("/usr{path}");
        let (folder, _) = split(state::PATH);
        let is_of_sync = path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let is_known =
            |path: &str| SHARED.contains(&path) || [MACHINE_ID, merge::RECORD, origin::RECORD, PROGRAM].contains(&path);
        is_of_sync || self.is_plan_file(path) || is_known(path) || is_known(&below_usr)
    }

    /// Paths of a layer in the image, including directories and links.
    pub(super) fn own_files(&self, schema: &Schema) -> impl Iterator<Item = String> {
        let made = self.plan.files.iter().map(|rule| rule.path.as_str());
        let defaults = self.plan.inputs.iter().map(|inputs| inputs.defaults.as_str());
        let emptied = schema.empty.iter().chain(&schema.truncate).map(String::as_str);
        let others = [merge::RECORD, origin::RECORD, plan::PATH, PROGRAM].into_iter().chain(SHARED);
        let others: BTreeSet<&str> = others.chain(made).chain(defaults).chain(emptied).collect();
        let homes: Vec<String> = schema.users.iter().map(|(name, user)| user.home_of(name) + "/").collect();
        let paths = self.record.paths.iter().filter(|(path, origin)| {
            origin.layer == schema.name
                && origin.artifact.is_none()
                && !self.is_reserved(path)
                && !others.contains(path.as_str())
                && !homes.iter().any(|home| path.starts_with(home))
        });
        paths.map(|(path, _)| path.clone()).collect::<Vec<_>>().into_iter()
    }
}

/// File at a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FoundNode {
    /// Type as in find(1): `f`, `d`, `l`.
    pub(super) kind: String,
    /// Permissions, octal.
    pub(super) mode: u16,
    pub(super) owner: String,
    pub(super) group: String,
    /// Target of a link.
    pub(super) target: String,
    /// Digest of a regular file.
    pub(super) digest: Option<Digest>,
}

impl FoundNode {
    /// Digest of a file's content or of a link's target.
    pub(super) fn digest(&self) -> Option<Digest> {
        if self.kind == "l" { Some(Digest::of(self.target.as_bytes())) } else { self.digest }
    }
}

/// State of the queried paths and units.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// By path; missing ones are absent.
    pub(super) nodes: BTreeMap<String, FoundNode>,
    /// Resolved paths, and whether they exist.
    pub(super) real: BTreeMap<String, (String, bool)>,
    /// Paths in the directories that sync created.
    pub(super) entries: BTreeSet<String>,
    /// Unit file states of systemd: `enabled`, `disabled`, `masked` and others, with [`ACTIVE`] if the unit is active.
    pub(super) units: BTreeMap<String, String>,
}

impl Found {
    /// State of a unit file; empty if unknown.
    pub(super) fn state(&self, unit: &str) -> &str {
        self.units.get(unit).map_or("", |state| state.strip_suffix(ACTIVE).unwrap_or(state))
    }
}

/// Paths and units to query.
#[derive(Debug, Default)]
pub(super) struct Questions {
    pub(super) paths: BTreeSet<String>,
    /// Directories whose entries are listed.
    pub(super) directories: BTreeSet<String>,
    pub(super) real: BTreeSet<String>,
    pub(super) units: BTreeSet<String>,
}

/// Reads the documents of a machine.
pub(super) fn installed(to: &Destination) -> Result<Installed, SyncError> {
    let mut script = Script::new(FUNCTIONS);
    script.call("idle", []);
    script.call("printf '%s\\0' \"$(hostname)\"", []);
    script.call("has", ["rsync"]);
    script.call("has", [PROGRAM]);
    let documents = [merge::RECORD, origin::RECORD, plan::PATH, state::PATH, "/etc/passwd", "/etc/group"];
    documents.iter().for_each(|path| script.call("text", [*path]));
    let Answer { login, fields } = ssh::run(to, "query the machine's kind", script.finish())?;
    let mut fields = fields.into_iter();
    let mut next = || fields.next().unwrap_or_default();
    let hostname = String::from_utf8_lossy(&next()).into_owned();
    let (has_rsync, has_program) = (next() == b"yes", next() == b"yes");
    let mut document = || (next() == b"file", next());
    let [manifest, record, plan, state, users, groups] = std::array::from_fn(|_| document());
    let host = || to.shown.clone();
    let missing = |path| SyncError::NotBaked { host: host(), path };
    let present = |(is_there, text): (bool, Vec<u8>), path| if is_there { Ok(text) } else { Err(missing(path)) };
    if !has_program {
        return Err(missing(PROGRAM));
    }
    if !has_rsync {
        return Err(SyncError::NoRsync { host: host() });
    }
    let manifest = Manifest::parse(Path::new(merge::RECORD), present(manifest, merge::RECORD)?)
        .map_err(|source| SyncError::Manifest { host: host(), source })?;
    let record = Record::parse(origin::RECORD, &present(record, origin::RECORD)?)
        .map_err(|source| SyncError::Record { host: host(), source })?;
    let json = |path| move |source| SyncError::Document { host: to.shown.clone(), path, source };
    let plan = present(plan, plan::PATH)?;
    let (state, state_hex) = match state {
        (true, text) => (serde_json::from_slice(&text).map_err(json(state::PATH))?, Digest::of(&text).hex()),
        (false, _) => (State::default(), String::new()),
    };
    Ok(Installed {
        login,
        hostname,
        manifest,
        record,
        plan_text: serde_json::from_slice(&plan).map_err(json(plan::PATH))?,
        plan: serde_json::from_slice(&plan).map_err(json(plan::PATH))?,
        state,
        state_hex,
        users: accounts(&users.1).map(|(name, _)| name).collect(),
        groups: accounts(&groups.1).collect(),
    })
}

/// Names and ids of passwd(5) or group(5).
fn accounts(text: &[u8]) -> impl Iterator<Item = (String, String)> {
    let text = String::from_utf8_lossy(text).into_owned();
    let account = |line: &str| {
        let mut fields = line.split(':');
        Some((fields.next()?.to_owned(), fields.nth(1)?.to_owned()))
    };
    text.lines().filter_map(account).collect::<Vec<_>>().into_iter()
}

/// Queries paths and units of a machine.
pub(super) fn look(to: &Destination, questions: &Questions) -> Result<Found, SyncError> {
    let list = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>();
    let (paths, real, units) = (list(&questions.paths), list(&questions.real), list(&questions.units));
    let mut script = Script::new(FUNCTIONS);
    script.batches("find @@ -maxdepth 0 -printf '%p\\0%y\\0%m\\0%u\\0%g\\0%l\\0' 2>/dev/null", &paths);
    script.section();
    script.batches("find @@ -maxdepth 0 -type f -exec sha256sum -z -- {} + 2>/dev/null", &paths);
    script.section();
    script.batches("find @@ -mindepth 1 -maxdepth 1 -printf '%p\\0' 2>/dev/null", &list(&questions.directories));
    script.section();
    script.batches("realpath -mz -- @@", &real);
    script.batches("exist @@", &real);
    script.section();
    script.batches("states @@", &units);
    script.section();
    let Answer { fields, .. } = ssh::run(to, "examine files of the machine", script.finish())?;
    let mut sections = fields.split(|field| field == SECTION.as_bytes());
    let mut section = || sections.next().unwrap_or_default();
    let text = |field: &Vec<u8>| String::from_utf8_lossy(field).into_owned();
    let mut found = Found::default();
    for fields in section().chunks_exact(6) {
        let [path, kind, mode, owner, group, target] = std::array::from_fn(|at| text(&fields[at]));
        let mode = u16::from_str_radix(&mode, 8).unwrap_or_default();
        found.nodes.insert(path, FoundNode { kind, mode, owner, group, target, digest: None });
    }
    for line in section().iter().map(text) {
        let Some((hex, path)) = line.split_once("  ") else { continue };
        if let (Some(node), Ok(digest)) = (found.nodes.get_mut(path), format!("sha256:{hex}").parse()) {
            node.digest = Some(digest);
        }
    }
    found.entries = section().iter().map(text).collect();
    let answers = section();
    let expected = |is_complete: bool, what| {
        let found = format!("{} fields", answers.len());
        if is_complete { Ok(()) } else { Err(SyncError::Answer { host: to.shown.clone(), expected: what, found }) }
    };
    expected(answers.len() == 2 * real.len(), "a resolved path for each path")?;
    // Both lists come in batches: one of paths, one of what exists.
    let (paths, exist) = answers.split_at(real.len());
    for ((path, real), exists) in real.iter().zip(paths).zip(exist) {
        found.real.insert(path.clone(), (text(real), exists == b"1"));
    }
    let states = section();
    expected(states.len() == units.len(), "a state for each unit")?;
    found.units = units.into_iter().zip(states.iter().map(text)).collect();
    Ok(found)
}
