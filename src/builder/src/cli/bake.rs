//! `vmbake bake`: arguments to a request, and its result to text or JSON.

use super::{BakeArgs, Failure, Format, Outcome};
use crate::bake::{Request, bake};
use crate::progress::Progress;

pub(super) fn run(args: BakeArgs) -> Result<Outcome, Failure> {
    let sources = args.network.sources()?;
    let client = if args.offline { None } else { Some(args.network.client(&sources)?) };
    let mut formats = args.format;
    formats.sort_unstable();
    formats.dedup();
    let request = Request {
        manifest: args.pinned.path(),
        kind: args.pinned.kind,
        os: args.pinned.os,
        arch: args.pinned.arch,
        base: args.base,
        layers: args.layers,
        store: args.network.store()?,
        sources,
        client,
        size: args.size,
        formats: formats.into_iter().map(Into::into).collect(),
        out: args.out,
        force: args.force,
        threads: match args.jobs {
            Some(jobs) => jobs,
            None => std::thread::available_parallelism()?,
        },
    };
    // A store that cannot be written to has nobody who would remove anything from it either.
    let _shared = request.store.share().ok();
    let baked = bake(&request, &Progress::new(args.json))?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&baked)?);
    } else {
        baked.outputs.iter().for_each(|output| println!("{}  {}", output.digest, output.path.display()));
    }
    Ok(Outcome::Clean)
}

impl From<Format> for vmbake_disk::image::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Raw => Self::Raw,
            Format::Qcow2 => Self::Qcow2,
        }
    }
}
