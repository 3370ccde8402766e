//! Distributes an AMI: to other regions, other accounts, and SSM parameters. Each step does only what is missing.
//! Parameters come last, so that none refers to an unusable AMI.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Aws;
use crate::{CopyImage, LaunchPermission, MachineImage};

use super::error::AmiError;
use super::identity::Subject;
use super::options::AmiOptions;
use super::register::{ATTEMPTS, check_name, find, until_available, until_visible, wait};

/// Maximum time of a copy.
const COPY: Duration = Duration::from_secs(6 * 60 * 60);
/// Maximum time until a copy is visible.
const VISIBLE: Duration = Duration::from_secs(60);
/// AWS rounds the time of a deprecation to minutes.
const MINUTE: u64 = 60;

/// An AMI in its region.
pub(super) struct RegionalImage {
    pub(super) aws: Aws,
    pub(super) image: MachineImage,
}

/// Copies an AMI to the regions that lack it, and waits for all copies.
pub(super) fn copies(
    source: &RegionalImage,
    options: &AmiOptions<'_>,
    subject: &Subject,
) -> Result<(Vec<RegionalImage>, usize), AmiError> {
    let (mut images, mut made) = (Vec::new(), 0);
    for region in options.copies {
        let aws = source.aws.in_region(region);
        let (image, is_new) = copy(source, &aws, subject)?;
        made += usize::from(is_new);
        images.push(RegionalImage { aws, image });
    }
    let images = images.into_iter().map(|RegionalImage { aws, image }| {
        let image = until_available(&aws, image, COPY)?;
        Ok(RegionalImage { aws, image })
    });
    Ok((images.collect::<Result<_, AmiError>>()?, made))
}

/// The copy in a region, and whether it is new.
fn copy(source: &RegionalImage, aws: &Aws, subject: &Subject) -> Result<(MachineImage, bool), AmiError> {
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

/// Applies missing tags, permissions and deprecation to an AMI and its snapshots.
pub(super) fn apply_attributes(
    placed: &RegionalImage,
    options: &AmiOptions<'_>,
    subject: &Subject,
) -> Result<usize, AmiError> {
    let RegionalImage { aws, image } = placed;
    let mut changes = 0;
    // A different name tag belongs to another publication and is kept.
    let is_name = |key: &str, value: &str| key == "Name" && value == subject.name && image.name != subject.name;
    let missing = subject.tags.iter().filter(|(key, value)| image.tags.get(key) != Some(value) && !is_name(key, value));
    let missing: Vec<(String, String)> = missing.cloned().collect();
    // The snapshot of a copy gets them, too: a family is found by its tags.
    if !missing.is_empty() {
        let resources: Vec<&str> = std::iter::once(&image.id).chain(&image.snapshots).map(String::as_str).collect();
        aws.create_tags(&resources, &missing)?;
        changes += 1;
    }
    // The permission to list permissions is required only if they are used.
    if !options.permissions.is_empty() {
        let granted = aws.launch_permissions(&image.id)?;
        let wanted = options.permissions.iter().filter(|to| !granted.iter().any(|found| found == name(to)));
        let wanted: Vec<LaunchPermission> = wanted.cloned().collect();
        if !wanted.is_empty() {
            aws.add_launch_permission(&image.id, &wanted)?;
            changes += 1;
        }
    }
    if let Some(at) = options.deprecate_at {
        let found: Option<jiff::Timestamp> = image.deprecation.as_deref().and_then(|text| text.parse().ok());
        let is_same = found.is_some_and(|found| found.duration_since(at).unsigned_abs().as_secs() < MINUTE);
        if !is_same {
            aws.deprecate(&image.id, &at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())?;
            changes += 1;
        }
    }
    Ok(changes)
}

/// How EC2 lists a permission.
fn name(permission: &LaunchPermission) -> &str {
    match permission {
        LaunchPermission::Account(name)
        | LaunchPermission::Organization(name)
        | LaunchPermission::OrganizationalUnit(name) => name,
        LaunchPermission::Group => "all",
    }
}

/// Sets SSM parameters to the AMI of their region.
pub(super) fn parameters(target: &RegionalImage, names: &[String]) -> Result<usize, AmiError> {
    let RegionalImage { aws, image } = target;
    let mut changes = 0;
    for name in names {
        let is_set = || Ok((aws.parameter(name)?.as_deref() == Some(&image.id)).then_some(()));
        if is_set()?.is_some() {
            continue;
        }
        aws.put_parameter(name, &image.id)?;
        changes += 1;
        // SSM validates the AMI asynchronously, and does not report a rejection.
        wait(VISIBLE, is_set)?.ok_or_else(|| AmiError::State {
            id: name.clone(),
            region: aws.region().to_owned(),
            state: "unchanged".to_owned(),
            expected: "the AMI",
            reason: Some(image.id.clone()),
        })?;
    }
    Ok(changes)
}

/// The AMIs of all regions.
pub(super) fn by_region(images: &[RegionalImage]) -> BTreeMap<String, String> {
    images.iter().map(|RegionalImage { aws, image }| (aws.region().to_owned(), image.id.clone())).collect()
}
