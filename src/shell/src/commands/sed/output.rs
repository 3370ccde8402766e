//! Output of `sed`: standard output and the files of `w`.

use std::collections::BTreeMap;

/// A text that is written. A last line without newline gets one only if something follows.
#[derive(Debug, Default)]
pub(super) struct Output {
    text: Vec<u8>,
    missing: bool,
    /// The end of lines.
    pub(super) end: u8,
}

impl Output {
    pub(super) fn ending(end: u8) -> Self {
        Self { end, ..Self::default() }
    }

    /// Writes a line, with its end unless the input has none.
    pub(super) fn line(&mut self, line: &[u8], end: Option<u8>) {
        self.text(line);
        self.text.extend(end);
        self.missing = end.is_none();
    }

    /// Writes a text as it is.
    pub(super) fn text(&mut self, text: &[u8]) {
        self.complete();
        self.text.extend_from_slice(text);
    }

    /// Ends a last line that has no end.
    pub(super) fn complete(&mut self) {
        if std::mem::take(&mut self.missing) {
            self.text.push(self.end);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// What was written so far; more may follow.
    pub(super) fn written(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.text)
    }

    /// What was written, which begins anew.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.missing = false;
        std::mem::take(&mut self.text)
    }
}

/// Where a command writes to: standard output, the file that is edited, or files by their names.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    pub(super) edited: Output,
    pub(super) files: BTreeMap<Vec<u8>, Output>,
    /// Whether the last line written by `w /dev/stdout` lacks a newline, which is tracked separately from other output.
    named_missing: bool,
}

impl Outputs {
    /// Writes a line to `/dev/stdout`.
    pub(super) fn named_line(&mut self, line: &[u8], end: Option<u8>) {
        std::mem::swap(&mut self.edited.missing, &mut self.named_missing);
        self.edited.line(line, end);
        std::mem::swap(&mut self.edited.missing, &mut self.named_missing);
    }
}
