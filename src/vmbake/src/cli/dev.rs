//! `vmbake dev`: layers on a running machine.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};

use super::files::{print_json, show};
use super::{Failure, Outcome, catalog, error_report};
use crate::sync::{Destination, MachineState, NewImage, SyncAction, SyncReport, SyncRequest, sync};
use vmbake_common::catalog::{Catalog, Root};
use vmbake_common::escape;
use vmbake_layer::Layers;

/// Polling interval of --watch.
const INTERVAL: Duration = Duration::from_millis(500);

const EXAMPLES: &str = "\
Examples:
  vmbake dev sync root@192.0.2.10 --layers layers --dry-run
  vmbake dev sync dist/knd.debian-13.amd64.qcow2 --layers layers        # the machine that `vmbake boot` runs
  vmbake dev sync debian@web:2222 --layers mine --watch -- -i ~/.ssh/dev

Exit status: 0 if the machine is up to date, 1 on failure or if a change requires a new image.";

#[derive(Debug, Subcommand)]
pub(super) enum DevCommand {
    /// Sync changed layer files to a running machine over SSH, then reconfigure it and restart services
    #[command(after_help = EXAMPLES)]
    Sync(SyncArgs),
}

#[derive(Debug, Args)]
pub(super) struct SyncArgs {
    /// Machine: [user@]host[:port], an alias of the SSH configuration, or the image of a running `vmbake boot` that forwards to port 22
    #[arg(value_name = "HOST|IMAGE")]
    target: String,
    #[command(flatten)]
    layers: catalog::LayersArgs,
    /// Fail if the machine is of another kind
    #[arg(long)]
    kind: Option<String>,
    /// Print the changes without applying them
    #[arg(long)]
    dry_run: bool,
    /// Watch the layers, and sync on every change; Ctrl-C stops
    #[arg(long)]
    watch: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    catalog: catalog::CatalogArgs,
    /// SSH options, such as -i KEY or -o Name=value; must not contradict the address
    #[arg(last = true, value_name = "SSH OPTIONS")]
    ssh: Vec<OsString>,
}

pub(super) fn run(command: DevCommand) -> Result<Outcome, Failure> {
    let DevCommand::Sync(args) = command;
    let catalog = args.layers.catalog(&args.catalog);
    if !args.watch {
        return once(&args, &catalog);
    }
    let mut seen = None;
    loop {
        let now = fingerprint(&catalog);
        if seen.as_ref() != Some(&now) {
            seen = Some(now);
            // The next change can fix the error.
            if let Err(error) = once(&args, &catalog) {
                error_report::print(&*error);
            }
        }
        std::thread::sleep(INTERVAL);
    }
}

fn once(args: &SyncArgs, catalog: &Catalog) -> Result<Outcome, Failure> {
    let layers: Layers = args.layers.load(&args.catalog)?;
    let to = Destination::find(&args.target, &args.ssh)?;
    let own = own(catalog);
    let report = sync(&SyncRequest { to, layers, own, kind: args.kind.clone(), dry_run: args.dry_run })?;
    if args.json {
        print_json(&report)?;
    } else {
        show(&text(&report, args.dry_run))?;
    }
    Ok(if report.new_image.is_empty() { Outcome::Clean } else { Outcome::Findings })
}

/// Layers of the directories, including those identical to built-in ones.
fn own(catalog: &Catalog) -> BTreeSet<String> {
    let entries = folders(catalog).flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let layers = entries.filter(|entry| entry.path().join("layer.json").is_file());
    layers.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn folders(catalog: &Catalog) -> impl Iterator<Item = &PathBuf> {
    catalog.roots().iter().filter_map(|root| match root {
        Root::Path(folder) => Some(folder),
        Root::BuiltIn => None,
    })
}

/// A fingerprint of the layer files: paths with times, lengths and modes.
fn fingerprint(catalog: &Catalog) -> BTreeSet<(PathBuf, Option<SystemTime>, u64, u32)> {
    let mut found = BTreeSet::new();
    for folder in folders(catalog) {
        collect(folder, &mut found);
        // A layer can be a link to a directory. Links inside a layer are refused.
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().is_symlink()).for_each(|entry| collect(&entry.path(), &mut found));
    }
    found
}

fn collect(folder: &Path, found: &mut BTreeSet<(PathBuf, Option<SystemTime>, u64, u32)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        if meta.is_dir() {
            collect(&entry.path(), found);
        }
        let mode = std::os::unix::fs::MetadataExt::mode(&meta);
        found.insert((entry.path(), meta.modified().ok(), meta.len(), mode));
    }
}

fn text(report: &SyncReport, dry_run: bool) -> String {
    let SyncReport { to, hostname, image, layers, actions, left, new_image, unknown, unrelated, interrupted, machine } =
        report;
    let mut text = String::new();
    let mut line = |what: &str, detail: String| text.push_str(&format!("{what:>9}  {}\n", escape::line(detail)));
    line("machine", format!("{to}: {hostname}, {image}"));
    if !layers.is_empty() {
        line("layers", layers.join(", "));
    }
    actions.iter().for_each(|action| {
        let (what, detail) = described(action);
        line(what, detail);
    });
    left.iter().for_each(|note| line("left", format!("{}: {}", note.path, note.note)));
    let about = |NewImage { layer, what, why }: &NewImage| format!("layer {layer}: {what}: {why}");
    unknown.iter().for_each(|one| {
        line("note", format!("{}: cannot be compared; bake a new image after changing it", about(one)))
    });
    if !unrelated.is_empty() {
        let note = "the kind does not require them, so they are not sent";
        line("note", format!("layers {}: {note}", unrelated.join(", ")));
    }
    new_image.iter().for_each(|one| line("needs a new image", about(one)));
    match machine {
        Some(MachineState::Configured) => line("done", "configured and restarted".to_owned()),
        Some(MachineState::Waiting) => line("done", "sent; the machine waits for user data".to_owned()),
        None if dry_run && *interrupted => line(
            "dry run",
            "nothing was changed; an earlier sync was interrupted: run without --dry-run to configure the machine and restart its services"
                .to_owned(),
        ),
        None if dry_run && !actions.is_empty() => line("dry run", "nothing was changed".to_owned()),
        None => line("done", "nothing to send".to_owned()),
    }
    text
}

fn described(action: &SyncAction) -> (&'static str, String) {
    match action {
        SyncAction::Directory { path, ownership } => {
            ("directory", format!("{path} ({:04o} {}:{})", ownership.mode, ownership.owner, ownership.group))
        }
        SyncAction::Write { path, ownership, layer, .. } => {
            ("write", format!("{path} ({:04o} {}:{}), layer {layer}", ownership.mode, ownership.owner, ownership.group))
        }
        SyncAction::Link { path, target, layer } => ("link", format!("{path} -> {target}, layer {layer}")),
        SyncAction::Remove { path, layer, .. } => ("remove", format!("{path}, layer {layer}")),
        SyncAction::RemoveDirectory { path } => ("remove", format!("{path}/")),
        SyncAction::Unmask { unit } => ("unmask", unit.clone()),
        SyncAction::Start { unit } => ("start", unit.clone()),
        SyncAction::Enable { unit } => ("enable", unit.clone()),
        SyncAction::Disable { unit } => ("disable", unit.clone()),
        SyncAction::Mask { unit } => ("mask", unit.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_behind_a_link_to_a_layer_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let [layers, web] = ["layers", "web"].map(|name| dir.path().join(name));
        for folder in [&layers, &web] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(web.join("layer.json"), "{}").unwrap();
        std::os::unix::fs::symlink(&web, layers.join("web")).unwrap();
        let catalog = Catalog::only(&layers);
        let before = fingerprint(&catalog);
        assert_eq!(fingerprint(&catalog), before);
        fs::write(web.join("layer.json"), "{ }").unwrap();
        assert_ne!(fingerprint(&catalog), before);
    }

    #[test]
    fn a_dry_run_says_what_a_sync_would_do() {
        let action = SyncAction::Enable { unit: "a.service".to_owned() };
        for (actions, interrupted, dry_run, expected) in [
            (vec![], false, true, "done  nothing to send"),
            (vec![action.clone()], false, true, "dry run  nothing was changed"),
            (vec![], true, true, "dry run  nothing was changed; an earlier sync was interrupted"),
            (vec![action], true, true, "dry run  nothing was changed; an earlier sync was interrupted"),
            (vec![], false, false, "done  nothing to send"),
        ] {
            let report = SyncReport {
                to: "web".to_owned(),
                hostname: "web".to_owned(),
                image: "knd".to_owned(),
                layers: Vec::new(),
                actions,
                left: Vec::new(),
                new_image: Vec::new(),
                unknown: Vec::new(),
                unrelated: Vec::new(),
                interrupted,
                machine: None,
            };
            let text = text(&report, dry_run);
            assert!(text.lines().last().is_some_and(|line| line.trim_start().starts_with(expected)), "{text}");
        }
    }
}
