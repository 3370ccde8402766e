//! Keys of a layer that are short for configuration files, such as `sysctl` and `hostname`: a [`Schema`] in, files and links out.
//!
//! They are treated like files below `files/`: the same checks apply, and `explain` names their layer.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::findings::Findings;
use super::position::child;
use super::text::{Scalar, Words};
use super::{Schema, keys, ssh_key, sysctl, validate};

/// Directory of units that a layer adds.
pub(super) const UNITS: &str = "/etc/systemd/system";

/// Keyboard of the console (keyboard(5)).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Keyboard {
    /// Layout, such as `de`, or several, separated by commas.
    pub layout: String,
    /// Model; `pc105` by default.
    #[serde(default = "pc105")]
    pub model: String,
    /// Variant of the layout.
    #[serde(default)]
    pub variant: String,
    /// Options, separated by commas.
    #[serde(default)]
    pub options: String,
}

fn pc105() -> String {
    "pc105".to_owned()
}

/// A file that a key of the layer writes, and the JSON pointer of that key (RFC 6901).
pub(super) struct Setting {
    pub(super) pointer: String,
    pub(super) path: String,
    pub(super) content: String,
    /// The mode, if it is not the default.
    pub(super) mode: Option<u16>,
}

impl Setting {
    pub(super) fn new(pointer: String, path: String, content: String) -> Self {
        Self { pointer, path, content, mode: None }
    }
}

/// The files that the keys of a layer write.
pub(super) fn files(schema: &Schema) -> Vec<Setting> {
    let contents = schema.files.iter().filter_map(|(path, file)| {
        let content = file.content.as_ref()?.as_str().to_owned();
        Some(Setting::new(child("/files", path) + "/content", path.clone(), content))
    });
    let units = schema.units.files.iter().map(|(unit, text)| {
        Setting::new(child("/units/files", unit), format!("{UNITS}/{unit}"), text.as_str().to_owned())
    });
    let mut settings: Vec<Setting> = contents.chain(units).chain(keys::files(schema)).collect();
    let mut add = |pointer: String, path: String, content: String| settings.push(Setting::new(pointer, path, content));
    let name = &schema.name;
    let line = |(key, value): (&String, &Scalar)| format!("{key} = {value}\n");
    if !schema.sysctl.is_empty() {
        add("/sysctl".to_owned(), format!("/etc/sysctl.d/60-{name}.conf"), schema.sysctl.iter().map(line).collect());
    }
    if !schema.modules_load.is_empty() {
        let modules = schema.modules_load.iter().map(|module| format!("{module}\n")).collect();
        add("/modules_load".to_owned(), format!("/etc/modules-load.d/{name}.conf"), modules);
    }
    let mut cloud = BTreeMap::new();
    if let Some(hostname) = &schema.hostname {
        add("/hostname".to_owned(), "/etc/hostname".to_owned(), format!("{hostname}\n"));
        // Else cloud-init would take that of the cloud.
        cloud.insert("preserve_hostname", json!(true));
    }
    if !schema.ssh_authorized_keys.is_empty() {
        cloud.insert("ssh_authorized_keys", json!(schema.ssh_authorized_keys));
    }
    if !cloud.is_empty() {
        let pointer = if schema.hostname.is_some() { "/hostname" } else { "/ssh_authorized_keys" };
        // JSON is YAML.
        add(pointer.to_owned(), format!("/etc/cloud/cloud.cfg.d/95-{name}.cfg"), format!("{}\n", json!(cloud)));
    }
    if !schema.kernel_arguments.is_empty() {
        // Read last, and by every later update-grub as well.
        let arguments = schema.kernel_arguments.join(" ");
        let content = format!("GRUB_CMDLINE_LINUX=\"${{GRUB_CMDLINE_LINUX:+$GRUB_CMDLINE_LINUX }}{arguments}\"\n");
        add("/kernel_arguments".to_owned(), format!("/etc/default/grub.d/90-{name}.cfg"), content);
    }
    if let Some(locale) = schema.locale.as_ref().and_then(|locales| locales.as_slice().first()) {
        add("/locale".to_owned(), "/etc/default/locale".to_owned(), format!("LANG={locale}\n"));
    }
    if let Some(Keyboard { layout, model, variant, options }) = &schema.keyboard {
        let content = format!(
            "XKBMODEL=\"{model}\"\nXKBLAYOUT=\"{layout}\"\nXKBVARIANT=\"{variant}\"\nXKBOPTIONS=\"{options}\"\nBACKSPACE=\"guess\"\n"
        );
        add("/keyboard".to_owned(), "/etc/default/keyboard".to_owned(), content);
    }
    if let Some(motd) = &schema.motd {
        add("/motd".to_owned(), "/etc/motd".to_owned(), motd.as_str().to_owned());
    }
    settings
}

/// Arguments that add to earlier ones of the same name, in any order.
const REPEATED: [&str; 6] =
    ["earlycon", "memmap", "modprobe.blacklist", "systemd.mask", "systemd.setenv", "systemd.wants"];

/// Kernel arguments by name, with the values of each. The kernel takes `-` and `_` in names as equal.
pub(super) fn argument_entries(schema: &Schema) -> Vec<(String, String)> {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for argument in &schema.kernel_arguments {
        let (name, value) = argument.split_once('=').unwrap_or((argument.as_str(), ""));
        if !REPEATED.contains(&name) {
            found.entry(name.replace('-', "_")).or_default().push(value);
        }
    }
    found.into_iter().map(|(name, values)| (name, values.join(" "))).collect()
}

/// The keys of the default user, as one value: cloud-init takes the list of one file, and ignores those of all others.
pub(super) fn ssh_key_entries(schema: &Schema) -> Vec<(String, String)> {
    let keys = &schema.ssh_authorized_keys;
    let entry = (!keys.is_empty()).then(|| ("ssh_authorized_keys".to_owned(), keys.join("\n")));
    entry.into_iter().collect()
}

/// The symbolic link that the keys of a layer create: path and target.
pub(super) fn symlinks(schema: &Schema) -> Option<(String, String)> {
    let zone = schema.timezone.as_ref()?;
    Some(("/etc/localtime".to_owned(), format!("/usr/share/zoneinfo/{zone}")))
}

/// Validates the settings.
pub fn check(found: &mut Findings, schema: &Schema) {
    let made_of = |text: &str, more: &[u8]| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
    };
    let unless = |fine: bool, text: &str, what: &str| (!fine).then(|| format!("{text:?} is not a valid {what}"));
    found.keys("/units/files", schema.units.files.keys(), validate::unit);
    found.keys("/sysctl", schema.sysctl.keys(), |key| {
        unless(made_of(key, b"-_./*") && !key.starts_with('-'), key, "variable of sysctl")
    });
    sysctl::check(found, schema);
    for (key, value) in &schema.sysctl {
        found.value(child("/sysctl", key), validate::line(&value.to_string()));
    }
    found.list("/modules_load", &schema.modules_load, |module| unless(made_of(module, b"-_"), module, "kernel module"));
    let host = |name: &str| {
        let label =
            |label: &str| made_of(label, b"-") && !label.starts_with('-') && !label.ends_with('-') && label.len() < 64;
        unless(name.len() <= 64 && name.split('.').all(label), name, "host name")
    };
    found.value("/hostname".to_owned(), schema.hostname.as_deref().and_then(host));
    let zone = |zone: &str| {
        let fine = made_of(zone, b"-_+/") && zone.split('/').all(|part| !part.is_empty());
        unless(fine, zone, "time zone, such as Europe/Berlin")
    };
    found.value("/timezone".to_owned(), schema.timezone.as_deref().and_then(zone));
    let locale = |locale: &str| unless(made_of(locale, b"-_.@"), locale, "locale, such as C.UTF-8");
    let locales = schema.locale.as_ref().map(Words::as_slice);
    found.value("/locale".to_owned(), locales.unwrap_or_default().iter().find_map(|name| locale(name)));
    found
        .value("/locale".to_owned(), locales.is_some_and(<[String]>::is_empty).then(|| "the list is empty".to_owned()));
    found.list("/kernel_arguments", &schema.kernel_arguments, |argument| {
        // Others have a meaning for the shell that reads the settings, or for GRUB.
        let fine = made_of(argument, b"-_.,:=/@+%!");
        (!fine).then(|| format!("{argument:?} is not a single kernel argument of letters, digits and -_.,:=/@+%!"))
    });
    if let Some(Keyboard { layout, model, variant, options }) = &schema.keyboard {
        for (key, value) in [("layout", layout), ("model", model), ("variant", variant), ("options", options)] {
            let fine = value.is_empty() && key != "layout" || made_of(value, b"-_,:()");
            found.value(format!("/keyboard/{key}"), unless(fine, value, &format!("value of `{key}`")));
        }
    }
    found.list("/ssh_authorized_keys", &schema.ssh_authorized_keys, ssh_key::fault);
}
