//! The plan: what is left to do on the machine, as data. `/opt/podplane/share/firstboot.json` in, [`Plan`] out.
//!
//! Every layer has a part of it, the key `first_boot` of `layer.json`; the builder joins the parts of a kind in the order of
//! its layers. Texts named "template" and "condition" are in the language of [`template`](crate::template).

mod named;
mod read;

use std::fmt;

use serde::de::{MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use named::Named;
pub use read::Wrong;

/// Where a machine has its plan.
pub const PATH: &str = "/opt/podplane/share/firstboot.json";

/// All that is done on the machine, or one layer's part of it. Lists are done in their order.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Plan {
    /// Files with variables that others write, and the marker of `bootstrap`; at most one layer has it. Without it nothing
    /// is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Inputs>,
    /// Variables that the inputs may have, by name.
    pub variables: Named<Variable>,
    /// What `bootstrap` finds out once, written to the file of detected variables. Beside variables, templates see the facts
    /// `kind`, `device`, `ipv4`, `ipv6`, `hostname`, `fqdn` and `instance_id`, and may ask `cloud('v1.region')`.
    pub detect: Vec<Assignment>,
    /// Variables made of others on every boot, each after those before it in the list.
    pub values: Vec<Assignment>,
    /// What must hold.
    pub checks: Vec<Check>,
    /// Addresses, `host:port` or `[v6]:port`, that must take a TCP connection within 5 seconds; empty ones fail.
    pub connect: Vec<String>,
    /// Users that are made where the condition holds, as useradd does, and stay.
    pub users: Named<BootUser>,
    /// Users that the image has, which get back what they lost; the builder adds those of the layer itself.
    pub accounts: Named<Account>,
    /// Directories by path; the builder adds those of the layer itself.
    pub directories: Named<Ownership>,
    /// Mode and owner of files that are there already; the builder adds those of the layer itself.
    pub modes: Named<Ownership>,
    /// Mode and owner of files that may be missing; `/*` at the end stands for every file of a directory.
    pub optional_modes: Named<Ownership>,
    /// Files that are written.
    pub files: Vec<FileRule>,
    /// Parts of files that others write too.
    pub blocks: Vec<Block>,
    /// Programs that `configure` runs when all files are written: absolute path and arguments.
    pub commands: Vec<Vec<String>>,
    /// Units that `restart` enables, starts and stops.
    pub services: Vec<Service>,
    /// Programs that `exec` becomes, by name.
    pub exec: Named<Exec>,
    /// Where files for this machine arrive; at most one layer has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive: Option<Receive>,
    /// Files that may arrive, by name, and where they go.
    pub received: Named<Place>,
    /// Private keys that were made on the machine, by name, and where they go.
    pub keys: Named<KeyPlace>,
}

/// Paths of files with variables. Where a variable is in several, the last of user data, detected and mutable counts.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// Written once, from outside; without it nothing is done.
    pub user_data: String,
    /// Written once, by `bootstrap`.
    pub detected: String,
    /// Replaced by `update-mutable-env`.
    pub mutable: String,
    /// The variables that may be in `mutable`, with their defaults; written by the builder.
    pub defaults: String,
    /// Exists once `bootstrap` is done.
    pub marker: String,
}

/// A variable of the inputs.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Variable {
    /// Its value where no input has one; empty unless said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub default: String,
    /// Whether it may change on a running machine, by `update-mutable-env`.
    #[serde(skip_serializing_if = "is_false")]
    pub mutable: bool,
    /// Whether it must not be empty.
    #[serde(skip_serializing_if = "is_false")]
    pub required: bool,
    /// Whether an empty value counts where an input has one; otherwise the default takes its place.
    #[serde(skip_serializing_if = "is_false")]
    pub empty: bool,
    /// Whether the file of mutable variables leaves it out until an input has it.
    #[serde(skip_serializing_if = "is_false")]
    pub unlisted: bool,
    /// What it must look like, unless it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The values that it may have, unless it is empty; all if there are none here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<String>,
    /// Older names, which count where this one is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

/// What a value looks like.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `true` or `false`.
    Boolean,
    /// A decimal number from 0 to 2^31 - 1.
    Number,
    /// A decimal number from 1 to 65535.
    Port,
    /// Letters, digits, dots and dashes.
    Hostname,
    /// A host name, or an IP address without brackets.
    Host,
    /// IP addresses, separated by commas.
    Addresses,
    /// `http://` or `https://`, a host, perhaps a port and a path.
    Url,
    /// Base64 (RFC 4648, section 4), perhaps in lines.
    Base64,
}

/// A name and the template of its value. In JSON a text `"NAME"` is short for `{"name": "NAME", "value": "{{ NAME }}"}`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(deny_unknown_fields, transform = or_text))]
pub struct Assignment {
    /// Name of the variable.
    pub name: String,
    /// Template of its value.
    pub value: String,
    /// Condition; where it does not hold, the variable is left as it is, or out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Whether a file has it without quotes, if its value is made of letters, digits and underscores only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub bare: bool,
}

/// What must hold, and what to say where it does not.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Condition under which it must hold; always if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Condition that must hold.
    pub that: String,
    /// Template of the message where it does not.
    pub otherwise: String,
    /// When it is looked at.
    #[serde(default)]
    pub at: Stage,
}

/// When a check is made.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Before `bootstrap` writes what it detected; sees `detect` too.
    Bootstrap,
    /// Before a file is written; sees `values` too.
    #[default]
    Before,
    /// When all files are written.
    After,
}

/// Mode and owner of a path.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ownership {
    /// Permissions, octal.
    #[serde(deserialize_with = "octal", serialize_with = "as_octal")]
    #[cfg_attr(feature = "schema", schemars(with = "String", regex(pattern = "^[0-7]{4}$")))]
    pub mode: u16,
    /// User, by name.
    #[serde(default = "root", skip_serializing_if = "is_root")]
    pub owner: String,
    /// Group, by name.
    #[serde(default = "root", skip_serializing_if = "is_root")]
    pub group: String,
}

/// A user that is made on the machine.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BootUser {
    /// Condition under which it is made.
    pub when: String,
    /// Login shell.
    pub shell: String,
}

/// A user of the image, with a group of the same name and id.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// User id, and the id of its group.
    pub id: u32,
    /// Home directory.
    pub home: String,
    /// Login shell.
    pub shell: String,
    /// Secondary groups; the user is in no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Secondary groups where the machine has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub optional_groups: Vec<String>,
}

/// A file that is written whole, or removed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FileRule {
    /// Template of its absolute path. A file that an earlier run wrote at another path is removed.
    pub path: String,
    /// Permissions, octal.
    #[serde(deserialize_with = "octal", serialize_with = "as_octal")]
    #[cfg_attr(feature = "schema", schemars(with = "String", regex(pattern = "^[0-7]{4}$")))]
    pub mode: u16,
    /// User, by name.
    #[serde(default = "root", skip_serializing_if = "is_root")]
    pub owner: String,
    /// Group, by name.
    #[serde(default = "root", skip_serializing_if = "is_root")]
    pub group: String,
    /// Mode and owner of its directory, which is made where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<Ownership>,
    /// Condition; where it does not hold, the file is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Where the condition does not hold, the file is left as it is instead.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keep: bool,
    /// Whether the builder writes it too, with the defaults of all variables.
    #[serde(default, skip_serializing_if = "is_false")]
    pub bake: bool,
    /// What is in it.
    pub content: Content,
}

/// What is in a file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// One line for each variable, `NAME='value'`, in this order.
    Environment(Vec<Assignment>),
    /// A template, right here. Its values are written as they are.
    Text(String),
    /// A template in a file of the image.
    Template(Template),
}

/// A template in a file of the image.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// Absolute path of the template.
    pub file: String,
    /// How its values are written.
    pub format: Notation,
    /// More variables for the template, by name, with the templates of their values.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub with: Named<String>,
}

/// How the values of a template are written.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Notation {
    /// As they are.
    Text,
    /// As values of JSON, which are values of YAML and TOML as well.
    Json,
}

/// Lines between two marks in a file that others write too, such as `/etc/hosts`. What is outside the marks stays.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Absolute path of the file, which keeps its mode and owner.
    pub path: String,
    /// Name in the marks.
    pub name: String,
    /// Condition; where it does not hold, the block is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Template of the lines.
    pub text: String,
}

/// A unit of systemd.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Its name, such as `zot.service`.
    pub unit: String,
    /// Condition; where it does not hold, the unit is disabled and stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// What `restart` does with it.
    #[serde(default)]
    pub action: Action,
    /// Whether it is restarted when files arrived.
    #[serde(default, skip_serializing_if = "is_false")]
    pub on_receive: bool,
    /// Path of a file of `files`: where files arrived and `configure` changed this one, the unit is restarted before the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_change: Option<String>,
}

/// What `restart` does with a unit.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Enables it.
    Enable,
    /// Enables it, and starts it unless it runs.
    Start,
    /// Enables it, and starts it anew.
    #[default]
    Restart,
}

/// A program and its arguments, for `exec`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// Absolute path of a file with variables, written by a rule of `files`: templates see its variables and no others.
    pub environment_file: String,
    /// Absolute path of the program.
    pub program: String,
    /// Its arguments, in this order.
    #[serde(default)]
    pub arguments: Vec<Argument>,
    /// Variables that it gets beside its own environment.
    #[serde(default)]
    pub environment: Vec<Assignment>,
    /// What must hold before; `at` does not matter.
    #[serde(default)]
    pub checks: Vec<Check>,
}

/// The template of one argument. In JSON a text is short for `{"value": text}`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(deny_unknown_fields, transform = or_text))]
pub struct Argument {
    /// Template of the argument.
    pub value: String,
    /// Condition; where it does not hold, the argument is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

/// Where files for this machine arrive.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Receive {
    /// Directory in which they arrive.
    pub directory: String,
    /// Name of the file in it that is written last.
    pub trigger: String,
    /// Name of the file in it that has mutable variables.
    pub mutable: String,
    /// Directory of private keys that were made on the machine.
    pub keys: String,
    /// File whose time is the start of the last run.
    pub stamp: String,
}

/// Where a received file goes, under its own name and with mode 0640.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Absolute path of the directory.
    pub directory: String,
    /// Group, by name; the user is root.
    pub group: String,
}

/// Where a private key goes, under its own name and with mode 0640.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KeyPlace {
    /// Absolute path of the directory.
    pub directory: String,
    /// Group, by name; the user is root.
    pub group: String,
    /// Path of its certificate, which must be there.
    pub certificate: String,
}

fn root() -> String {
    "root".to_owned()
}

fn is_root(name: &str) -> bool {
    name == "root"
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Permissions written as an octal text, as in `chmod 0755`: JSON has no octal numbers.
pub fn octal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    let text = String::deserialize(deserializer)?;
    match u16::from_str_radix(&text, 8) {
        // A number may begin with a plus.
        Ok(mode) if mode <= 0o7777 && text.len() == 4 && !text.starts_with('+') => Ok(mode),
        _ => Err(de::Error::custom(format!("mode {text:?} is not four octal digits, such as \"0755\""))),
    }
}

fn as_octal<S: Serializer>(mode: &u16, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{mode:04o}"))
}

/// What [`Assignment`] and [`Argument`] have in JSON.
enum Form {
    Short(String),
    Long(Long),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Long {
    name: Option<String>,
    value: String,
    when: Option<String>,
    bare: Option<bool>,
}

/// Reads a text or a map: serde's untagged enums would lose the position of an error in the map.
struct ShortOrLong {
    expected: &'static str,
    /// Whether it has a name.
    named: bool,
}

impl<'de> Visitor<'de> for ShortOrLong {
    type Value = Form;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Form, E> {
        Ok(Form::Short(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Form, A::Error> {
        let long = Long::deserialize(MapAccessDeserializer::new(map))?;
        // Said here, an error still gets the position of the map.
        match (&long.name, self.named) {
            (None, true) => Err(de::Error::missing_field("name")),
            (Some(_), false) => Err(de::Error::unknown_field("name", &["value", "when"])),
            _ if long.bare.is_some() && !self.named => Err(de::Error::unknown_field("bare", &["value", "when"])),
            _ => Ok(Form::Long(long)),
        }
    }
}

impl<'de> Deserialize<'de> for Assignment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = ShortOrLong { expected: "the name of a variable, or a name and a value", named: true };
        Ok(match deserializer.deserialize_any(form)? {
            Form::Short(name) => Self { value: format!("{{{{ {name} }}}}"), name, when: None, bare: false },
            Form::Long(Long { name, value, when, bare }) => {
                Self { name: name.unwrap_or_default(), value, when, bare: bare.unwrap_or_default() }
            }
        })
    }
}

impl<'de> Deserialize<'de> for Argument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = ShortOrLong { expected: "an argument, or a value and its condition", named: false };
        Ok(match deserializer.deserialize_any(form)? {
            Form::Short(value) => Self { value, when: None },
            Form::Long(Long { value, when, .. }) => Self { value, when },
        })
    }
}

/// Adds the short form, a text, to the schema of the long one.
#[cfg(feature = "schema")]
fn or_text(schema: &mut schemars::Schema) {
    let long = std::mem::take(schema);
    *schema = schemars::json_schema!({"anyOf": [{"type": "string"}, long]});
}
