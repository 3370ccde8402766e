//! A list of names in one allocation: a kernel has hundreds of thousands of symbols.

/// Names, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Each name is followed by NUL.
    bytes: Vec<u8>,
}

impl Names {
    /// Appends a name, which must not contain NUL.
    pub fn push(&mut self, name: &[u8]) {
        self.bytes.extend_from_slice(name);
        self.bytes.push(0);
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.split_inclusive(|byte| *byte == 0).filter_map(|name| name.split_last().map(|(_, name)| name))
    }
}
