//! The `#cloud-config` that OSM sends: files, keys and commands in, the document out, byte for byte.
//!
//! OSM writes it as text, in which a content with leading spaces or a command with a colon means something else than its author
//! thought. So it is read again here, and refused unless every file, key and command comes back. Two things differ: lists without
//! items are left out, since cloud-init refuses them, and so is a line end at the end of a file without encoding, which cloud-init
//! does not see.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use base64ct::{Base64, Encoding as _};

use super::error::ProfileError;
use super::fields::{Fields, words};
use super::node::Document;
use super::schema::Modules;

/// Stands for the name of a machine until it is made.
const MACHINE_NAME: &str = "<MACHINE_NAME>";

/// What is to be said.
pub(super) struct Message<'a> {
    pub(super) has_name: bool,
    pub(super) name: Option<&'a str>,
    pub(super) ssh_keys: &'a [String],
    pub(super) files: &'a [RenderedFile],
    pub(super) modules: Option<&'a Modules>,
}

/// A file as it gets onto the machine.
#[derive(Clone, Debug)]
pub(super) struct RenderedFile {
    pub(super) path: String,
    /// Decimal digits that are read as octal.
    pub(super) permissions: u16,
    pub(super) is_base64: bool,
    pub(super) data: String,
    /// Fields that its template names, and those that it compares.
    pub(super) fields: BTreeSet<String>,
    pub(super) compared: BTreeSet<String>,
}

/// The document.
pub(super) fn render(message: &Message<'_>) -> Result<String, ProfileError> {
    let name = message.name.unwrap_or(MACHINE_NAME);
    let mut out = "#cloud-config\n".to_owned();
    if message.has_name {
        out += &format!("hostname: {name}\n");
    }
    out += "\nssh_pwauth: false\n\n";
    if !keys(message).is_empty() {
        out += "ssh_authorized_keys:\n";
        keys(message).iter().for_each(|key| out += &format!("- '{key}'\n"));
    }
    if message.has_name || !message.files.is_empty() {
        out += "write_files:";
    }
    message.files.iter().for_each(|file| write_file(&mut out, file));
    if message.has_name {
        out += &format!("\n- path: /etc/machine-name\n  permissions: '0600'\n  content: |-\n        {name}\n");
    }
    for (field, commands) in message.modules.iter().flat_map(|modules| lists(modules)) {
        if !commands.is_empty() {
            out += &format!("\n{field}:\n");
            commands.iter().for_each(|command| out += &format!("- {command}\n"));
        }
    }
    compare(message, &out)?;
    Ok(out)
}

/// The keys, each once.
fn keys<'a>(message: &Message<'a>) -> Vec<&'a str> {
    let mut keys: Vec<&str> = Vec::new();
    for key in message.ssh_keys {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    keys
}

fn lists(modules: &Modules) -> [(&'static str, &[String]); 2] {
    [("bootcmd", &modules.bootcmd), ("runcmd", &modules.runcmd)]
}

fn write_file(out: &mut String, file: &RenderedFile) {
    let encoding = if file.is_base64 { "  encoding: 'b64'\n" } else { "" };
    // A text takes whatever is written.
    let _ = write!(
        out,
        "\n- path: '{}'\n  permissions: '{}'\n{encoding}  content: |-\n    {}\n",
        file.path,
        permissions(file),
        content(file).replace('\n', "\n    ")
    );
}

/// As octal digits, of which OSM writes at least four only where there were three.
fn permissions(file: &RenderedFile) -> String {
    match file.permissions.to_string() {
        digits if digits.len() == 3 => format!("0{digits}"),
        digits => digits,
    }
}

/// Whether PyYAML, by which cloud-init reads the document, takes a character for a line end or for what it is.
fn is_read(char: char) -> bool {
    matches!(char, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
        && !matches!(char, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// Whether PyYAML takes a plain scalar of one line for this text, as far as it differs from YAML 1.2.
fn is_plain_scalar(text: &str) -> bool {
    const TYPED: [&str; 2] = ["=", "<<"];
    let digits = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
    text.chars().all(is_read)
        && !text.starts_with(['`', '@', '%'])
        && !TYPED.contains(&text)
        && !matches!(digits.as_str(), ".inf" | ".nan")
}

fn content(file: &RenderedFile) -> String {
    match file.is_base64 {
        true => Base64::encode_string(file.data.as_bytes()),
        false => file.data.clone(),
    }
}

/// Reads the document, and compares it with what was to be said.
fn compare(message: &Message<'_>, text: &str) -> Result<(), ProfileError> {
    let lost = |what: &str| ProfileError::NotCarried { what: what.to_owned() };
    if let Some(file) =
        message.files.iter().find(|file| !content(file).chars().all(|char| char == '\t' || is_read(char)))
    {
        return Err(lost(&file.path));
    }
    let commands = message.modules.iter().flat_map(|modules| lists(modules)).flat_map(|(_, commands)| commands);
    if let Some(command) = commands.chain(message.ssh_keys).find(|command| !is_plain_scalar(command)) {
        return Err(lost(command));
    }
    let document = Document::parse(Path::new("user-data"), text).map_err(|_| lost("a file or command"))?;
    let mut top = Fields::new(&document, &document.root)?;
    let found = top.list("ssh_authorized_keys", words)?;
    if !found.iter().map(|key| key.text.as_str()).eq(keys(message)) {
        return Err(lost("a key"));
    }
    let found = top.list("write_files", |document, node| {
        let mut fields = Fields::new(document, node)?;
        Ok((fields.text("path")?.text, fields.text("permissions")?.text, fields.text("content")?.text))
    });
    let found = found.map_err(|_| lost("a file"))?;
    for (file, at) in message.files.iter().zip(0..) {
        let expected = content(file);
        let is_same = found.get(at).is_some_and(|(path, mode, content)| {
            *path == file.path && *mode == permissions(file) && *content == expected.trim_end_matches('\n')
        });
        if !is_same {
            return Err(lost(&file.path));
        }
    }
    for (field, commands) in message.modules.iter().flat_map(|modules| lists(modules)) {
        let found = top.list(field, words).map_err(|_| lost(field))?;
        for (at, command) in commands.iter().enumerate() {
            found.get(at).filter(|found| found.text == *command).ok_or_else(|| lost(command))?;
        }
    }
    Ok(())
}
