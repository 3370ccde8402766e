//! Names of units (systemd.unit(5)), their specifiers, and valid aliases.

/// Longest name (`UNIT_NAME_MAX` of systemd), in bytes.
const NAME_MAX: usize = 255;

/// What kind of name it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitForm {
    Plain,
    /// `name@.kind`
    Template,
    /// `name@instance.kind`
    Instance,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Units that may have templates and aliases: services, sockets, targets, timers and paths.
    Common,
    /// Devices may have aliases.
    Device,
    /// Mounts, automounts, swaps, slices and scopes, each of which is known by its name.
    Named,
}

impl Kind {
    /// That of a unit by the end of its name.
    pub(super) fn of(unit: &str) -> Option<Self> {
        Some(match unit.rsplit_once('.')?.1 {
            "service" | "socket" | "target" | "timer" | "path" => Self::Common,
            "device" => Self::Device,
            "mount" | "automount" | "swap" | "slice" | "scope" => Self::Named,
            _ => return None,
        })
    }

    pub(super) fn may_alias(self) -> bool {
        self != Self::Named
    }
}

/// The form of a name; `None` for what is not a name of a unit.
pub fn unit_form(name: &str) -> Option<UnitForm> {
    let (stem, _) = name.rsplit_once('.').filter(|_| Kind::of(name).is_some() && name.len() <= NAME_MAX)?;
    let (prefix, instance) = stem.split_once('@').map_or((stem, None), |(prefix, instance)| (prefix, Some(instance)));
    if prefix.is_empty() || !is_instance(stem) {
        return None;
    }
    Some(match instance {
        None => UnitForm::Plain,
        Some("") => UnitForm::Template,
        Some(_) => UnitForm::Instance,
    })
}

/// Whether a text has the characters of an instance.
pub(super) fn is_instance(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte))
}

/// The prefix, the instance and the kind of a name.
fn parts(unit: &str) -> (&str, &str, &str) {
    let (stem, kind) = unit.rsplit_once('.').unwrap_or((unit, ""));
    let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
    (prefix, instance, kind)
}

/// A word with the specifiers of the unit's name replaced. `instance` is the unit with its default instance.
pub(super) fn specifiers(word: &str, unit: &str, instance: &str) -> Option<String> {
    let (prefix, ..) = parts(unit);
    let (mut out, mut chars) = (String::new(), word.chars());
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        out.push_str(match chars.next()? {
            'i' => parts(instance).1,
            'j' => prefix.rsplit('-').next().unwrap_or(prefix),
            'n' => instance,
            'N' => instance.rsplit_once('.').map_or(instance, |(stem, _)| stem),
            'p' => prefix,
            '%' => "%",
            _ => return None,
        });
    }
    Some(out)
}

/// The name of the link by which a unit gets an alias. The outer `None` is for names that it cannot have, the inner one for its own name.
#[allow(clippy::option_option)]
pub(super) fn alias(unit: &str, alias: &str) -> Option<Option<String>> {
    if let Some((dir, name)) = alias.split_once('/') {
        let dependent = [".wants", ".requires"].iter().find_map(|end| dir.strip_suffix(end));
        let form = dependent.and_then(unit_form)?;
        let is_named = name == unit && (unit_form(unit) != Some(UnitForm::Template) || form == UnitForm::Template);
        return (is_named || is_instance_of(name, unit)).then(|| Some(alias.to_owned()));
    }
    let ((prefix, _, kind), (_, instance, own_kind)) = (parts(alias), parts(unit));
    if kind != own_kind {
        return None;
    }
    let (form, own) = (unit_form(alias)?, unit_form(unit)?);
    let name = match (form, own) {
        (UnitForm::Plain, UnitForm::Plain) | (UnitForm::Template, UnitForm::Template) => alias.to_owned(),
        (UnitForm::Template, UnitForm::Instance) => format!("{prefix}@{instance}.{kind}"),
        (UnitForm::Instance, UnitForm::Template) => alias.to_owned(),
        (UnitForm::Instance, UnitForm::Instance) if parts(alias).1 == instance => alias.to_owned(),
        _ => return None,
    };
    Some((name != unit).then_some(name))
}

/// Whether a name is that of an instance of a template.
fn is_instance_of(name: &str, template: &str) -> bool {
    let ((prefix, _, kind), (own_prefix, _, own_kind)) = (parts(name), parts(template));
    unit_form(template) == Some(UnitForm::Template)
        && unit_form(name) == Some(UnitForm::Instance)
        && (prefix, kind) == (own_prefix, own_kind)
}
