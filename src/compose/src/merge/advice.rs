//! Hints for merge errors.

use super::{Makes, MergeError, Occasion, PresetFault, ScriptFault, UnitFault};
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
        MergeError::Script { package, script, sha256, occasion, makes, fault } => {
            let entry = format!("\"package\": \"{package}\", \"script\": \"{script}\", \"sha256\": \"{sha256}\"");
            let (entry, place) = match occasion {
                Occasion::Install => (entry, format!("installs {package}")),
                Occasion::Upgrade => (format!("{entry}, \"upgrade\": true"), format!("installs {package}")),
                Occasion::Removal => (format!("{entry}, \"remove\": true"), format!("removes {package}")),
            };
            Some(of_script(&place, script, &entry, makes, fault))
        }
        MergeError::NotGranted { .. } => Some(
            "the path may lead there through a symbolic link of the image: `asks` must list the resolved path; report this to the publisher \
             and leave the bundle out until it is fixed"
                .to_owned(),
        ),
        MergeError::OtherUnit { path, .. } => Some(format!(
            "a grant for a directory of units only covers units of the bundle: `asks/paths` must list {path}; report this to the publisher \
             and leave the bundle out until it is fixed"
        )),
        MergeError::UnitPath { path, of, .. } => Some(format!(
            "`asks/paths` must list {of} or {path}; report this to the publisher and leave the bundle out until it is fixed"
        )),
        MergeError::ForeignProgram { path, .. } => Some(format!(
            "packages that are installed after the bundle would run {path} as root, whatever the bundle is granted: report this to the \
             publisher and leave the bundle out, or name the layer of the package in `requires` of the bundle, which installs the package first"
        )),
        MergeError::DeferredProgram { path, .. } => Some(format!(
            "the script would run {path} as root, whatever the bundle is granted: report this to the publisher, who can rename the program, \
             and leave the bundle out, or describe the script in `scripts` of a layer, so that it does not wait"
        )),
        MergeError::BootConfig { path, .. } => Some(format!(
            "`asks/paths` must list {}, or the publisher must remove the line; leave the bundle out until it is fixed",
            path.rsplit_once(".conf:").map_or(path.clone(), |(path, _)| format!("{path}.conf"))
        )),
        MergeError::SystemDirectory { layer, directory, .. } => {
            Some(format!("in `remove` of layer {layer}, list the unwanted paths below {directory} instead"))
        }
        MergeError::Unit { layer, unit, fault: UnitFault::Removed { .. } } => {
            Some(format!("to disable it first, add to layer {layer}: \"units\": {{\"disable\": [\"{unit}\"]}}"))
        }
        MergeError::Unit { fault: UnitFault::Refused { .. }, .. } => Some(
            "a drop-in adds to the lists of its unit: to replace a command, put a line with an empty value, such as `ExecStart=`, before the new one"
                .to_owned(),
        ),
        MergeError::TakenAway(taken) => Some(format!(
            "add the entry of `{}` to layer {} as well, or let one of the two layers leave the file as it is",
            taken.key, taken.second
        )),
        MergeError::Cleaned { path, layer, verb: "removes" } => Some(match path.contains("/.ssh/authorized_keys") {
            true => format!(
                "to let keys log in as the default user, list them in `ssh_authorized_keys` of layer {layer}; to keep this file, add \"keep\": [\"{path}\"]"
            ),
            false => format!("to keep it in the image, add to layer {layer}: \"keep\": [\"{path}\"]"),
        }),
        MergeError::Unit { fault: UnitFault::Unmet { hint, .. }, .. } => Some((*hint).to_owned()),
        MergeError::Unit { layer, fault: UnitFault::Unmaskable { path, .. }, .. } => Some(format!(
            "`systemctl mask` refuses this too; to replace the file, add to layer {layer}: \"symlinks\": {{\"{path}\": \"/dev/null\"}}"
        )),
        MergeError::Cleaned { layer, .. } => Some(format!("remove it from layer {layer}: images never have content there")),
        MergeError::LinkPrivilege { to, .. } => {
            Some(format!("list {to} instead, also in `modes` and `capabilities`"))
        }
        MergeError::Generated { .. } => Some(
            "remove the file from the layer; leave it out of an archive by listing the other files in `members`".to_owned(),
        ),
        MergeError::Hidden { .. } => Some(
            "choose other members or another path; a file in /etc/tmpfiles.d can create files there at each boot"
                .to_owned(),
        ),
        MergeError::MemberOwner { .. } => Some(
            "use \"extract\": \"no-same-owner\" in the layer or `tar --no-same-owner` in the profile, so that members belong to root".to_owned(),
        ),
        MergeError::InPlace { path, .. } => Some(format!(
            "a script that writes to {path} keeps the type, mode and owner of an existing file: import the profile with --base, or remove the file in the script first"
        )),
        MergeError::BeforePackages { .. } => Some(
            "dpkg replaces files that are not configuration files: install the package before the script writes the file".to_owned(),
        ),
        MergeError::ConffilePrompt { package, .. } => Some(format!(
            "install {package} before the script writes the file, or with `apt-get -o Dpkg::Options::=--force-confold`, which keeps the file"
        )),
        MergeError::TriggerCycle { .. } => Some(
            "replace one of their postinst scripts with an entry in `scripts` of the layer, which names its digest".to_owned(),
        ),
        MergeError::Preset { fault, .. } => of_preset(fault),
        MergeError::Unread { hint, .. } => Some((*hint).to_owned()),
        MergeError::Setting { what: "locale", .. } => {
            Some("the package locales-all has all locales: add it to `packages` of the layer".to_owned())
        }
        MergeError::Overwrites { package, owner, .. } => Some(format!(
            "dpkg refuses this too: use a version of {package} that replaces {owner}, or a base without {owner}"
        )),
        MergeError::ConffileMoves { owner, .. } => {
            Some(format!("use a base without {owner}, or one in which apt has already moved the conffile"))
        }
        MergeError::Needs { what: "user", name, .. } => {
            Some(format!("add \"{name}\" with a fixed id to `users` of the layer"))
        }
        MergeError::Needs { name, .. } => {
            Some(format!("add \"{name}\" with a fixed id to `groups` of the layer"))
        }
        MergeError::Version(other) => Some(format!(
            "to upgrade it, add to layer {}: \"upgrade\": [\"{}\"]; to keep it, pin version {}",
            other.layer, other.artifact, other.found
        )),
        MergeError::Downgrade { .. } => {
            Some("run `vmbake update` to pin the current version of the archive, or use an older base".to_owned())
        }
        MergeError::Architecture { found, .. } => {
            Some(format!("use a base without the package for {found}, or with the packages for both architectures"))
        }
        MergeError::Hold { package, .. } => {
            Some(format!("to allow the upgrade, run `apt-mark unhold {package}` in the base"))
        }
        MergeError::Conflicts { of_base: Some(package), .. } => Some(format!(
            "to remove {package} from the image, add to the layer: \"remove_packages\": [\"{package}\"]"
        )),
        MergeError::StillNeeded { by, layer, .. } => Some(format!(
            "add {by} to `remove_packages` of layer {layer} too, or install another package that satisfies the dependency"
        )),
        MergeError::Removes { package, layer, .. } => {
            Some(format!("take {package} out of `remove_packages` of layer {layer}"))
        }
        MergeError::Loses { package, .. } => Some(format!(
            "{}; or upgrade neither package",
            by_artifact(package, "the layer that upgrades the other package")
        )),
        MergeError::DependsOther { package, other, .. } => {
            Some(by_artifact(other, &format!("the layer that installs {package}")))
        }
        MergeError::Depends { package, .. } => {
            Some(format!("add the missing package to the manifest and to the layer that installs {package}"))
        }
        MergeError::Privilege { path, layer, .. } => {
            Some(format!("to keep these privileges, add to layer {layer}: \"setuid\": [\"{path}\"]"))
        }
        MergeError::NoPrivilege { layer, path } => {
            Some(format!("remove {path} from `setuid` of layer {layer}, or find out why the file has lost its privileges"))
        }
        MergeError::Through { link, .. } => Some(format!(
            "use the target of {link} in the path, or remove the link: artifacts are written only through links of the base"
        )),
        MergeError::PinnedId { name, .. } => {
            Some(format!("run `vmbake update` to pin another id for {name}, or set a fixed id in `users` or `groups` of a layer"))
        }
        MergeError::NoFreeId { name, .. } => Some(format!("set an id for {name} in `users` or `groups` of a layer")),
        MergeError::UnknownAccount { layer, .. } => {
            Some(format!("run `vmbake layer check` on the directory of layer {layer} to find the line"))
        }
        MergeError::FirstBoot { .. } => Some(
            "run `vmbake layer check` on the directories of the layers to find the lines of most errors; docs/layer-first-boot.md describes `first_boot`"
                .to_owned(),
        ),
        MergeError::Baked { .. } => Some(
            "a rule with `bake` only uses the defaults of variables: set defaults, or remove `bake`"
                .to_owned(),
        ),
        _ => of_program(error).map(str::to_owned),
    }
}

/// How a layer can replace a script, and what it then has to do itself.
fn of_script(place: &str, script: &str, entry: &str, makes: &Makes, fault: &ScriptFault) -> String {
    let place = format!("add to `scripts` of the layer that {place}");
    let created = makes.listed();
    if script == "postinst" && !matches!(fault, ScriptFault::Failed { .. }) {
        let before =
            if created.is_empty() { String::new() } else { format!("; until then the image lacks: {created}") };
        let rest = "docs/maintainer-scripts.md#replace-a-script lists the other keys of an entry";
        return format!(
            "{place}: {{{entry}, \"defer\": true}}, which defers the script to the first boot{before}; {rest}"
        );
    }
    let accounts = [("users", &makes.users), ("groups", &makes.groups)];
    let needed = accounts.into_iter().filter(|(_, names)| !names.is_empty());
    let needed: String = needed.map(|(key, names)| format!(", \"{key}\": [\"{}\"]", names.join("\", \""))).collect();
    let instead = if created.is_empty() {
        "the script does not seem to create accounts, directories or units".to_owned()
    } else {
        format!("the layer must create the following in its place, or the first boot fails: {created}")
    };
    let fails = match fault {
        ScriptFault::Failed { .. } => {
            "the script also fails on a machine unless the layer first adds what it needs; otherwise "
        }
        _ => "",
    };
    format!(
        "{fails}{place}: {{{entry}{needed}}}, which skips the script; {instead}; \
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
            Some("the layer's packages have no debconf questions: remove the answer".to_owned())
        }
        PresetFault::Unknown { known, .. } => {
            let rest = if known.len() > NAMED { ", ..." } else { "" };
            let named = known.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>();
            Some(format!("questions of the layer's packages: {}{rest}", named.join(", ")))
        }
        PresetFault::Choice { choices, .. } => Some(format!("use one of: {}", choices.join(", "))),
        PresetFault::Password => Some(
            "remove the answer: scripts that need a password run on the first boot; or set the password in `first_boot`"
                .to_owned(),
        ),
        PresetFault::NoAnswer { .. } | PresetFault::Templates { .. } | PresetFault::Database { .. } => None,
    }
}

fn of_program(error: &MergeError) -> Option<&'static str> {
    match error {
        MergeError::Machine { .. } => {
            Some("the manifest pins a file for another architecture: correct the URL in sources.json")
        }
        MergeError::Program { .. } => Some("the upstream file is corrupt or not a program: remove it from the layer"),
        MergeError::Interpreter { .. } => {
            Some("install the package that contains the interpreter, or exclude the file with `members` or `remove`")
        }
        MergeError::Library { .. } => Some(
            "install the package that contains the library: find it with `apt-file search` or in the upstream documentation",
        ),
        MergeError::Arch { .. } => Some("use --arch amd64 or --arch arm64"),
        _ => None,
    }
}
