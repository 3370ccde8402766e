//! `vmbake publish aws gc`: deletes old, unused AMIs of a family with their snapshots.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Aws, AwsError, MachineImage, Snapshot};
use vmbake_publish::{Collection, Leftover};

use super::error::AmiError;
use super::identity::{ARCHITECTURE, FAMILY};

/// Lists what would be deleted, without changing anything: all but the `keep` newest AMIs of each architecture.
pub(super) fn list(aws: &Aws, family: &str, keep: usize) -> Result<Collection, AmiError> {
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
        let user = in_use.get(&snapshot.id).map(|image| format!("in use by {image}"));
        // It is the parent of the next release.
        let kept = user.or_else(|| newest.contains(&snapshot.id).then(|| "new".to_owned()));
        let kept = match kept {
            None if !aws.snapshot_permissions(&snapshot.id)?.is_empty() => {
                Some("shared with other accounts".to_owned())
            }
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

/// Deletes what a list contains. EC2 refuses to delete resources that have come into use since.
pub(super) fn remove(aws: &Aws, collection: &mut Collection) -> Result<(), AmiError> {
    for image in collection.images.iter_mut().filter(|image| image.kept.is_none()) {
        gone(image, aws.deregister_image(&image.id))?;
    }
    for snapshot in collection.snapshots.iter_mut().filter(|snapshot| snapshot.kept.is_none()) {
        gone(snapshot, aws.delete_snapshot(&snapshot.id))?;
    }
    Ok(())
}

/// A missing resource counts as deleted; one in use is kept.
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

/// Why an AMI is in use.
fn used(aws: &Aws, image: &MachineImage) -> Result<Option<String>, AmiError> {
    if image.state == "pending" {
        return Ok(Some("not available yet".to_owned()));
    }
    if image.public {
        return Ok(Some("public".to_owned()));
    }
    if let Some(who) = aws.launch_permissions(&image.id)?.first() {
        return Ok(Some(format!("shared with {who}")));
    }
    let instances = aws.instances_using(&image.id)?;
    Ok(instances.first().map(|instance| format!("in use by instance {instance}")))
}

/// The AMI that uses each snapshot, among all of the account that are kept.
fn in_use(aws: &Aws, gone: &BTreeSet<&str>) -> Result<BTreeMap<String, String>, AmiError> {
    let images = aws.images(&[])?;
    let stay = images.into_iter().filter(|image| !gone.contains(image.id.as_str()));
    Ok(stay
        .flat_map(|MachineImage { id, snapshots, .. }| {
            snapshots.into_iter().map(move |snapshot| (snapshot, id.clone()))
        })
        .collect())
}

/// The newest complete snapshot of each architecture; the input is sorted newest first.
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
