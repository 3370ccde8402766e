//! Machine-specific values: the template fields that contain them, and the settings that replace them.
//!
//! A template of the profile is rendered with a marker in place of such a value.

use std::collections::BTreeSet;

use gotmpl::Value;

/// Begins a mark. Characters of private use stand for nothing in any text of a profile, which is refused if it has them.
pub(super) const OPEN: char = '\u{e000}';
/// Ends it.
pub(super) const CLOSE: char = '\u{e001}';
/// Begins and ends what stands for a file that a script fetches; its number is between.
pub(super) const TOKEN: (&str, &str) = ("\u{e002}", "\u{e003}");
/// How a value is written in user data, and read from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// In one line, without what has a meaning for a shell, for systemd or in YAML.
    Word,
    /// An address of a server.
    Url,
    /// Lines, as base64.
    Lines,
    /// Addresses with commas between them.
    Addresses,
}

/// A value of a cluster or machine.
#[derive(Debug)]
pub(super) struct RuntimeValue {
    /// The field of the templates.
    pub(super) field: &'static str,
    /// The setting.
    pub(super) variable: &'static str,
    pub(super) form: Form,
    /// Whether a machine can do without.
    pub(super) optional: bool,
}

const fn value(field: &'static str, variable: &'static str, form: Form, optional: bool) -> RuntimeValue {
    RuntimeValue { field, variable, form, optional }
}

/// All of them.
pub(super) const RUNTIME: [RuntimeValue; 7] = [
    value("BootstrapKubeconfig", "BOOTSTRAP_KUBECONFIG", Form::Lines, false),
    value("CloudConfig", "CLOUD_CONFIG", Form::Lines, true),
    value("ClusterDNSIPs", "CLUSTER_DNS", Form::Addresses, false),
    value("InitialTaints", "INITIAL_TAINTS", Form::Word, true),
    value("KubernetesCACert", "KUBERNETES_CA", Form::Lines, false),
    value("ServerURL", "SERVER_URL", Form::Url, false),
    value("Token", "API_SERVER_TOKEN", Form::Word, false),
];

impl RuntimeValue {
    /// The value of that setting.
    pub(super) fn of(variable: &str) -> Option<&'static Self> {
        RUNTIME.iter().find(|value| value.variable == variable)
    }

    /// Its marker in texts.
    pub(super) fn mark(&self) -> String {
        format!("{OPEN}{}{CLOSE}", self.variable)
    }

    pub(super) fn element(&self, at: usize) -> String {
        format!("{OPEN}{}:{at}{CLOSE}", self.variable)
    }

    /// What a template gets for it: marks, or nothing.
    fn given(&self, case: &Case) -> Value {
        match (self.form, case.absent.contains(self.field)) {
            (Form::Addresses, true) => Vec::<Value>::new().into(),
            (Form::Addresses, false) => {
                (0..case.elements).map(|at| Value::from(self.element(at))).collect::<Vec<_>>().into()
            }
            (_, true) => Value::from(""),
            (_, false) => Value::from(self.mark()),
        }
    }

    /// The expression that gives it on a machine.
    pub(super) fn expression(&self) -> String {
        match self.form {
            Form::Lines => format!("{{{{ {}|base64 }}}}", self.variable),
            _ => format!("{{{{ {} }}}}", self.variable),
        }
    }

    /// A value to try out: in a setting, and on the machine.
    pub(super) fn sample(&self, elements: usize) -> (String, String) {
        match self.form {
            Form::Word => ("a=b:NoSchedule".to_owned(), "a=b:NoSchedule".to_owned()),
            Form::Url => ("https://a.example:6443".to_owned(), "https://a.example:6443".to_owned()),
            Form::Lines => ("YTogMQpiOgogIC0gMgo=".to_owned(), "a: 1\nb:\n  - 2\n".to_owned()),
            Form::Addresses => {
                let all: Vec<String> = (0..elements).map(address).collect();
                (all.join(","), String::new())
            }
        }
    }
}

/// The value with several lines that a template consists of, but for white space around it.
pub(super) fn only_value(template: &str) -> Option<&'static RuntimeValue> {
    RUNTIME.iter().find(|value| value.form == Form::Lines && value.expression() == template.trim())
}

pub(super) fn address(at: usize) -> String {
    format!("192.0.2.{at}")
}

/// What stands for a text that is not known before a machine runs; `name` says which one. It has no blanks, at which shells divide texts.
pub(super) fn unknown_text(name: &str) -> String {
    format!("{OPEN}{name}{CLOSE}")
}

/// What stands for the path of the script of `bootcmd` or `runcmd` on a machine.
pub(super) fn own_path() -> String {
    unknown_text("path-of-the-script")
}

/// The marker of the machine's name.
pub(super) fn machine_name() -> String {
    unknown_text("INSTANCE_ID")
}

/// The name of a text in `text` that [`unknown_text`] stands for.
pub(super) fn name_of_unknown(text: &[u8]) -> Option<String> {
    let text = is_marked(text).then(|| String::from_utf8_lossy(text))?;
    let names = text.split(OPEN).skip(1).filter_map(|rest| rest.split_once(CLOSE)).map(|(name, _)| name);
    let mut unknown = names.filter(|name| RuntimeValue::of(name.split(':').next().unwrap_or_default()).is_none());
    unknown.next().map(str::to_owned)
}

/// Whether a text has marks.
pub(super) fn is_marked(text: &[u8]) -> bool {
    let mut mark = [0; 4];
    let mark = OPEN.encode_utf8(&mut mark).as_bytes();
    text.windows(mark.len()).any(|window| window == mark)
}

/// Whether the values of a text's marks decide how many words a shell makes of it; if it `is_alone`, an empty one is none.
pub(super) fn may_divide(text: &[u8], is_alone: bool) -> bool {
    if !is_marked(text) {
        return false;
    }
    let text = String::from_utf8_lossy(text);
    let parts: Vec<(&str, &str)> = text.split(OPEN).skip(1).filter_map(|part| part.split_once(CLOSE)).collect();
    let values = || parts.iter().map(|(name, _)| (name, RuntimeValue::of(name.split(':').next().unwrap_or_default())));
    let is_divided = values().any(|(name, value)| match value {
        Some(value) => value.form == Form::Lines,
        None => name.starts_with("output-of-") || name.starts_with("messages-of-"),
    });
    let has_value = values().any(|(_, value)| value.is_none_or(|value| !value.optional));
    let has_more = !text.starts_with(OPEN) || parts.iter().any(|(_, after)| !after.is_empty());
    is_divided || (is_alone && !has_value && !has_more)
}

/// Whether a text has a character that only marks have.
pub(super) fn has_private_use(text: &str) -> bool {
    text.contains(|char| ('\u{e000}'..='\u{e00f}').contains(&char))
}

/// Text for messages: markers become `{{ NAME }}`.
pub(super) fn legible(text: &str) -> String {
    let text = text.replace(OPEN, "{{ ").replace(CLOSE, " }}");
    text.replace(TOKEN.0, "{{ fetched ").replace("~\u{e003}", TOKEN.1).replace(TOKEN.1, " }}")
}

/// Which of the values are there, and how many elements lists have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Case {
    pub(super) absent: BTreeSet<&'static str>,
    pub(super) elements: usize,
}

impl Case {
    /// All are there.
    pub(super) fn whole() -> Self {
        Self { absent: BTreeSet::new(), elements: 1 }
    }

    /// None is.
    pub(super) fn bare() -> Self {
        Self { absent: RUNTIME.iter().map(|value| value.field).collect(), elements: 0 }
    }

    pub(super) fn without(&self, field: &'static str) -> Self {
        let absent = self.absent.iter().copied().chain([field]).collect();
        Self { absent, ..*self }
    }

    /// Whether a machine may lack the absent values.
    pub(super) fn may_occur(&self) -> bool {
        RUNTIME.iter().all(|value| value.optional || !self.absent.contains(value.field))
    }

    /// The values of templates in this case.
    pub(super) fn values(&self) -> impl Iterator<Item = (&'static str, Value)> {
        RUNTIME.iter().map(|value| (value.field, value.given(self)))
    }
}
