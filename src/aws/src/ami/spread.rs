//! Where a machine image goes once it is there: to other regions, to other accounts, into parameters. Each step looks first, and
//! does only what is missing. Parameters come last, so that none names what cannot be used.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Aws;
use crate::{CopyImage, LaunchPermission, MachineImage};

use super::error::AmiError;
use super::identity::Subject;
use super::register::{ATTEMPTS, check_name, find, until_available, until_visible, wait};
use super::request::PublishRequest;

/// How long a copy may take.
const COPY: Duration = Duration::from_secs(6 * 60 * 60);
/// How long a copy may not be found yet.
const VISIBLE: Duration = Duration::from_secs(60);
/// AWS rounds the time of a deprecation to minutes.
const MINUTE: u64 = 60;

/// A machine image in its region.
pub(super) struct Placed {
    pub(super) aws: Aws,
    pub(super) image: MachineImage,
}

/// Copies a machine image to the regions that lack it, and waits for all of them.
pub(super) fn copies(
    source: &Placed,
    request: &PublishRequest<'_>,
    subject: &Subject,
) -> Result<(Vec<Placed>, usize), AmiError> {
    let (mut placed, mut made) = (Vec::new(), 0);
    for region in request.copies {
        let aws = source.aws.in_region(region);
        let (image, is_new) = copy(source, &aws, subject)?;
        made += usize::from(is_new);
        placed.push(Placed { aws, image });
    }
    let placed = placed.into_iter().map(|Placed { aws, image }| {
        let image = until_available(&aws, image, COPY)?;
        Ok(Placed { aws, image })
    });
    Ok((placed.collect::<Result<_, AmiError>>()?, made))
}

/// The copy in a region, and whether it was made now.
fn copy(source: &Placed, aws: &Aws, subject: &Subject) -> Result<(MachineImage, bool), AmiError> {
    let digest = subject.digest.to_string();
    let copy = CopyImage {
        name: &subject.name,
        description: &subject.name,
        source_region: source.aws.region(),
        source_image: &source.image.id,
        client_token: &subject.digest.hex(),
        kms_key: None,
        encrypted: false,
        tags: &subject.tags,
    };
    let mut attempt = 1;
    let id = loop {
        if let Some(image) = find(aws, &digest)? {
            return Ok((image, attempt > 1));
        }
        check_name(aws, &subject.name, subject)?;
        match aws.copy_image(&copy) {
            Ok(id) => break id,
            Err(error) if error.code() == Some("InvalidAMIName.Duplicate") => {
                return Ok((until_visible(aws, subject)?, false));
            }
            Err(error) if error.is_temporary() && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error.into()),
        }
    };
    let region = aws.region().to_owned();
    let found = wait(VISIBLE, || Ok(aws.images(&[("image-id", &[&id])])?.into_iter().next()))?;
    let image = found.ok_or(AmiError::State {
        id,
        region,
        state: "pending".to_owned(),
        expected: "available",
        reason: None,
    })?;
    Ok((image, true))
}

/// What a machine image and its snapshots still have to get: tags, permissions, the time of its deprecation.
pub(super) fn settle(placed: &Placed, request: &PublishRequest<'_>, subject: &Subject) -> Result<usize, AmiError> {
    let Placed { aws, image } = placed;
    let mut changes = 0;
    // A name stays what it was: another one is of another publication.
    let is_name = |key: &str, value: &str| key == "Name" && value == subject.name && image.name != subject.name;
    let missing = subject.tags.iter().filter(|(key, value)| image.tags.get(key) != Some(value) && !is_name(key, value));
    let missing: Vec<(String, String)> = missing.cloned().collect();
    // The copy's snapshot gets them too: a family is looked for by tags.
    if !missing.is_empty() {
        let resources: Vec<&str> = std::iter::once(&image.id).chain(&image.snapshots).map(String::as_str).collect();
        aws.create_tags(&resources, &missing)?;
        changes += 1;
    }
    // Who needs none of this needs no permission to ask for it.
    if !request.permissions.is_empty() {
        let granted = aws.launch_permissions(&image.id)?;
        let wanted = request.permissions.iter().filter(|to| !granted.iter().any(|found| found == name(to)));
        let wanted: Vec<LaunchPermission> = wanted.cloned().collect();
        if !wanted.is_empty() {
            aws.add_launch_permission(&image.id, &wanted)?;
            changes += 1;
        }
    }
    if let Some(at) = request.deprecate_at {
        let found: Option<jiff::Timestamp> = image.deprecation.as_deref().and_then(|text| text.parse().ok());
        let is_same = found.is_some_and(|found| found.duration_since(at).unsigned_abs().as_secs() < MINUTE);
        if !is_same {
            aws.deprecate(&image.id, &at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())?;
            changes += 1;
        }
    }
    Ok(changes)
}

/// How EC2 lists somebody who may start an image.
fn name(permission: &LaunchPermission) -> &str {
    match permission {
        LaunchPermission::Account(name)
        | LaunchPermission::Organization(name)
        | LaunchPermission::OrganizationalUnit(name) => name,
        LaunchPermission::Group => "all",
    }
}

/// Lets parameters name the machine image of their region.
pub(super) fn parameters(placed: &Placed, names: &[String]) -> Result<usize, AmiError> {
    let Placed { aws, image } = placed;
    let mut changes = 0;
    for name in names {
        let is_set = || Ok((aws.parameter(name)?.as_deref() == Some(&image.id)).then_some(()));
        if is_set()?.is_some() {
            continue;
        }
        aws.put_parameter(name, &image.id)?;
        changes += 1;
        // SSM looks at the machine image afterwards, and says nothing where it does not take it.
        wait(VISIBLE, is_set)?.ok_or_else(|| AmiError::State {
            id: name.clone(),
            region: aws.region().to_owned(),
            state: "as it was".to_owned(),
            expected: "the machine image",
            reason: Some(image.id.clone()),
        })?;
    }
    Ok(changes)
}

/// The machine images of all regions.
pub(super) fn by_region(placed: &[Placed]) -> BTreeMap<String, String> {
    placed.iter().map(|Placed { aws, image }| (aws.region().to_owned(), image.id.clone())).collect()
}
