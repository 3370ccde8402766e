//! The text of a `#cloud-config`: a host name, files and keys in, YAML out.
//!
//! A content is a literal block where its text is plain, so that a person can read it; else a double-quoted scalar with escapes.
//! Either way the document is ASCII without tabs, which YAML 1.1 and 1.2 read alike: the line breaks that only one of them knows
//! (U+0085, U+2028, U+2029) are escaped as all other characters are.

/// Purpose of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Settings, without the certificates.
    Settings,
    Nonce,
    /// The certificates.
    Authority,
    /// Overhead.
    Frame,
}

const INDENT: &str = "    ";

/// Builder of a document.
#[derive(Default)]
pub(super) struct Document {
    text: String,
    parts: Vec<(Part, usize)>,
    has_files: bool,
}

impl Document {
    /// Sets the host name. cloud-init uses the part before the first dot, unless it is configured to prefer the FQDN.
    pub(super) fn host_name(&mut self, name: &str) {
        self.host_name_scalar(&format!("\"{}\"", escaped(name)), name.contains('.'));
    }

    /// The same for a YAML scalar.
    pub(super) fn host_name_scalar(&mut self, scalar: &str, has_dots: bool) {
        self.push(Part::Frame, &format!("hostname: {scalar}\n"));
        if has_dots {
            self.push(Part::Frame, "prefer_fqdn_over_hostname: true\n");
        }
    }

    /// Adds a file that only root can read, from concatenated texts.
    pub(super) fn file(&mut self, path: &str, texts: &[(Part, String)]) {
        self.begin_file(path);
        let whole: String = texts.iter().map(|(_, text)| text.as_str()).collect();
        if is_plain(&whole) {
            self.push(Part::Frame, if whole.ends_with('\n') { "|\n" } else { "|-\n" });
            for (part, text) in texts {
                let lines = text.lines().map(|line| match line {
                    "" => "\n".to_owned(),
                    _ => format!("{INDENT}{line}\n"),
                });
                self.push(*part, &lines.collect::<String>());
            }
        } else {
            self.push(Part::Frame, "\"");
            texts.iter().for_each(|(part, text)| self.push(*part, &escaped(text)));
            self.push(Part::Frame, "\"\n");
        }
    }

    /// The same for texts that form a YAML scalar.
    pub(super) fn scalar_file(&mut self, path: &str, texts: &[(Part, String)]) {
        self.begin_file(path);
        texts.iter().for_each(|(part, text)| self.push(*part, text));
        self.push(Part::Frame, "\n");
    }

    fn begin_file(&mut self, path: &str) {
        if !self.has_files {
            self.push(Part::Frame, "write_files:\n");
            self.has_files = true;
        }
        self.push(Part::Frame, &format!("- path: \"{}\"\n  permissions: \"0600\"\n  content: ", escaped(path)));
    }

    /// Adds authorized keys of cloud-init's default user.
    pub(super) fn login(&mut self, keys: &[String]) {
        if !keys.is_empty() {
            self.push(Part::Frame, "ssh_authorized_keys:\n");
            keys.iter().for_each(|key| self.push(Part::Settings, &format!("- \"{}\"\n", escaped(key))));
        }
    }

    /// The whole text, and the purposes of its bytes.
    pub(super) fn finish(mut self) -> (String, Vec<(Part, usize)>) {
        if self.text.is_empty() {
            self.push(Part::Frame, "{}\n");
        }
        let body = std::mem::take(&mut self.text);
        self.push(Part::Frame, "#cloud-config\n");
        (self.text + &body, self.parts)
    }

    /// The whole text as a template, with a definition after its first line.
    pub(super) fn finish_template(self, definition: &str) -> String {
        self.finish().0.replacen('\n', definition, 1)
    }

    fn push(&mut self, part: Part, text: &str) {
        self.text.push_str(text);
        self.parts.push((part, text.len()));
    }
}

/// Whether a literal block can represent this text exactly.
fn is_plain(text: &str) -> bool {
    let printable = |byte: u8| byte == b' ' || byte == b'\n' || byte.is_ascii_graphic();
    // The first line sets the indentation, and only one of several trailing line breaks would remain.
    text.bytes().all(printable)
        && !text.starts_with([' ', '\n'])
        && !text.is_empty()
        && !text.ends_with("\n\n")
        && text.lines().all(|line| line.is_empty() || !line.trim_start().is_empty())
}

/// Escapes text for a double-quoted scalar.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' => out.push_str("\\n"),
            ' ' => out.push(' '),
            _ if character.is_ascii_graphic() => out.push(character),
            _ if u32::from(character) <= 0xffff => out.push_str(&format!("\\u{:04x}", u32::from(character))),
            _ => out.push_str(&format!("\\U{:08x}", u32::from(character))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> String {
        let mut document = Document::default();
        document.file("/a", &[(Part::Settings, text.to_owned())]);
        let (document, parts) = document.finish();
        assert_eq!(parts.iter().map(|(_, bytes)| bytes).sum::<usize>(), document.len());
        let head = "#cloud-config\nwrite_files:\n- path: \"/a\"\n  permissions: \"0600\"\n  content: ";
        document.strip_prefix(head).unwrap().to_owned()
    }

    #[test]
    fn plain_texts_are_blocks_and_others_are_quoted() {
        for (text, expected) in [
            ("A='1'\nB='#: -'\n", "|\n    A='1'\n    B='#: -'\n"),
            ("a.b.c", "|-\n    a.b.c\n"),
            ("A='1\n\n  2'\n", "|\n    A='1\n\n      2'\n"),
            ("", "\"\"\n"),
            (" a\n", "\" a\\n\"\n"),
            ("a\n\n", "\"a\\n\\n\"\n"),
            ("a\n \nb\n", "\"a\\n \\nb\\n\"\n"),
            ("\"\\\u{7f}\t", "\"\\\"\\\\\\u007f\\u0009\"\n"),
            ("é\u{2028}\u{85}\u{feff}🦀", "\"\\u00e9\\u2028\\u0085\\ufeff\\U0001f980\"\n"),
        ] {
            assert_eq!(content(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_machine_may_have_nothing_to_be_told() {
        assert_eq!(Document::default().finish().0, "#cloud-config\n{}\n");
        let mut document = Document::default();
        document.login(&["ssh-ed25519 AAAA \"me\"".to_owned()]);
        assert_eq!(document.finish().0, "#cloud-config\nssh_authorized_keys:\n- \"ssh-ed25519 AAAA \\\"me\\\"\"\n");
    }
}
