//! Questions with their templates, owners and values.

use super::database::{DataFile, Files};
use super::fault::DebconfFault;
use super::record::{Record, Text};
use super::templates::Template;
use super::text::choices;

/// Longest text with its variables filled in.
const MAX_EXPANDED: usize = 1 << 20;

impl Files {
    /// Passwords are kept apart.
    fn file(&self, question: &[u8]) -> Option<&DataFile> {
        [&self.config, &self.passwords].into_iter().find(|file| file.get(question).is_some())
    }

    pub(super) fn question(&self, name: &[u8]) -> Option<&Record> {
        self.file(name)?.get(name)
    }

    /// A question to be changed.
    pub(super) fn change(&mut self, name: &[u8]) -> Option<&mut Record> {
        if self.config.get(name).is_some() { self.config.change(name) } else { self.passwords.change(name) }
    }

    /// Adds an owner to a question, and makes the question.
    pub(super) fn add_owner(&mut self, name: &[u8], owner: &[u8], kind: &[u8]) -> Result<(), DebconfFault> {
        if name.iter().any(u8::is_ascii_control) {
            let what = format!("invalid name of a question: {:?}", String::from_utf8_lossy(name));
            return Err(DebconfFault::Fails { what });
        }
        let is_new = self.file(name).is_none();
        let in_config = self.config.get(name).is_some() || (is_new && !is_password(kind));
        let file = if in_config { &mut self.config } else { &mut self.passwords };
        if is_new && file.is_full() {
            return Err(DebconfFault::Limit { what: "questions", limit: file.len() as u64 });
        }
        file.add_owner(name, owner);
        Ok(())
    }

    /// Makes a question of a template, or adds an owner.
    pub(super) fn register(
        &mut self,
        name: &[u8],
        template: &[u8],
        owner: &[u8],
        kind: &[u8],
    ) -> Result<(), DebconfFault> {
        self.add_owner(name, owner, kind)?;
        let old = self.question(name).and_then(|question| question.field(b"template")).cloned();
        if old.as_deref() == Some(template) {
            return Ok(());
        }
        if let Some(old) = old.filter(|old| !old.is_empty()) {
            self.templates.remove_owner(&old, name);
        }
        self.set_field(name, b"template", template);
        self.templates.add_owner(template, name);
        Ok(())
    }

    /// Removes an owner from a question. A question without owners is removed with its template.
    pub(super) fn remove_owner(&mut self, name: &[u8], owner: &[u8]) {
        let template = self.question(name).and_then(|question| question.field(b"template")).cloned();
        let file = if self.config.get(name).is_some() { &mut self.config } else { &mut self.passwords };
        if file.remove_owner(name, owner)
            && let Some(template) = template
        {
            self.templates.remove_owner(&template, name);
        }
    }

    /// Loads a template of a package: its question is there from then on.
    pub(super) fn load(&mut self, template: &Template, owner: &[u8]) -> Result<(), DebconfFault> {
        let Template { name, kind, fields } = template;
        self.new_template(name, kind, owner)?;
        if let Some(record) = self.templates.change(name) {
            record.fields = fields.clone();
        }
        Ok(())
    }

    /// Makes a template, and the questions that should have it.
    pub(super) fn new_template(&mut self, name: &[u8], kind: &[u8], owner: &[u8]) -> Result<(), DebconfFault> {
        let users = self.templates.get(name).map(|template| template.owners.clone()).unwrap_or_default();
        match self.question(name) {
            Some(_) => self.add_owner(name, owner, kind)?,
            None => self.register(name, name, owner, kind)?,
        }
        for user in &users {
            if self.question(user).is_none() {
                self.register(user, name, owner, kind)?;
            }
        }
        if users.is_empty() {
            self.templates.add_owner(name, name);
            if let Some(record) = self.templates.change(name) {
                record.fields.insert(b"type".to_vec(), kind.to_vec());
            }
        }
        Ok(())
    }

    pub(super) fn set_field(&mut self, question: &[u8], field: &[u8], value: &[u8]) {
        if let Some(record) = self.change(question) {
            record.fields.insert(field.to_vec(), value.to_vec());
        }
    }

    pub(super) fn set_flag(&mut self, question: &[u8], flag: &[u8], value: &[u8]) {
        if let Some(record) = self.change(question) {
            record.flags.insert(flag.to_vec(), value.to_vec());
        }
    }

    /// The template of a question, if there is one.
    fn template(&self, question: &[u8]) -> Option<&Record> {
        self.templates.get(self.question(question)?.field(b"template")?)
    }

    /// What a question's template says in English, or with `untranslated` to programs; empty where it says nothing.
    pub(super) fn text(&self, question: &[u8], field: &[u8], untranslated: bool) -> Option<Text> {
        let template = self.template(question)?;
        let locales: &[&str] = if untranslated { &["-c"] } else { &["-c.utf-8", "-en"] };
        let plain = field.split(|byte| *byte == b'-').next().unwrap_or_default();
        let translated = locales.iter().filter_map(|locale| template.field(&[field, locale.as_bytes()].concat()));
        let mut found = translated.chain(template.field(field)).chain(template.field(plain));
        Some(found.next().cloned().unwrap_or_default())
    }

    /// The type of a question.
    pub(super) fn kind(&self, question: &[u8]) -> Text {
        self.text(question, b"type", false).unwrap_or_default()
    }

    /// The answer to a question: what was set, or the default.
    pub(super) fn value(&self, question: &[u8]) -> Option<Text> {
        let set = self.question(question)?.field(b"value").cloned();
        set.or_else(|| self.text(question, b"default", false))
    }

    /// The choices of a question, as programs know them.
    pub(super) fn choices(&self, question: &[u8]) -> Result<Vec<Text>, DebconfFault> {
        let text = self.text(question, b"choices", true).unwrap_or_default();
        self.expand(question, &text).map(|text| choices(&text))
    }

    /// Fills in the question's variables, `${name}`; what they say is not looked at again, so that there are no cycles.
    pub(super) fn expand(&self, question: &[u8], text: &[u8]) -> Result<Text, DebconfFault> {
        let record = self.question(question);
        let mut out = Vec::new();
        let mut rest = text;
        while let Some((before, name, after)) = variable(rest) {
            match before.strip_suffix(b"\\") {
                Some(before) => out.extend([before, b"${", name, b"}"].concat()),
                None => {
                    out.extend_from_slice(before);
                    out.extend_from_slice(
                        record.and_then(|record| record.variables.get(name)).map_or(b"", Vec::as_slice),
                    );
                }
            }
            rest = after;
            if out.len() > MAX_EXPANDED {
                return Err(DebconfFault::Limit { what: "bytes of one text", limit: MAX_EXPANDED as u64 });
            }
        }
        out.extend_from_slice(rest);
        Ok(out)
    }
}

/// Whether questions of this type are kept where only root may read them.
pub(super) fn is_password(kind: &[u8]) -> bool {
    kind.to_ascii_lowercase().windows(8).any(|part| part == b"password")
}

/// The first variable of a text: what stands before, its name, what stands behind.
fn variable(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let mut from = 0;
    loop {
        let begin = from + text.get(from..)?.windows(2).position(|pair| pair == b"${")?;
        let name = &text[begin + 2..];
        let end = name.iter().position(|byte| matches!(byte, b'{' | b'}'))?;
        if end > 0 && name[end] == b'}' {
            return Some((&text[..begin], &name[..end], &name[end + 1..]));
        }
        from = begin + 2;
    }
}
