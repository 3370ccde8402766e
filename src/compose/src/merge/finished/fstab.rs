//! File systems of fstab(5): the base's lines in, an error out if a layer's file leaves one of them unmounted.
//!
//! Without a line for `/`, systemd does not remount it for writing, and Debian's kernel arguments mount it read-only.

use crate::merge::MergeError;
use crate::merge::place::{FSTAB, Mount, Target, mounts_of};
pub use vmbake_layer::Layer;

const UNITS: &str = "/etc/systemd/system";

const HINT: &str = "add the line of the base; a mount point other than / may have a unit of `units` instead, or be masked there, such as \
     \"mask\": [\"boot-efi.mount\"]";

/// Fails if the base mounts a file system that the image does not mount.
pub(super) fn check(target: &Target, layers: &[Layer]) -> Result<(), MergeError> {
    let removed = |layer: &&Layer| layer.schema.remove.iter().any(|path| path == FSTAB);
    let layer = match target.layer_at(FSTAB) {
        Some(layer) => layer,
        None if target.tree.resolve(FSTAB.as_bytes()).is_ok() => return Ok(()),
        None => layers.iter().rev().find(removed).map_or("", |layer| layer.schema.name.as_str()),
    };
    let found = mounts_of(&target.text_or_empty(FSTAB)?);
    let is_there = |mount: &&Mount| {
        let has_unit =
            || mount.point != "/" && target.tree.find(unit(&mount.point).as_bytes()).is_ok_and(|id| id.is_some());
        found.iter().any(|other| other.point == mount.point) || has_unit()
    };
    let missing = target.mounts().iter().filter(|mount| mount.is_automatic).find(|mount| !is_there(mount));
    let Some(Mount { point, line, .. }) = missing else { return Ok(()) };
    let what = format!("does not mount {point}: expected a line such as {line:?} of the base, found none");
    Err(MergeError::Unread { path: FSTAB.to_owned(), layer: layer.to_owned(), what, hint: HINT })
}

/// Where the mount unit of a path is, by the rules of systemd-escape(1).
fn unit(point: &str) -> String {
    let escaped = point.trim_start_matches('/').bytes().enumerate().map(|(at, byte)| match byte {
        b'/' => "-".to_owned(),
        b'.' if at == 0 => "\\x2e".to_owned(),
        byte if byte.is_ascii_alphanumeric() || b":_.".contains(&byte) => char::from(byte).to_string(),
        byte => format!("\\x{byte:02x}"),
    });
    format!("{UNITS}/{}.mount", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::unit;

    #[test]
    fn units_of_mount_points() {
        assert_eq!(unit("/boot/efi"), "/etc/systemd/system/boot-efi.mount");
        assert_eq!(unit("/srv/my-data"), "/etc/systemd/system/srv-my\\x2ddata.mount");
    }
}
