//! `vmbake bake`: turns arguments into requests, and results into text or JSON.

use super::bundle::selection::Reader;
use super::pinned::Pinned;
use super::{BakeArgs, Failure, Outcome, files, threads};
use vmbake_bake::{BakeRequest, BakedFile, bake_all, source_date_epoch};
use vmbake_bundle::compose::Composition;
use vmbake_common::escape;
use vmbake_common::progress::{Event, Progress};
use vmbake_disk::image::Format;
use vmbake_manifest::{Additions, Target};

pub(super) const EXAMPLES: &str = "\
Examples:
  vmbake bake node                                # with the base image that the manifest pins
  vmbake bake node --base debian-13-genericcloud-amd64.qcow2 --size 8G
  vmbake bake knc knd --arch amd64,arm64 --offline --out images --force
  vmbake bake node --layers layers --format qcow2 # with custom layers
  vmbake bake node --format tar.zst,oci           # the root file system as an archive and as a container image
  vmbake bake node --with ghcr.io/acme/agent:1.0  # with a component of another publisher
  vmbake bake node --builder-id https://ci.example.org/images   # builder ID in the provenance
  vmbake bake node --json --progress json > baked.json   # result and progress as JSON";

pub(super) fn run(args: BakeArgs) -> Result<Outcome, Failure> {
    let json = args.json;
    // The directories of bundle layers must exist until the end.
    let (requests, compositions) = requests(args, true)?;
    let mut compositions = compositions.iter();
    let store = requests.first().map(|request| &request.store);
    if let Some((store, exposed)) = store.and_then(|store| Some((store, store.insecure_permissions()?))) {
        let (path, note) = (store.root().to_owned(), format!("caches of earlier bakes are not used: {exposed}"));
        Progress::new(json).emit(Event::Note { path: Some(path), note });
    }
    // Nothing is removed from a read-only store, so no lock is needed.
    let _shared = store.and_then(|store| store.share().ok());
    bake_all::<Failure>(&requests, json, |baked| {
        if let Some(Some(composition)) = compositions.next() {
            composition.save_lock()?;
        }
        if json {
            files::print_json(&baked)?;
        } else {
            let line =
                |output: &BakedFile| escape::line(format!("{}  {}", output.checksum, output.path.display())) + "\n";
            files::show(&baked.outputs.iter().map(line).collect::<String>())?;
        }
        Ok(())
    })?;
    Ok(Outcome::Clean)
}

/// Bake requests of the arguments, one per image, with the bundles of each.
pub(super) fn requests(args: BakeArgs, is_bake: bool) -> Result<(Vec<BakeRequest>, Vec<Option<Composition>>), Failure> {
    if args.base.is_some() && args.pinned.has_arches() {
        return Err("--base needs a single architecture: add --arch".into());
    }
    let sources = args.network.sources(&args.catalog)?;
    let pinned = args.pinned.each(&sources, &args.layers.catalog(&args.catalog))?;
    let client = if args.offline { None } else { Some(args.network.client(&sources)?) };
    let mut formats = args.format;
    formats.sort_unstable();
    formats.dedup();
    if args.compression.is_some() && !formats.contains(&Format::Qcow2.into()) {
        return Err("--compression requires --format qcow2".into());
    }
    let store = args.network.store()?;
    let store = if args.no_cache { store.without_caches() } else { store };
    let epoch = source_date_epoch()?;
    let threads = threads(args.jobs)?;
    let (layers, anchors) = (args.layers.catalog(&args.catalog), args.trust.load(&args.catalog)?);
    let request = |Pinned { target: Target { kind, os, arch }, manifest }| BakeRequest {
        kind,
        os,
        arch,
        manifest,
        base: args.base.clone(),
        partition: args.partition,
        layers: layers.clone(),
        more: Additions::default(),
        store: store.clone(),
        sources: sources.clone(),
        anchors: anchors.clone(),
        client: client.clone(),
        size: args.size,
        epoch,
        formats: formats.clone(),
        compression: args.compression.map(Into::into).unwrap_or_default(),
        out: args.out.clone(),
        force: args.force,
        builder: args.builder_id.clone().unwrap_or_default(),
        threads,
    };
    let reader = Reader { network: &args.network, layers: &layers, anchors: &anchors, is_offline: args.offline };
    let (mut requests, mut compositions) = (Vec::new(), Vec::<Option<Composition>>::new());
    for pinned in pinned {
        let (target, manifest) = (pinned.target.clone(), pinned.manifest.clone());
        let mut request = request(pinned);
        let before = compositions.iter().rev().flatten().next();
        let composition = args.with.compose(&target, &manifest, before, &reader)?;
        if let Some(composition) = &composition {
            composition.add_to(&mut request, &args.network.sources_catalog(&args.catalog))?;
            if is_bake {
                composition.fetch(&target, &store)?;
            }
        }
        compositions.push(composition);
        requests.push(request);
    }
    Ok((requests, compositions))
}
