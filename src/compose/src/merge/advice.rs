//! What to do about what the merge refuses.

use super::{Makes, MergeError, PresetFault, ScriptFault, UnitFault};
use vmbake_common::hint::Hint;
use vmbake_common::spelling::did_you_mean;

impl Hint for MergeError {
    fn hint(&self) -> Option<String> {
        of_merge(self)
    }

    fn has_lines(&self) -> bool {
        matches!(self, Self::FirstBoot { .. } | Self::Script { .. })
    }

    vmbake_common::causes!(Version, Message; Tree, Program);
}

fn of_merge(error: &MergeError) -> Option<String> {
    match error {
        MergeError::Script { package, script, sha256, upgrade, makes, fault } => {
            let entry = format!("\"package\": \"{package}\", \"script\": \"{script}\", \"sha256\": \"{sha256}\"");
            let entry = if *upgrade { format!("{entry}, \"upgrade\": true") } else { entry };
            Some(of_script(package, script, &entry, makes, fault))
        }
        MergeError::NotGranted { .. } => Some(
            "a symbolic link of the image may lead there: `asks` must name the resolved path; report this to the publisher, and leave the \
             bundle out until it is fixed"
                .to_owned(),
        ),
        MergeError::OtherUnit { path, .. } => Some(format!(
            "a grant of a directory of units is for those of the bundle: `asks/paths` must name {path}; report this to the publisher, and leave \
             the bundle out until it is fixed"
        )),
        MergeError::BootConfig { path, .. } => Some(format!(
            "`asks/paths` must name {}, or the publisher remove the line; leave the bundle out until it is fixed",
            path.rsplit_once(".conf:").map_or(path.clone(), |(path, _)| format!("{path}.conf"))
        )),
        MergeError::SystemDirectory { layer, directory, .. } => {
            Some(format!("list in `remove` of layer {layer} the paths below {directory} that are not wanted"))
        }
        MergeError::Cleaned { path, layer, verb: "removes" } => Some(match path.contains("/.ssh/authorized_keys") {
            true => format!(
                "`ssh_authorized_keys` of layer {layer} lets keys log in as the default user; \"keep\": [\"{path}\"] keeps this file"
            ),
            false => format!("to keep it in the image, add to layer {layer}: \"keep\": [\"{path}\"]"),
        }),
        MergeError::Unit { layer, fault: UnitFault::Unmaskable { path, .. }, .. } => Some(format!(
            "`systemctl mask` refuses this, too; to replace it, add to layer {layer}: \"symlinks\": {{\"{path}\": \"/dev/null\"}}"
        )),
        MergeError::Cleaned { layer, .. } => Some(format!("remove it from layer {layer}: no image has content there")),
        MergeError::LinkPrivilege { to, .. } => {
            Some(format!("name {to} in its place, in `modes` and `capabilities` as well"))
        }
        MergeError::Hidden { .. } => Some(
            "choose other members or another path; a file in /etc/tmpfiles.d can create files there at each boot"
                .to_owned(),
        ),
        MergeError::MemberOwner { .. } => Some(
            "with \"extract\": \"no-same-owner\" in the layer, or `tar --no-same-owner` in the profile, members belong to root".to_owned(),
        ),
        MergeError::InPlace { path, .. } => Some(format!(
            "a script that writes to {path} keeps what is there: import the profile with --base, or have the script remove the file first"
        )),
        MergeError::BeforePackages { .. } => Some(
            "dpkg replaces files that are not configuration files: have the script install the package first".to_owned(),
        ),
        MergeError::ConffilePrompt { package, .. } => Some(format!(
            "have the script install {package} first, or with `apt-get -o Dpkg::Options::=--force-confold`, which keeps the file"
        )),
        MergeError::TriggerCycle { .. } => Some(
            "answer for one of their triggers in `scripts` of the layer, with the digest of its postinst".to_owned(),
        ),
        MergeError::Preset { fault, .. } => of_preset(fault),
        MergeError::Unread { hint, .. } => Some((*hint).to_owned()),
        MergeError::Setting { what: "locale", .. } => {
            Some("the package locales-all has all locales: add it to `packages` of the layer".to_owned())
        }
        MergeError::Overwrites { package, owner, .. } => Some(format!(
            "dpkg refuses it too: only a version of {package} that replaces {owner}, or a base without {owner}, will do"
        )),
        MergeError::ConffileMoves { owner, .. } => {
            Some(format!("take a base without {owner}, or one where apt has moved it"))
        }
        MergeError::Needs { what: "user", name, .. } => {
            Some(format!("add to `users` of the layer: \"{name}\", with an id that it keeps"))
        }
        MergeError::Needs { name, .. } => {
            Some(format!("add to `groups` of the layer: \"{name}\", with an id that it keeps"))
        }
        MergeError::Version(other) => Some(format!(
            "add to layer {}: \"upgrade\": [\"{}\"], which replaces it as dpkg would; or pin version {}",
            other.layer, other.artifact, other.found
        )),
        MergeError::Downgrade { .. } => {
            Some("`vmbake update` pins what the archive has now; else take a base that is not newer".to_owned())
        }
        MergeError::Architecture { found, .. } => {
            Some(format!("take a base without the package for {found}, or one with both"))
        }
        MergeError::Hold { package, .. } => {
            Some(format!("`apt-mark unhold {package}` in the base, if it may be replaced"))
        }
        MergeError::Loses { package, .. } => Some(format!(
            "{}; or upgrade neither",
            by_artifact(package, "the layer that upgrades the other package")
        )),
        MergeError::DependsOther { package, other, .. } => {
            Some(by_artifact(other, &format!("the layer that installs {package}")))
        }
        MergeError::Depends { package, .. } => {
            Some(format!("add the missing package to the manifest and to the layer that installs {package}"))
        }
        MergeError::Privilege { path, layer, .. } => {
            Some(format!("if it must run as another user, add to layer {layer}: \"setuid\": [\"{path}\"]"))
        }
        MergeError::NoPrivilege { layer, path } => {
            Some(format!("remove {path} from `setuid` of layer {layer}, or find out who took its bits"))
        }
        MergeError::Through { link, .. } => Some(format!(
            "name the place that {link} leads to, or drop the link: only links of the base are ways for artifacts"
        )),
        MergeError::PinnedId { name, .. } => {
            Some(format!("`vmbake update` pins another id for {name}; a layer's `users` gives it one for good"))
        }
        MergeError::NoFreeId { name, .. } => Some(format!("a layer's `users` or `groups` can give {name} an id")),
        MergeError::UnknownAccount { layer, .. } => {
            Some(format!("`vmbake layer check` names the line, with the directory of layer {layer}"))
        }
        MergeError::FirstBoot { .. } => Some(
            "`vmbake layer check` names the lines of most of these, with the directories of the layers; \
             docs/layer-first-boot.md describes `first_boot`"
                .to_owned(),
        ),
        MergeError::Baked { .. } => Some(
            "a rule with `bake` has nothing but the defaults of the variables: give them some, or leave `bake` out"
                .to_owned(),
        ),
        _ => of_program(error).map(str::to_owned),
    }
}

/// How a layer can replace a script, and what it then has to do itself.
fn of_script(package: &str, script: &str, entry: &str, makes: &Makes, fault: &ScriptFault) -> String {
    let place = format!("add to `scripts` of the layer that installs {package}");
    let created = makes.listed();
    if script == "postinst" && !matches!(fault, ScriptFault::Failed { .. }) {
        let before = if created.is_empty() {
            String::new()
        } else {
            format!("; until then the image lacks what it creates: {created}")
        };
        let rest = "docs/maintainer-scripts.md#replace-a-script lists the other keys of an entry";
        return format!("{place}: {{{entry}, \"defer\": true}}, which leaves it to the first boot{before}; {rest}");
    }
    let accounts = [("users", &makes.users), ("groups", &makes.groups)];
    let needed = accounts.into_iter().filter(|(_, names)| !names.is_empty());
    let needed: String = needed.map(|(key, names)| format!(", \"{key}\": [\"{}\"]", names.join("\", \""))).collect();
    let instead = if created.is_empty() {
        "its text shows no account, directory or unit that it creates".to_owned()
    } else {
        format!("the layer has to create what the script creates, or the first boot fails: {created}")
    };
    let fails = match fault {
        ScriptFault::Failed { .. } => {
            "it fails on a machine, too, unless the layer first adds what the script needs; else "
        }
        _ => "",
    };
    format!(
        "{fails}{place}: {{{entry}{needed}}}, which leaves it out; {instead}; \
         docs/maintainer-scripts.md#replace-a-script lists the keys of an entry"
    )
}

/// How a layer upgrades a package of the base by an artifact of the manifest.
fn by_artifact(package: &str, layer: &str) -> String {
    format!(
        "list {package} in `dependencies` of the sources, and add to {layer}: \
         \"artifacts\": {{\"{package}\": {{\"type\": \"deb\"}}}}, \"upgrade\": [\"{package}\"]"
    )
}

/// Questions that are named at most, where none is like the one that is not known.
const NAMED: usize = 20;

fn of_preset(fault: &PresetFault) -> Option<String> {
    match fault {
        PresetFault::Unknown { near, .. } if !near.is_empty() => Some(did_you_mean(near)),
        PresetFault::Unknown { known, .. } if known.is_empty() => {
            Some("none of the layer's packages asks anything: remove the answer".to_owned())
        }
        PresetFault::Unknown { known, .. } => {
            let rest = if known.len() > NAMED { ", ..." } else { "" };
            let named = known.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>();
            Some(format!("the layer's packages ask {}{rest}", named.join(", ")))
        }
        PresetFault::Choice { choices, .. } => Some(format!("take one of {}", choices.join(", "))),
        PresetFault::Password => Some(
            "remove it: a script that needs a password waits for the first boot; or set it there, in `first_boot`"
                .to_owned(),
        ),
        PresetFault::NoAnswer { .. } | PresetFault::Templates { .. } | PresetFault::Database { .. } => None,
    }
}

fn of_program(error: &MergeError) -> Option<&'static str> {
    match error {
        MergeError::Machine { .. } => {
            Some("the manifest pins what upstream made for another architecture: correct it in sources.json")
        }
        MergeError::Program { .. } => Some("upstream's file is damaged, or no program: leave it out of the layer"),
        MergeError::Interpreter { .. } => {
            Some("install the package that has the interpreter, or leave the file out with `members` or `remove`")
        }
        MergeError::Library { .. } => {
            Some("install the package that has the library: `apt-file search` names it, or upstream's documentation")
        }
        MergeError::Arch { .. } => Some("--arch takes amd64 or arm64"),
        _ => None,
    }
}
