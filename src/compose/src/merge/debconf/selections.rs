//! Answers that are set before a package asks: `debconf` of a layer, and debconf-set-selections(1).

use std::collections::BTreeMap;

use super::database::Files;
use super::fault::{DebconfFault, PresetFault};
use super::questions::is_password;
use super::record::Text;
use super::templates::{Template, parse};
use super::text::choices;
use super::{Conversation, Debconf};
use crate::merge::MergeError;
use crate::merge::place::Target;
use crate::stage::Deb;
use vmbake_common::spelling::near;
use vmbake_layer::Schema;

/// Presets the answers of a layer to the questions of the packages that it installs, which count as seen.
pub(in crate::merge) fn select<'a>(
    debconf: &mut Debconf,
    target: &Target,
    schema: &Schema,
    debs: impl Iterator<Item = &'a Deb>,
) -> Result<(), MergeError> {
    if schema.debconf.is_empty() {
        return Ok(());
    }
    let error = |question: &str, fault| MergeError::Preset {
        layer: schema.name.clone(),
        question: question.to_owned(),
        fault: Box::new(fault),
    };
    let mut asked: BTreeMap<Text, (&str, Template)> = BTreeMap::new();
    for deb in debs {
        let Some(text) = deb.info.get("templates") else { continue };
        let templates = parse(text).map_err(|source| {
            let question = schema.debconf.keys().next().map_or("", String::as_str);
            error(question, PresetFault::Templates { package: deb.name().to_owned(), source })
        })?;
        asked.extend(templates.into_iter().map(|template| (template.name.clone(), (deb.name(), template))));
    }
    debconf.begin(target)?;
    for (question, value) in &schema.debconf {
        let (package, template) =
            asked.get(question.as_bytes()).ok_or_else(|| error(question, unknown(question, &asked)))?;
        check(template, value).map_err(|fault| error(question, fault))?;
        let Some(files) = debconf.files() else { continue };
        let failed = |fault| error(question, PresetFault::Database { source: fault });
        files.load(template, package.as_bytes()).map_err(failed)?;
        files.set_field(question.as_bytes(), b"value", value.as_bytes());
        files.set_flag(question.as_bytes(), b"seen", b"true");
    }
    debconf.end();
    Ok(())
}

fn unknown(question: &str, asked: &BTreeMap<Text, (&str, Template)>) -> PresetFault {
    let has_answer = |template: &Template| !matches!(&template.kind[..], b"note" | b"text" | b"title" | b"error");
    let known = asked.values().filter(|(_, template)| has_answer(template));
    let known: Vec<String> = known.map(|(_, template)| shown(&template.name)).collect();
    PresetFault::Unknown { near: near(question, known.iter().map(String::as_str)), known }
}

/// Whether a question takes an answer. Choices that a script fills in are not known yet.
fn check(template: &Template, value: &str) -> Result<(), PresetFault> {
    let field = |name: &[u8]| template.fields.get(name);
    let listed = field(b"choices-c").or(field(b"choices")).map(Vec::as_slice).unwrap_or_default();
    let listed = if template.kind == b"boolean" { &b"true, false"[..] } else { listed };
    let known: Vec<String> = choices(listed).iter().map(|choice| shown(choice)).collect();
    let is_known = |value: &[u8]| listed.windows(2).any(|pair| pair == b"${") || known.contains(&shown(value));
    let fits = match template.kind.as_slice() {
        kind if is_password(kind) => return Err(PresetFault::Password),
        kind @ (b"note" | b"text" | b"title" | b"error") => return Err(PresetFault::NoAnswer { kind: shown(kind) }),
        b"select" | b"boolean" => is_known(value.as_bytes()),
        b"multiselect" => choices(value.as_bytes()).iter().all(|choice| is_known(choice)),
        _ => true,
    };
    if fits { Ok(()) } else { Err(PresetFault::Choice { value: value.to_owned(), choices: known }) }
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

impl Debconf {
    /// What debconf-set-selections does with its input, between [`begin`](Debconf::begin) and [`end`](Debconf::end). Gives what is
    /// wrong with lines.
    pub(in crate::merge) fn set_selections(&mut self, text: &[u8], unseen: bool) -> Result<Vec<String>, DebconfFault> {
        let mut faults = Vec::new();
        let Some(files) = self.files() else { return Ok(faults) };
        for line in lines(text) {
            let Some([owner, question, kind, value]) = fields(&line) else {
                faults.push(format!("error: parse error on '{}'", shown(&line)));
                continue;
            };
            match kind {
                b"seen" if files.question(question).is_some() => files.set_flag(question, b"seen", value),
                b"seen" => faults.push(format!("error: Cannot find a question for {}", shown(question))),
                kind if TYPES.contains(&kind) => set(files, owner, question, (kind, value), unseen)?,
                kind => faults.push(format!("warning: Unknown type {}, skipping '{}'", shown(kind), shown(&line))),
            }
        }
        Ok(faults)
    }

    /// What debconf-loadtemplate does with a file, between [`begin`](Debconf::begin) and [`end`](Debconf::end).
    pub(in crate::merge) fn load(&mut self, text: &[u8], owner: &[u8]) -> Result<(), DebconfFault> {
        Conversation::new(owner).load(self, text)
    }
}

const TYPES: [&[u8]; 8] = [b"select", b"boolean", b"string", b"multiselect", b"note", b"password", b"text", b"title"];

/// The lines that say something; a backslash at the end goes on with the next one.
fn lines(text: &[u8]) -> Vec<Text> {
    let mut found: Vec<Text> = Vec::new();
    let mut goes_on = false;
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (text, more) = line.strip_suffix(b"\\").map_or((line, false), |line| (line, true));
        match found.last_mut().filter(|_| goes_on) {
            Some(last) => last.extend_from_slice(text),
            None => found.push(text.to_vec()),
        }
        goes_on = more;
    }
    found.retain(|line| !matches!(line.trim_ascii_start().first(), None | Some(b'#')));
    found
}

/// Owner, question, type and value of a line.
fn fields(line: &[u8]) -> Option<[&[u8]; 4]> {
    let word = |text: &'_ [u8]| -> Option<usize> {
        let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
        Some(end).filter(|end| *end > 0)
    };
    let (owner, rest) = line.trim_ascii_start().split_at(word(line.trim_ascii_start())?);
    let rest = rest.trim_ascii_start();
    let (question, rest) = rest.split_at(word(rest)?);
    let rest = rest.trim_ascii_start();
    let (kind, rest) = rest.split_at(word(rest)?);
    Some([owner, question, kind, rest.get(1..).unwrap_or_default()])
}

fn set(
    files: &mut Files,
    owner: &[u8],
    question: &[u8],
    (kind, value): (&[u8], &[u8]),
    unseen: bool,
) -> Result<(), DebconfFault> {
    if is_password(kind) && !value.is_empty() {
        return Err(DebconfFault::Password { question: shown(question) });
    }
    if files.templates.get(question).is_none() {
        files.new_template(question, kind, owner)?;
        if let Some(record) = files.templates.change(question) {
            record.fields.insert(b"description".to_vec(), b"Dummy template".to_vec());
            record.fields.insert(b"extended_description".to_vec(), DUMMY.to_vec());
        }
    }
    if let Some(record) = files.templates.change(question) {
        record.fields.insert(b"type".to_vec(), kind.to_vec());
    }
    if files.question(question).is_some() {
        files.add_owner(question, owner, kind)?;
        files.set_field(question, b"value", value);
        if !unseen {
            files.set_flag(question, b"seen", b"true");
        }
    }
    Ok(())
}

/// The placeholder that debconf writes into the database until the package is configured.
const DUMMY: &[u8] =
    b"This is a fake template used to pre-seed the debconf database. If you are seeing this, something is \
    probably wrong.";
