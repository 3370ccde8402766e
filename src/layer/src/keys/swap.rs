//! Swap files: path and size in, the unit that activates it out. The merge of layers writes its content.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::findings::Findings;
use crate::settings::{Setting, UNITS};
use crate::{Layer, Schema, validate};

/// Page size in bytes, the same on all machines that Debian has images for.
pub const PAGE: u64 = 4096;

/// Minimum and maximum length in bytes: mkswap needs ten pages, and the kernel counts pages in 32 bits.
const RANGE: std::ops::RangeInclusive<u64> = (1 << 20)..=(1 << 40);

/// Swap file of a machine.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Swap {
    /// Absolute path; `/swapfile` by default.
    #[serde(default = "swapfile")]
    pub path: String,
    /// Size with a unit, such as `512M` or `2G`.
    #[schemars(regex(pattern = "^[0-9]+[MG]$"))]
    pub size: String,
}

fn swapfile() -> String {
    "/swapfile".to_owned()
}

impl Swap {
    /// Length in bytes; `None` if the size is not valid.
    pub fn len_bytes(&self) -> Option<u64> {
        let (number, shift) = match (self.size.strip_suffix('M'), self.size.strip_suffix('G')) {
            (Some(number), _) => (number, 20),
            (None, Some(number)) => (number, 30),
            (None, None) => return None,
        };
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let len = number.parse::<u64>().ok().filter(|_| is_number)?.checked_mul(1 << shift)?;
        RANGE.contains(&len).then_some(len)
    }

    /// Name of the unit: the path with dashes instead of slashes, which needs no escaping (systemd.unit(5)).
    pub(crate) fn unit(&self) -> String {
        format!("{}.swap", self.path.trim_start_matches('/').replace('/', "-"))
    }

    /// The text of the unit.
    fn unit_text(&self) -> String {
        format!("[Unit]\nDescription=Swap file\n\n[Swap]\nWhat={}\n\n[Install]\nWantedBy=swap.target\n", self.path)
    }
}

/// The unit of the swap file.
pub(super) fn files(schema: &Schema) -> Vec<Setting> {
    let unit = |swap: &Swap| Setting::new("/swap".to_owned(), format!("{UNITS}/{}", swap.unit()), swap.unit_text());
    schema.swap.iter().map(unit).collect()
}

pub(super) fn entries(schema: &Schema) -> Vec<(String, String)> {
    schema.swap.iter().map(|swap| (swap.path.clone(), swap.size.clone())).collect()
}

/// Validates `swap`.
pub(super) fn check(found: &mut Findings, layer: &Layer) {
    let schema = &layer.schema;
    let Some(swap) = &schema.swap else { return };
    let path = &swap.path;
    let plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_.".contains(&byte));
    let odd = (!plain).then(|| format!("path {path:?} is invalid: expected letters, digits, `_`, `.` and `/`"));
    let is_taken = layer.files.contains_key(path)
        || schema.symlinks.contains_key(path)
        || schema.directories.contains_key(path)
        || schema.empty.contains(path);
    let taken = is_taken.then(|| format!("{path:?} is also a file, directory or link of the layer"));
    found.value("/swap/path".to_owned(), validate::path(path).or_else(|| validate::visible(path)).or(odd).or(taken));
    let invalid = swap.len_bytes().is_none();
    let size = &swap.size;
    found.value("/swap/size".to_owned(), invalid.then(|| format!("size {size:?} is not between 1M and 1024G")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (size, expected) in [
            ("1M", Some(1 << 20)),
            ("512M", Some(512 << 20)),
            ("1024G", Some(1 << 40)),
            ("0M", None),
            ("1025G", None),
            ("512", None),
            ("+1M", None),
            ("M", None),
            ("1.5G", None),
            ("99999999999999999999G", None),
        ] {
            let swap = Swap { path: swapfile(), size: size.to_owned() };
            assert_eq!(swap.len_bytes(), expected, "{size}");
        }
        assert_eq!(Swap { path: "/var/swap_1".to_owned(), size: String::new() }.unit(), "var-swap_1.swap");
    }
}
