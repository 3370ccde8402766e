//! A plan on the machine: the builder's JSON in, [`Plan`] out.
//!
//! The builder has checked the plan strictly, with the same types. Here it is read without the code that serde derives for
//! them, which would be a fifth of the program.

use serde_json::{Map, Value};

use super::{
    Account, Action, Argument, Assignment, Block, BootUser, Check, Content, Exec, FileDestination, FileRule, Format,
    Inputs, KeyDestination, Named, Notation, Ownership, Plan, Receive, Service, Stage, Template, Variable,
};

/// An invalid plan: the key, and the expected value.
#[derive(Debug, thiserror::Error)]
#[error("{key}: expected {expected}")]
pub struct Wrong {
    key: &'static str,
    expected: &'static str,
}

type Read<T> = Result<T, Wrong>;

impl Plan {
    /// Reads the builder's JSON.
    pub fn read(value: &Value) -> Read<Self> {
        let node = Node::of(value, "plan")?;
        Ok(Self {
            inputs: node.optional("inputs", inputs)?,
            variables: node.map("variables", variable)?,
            detect: node.list("detect", assignment)?,
            values: node.list("values", assignment)?,
            checks: node.list("checks", check)?,
            connect: node.texts("connect")?,
            users: node.map("users", |value| {
                let node = Node::of(value, "users")?;
                Ok(BootUser { when: node.text("when")?, shell: node.text("shell")? })
            })?,
            accounts: node.map("accounts", account)?,
            directories: node.map("directories", ownership)?,
            modes: node.map("modes", ownership)?,
            optional_modes: node.map("optional_modes", ownership)?,
            files: node.list("files", file)?,
            blocks: node.list("blocks", |value| {
                let node = Node::of(value, "blocks")?;
                let (path, name, text) = (node.text("path")?, node.text("name")?, node.text("text")?);
                Ok(Block { path, name, when: node.maybe("when")?, text })
            })?,
            commands: node.list("commands", |value| texts(value, "commands"))?,
            services: node.list("services", service)?,
            exec: node.map("exec", exec)?,
            receive: node.optional("receive", receive)?,
            received: node.map("received", |value| {
                let node = Node::of(value, "received")?;
                Ok(FileDestination { directory: node.text("directory")?, group: node.text("group")? })
            })?,
            keys: node.map("keys", |value| {
                let node = Node::of(value, "keys")?;
                let (directory, group) = (node.text("directory")?, node.text("group")?);
                Ok(KeyDestination { directory, group, certificate: node.text("certificate")? })
            })?,
        })
    }
}

fn inputs(value: &Value) -> Read<Inputs> {
    let node = Node::of(value, "inputs")?;
    Ok(Inputs {
        user_data: node.text("user_data")?,
        detected: node.text("detected")?,
        mutable: node.text("mutable")?,
        defaults: node.text("defaults")?,
        marker: node.text("marker")?,
    })
}

fn variable(value: &Value) -> Read<Variable> {
    let node = Node::of(value, "variables")?;
    Ok(Variable {
        default: node.maybe("default")?.unwrap_or_default(),
        mutable: node.flag("mutable")?,
        required: node.flag("required")?,
        empty: node.flag("empty")?,
        unlisted: node.flag("unlisted")?,
        format: node.word(
            "format",
            &[
                ("boolean", Format::Boolean),
                ("number", Format::Number),
                ("port", Format::Port),
                ("hostname", Format::Hostname),
                ("host", Format::Host),
                ("host-port", Format::HostPort),
                ("addresses", Format::Addresses),
                ("url", Format::Url),
                ("base64", Format::Base64),
            ],
        )?,
        max: node.optional("max", |value| {
            let max = value.as_u64().and_then(|max| max.try_into().ok());
            max.ok_or(Wrong { key: "max", expected: "a number" })
        })?,
        one_of: node.texts("one_of")?,
        aliases: node.texts("aliases")?,
    })
}

fn assignment(value: &Value) -> Read<Assignment> {
    let node = Node::of(value, "an assignment")?;
    let (name, value) = (node.text("name")?, node.text("value")?);
    Ok(Assignment { name, value, when: node.maybe("when")?, bare: node.flag("bare")? })
}

fn argument(value: &Value) -> Read<Argument> {
    let node = Node::of(value, "arguments")?;
    Ok(Argument { value: node.text("value")?, when: node.maybe("when")? })
}

fn check(value: &Value) -> Read<Check> {
    let node = Node::of(value, "checks")?;
    let stages = [("before", Stage::Before), ("bootstrap", Stage::Bootstrap), ("after", Stage::After)];
    Ok(Check {
        when: node.maybe("when")?,
        that: node.text("that")?,
        otherwise: node.text("otherwise")?,
        at: node.word("at", &stages)?.unwrap_or_default(),
    })
}

fn ownership(value: &Value) -> Read<Ownership> {
    let node = Node::of(value, "mode and owner")?;
    Ok(Ownership { mode: node.mode()?, owner: node.owner("owner")?, group: node.owner("group")? })
}

fn account(value: &Value) -> Read<Account> {
    let node = Node::of(value, "accounts")?;
    let id = node.value("id").and_then(Value::as_u64).and_then(|id| u32::try_from(id).ok());
    Ok(Account {
        id: id.ok_or(Wrong { key: "id", expected: "a number" })?,
        home: node.text("home")?,
        shell: node.text("shell")?,
        groups: node.texts("groups")?,
        optional_groups: node.texts("optional_groups")?,
    })
}

fn file(value: &Value) -> Read<FileRule> {
    let node = Node::of(value, "files")?;
    let content = Node::of(node.value("content").unwrap_or(&Value::Null), "content")?;
    let template = |value: &Value| {
        let node = Node::of(value, "template")?;
        let format = node.word("format", &[("text", Notation::Text), ("json", Notation::Json)])?;
        let format = format.ok_or(Wrong { key: "format", expected: "text or json" })?;
        let with = node.map("with", |value| text(value, "with"))?;
        Ok(Template { file: node.text("file")?, format, with })
    };
    Ok(FileRule {
        path: node.text("path")?,
        mode: node.mode()?,
        owner: node.owner("owner")?,
        group: node.owner("group")?,
        directory: node.optional("directory", ownership)?,
        when: node.maybe("when")?,
        keep: node.flag("keep")?,
        bake: node.flag("bake")?,
        content: match (content.optional("template", template)?, content.maybe("text")?) {
            (Some(template), _) => Content::Template(template),
            (None, Some(text)) => Content::Text(text),
            (None, None) => Content::Environment(content.list("environment", assignment)?),
        },
    })
}

fn service(value: &Value) -> Read<Service> {
    let node = Node::of(value, "services")?;
    let actions = [("restart", Action::Restart), ("enable", Action::Enable), ("start", Action::Start)];
    Ok(Service {
        unit: node.text("unit")?,
        when: node.maybe("when")?,
        action: node.word("action", &actions)?.unwrap_or_default(),
        on_receive: node.flag("on_receive")?,
        on_change: node.maybe("on_change")?,
    })
}

fn exec(value: &Value) -> Read<Exec> {
    let node = Node::of(value, "exec")?;
    Ok(Exec {
        environment_file: node.text("environment_file")?,
        program: node.text("program")?,
        arguments: node.list("arguments", argument)?,
        environment: node.list("environment", assignment)?,
        checks: node.list("checks", check)?,
    })
}

fn receive(value: &Value) -> Read<Receive> {
    let node = Node::of(value, "receive")?;
    Ok(Receive {
        directory: node.text("directory")?,
        trigger: node.text("trigger")?,
        mutable: node.text("mutable")?,
        keys: node.text("keys")?,
        stamp: node.text("stamp")?,
    })
}

/// A JSON object.
struct Node<'a>(&'a Map<String, Value>);

impl<'a> Node<'a> {
    fn of(value: &'a Value, key: &'static str) -> Read<Self> {
        value.as_object().map(Self).ok_or(Wrong { key, expected: "an object" })
    }

    fn value(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &'static str) -> Read<String> {
        text(self.value(key).unwrap_or(&Value::Null), key)
    }

    fn maybe(&self, key: &'static str) -> Read<Option<String>> {
        self.value(key).map(|value| text(value, key)).transpose()
    }

    fn owner(&self, key: &'static str) -> Read<String> {
        Ok(self.maybe(key)?.unwrap_or_else(|| "root".to_owned()))
    }

    fn flag(&self, key: &'static str) -> Read<bool> {
        self.value(key).map_or(Ok(false), |value| value.as_bool().ok_or(Wrong { key, expected: "true or false" }))
    }

    fn mode(&self) -> Read<u16> {
        u16::from_str_radix(&self.text("mode")?, 8).map_err(|_| Wrong { key: "mode", expected: "octal digits" })
    }

    /// An optional enum value.
    fn word<T: Copy>(&self, key: &'static str, words: &[(&str, T)]) -> Read<Option<T>> {
        let Some(word) = self.maybe(key)? else { return Ok(None) };
        let found = words.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
        found.map(Some).ok_or(Wrong { key, expected: "one of the known words" })
    }

    fn texts(&self, key: &'static str) -> Read<Vec<String>> {
        self.value(key).map_or(Ok(Vec::new()), |value| texts(value, key))
    }

    fn optional<T>(&self, key: &'static str, read: fn(&Value) -> Read<T>) -> Read<Option<T>> {
        self.value(key).map(read).transpose()
    }

    fn list<T>(&self, key: &'static str, read: fn(&Value) -> Read<T>) -> Read<Vec<T>> {
        let Some(value) = self.value(key) else { return Ok(Vec::new()) };
        value.as_array().ok_or(Wrong { key, expected: "a list" })?.iter().map(read).collect()
    }

    fn map<T>(&self, key: &'static str, read: fn(&Value) -> Read<T>) -> Read<Named<T>> {
        let mut map = Named::default();
        if let Some(value) = self.value(key) {
            for (name, value) in Node::of(value, key)?.0 {
                map.insert(name.clone(), read(value)?);
            }
        }
        Ok(map)
    }
}

fn text(value: &Value, key: &'static str) -> Read<String> {
    value.as_str().map(str::to_owned).ok_or(Wrong { key, expected: "a text" })
}

fn texts(value: &Value, key: &'static str) -> Read<Vec<String>> {
    let list = value.as_array().ok_or(Wrong { key, expected: "a list of strings" })?;
    list.iter().map(|value| text(value, key)).collect()
}
