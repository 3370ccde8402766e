//! Protocol commands on questions.

use super::{Conversation, Open, Reply, SUCCESS};
use crate::merge::debconf::database::Files;
use crate::merge::debconf::fault::DebconfFault;
use crate::merge::debconf::questions::is_password;
use crate::merge::debconf::record::Text;
use crate::merge::debconf::templates::parse;
use crate::merge::debconf::text::escape;

/// The types that have an answer here.
const KINDS: [&[u8]; 9] =
    [b"", b"boolean", b"error", b"multiselect", b"note", b"password", b"select", b"string", b"text"];

impl Conversation {
    /// A value, with escapes if the script takes them.
    pub(super) fn answer(&self, value: &[u8]) -> Reply {
        if self.escapes { Reply::of(1, &[&escape(value)]) } else { Reply::of(0, &[value]) }
    }

    pub(super) fn clear(&mut self) -> Reply {
        self.asked.clear();
        self.busy.clear();
        SUCCESS
    }

    /// The frontend is noninteractive, so no question is visible.
    pub(super) fn input(&mut self, files: &Files, priority: &[u8], question: &Text) -> Result<Reply, DebconfFault> {
        if let Some(reply) = known(files, question, true) {
            return Ok(reply);
        }
        if ![&b"low"[..], b"medium", b"high", b"critical"].contains(&priority) {
            return Ok(Reply::of(20, &[b"\"", priority, b"\" is not a valid priority"]));
        }
        let kind = files.kind(question);
        if !KINDS.contains(&kind.as_slice()) {
            let (name, kind) = (String::from_utf8_lossy(question), String::from_utf8_lossy(&kind));
            let what = format!("{name} has the type {kind}, which is not a question");
            return Err(DebconfFault::Fails { what });
        }
        self.spend(self.asked.len())?;
        self.priorities.insert(question.clone(), priority.to_vec());
        if self.busy.insert(question.clone()) {
            self.asked.push(question.clone());
        }
        Ok(Reply::of(30, &[b"question skipped"]))
    }

    /// Every question that was put gets its answer.
    pub(super) fn go(&mut self, files: &mut Files) -> Result<Reply, DebconfFault> {
        let asked = std::mem::take(&mut self.asked);
        self.busy.clear();
        let mut answers = Vec::new();
        for question in &asked {
            let value = files.value(question).unwrap_or_default();
            answers.push(match files.kind(question).as_slice() {
                b"text" | b"error" => Vec::new(),
                b"select" => {
                    let choices = files.choices(question)?;
                    if choices.contains(&value) { value } else { choices.into_iter().next().unwrap_or_default() }
                }
                _ => value,
            });
        }
        for (question, answer) in asked.iter().zip(answers) {
            self.spend(answer.len())?;
            files.set_field(question, b"value", &answer);
        }
        Ok(Reply::of(0, &[b"ok"]))
    }

    pub(super) fn metaget(&self, files: &Files, question: &[u8], field: &Text) -> Result<Reply, DebconfFault> {
        let Some(record) = files.question(question) else { return Ok(Reply::unknown(question)) };
        let lower = field.to_ascii_lowercase();
        let text_of = |field: &[u8]| files.text(question, field, false);
        let is_text = |stem: &[u8]| lower.strip_prefix(stem).is_some_and(|rest| rest.is_empty() || rest[0] == b'-');
        let found = match lower.as_slice() {
            b"name" => Some(question.to_vec()),
            b"owners" => Some(record.owners.iter().map(Vec::as_slice).collect::<Vec<_>>().join(&b", "[..])),
            b"priority" => self.priorities.get(question).cloned(),
            b"value" => files.value(question),
            field => match record.field(field) {
                Some(value) => Some(value.clone()),
                None if [&b"description"[..], b"extended_description", b"choices"].into_iter().any(is_text) => {
                    text_of(field).map(|text| files.expand(question, &text)).transpose()?
                }
                None => text_of(field),
            },
        };
        Ok(match found {
            Some(value) => self.answer(&value),
            None => Reply::of(10, &[field, b" does not exist"]),
        })
    }

    pub(super) fn register(
        &mut self,
        files: &mut Files,
        template: &[u8],
        question: &[u8],
    ) -> Result<Reply, DebconfFault> {
        if files.question(template).is_none() {
            return Ok(Reply::of(10, &[b"No such template, \"", template, b"\""]));
        }
        let kind = files.kind(template);
        files.register(question, template, &self.owner, &kind)?;
        Ok(SUCCESS)
    }

    /// Takes the package from all questions.
    pub(super) fn purge(&mut self, files: &mut Files) -> Result<Reply, DebconfFault> {
        let names: Vec<Text> = files.config.names().chain(files.passwords.names()).cloned().collect();
        self.spend(names.len().saturating_mul(64))?;
        names.iter().for_each(|name| files.remove_owner(name, &self.owner));
        Ok(SUCCESS)
    }

    /// A template that is made field by field. Without Text::Iconv, which no cloud image has, debconf keeps its type only.
    pub(super) fn data(
        &mut self,
        files: &mut Files,
        template: &[u8],
        item: &[u8],
        value: &[Text],
    ) -> Result<Reply, DebconfFault> {
        Ok(match (files.templates.get(template).is_some(), item == b"type") {
            (true, true) => Reply::of(10, &[b"Template type already set"]),
            (true, false) => SUCCESS,
            (false, true) => {
                files.new_template(template, &value.join(&b' '), &self.owner)?;
                SUCCESS
            }
            (false, false) => Reply::of(10, &[b"Template data field '", item, b"' received before type field"]),
        })
    }

    pub(super) fn load_file(
        &mut self,
        files: &mut Files,
        path: &[u8],
        owner: &[u8],
        open: &mut Open<'_>,
    ) -> Result<Reply, DebconfFault> {
        match open(path) {
            Ok(text) => {
                self.spend(text.len())?;
                load(files, &text, owner).map(|()| SUCCESS)
            }
            Err(why) => Ok(Reply::of(10, &[b"failed to open ", path, b": ", why.as_bytes()])),
        }
    }
}

/// The answer about a question that does not exist.
pub(super) fn known(files: &Files, question: &[u8], quoted: bool) -> Option<Reply> {
    match files.question(question) {
        Some(_) => None,
        None if quoted => Some(Reply::unknown_quoted(question)),
        None => Some(Reply::unknown(question)),
    }
}

/// Loads the templates of a file.
pub(super) fn load(files: &mut Files, text: &[u8], owner: &[u8]) -> Result<(), DebconfFault> {
    parse(text)?.iter().try_for_each(|template| files.load(template, owner))
}

/// Sets an answer. Passwords are not set: they would be in every copy of the image.
pub(super) fn set(files: &mut Files, question: &[u8], value: &[u8]) -> Result<Reply, DebconfFault> {
    if let Some(reply) = known(files, question, false) {
        return Ok(reply);
    }
    if !value.is_empty() && (is_password(&files.kind(question)) || files.passwords.get(question).is_some()) {
        return Err(DebconfFault::Password { question: String::from_utf8_lossy(question).into_owned() });
    }
    files.set_field(question, b"value", value);
    Ok(Reply::of(0, &[b"value set"]))
}

/// A flag; the old name for that a question was not seen is `isdefault`.
pub(super) fn flag(files: &Files, question: &[u8], name: &[u8]) -> Reply {
    let set = |name: &[u8]| files.question(question).map_or(&b"false"[..], |record| record.flag(name));
    match name {
        b"isdefault" if set(b"seen") == b"true" => Reply::of(0, &[b"false"]),
        b"isdefault" => Reply::of(0, &[b"true"]),
        name => Reply::of(0, &[set(name)]),
    }
}

pub(super) fn set_flag(files: &mut Files, question: &[u8], name: &[u8], value: &[u8]) -> Reply {
    match name {
        b"isdefault" => {
            let seen: &[u8] = if value == b"true" { b"false" } else { b"true" };
            files.set_flag(question, b"seen", seen);
        }
        name => files.set_flag(question, name, value),
    }
    flag(files, question, name)
}
