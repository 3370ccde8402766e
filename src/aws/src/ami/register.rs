//! Registers the AMI of a snapshot, or finds it by the disk digest, and waits for it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Aws;
use crate::{MachineImage, RegisterImage};

use vmbake_common::progress::emit_message;

use super::error::AmiError;
use super::identity::{DISK_DIGEST, Subject};
use super::options::AmiOptions;

/// Device name of the root volume.
const ROOT_DEVICE: &str = "/dev/xvda";
/// Maximum attempts of a request without a response.
pub(super) const ATTEMPTS: u32 = 3;
/// Maximum time until a new resource is visible.
const VISIBLE: Duration = Duration::from_secs(30);
/// Delays between polls: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// The AMI of a disk in a region, if it was published: the first one if there are several.
pub(super) fn find(aws: &Aws, digest: &str) -> Result<Option<MachineImage>, AmiError> {
    let mut images = aws.images(&[(&format!("tag:{DISK_DIGEST}"), &[digest])])?;
    images.retain(|image| image.state != "deregistered");
    images.sort_by(|a, b| (&a.created, &a.id).cmp(&(&b.created, &b.id)));
    match images.into_iter().next() {
        Some(image) if is_failed(&image.state) => Err(failed(aws, &image)),
        found => Ok(found),
    }
}

/// Refuses a name that another disk uses. Another publisher may take it at any time.
pub(super) fn check_name(aws: &Aws, name: &str, subject: &Subject) -> Result<(), AmiError> {
    let digest = subject.digest.to_string();
    let others = aws.images(&[("name", &[name])])?;
    match others.into_iter().find(|image| image.tags.get(DISK_DIGEST) != Some(&digest)) {
        Some(image) => Err(taken(aws, name, image, subject)),
        None => Ok(()),
    }
}

fn taken(aws: &Aws, name: &str, image: MachineImage, subject: &Subject) -> AmiError {
    AmiError::Taken {
        name: name.to_owned(),
        region: aws.region().to_owned(),
        found: image.tags.get(DISK_DIGEST).cloned(),
        image: image.id,
        expected: Box::new(subject.digest),
    }
}

/// Registers a snapshot. Names are unique, so nothing is registered twice, even after a lost response.
pub(super) fn register(
    aws: &Aws,
    options: &AmiOptions<'_>,
    subject: &Subject,
    snapshot: &str,
) -> Result<MachineImage, AmiError> {
    let digest = subject.digest.to_string();
    let registration = RegisterImage {
        name: &subject.name,
        description: &subject.name,
        architecture: subject.architecture,
        boot_mode: subject.boot_mode.name(),
        tpm: options.tpm.then_some("v2.0"),
        imds_v2: options.imds_v2,
        root_device: ROOT_DEVICE,
        snapshot,
        volume_size: subject.blocks.gib(),
        volume_type: options.volume_type,
        tags: &subject.tags,
    };
    let mut attempt = 1;
    loop {
        if let Some(image) = find(aws, &digest)? {
            return Ok(image);
        }
        let error = match aws.register_image(&registration) {
            Ok(_) => return until_visible(aws, subject),
            Err(error) => error,
        };
        match error.code() {
            Some("InvalidAMIName.Duplicate") => return until_visible(aws, subject),
            _ if error.is_temporary() && attempt < ATTEMPTS => attempt += 1,
            _ => return Err(error.into()),
        }
    }
}

/// The registered AMI, as soon as it is found by its digest. An AMI with that name may be of another disk.
pub(super) fn until_visible(aws: &Aws, subject: &Subject) -> Result<MachineImage, AmiError> {
    let digest = subject.digest.to_string();
    let found = wait(VISIBLE, || find(aws, &digest))?;
    match found {
        Some(image) => Ok(image),
        None => {
            check_name(aws, &subject.name, subject)?;
            let (id, region) = (subject.name.clone(), aws.region().to_owned());
            Err(AmiError::State { id, region, state: "pending".to_owned(), expected: "available", reason: None })
        }
    }
}

/// Waits until an AMI is available.
pub(super) fn until_available(aws: &Aws, image: MachineImage, limit: Duration) -> Result<MachineImage, AmiError> {
    let (id, mut last, mut is_told) = (image.id.clone(), image, false);
    let available = wait(limit, || {
        if is_failed(&last.state) {
            return Err(failed(aws, &last));
        }
        if last.state == "available" {
            return Ok(Some(last.clone()));
        }
        told(&mut is_told, &id, "available");
        if let Some(image) = aws.images(&[("image-id", &[&id])])?.into_iter().next() {
            last = image;
        }
        Ok((last.state == "available").then(|| last.clone()))
    })?;
    available.ok_or_else(|| failed(aws, &last))
}

/// Reports once what is waited for, as it may take long.
fn told(is_told: &mut bool, id: &str, expected: &str) {
    if !std::mem::replace(is_told, true) {
        emit_message(&format!("waiting until {id} is {expected}"));
    }
}

fn is_failed(state: &str) -> bool {
    matches!(state, "failed" | "error" | "invalid" | "disabled")
}

fn failed(aws: &Aws, image: &MachineImage) -> AmiError {
    AmiError::State {
        id: image.id.clone(),
        region: aws.region().to_owned(),
        state: image.state.clone(),
        expected: "available",
        reason: image.reason.clone(),
    }
}

/// Waits until a snapshot is complete.
pub(super) fn until_completed(aws: &Aws, snapshot: &str, limit: Duration) -> Result<(), AmiError> {
    let state = |state: String, reason: Option<String>| AmiError::State {
        id: snapshot.to_owned(),
        region: aws.region().to_owned(),
        state,
        expected: "completed",
        reason,
    };
    let mut is_told = false;
    let completed = wait(limit, || match aws.snapshot(snapshot)? {
        Some(found) if found.state == "completed" => Ok(Some(())),
        Some(found) if found.state == "error" => Err(state(found.state, Some(found.message))),
        _ => {
            told(&mut is_told, snapshot, "completed");
            Ok(None)
        }
    })?;
    completed.ok_or_else(|| state("pending".to_owned(), None))
}

/// Polls until there is a result or the time is up.
pub(super) fn wait<T>(
    limit: Duration,
    mut look: impl FnMut() -> Result<Option<T>, AmiError>,
) -> Result<Option<T>, AmiError> {
    let (start, (mut pause, longest)) = (Instant::now(), PAUSES);
    loop {
        if let Some(found) = look()? {
            return Ok(Some(found));
        }
        if start.elapsed() + pause > limit {
            return Ok(None);
        }
        sleep(pause);
        pause = (pause * 3 / 2).min(longest);
    }
}
