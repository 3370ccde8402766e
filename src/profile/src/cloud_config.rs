//! The `#cloud-config` that OSM sends: files, keys and commands in, the document out, byte for byte.
//!
//! OSM writes it as text, in which content with leading spaces or a command with a colon may get another meaning. Therefore the result is
//! parsed again, and refused unless it contains the same files, keys and commands. There are two differences: empty lists are left out,
//! since cloud-init refuses them, and so are the line breaks at the end of a file without encoding ([`RenderedFile::on_machine`]).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::slice;

use base64ct::{Base64, Encoding as _};

use super::error::ProfileError;
use super::fields::{Fields, words};
use super::node::Document;
use super::schema::Modules;
use vmbake_common::escape;

/// Stands for the name of a machine until it is made.
const MACHINE_NAME: &str = "<MACHINE_NAME>";

/// What is to be said.
#[derive(Clone, Copy, Default)]
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

impl RenderedFile {
    /// The contents that cloud-init writes: without an encoding, YAML's `|-` strips the line breaks at the end.
    pub(super) fn on_machine(&self) -> &str {
        if self.is_base64 { &self.data } else { self.data.trim_end_matches('\n') }
    }
}

/// Refuses files and commands that cloud-init would read differently.
pub(super) fn check(files: &[RenderedFile], modules: Option<&Modules>) -> Result<(), ProfileError> {
    render(&Message { files, modules, ..Message::default() }).map(drop)
}

/// The document.
pub(super) fn render(message: &Message<'_>) -> Result<String, ProfileError> {
    let out = document(message);
    match is_read_back(message, &out) {
        Ok(true) => Ok(out),
        _ => Err(not_carried(message)),
    }
}

fn document(message: &Message<'_>) -> String {
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
    out
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

/// Whether a reader of the document gets every key, file and command as it is.
fn is_read_back(message: &Message<'_>, text: &str) -> Result<bool, ProfileError> {
    let commands = message.modules.iter().flat_map(|modules| lists(modules)).flat_map(|(_, commands)| commands);
    let is_file_char = |char| char == '\t' || is_read(char);
    if !message.files.iter().all(|file| content(file).chars().all(is_file_char))
        || !commands.chain(message.ssh_keys).all(|text| is_plain_scalar(text))
    {
        return Ok(false);
    }
    let document = Document::parse(Path::new("user-data"), text)?;
    let mut top = Fields::new(&document, &document.root)?;
    let mut is_same = top.list("ssh_authorized_keys", words)?.iter().map(|key| key.text.as_str()).eq(keys(message));
    let files = top.list("write_files", |document, node| {
        let mut fields = Fields::new(document, node)?;
        Ok([fields.text("path")?.text, fields.text("permissions")?.text, fields.text("content")?.text])
    })?;
    let expected = message.files.iter().map(|file| {
        let text = if file.is_base64 { content(file) } else { file.on_machine().to_owned() };
        [file.path.clone(), permissions(file), text]
    });
    // The file with the name of the machine is the last one.
    is_same &= files.into_iter().take(message.files.len()).eq(expected);
    for (field, commands) in message.modules.iter().flat_map(|modules| lists(modules)) {
        is_same &= top.list(field, words)?.iter().map(|found| &found.text).eq(commands);
    }
    Ok(is_same)
}

/// Names the first key, file or command that a document with nothing else does not carry.
fn not_carried(message: &Message<'_>) -> ProfileError {
    let is_lost = |part: Message<'_>| !is_read_back(&part, &document(&part)).unwrap_or(false);
    let error = |what: String, hint| ProfileError::NotCarried { what, hint };
    let shown = |text: &str| escape::line(text);
    let key =
        message.ssh_keys.iter().find(|key| is_lost(Message { ssh_keys: slice::from_ref(key), ..Message::default() }));
    if let Some(key) = key {
        return error(format!("the SSH key `{}`", shown(key)), "write the key in one line, without quotes");
    }
    let file =
        message.files.iter().find(|file| is_lost(Message { files: slice::from_ref(file), ..Message::default() }));
    if let Some(file) = file {
        return error(file.path.clone(), "set `encoding: b64` for this file");
    }
    let mut commands = message
        .modules
        .iter()
        .flat_map(|modules| lists(modules))
        .flat_map(|(field, list)| list.iter().map(move |text| (field, text)));
    let command = commands.find(|(_, command)| {
        let modules = Modules { bootcmd: Vec::new(), runcmd: vec![(*command).clone()] };
        is_lost(Message { modules: Some(&modules), ..Message::default() })
    });
    let hint = "move the command to a script in `files`, and call the script";
    match command {
        Some((field, command)) => error(format!("the {field} command `{}`", shown(command)), hint),
        None => error("the commands".to_owned(), hint),
    }
}
