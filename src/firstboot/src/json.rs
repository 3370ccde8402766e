//! JSON files below the root: a path in, the object in the file out.

use serde_json::Value;

use crate::error::Error;
use crate::root::Root;

/// Maximum length of a record or manifest, in bytes; a real manifest has some 20 KB.
const MAX_BYTES: u64 = 1 << 20;

/// The JSON object in a file, or `None` if it is missing.
pub fn object(root: &Root, path: &str) -> Result<Option<Value>, Error> {
    let Some(bytes) = root.read(path, MAX_BYTES)? else { return Ok(None) };
    let corrupt = |expected, found| Error::Corrupt { path: root.shown(path), expected, found };
    let text = std::str::from_utf8(&bytes).map_err(|error| corrupt("UTF-8", error.to_string()))?;
    let value: Value = serde_json::from_str(text).map_err(|error| corrupt("JSON", error.to_string()))?;
    match value.is_object() {
        true => Ok(Some(value)),
        false => Err(corrupt("a JSON object", "another type of JSON value".into())),
    }
}
