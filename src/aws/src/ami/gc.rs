//! `vmbake publish aws gc`: the machine images of a family enter, those leave that are neither new nor used, with their snapshots.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{Aws, AwsError, MachineImage, Snapshot};

use super::error::AmiError;
use super::identity::{ARCHITECTURE, FAMILY};

/// A machine image or a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Leftover {
    pub id: String,
    /// Name of a machine image, description of a snapshot.
    pub name: String,
    /// Why it stays; none for what goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

/// What stays of a family in a region, and what goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Collection {
    pub region: String,
    /// Machine images, the newest first.
    pub images: Vec<Leftover>,
    /// Complete snapshots, the newest first.
    pub snapshots: Vec<Leftover>,
    /// Snapshots that a publication has begun and not ended. They stay: it may go on.
    pub unfinished: Vec<String>,
}

/// Looks what would go, and changes nothing: all but the `keep` newest machine images of each architecture.
pub fn plan(aws: &Aws, family: &str, keep: usize) -> Result<Collection, AmiError> {
    let tag = format!("tag:{FAMILY}");
    let filters = [(tag.as_str(), &[family][..])];
    let mut images = aws.images(&filters)?;
    images.sort_by(|a, b| (&b.created, &b.id).cmp(&(&a.created, &a.id)));
    let mut newer: BTreeMap<String, usize> = BTreeMap::new();
    let mut collection = Collection { region: aws.region().to_owned(), ..Collection::default() };
    for image in images {
        let count = newer.entry(image.architecture.clone()).or_default();
        *count += 1;
        let kept = if *count <= keep { Some("new".to_owned()) } else { used(aws, &image)? };
        collection.images.push(Leftover { id: image.id, name: image.name, kept });
    }
    let gone: BTreeSet<&str> = collection.images.iter().filter(|image| image.kept.is_none()).map(id).collect();
    let in_use = in_use(aws, &gone)?;
    let mut snapshots = aws.snapshots(&filters)?;
    snapshots.sort_by(|a, b| (&b.started, &b.id).cmp(&(&a.started, &a.id)));
    let newest = newest(&snapshots);
    for snapshot in snapshots {
        if snapshot.state == "pending" {
            collection.unfinished.push(snapshot.id);
            continue;
        }
        let user = in_use.get(&snapshot.id).map(|image| format!("{image} uses it"));
        // It is what the next release begins as.
        let kept = user.or_else(|| newest.contains(&snapshot.id).then(|| "new".to_owned()));
        let kept = match kept {
            None if !aws.snapshot_permissions(&snapshot.id)?.is_empty() => Some("others may use it".to_owned()),
            kept => kept,
        };
        collection.snapshots.push(Leftover {
            name: snapshot.tags.get("Name").cloned().unwrap_or_default(),
            id: snapshot.id,
            kept,
        });
    }
    Ok(collection)
}

/// Removes what a plan says goes. What somebody has begun to use since stays: EC2 refuses it.
pub fn collect(aws: &Aws, collection: &mut Collection) -> Result<(), AmiError> {
    for image in collection.images.iter_mut().filter(|image| image.kept.is_none()) {
        gone(image, aws.deregister_image(&image.id))?;
    }
    for snapshot in collection.snapshots.iter_mut().filter(|snapshot| snapshot.kept.is_none()) {
        gone(snapshot, aws.delete_snapshot(&snapshot.id))?;
    }
    Ok(())
}

/// What is not there any more is as good as removed; what is in use stays.
fn gone(what: &mut Leftover, removed: Result<(), AwsError>) -> Result<(), AmiError> {
    match removed {
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) if error.is_conflict() => {
            what.kept = Some(error.to_string());
            Ok(())
        }
        removed => Ok(removed?),
    }
}

/// Why somebody needs a machine image.
fn used(aws: &Aws, image: &MachineImage) -> Result<Option<String>, AmiError> {
    if image.state == "pending" {
        return Ok(Some("it is not available yet".to_owned()));
    }
    if image.public {
        return Ok(Some("it is public".to_owned()));
    }
    if let Some(who) = aws.launch_permissions(&image.id)?.first() {
        return Ok(Some(format!("{who} may start it")));
    }
    let instances = aws.instances_using(&image.id)?;
    Ok(instances.first().map(|instance| format!("{instance} was started from it")))
}

/// The machine image that uses each snapshot, of all that the account has and that stay.
fn in_use(aws: &Aws, gone: &BTreeSet<&str>) -> Result<BTreeMap<String, String>, AmiError> {
    let images = aws.images(&[])?;
    let stay = images.into_iter().filter(|image| !gone.contains(image.id.as_str()));
    Ok(stay
        .flat_map(|MachineImage { id, snapshots, .. }| {
            snapshots.into_iter().map(move |snapshot| (snapshot, id.clone()))
        })
        .collect())
}

/// The newest complete snapshot of each architecture; they come newest first.
fn newest(snapshots: &[Snapshot]) -> BTreeSet<String> {
    let mut newest: BTreeMap<&str, &str> = BTreeMap::new();
    for snapshot in snapshots.iter().filter(|snapshot| snapshot.state == "completed") {
        let arch = snapshot.tags.get(ARCHITECTURE).map_or("", String::as_str);
        newest.entry(arch).or_insert(&snapshot.id);
    }
    newest.into_values().map(str::to_owned).collect()
}

fn id(leftover: &Leftover) -> &str {
    &leftover.id
}
