//! `vmbake plan`: what a bake would do, as text or as a CI matrix.

use serde_json::{Value, json};

use super::{BakeArgs, Failure, Outcome, bake, files};
use vmbake_bake::plan::{Missing, PlannedBake, PlannedState, plan};
use vmbake_common::progress::{counted, human_bytes};

pub(super) const EXAMPLES: &str = "\
Examples:
  vmbake plan node knd knc --arch amd64,arm64     # one line per image
  vmbake plan node knd knc --arch amd64,arm64 --json > plan.json   # with a matrix for GitHub Actions and GitLab";

pub(super) fn run(args: BakeArgs) -> Result<Outcome, Failure> {
    let json = args.json;
    let (requests, _compositions) = bake::requests(args, false)?;
    let images = requests.iter().map(plan).collect::<Result<Vec<_>, _>>()?;
    if json {
        let jobs = images.iter().filter(|image| image.state == PlannedState::Bake);
        // `strategy.matrix` of GitHub Actions, and `parallel.matrix` of GitLab, where each variable has a list of values.
        let [github, gitlab]: [Vec<Value>; 2] = [
            jobs.clone().map(|image| json!({"kind": image.kind, "os": image.os, "arch": image.arch})).collect(),
            jobs.map(|image| json!({"KIND": [image.kind], "OS": [image.os], "ARCH": [image.arch]})).collect(),
        ];
        files::print_json(&json!({"images": images, "github": {"include": github}, "gitlab": gitlab}))?;
    } else {
        let width = images.iter().map(|image| image.name.len()).max().unwrap_or_default();
        files::show(&images.iter().map(|image| line(image, width)).collect::<String>())?;
    }
    Ok(Outcome::Clean)
}

fn line(image: &PlannedBake, width: usize) -> String {
    let PlannedBake { name, state, fetch: Missing { files, bytes, container_images }, .. } = image;
    let mut missing = Vec::new();
    if *files > 0 {
        missing.push(format!("{}, {}", counted(*files as u64, "file"), human_bytes(*bytes)));
    }
    if *container_images > 0 {
        missing.push(counted(*container_images as u64, "container image"));
    }
    match (state, missing.join("; ")) {
        (PlannedState::Unchanged, _) => format!("{name:width$}  unchanged\n"),
        (PlannedState::Bake, missing) if missing.is_empty() => format!("{name:width$}  bake\n"),
        (PlannedState::Bake, missing) => format!("{name:width$}  bake       fetch {missing}\n"),
    }
}
