//! Names and ids in `/etc/passwd` and `/etc/group` of the tree.

use crate::files::Files;

pub(crate) const PASSWD: &[u8] = b"/etc/passwd";
pub(crate) const GROUP: &[u8] = b"/etc/group";

/// Larger account files are not read.
const MAX_FILE: usize = 4 << 20;

/// The id that belongs to a name.
pub(crate) fn id(files: &dyn Files, file: &[u8], name: &[u8]) -> Option<u32> {
    find(files, file, |fields| (fields.first()? == &name).then_some(())).map(|(_, id)| id)
}

/// The name that belongs to an id.
pub(crate) fn name(files: &dyn Files, file: &[u8], id: u32) -> Option<Vec<u8>> {
    find(files, file, |fields| (number(fields.get(2)?)? == id).then_some(())).map(|(name, _)| name)
}

/// A field of a user's line in `/etc/passwd`.
pub(crate) fn user_field(files: &dyn Files, name: &[u8], field: usize) -> Option<Vec<u8>> {
    let text = files.read(PASSWD, MAX_FILE).ok()?;
    let fields = text.split(|byte| *byte == b'\n').map(|line| line.split(|byte| *byte == b':').collect::<Vec<_>>());
    fields.into_iter().find(|fields| fields.first() == Some(&name)).and_then(|fields| Some(fields.get(field)?.to_vec()))
}

/// A decimal number.
pub(crate) fn number(text: &[u8]) -> Option<u32> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn find(files: &dyn Files, file: &[u8], wanted: impl Fn(&[&[u8]]) -> Option<()>) -> Option<(Vec<u8>, u32)> {
    let text = files.read(file, MAX_FILE).ok()?;
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b':').collect();
        wanted(&fields)?;
        Some((fields.first()?.to_vec(), number(fields.get(2)?)?))
    })
}
