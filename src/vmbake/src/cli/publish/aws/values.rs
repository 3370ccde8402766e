//! Parsers of option values: boot modes, parents, permissions, tags.

use vmbake_aws::LaunchPermission;
use vmbake_aws::ami::options::{BootMode, ParentChoice, Verification};

/// Maximum lengths of the key and value of a tag.
const MAX_TAG: (usize, usize) = (128, 256);

/// A boot mode, or the default of the image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Auto(pub(super) Option<BootMode>);

pub(super) fn boot_mode(text: &str) -> Result<Auto, String> {
    match text {
        "auto" => Ok(Auto(None)),
        name => name.parse().map(|mode| Auto(Some(mode))).map_err(|error| format!("{error}, or auto")),
    }
}

pub(super) fn parent(text: &str) -> Result<ParentChoice, &'static str> {
    match text {
        "auto" => Ok(ParentChoice::Auto),
        "none" => Ok(ParentChoice::None),
        id if id.starts_with("snap-") && id[5..].chars().all(|c| c.is_ascii_alphanumeric()) => {
            Ok(ParentChoice::Id(id.to_owned()))
        }
        _ => Err("expected auto, none or a snapshot ID such as snap-0123456789abcdef0"),
    }
}

pub(super) fn verification(text: &str) -> Result<Verification, &'static str> {
    match text {
        "index" => Ok(Verification::Index),
        "sample" => Ok(Verification::Sample),
        "full" => Ok(Verification::Full),
        _ => Err("expected index, sample or full"),
    }
}

pub(super) fn permission(text: &str) -> Result<LaunchPermission, &'static str> {
    let is_account = text.len() == 12 && text.chars().all(|c| c.is_ascii_digit());
    match text {
        "public" => Ok(LaunchPermission::Group),
        _ if is_account => Ok(LaunchPermission::Account(text.to_owned())),
        _ if text.starts_with("arn:") && text.contains(":organization/") => {
            Ok(LaunchPermission::Organization(text.to_owned()))
        }
        _ if text.starts_with("arn:") && text.contains(":ou/") => {
            Ok(LaunchPermission::OrganizationalUnit(text.to_owned()))
        }
        _ => Err("expected an account ID of 12 digits, an ARN of an organization or organizational unit, or public"),
    }
}

pub(super) fn parameter(text: &str) -> Result<String, &'static str> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    match !text.is_empty() && text.len() <= 1011 && text.chars().all(is_allowed) {
        true => Ok(text.to_owned()),
        false => Err("expected only letters, digits and / . _ -"),
    }
}

pub(super) fn tag(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("not KEY=VALUE")?;
    if key.is_empty() || key.chars().count() > MAX_TAG.0 || value.chars().count() > MAX_TAG.1 {
        return Err(format!("a key has 1 to {} characters, a value at most {}", MAX_TAG.0, MAX_TAG.1));
    }
    match ["aws:", "vmbake:"].iter().find(|prefix| key.to_ascii_lowercase().starts_with(**prefix)) {
        Some(prefix) => Err(format!("the prefix {prefix} is reserved")),
        None => Ok((key.to_owned(), value.to_owned())),
    }
}
