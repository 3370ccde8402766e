//! `vmbake trust`: shows and updates trust anchors.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use jiff::Timestamp;

use super::catalog::{CatalogArgs, SourcesArgs, TrustArgs};
use super::network::NetworkArgs;
use super::target::TargetError;
use super::{Failure, Outcome, files};
use vmbake_common::atomic_file::write_file;
use vmbake_common::catalog::Catalog;
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_common::input;
use vmbake_common::progress::emit_message;
use vmbake_pin::anchors::{AnchorError, Anchors};
use vmbake_pin::sources::Sources;
use vmbake_pin::trust::{Anchor, Proposal, renew_readme, table};

/// Maximum length of a fetched document; known ones are below 20 KB.
const MAX_LEN: u64 = 4 << 20;

#[derive(Debug, Subcommand)]
pub(super) enum Trust {
    /// Print trusted keys and authorities as Markdown
    Show(ShowArgs),
    /// Download trust anchors again, show changes, and prompt before replacing any
    Update(UpdateArgs),
}

const SHOW_EXAMPLES: &str = "\
Examples:
  vmbake trust show
  vmbake trust show --trust trust --sources manifests/sources.json";

#[derive(Debug, clap::Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    sources: SourcesArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

const UPDATE_EXAMPLES: &str = "\
Examples:
  vmbake trust update                             # prompts before replacing a file in trust/
  vmbake trust update --trust trust --only debian-archive.asc --yes";

#[derive(Debug, clap::Args)]
#[command(after_help = UPDATE_EXAMPLES)]
pub(super) struct UpdateArgs {
    /// Directory of trust anchors
    #[arg(long, value_name = "DIR", default_value = "trust")]
    trust: PathBuf,
    /// Replace without confirmation
    #[arg(long)]
    yes: bool,
    /// Update only this file of the directory
    #[arg(long, value_name = "FILE")]
    only: Option<String>,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

/// Error of an update of trust anchors.
#[derive(Debug, thiserror::Error)]
enum UpdateError {
    #[error("not replacing {name}: stdin is not a terminal (use --yes)")]
    Unattended { name: String },
}

impl Hint for UpdateError {}

pub(super) fn run(trust: Trust) -> Result<Outcome, Failure> {
    match trust {
        Trust::Show(args) => show(&args),
        Trust::Update(args) => update(&args),
    }
}

fn show(args: &ShowArgs) -> Result<Outcome, Failure> {
    let (sources, anchors) = (args.sources.load(&args.catalog)?, args.trust.load(&args.catalog)?);
    files::show(&tables(&sources, &anchors)?)
}

/// All anchors as Markdown. Expired and revoked ones are reported on stderr.
fn tables(sources: &Sources, anchors: &Anchors) -> Result<String, Failure> {
    let now = Timestamp::now();
    let mut texts = Vec::new();
    for (name, source) in &sources.schema().trust {
        let bytes = match anchors.read(name) {
            Err(AnchorError::Missing { .. }) => {
                emit_message(&format!("{}: not found in this directory", escape::line(name)));
                continue;
            }
            bytes => bytes?,
        };
        let items = Anchor::parse(name, bytes)?.items(now)?;
        texts.push(table(name, &source.urls, &items));
        for item in items {
            if let Some(fault) = &item.fault {
                emit_message(&escape::line(format!("{name}: {fault}: {item}")));
            }
        }
    }
    Ok(texts.join("\n"))
}

fn update(args: &UpdateArgs) -> Result<Outcome, Failure> {
    let sources = args.network.sources(&args.catalog)?;
    let client = args.network.client(&sources)?;
    let fetch = |url: &str| client.get(url, MAX_LEN);
    let now = Timestamp::now();
    let wanted = |name: &str| args.only.as_ref().is_none_or(|only| only == name);
    let mut proposals = Vec::new();
    for (name, source) in sources.schema().trust.iter().filter(|(name, _)| wanted(name)) {
        proposals.push(Proposal::fetch(&args.trust, name, &source.urls, &fetch, now)?);
    }
    if let (Some(name), true) = (&args.only, proposals.is_empty()) {
        let known = sources.schema().trust.keys().cloned().collect();
        return Err(TargetError::Unknown { what: "trust anchor", name: name.clone(), known }.into());
    }
    proposals.iter().try_for_each(print_change)?;
    for proposal in proposals.iter().filter(|proposal| proposal.is_new()) {
        if args.yes || confirm(proposal.name())? {
            proposal.accept()?;
            print_line(&format!("{}: replaced", proposal.name()))?;
        } else {
            print_line(&format!("{}: not replaced", proposal.name()))?;
        }
    }
    write_readme(&args.trust, &sources)?;
    Ok(Outcome::Clean)
}

fn print_change(proposal: &Proposal) -> Result<(), Failure> {
    let name = proposal.name();
    if !proposal.is_new() {
        print_line(&format!("{name}: unchanged"))?;
    }
    let change = proposal.change();
    for (what, items) in [("added", &change.added), ("removed", &change.removed), ("changed", &change.changed)] {
        items.iter().try_for_each(|item| print_line(&format!("{name}: {what}: {item}")))?;
    }
    if proposal.is_new() && *change == vmbake_pin::trust::AnchorChange::default() {
        print_line(&format!("{name}: same keys and authorities, different bytes"))?;
    }
    for item in proposal.faults() {
        print_line(&format!("{name}: {}: {item}", item.fault.as_deref().unwrap_or_default()))?;
    }
    Ok(())
}

/// Prints a line that may contain key names, which are untrusted text.
fn print_line(line: &str) -> Result<(), Failure> {
    files::show(&(escape::line(line) + "\n")).map(|_| ())
}

/// Prompts on the terminal. An empty answer means no.
fn confirm(name: &str) -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(UpdateError::Unattended { name: name.to_owned() }.into());
    }
    let mut stderr = std::io::stderr();
    write!(stderr, "Trust this and replace {}? [y/N] ", escape::line(name))?;
    stderr.flush()?;
    let mut answer = String::new();
    stdin.read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Updates the tables in the README of the directory, if it has markers for them.
fn write_readme(dir: &Path, sources: &Sources) -> Result<(), Failure> {
    let path = dir.join("README.md");
    let readme = input::read(&path, input::MAX_INPUT).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(readme) = readme else { return Ok(()) };
    let tables = tables(sources, &Anchors::load(&Catalog::only(dir))?)?;
    if let Some(renewed) = renew_readme(&readme, &tables).filter(|renewed| *renewed != readme) {
        write_file(&path, renewed.as_bytes(), true)?;
    }
    Ok(())
}
