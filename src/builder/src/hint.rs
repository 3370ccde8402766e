//! What to do about an error: the `hint:` line below it.

use std::error::Error;
use std::io::ErrorKind;

use vmbake_disk::disk::AssembleError;
use vmbake_disk::ext4::AuthorError;
use vmbake_disk::gpt::GptError;
use vmbake_disk::image::{ImageError, quoted};
use vmbake_disk::layout::LayoutError;
use vmbake_disk::signature::Role;

use crate::atomic_file::PublishError;
use crate::bake::BakeError;
use crate::bake::inputs::InputError;
use crate::compose::merge::MergeError;
use crate::compose::origin::OriginError;
use crate::compose::stage::StageError;
use crate::embedded::MissingProgram;
use crate::fetch::FetchError;
use crate::fetch::images::ImagesError;
use crate::fetch::verify::VerifyError;
use crate::image::inspect::InspectError;
use crate::layer::LayerError;
use crate::machine::MachineError;
use crate::pin::proof::program::ProgramError;
use crate::pin::prove::LinkError;
use crate::pin::update::UpdateError;
use crate::query::explain::ExplainError;
use crate::supply::download::DownloadError;
use crate::supply::http::HttpError;
use crate::supply::registry::RegistryError;
use crate::supply::store::StoreError;
use crate::user_data::{Problem, UserDataError};

/// The first advice that any error of the chain has.
pub fn hint(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(hint) = of_one(error) {
            return Some(hint);
        }
        next = passed_on(error).or_else(|| error.source());
    }
    None
}

/// The error that another one only passes on, and so does not name as its source.
pub(crate) fn passed_on<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    None.or_else(|| error.downcast_ref::<BakeError>()?.inner())
        .or_else(|| error.downcast_ref::<InputError>()?.inner())
        .or_else(|| error.downcast_ref::<ExplainError>()?.inner())
        .or_else(|| error.downcast_ref::<InspectError>()?.inner())
        .or_else(|| error.downcast_ref::<AssembleError>()?.inner())
        .or_else(|| error.downcast_ref::<StageError>()?.inner())
        .or_else(|| error.downcast_ref::<FetchError>()?.inner())
        .or_else(|| error.downcast_ref::<DownloadError>()?.inner())
        .or_else(|| error.downcast_ref::<RegistryError>()?.inner())
}

fn of_one(error: &(dyn Error + 'static)) -> Option<String> {
    let of_machine = |error: &(dyn Error + 'static)| error.downcast_ref::<MachineError>()?.hint();
    let of_file =
        |error| of_disk(error).or_else(|| of_image(error)).or_else(|| of_machine(error)).or_else(|| of_io(error));
    let of_store = |error: &(dyn Error + 'static)| error.downcast_ref::<StoreError>()?.hint();
    of_store(error).or_else(|| of_supply(error)).or_else(|| of_input(error)).or_else(|| of_file(error))
}

fn of_supply(error: &(dyn Error + 'static)) -> Option<String> {
    let text = match (error.downcast_ref::<FetchError>(), error.downcast_ref::<HttpError>()) {
        (Some(FetchError::Missing { .. }), _) => {
            "`vmbake fetch` downloads it, and so does a bake that is not --offline; --store names another store"
        }
        (Some(FetchError::LocalBase { .. }), _) => "--base names the file",
        (Some(FetchError::NoBase), _) => "--base names a disk image; `vmbake update` pins the published one",
        (_, Some(HttpError::Status { url, status: 403 | 429, .. })) if url.contains("github") => {
            "GITHUB_TOKEN raises the limit of GitHub's API, which is 60 requests an hour without it"
        }
        (
            _,
            Some(
                HttpError::Transport { .. }
                | HttpError::Broken { .. }
                | HttpError::Slow { .. }
                | HttpError::Deadline { .. },
            ),
        ) => "--mirror PREFIX=URL asks another place; https_proxy names a proxy, SSL_CERT_FILE more authorities",
        _ if matches!(error.downcast_ref(), Some(ImagesError::Unusable { .. })) => {
            "`vmbake fetch` downloads container images, and so does a bake that is not --offline"
        }
        _ if matches!(boxed(error), Some(ProgramError::Package { .. } | ProgramError::Version { .. })) => {
            "a signature does not say for which program and version it is, so that somebody may have put another one there: \
             tell upstream; if its releases have changed, correct `program` in sources.json"
        }
        _ if boxed::<LinkError>(error).is_some() => of_link(boxed(error)?),
        _ if matches!(error.downcast_ref(), Some(UpdateError::Incomplete { .. })) => {
            "what was resolved is kept: run it again for the rest when the reasons above are gone. An entry that is \
             deleted from the manifest takes whatever upstream has"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// The error, if it is one of that type, which others hold in a box.
fn boxed<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    error.downcast_ref().or_else(|| error.downcast_ref::<Box<E>>().map(|error| &**error))
}

fn of_link(error: &LinkError) -> &'static str {
    match error {
        LinkError::Absent { .. } | LinkError::Damaged { .. } | LinkError::Unseen | LinkError::Oci(_) => {
            "`vmbake fetch` brings artifacts and evidence that a manifest pins; --store names another store"
        }
        LinkError::NoEvidence { .. } | LinkError::Unlisted { .. } => {
            "`vmbake update --refresh` proves every entry again, and pins what proves it"
        }
        LinkError::Unknown { .. } => {
            "--sources names what its source demands; without a source an entry is pinned by hand, and has no `proof`"
        }
        LinkError::Download { .. } => {
            "`vmbake update --refresh` pins what upstream has now; --mirror names a place that still has the evidence"
        }
        _ => {
            "somebody has changed the manifest, or what is trusted has changed since: `vmbake update --refresh` proves every \
             entry again from upstream"
        }
    }
}

fn of_input(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(VerifyError::Digest { .. } | VerifyError::Size { .. }) = error.downcast_ref() {
        return Some(
            "`vmbake fetch` replaces what is damaged in the store; else the manifest is of another file".to_owned(),
        );
    }
    if let Some(LayerError::Faults(_)) = error.downcast_ref() {
        return Some(
            "`vmbake schema layer` prints the form, for editors; layers/README.md says what it means".to_owned(),
        );
    }
    if let Some(MissingProgram { .. }) = error.downcast_ref() {
        return Some("run `make firstboot` and build vmbake again".to_owned());
    }
    if let Some(OriginError::Lost { layer }) = error.downcast_ref() {
        return Some(format!("bake the kind with a layer that requires {layer}, or on what this base was baked on"));
    }
    if let Some(error) = error.downcast_ref::<UserDataError>() {
        return of_user_data(error);
    }
    match error.downcast_ref::<MergeError>() {
        Some(MergeError::Script { package, script, sha256, upgrade, .. }) => {
            let upgrade = if *upgrade { ", \"upgrade\": true" } else { "" };
            Some(format!(
                "read the script; if its effect can be said as data, add to `scripts` of the layer that installs {package}: \
                 {{\"package\": \"{package}\", \"script\": \"{script}\", \"sha256\": \"{sha256}\"{upgrade}}}"
            ))
        }
        Some(MergeError::Trigger { trigger, interested, sha256, .. }) => Some(format!(
            "read the postinst of {interested} in the base; if its effect can be said as data, or may wait for the first \
             boot (\"defer\": true), add to `scripts` of the layer: {{\"package\": \"{interested}\", \"script\": \
             \"postinst\", \"sha256\": \"{sha256}\", \"triggers\": [\"{trigger}\"]}}"
        )),
        Some(MergeError::Overwrites { package, owner, .. }) => Some(format!(
            "dpkg refuses it too: only a version of {package} that replaces {owner}, or a base without {owner}, will do"
        )),
        Some(MergeError::ConffileMoves { owner, .. }) => {
            Some(format!("take a base without {owner}, or one where apt has moved it"))
        }
        Some(MergeError::Needs { what: "user", name, .. }) => {
            Some(format!("add to `users` of the layer: \"{name}\", with an id that it keeps"))
        }
        Some(MergeError::Version(other)) => Some(format!(
            "add to layer {}: \"upgrade\": [\"{}\"], which replaces it as dpkg would; or pin version {}",
            other.layer, other.artifact, other.found
        )),
        Some(MergeError::Downgrade { .. }) => {
            Some("`vmbake update` pins what the archive has now; else take a base that is not newer".to_owned())
        }
        Some(MergeError::Architecture { found, .. }) => {
            Some(format!("take a base without the package for {found}, or one with both"))
        }
        Some(MergeError::Hold { package, .. }) => {
            Some(format!("`apt-mark unhold {package}` in the base, if it may be replaced"))
        }
        Some(MergeError::Loses { package, .. }) => Some(format!(
            "add a version of {package} that fits to the manifest and to the layer, with `upgrade`; or upgrade neither"
        )),
        Some(MergeError::Depends { package, .. }) => {
            Some(format!("add the missing package to the manifest and to the layer that installs {package}"))
        }
        Some(MergeError::Privilege { path, layer, .. }) => {
            Some(format!("if it must run as somebody else, add to layer {layer}: \"setuid\": [\"{path}\"]"))
        }
        Some(MergeError::NoPrivilege { layer, path }) => {
            Some(format!("remove {path} from `setuid` of layer {layer}, or find out who took its bits"))
        }
        Some(MergeError::Through { link, .. }) => Some(format!(
            "name the place that {link} leads to, or drop the link: only links of the base are ways for artifacts"
        )),
        Some(MergeError::UnknownAccount { layer, .. }) => {
            Some(format!("`vmbake layer check` names the line, with the directory of layer {layer}"))
        }
        Some(MergeError::FirstBoot { .. }) => Some(
            "`vmbake layer check` names the lines of most of these, with the directories of the layers; \
             layers/README.md has the language of `first_boot`"
                .to_owned(),
        ),
        Some(MergeError::Baked { .. }) => Some(
            "a rule with `bake` has nothing but the defaults of the variables: give them some, or leave `bake` out"
                .to_owned(),
        ),
        Some(error) => of_program(error).map(str::to_owned),
        None => None,
    }
}

fn of_user_data(error: &UserDataError) -> Option<String> {
    match error {
        UserDataError::Settings { kind, problems }
            if problems.iter().any(|one| matches!(one, Problem::Unknown { .. })) =>
        {
            Some(format!("`vmbake user-data keys --kind {kind}` lists the settings that there are"))
        }
        UserDataError::TooLarge { .. } => Some(
            "settings that may change can come later, by the agent; of several certificates the root may be enough"
                .to_owned(),
        ),
        _ => None,
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

/// What a disk image is, and what is on it.
fn of_disk(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<ImageError>() {
        return error.hint();
    }
    match (error.downcast_ref::<InspectError>(), error.downcast_ref::<LayoutError>()) {
        (Some(InspectError::Layout { path, error }), _) => of_layout(error, &quoted(path)),
        (Some(error), _) => of_partition(error),
        (None, Some(error)) => of_layout(error, "IMAGE"),
        (None, None) => of_base(error).map(str::to_owned),
    }
}

fn of_layout(error: &LayoutError, image: &str) -> Option<String> {
    match error {
        LayoutError::SeveralRoots { .. } => Some("--partition N chooses one of them".to_owned()),
        LayoutError::NoRoot { .. } => {
            Some(format!("--partition N chooses the partition; `vmbake inspect {image}` says what is on each"))
        }
        LayoutError::NoPartition { .. } => Some(format!("`vmbake inspect {image}` lists the partitions")),
        LayoutError::Nothing => Some(format!(
            "it may be encrypted, damaged or in another format: `qemu-img info {image}` and `file -s {image}` know more of them"
        )),
        LayoutError::Gpt(GptError::BothUnusable { .. }) => Some(format!(
            "the file may be incomplete: compare its length with the original's; `sgdisk --verify {image}` says more of a raw one"
        )),
        _ => None,
    }
}

/// What to do about a partition whose files are not read.
fn of_partition(error: &InspectError) -> Option<String> {
    let (at, role) = match error {
        InspectError::Unread { at, found } if found.name == "iso9660" => {
            let image = quoted(&at.path);
            return Some(format!("`xorriso -osirrox on -indev {image} -extract / DIR` unpacks an installation medium"));
        }
        InspectError::Unread { at, found } => (at, Some(found.role)),
        InspectError::NoFileSystem { at } => (at, None),
        _ => return None,
    };
    let image = quoted(&at.path);
    Some(match role {
        None | Some(Role::Swap | Role::Metadata) => {
            format!("--partition N chooses another partition; `vmbake inspect {image}` says what is on each")
        }
        Some(_) => format!("`guestfish --ro -i -a {image}`, of Debian's package guestfish, may open it"),
    })
}

/// What keeps a disk from being a base.
fn of_base(error: &(dyn Error + 'static)) -> Option<&'static str> {
    match error.downcast_ref::<AssembleError>()? {
        AssembleError::Mbr => Some(
            "take a base with a GUID partition table, as Debian's cloud images have one; `sgdisk --mbrtogpt` makes one of a \
             raw disk that boots by UEFI",
        ),
        AssembleError::NoTable { .. } => Some(
            "take the image of a whole disk, such as debian-13-genericcloud-amd64.qcow2; a bare file system does not boot",
        ),
        AssembleError::InTheWay { .. } => {
            Some("bake without --size, or remove that partition from a copy of the base: `sgdisk --delete=N COPY`")
        }
        AssembleError::Gpt(GptError::SectorSize { .. }) => {
            Some("take a base with sectors of 512 bytes, as cloud images have; vmbake only reads the other ones")
        }
        _ => None,
    }
}

fn of_image(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(AuthorError::TooSmall { .. }) = error.downcast_ref() {
        return Some("--size makes the disk larger".to_owned());
    }
    if let Some(PublishError::Exists { .. }) = error.downcast_ref() {
        return Some("--force replaces it".to_owned());
    }
    if let Some(ExplainError::Beside { .. }) = error.downcast_ref() {
        let text = "--record FILE goes by a record that you trust: after the bake one of the two was changed, or both are \
                    not of one bake";
        return Some(text.to_owned());
    }
    None
}

fn of_io(error: &(dyn Error + 'static)) -> Option<String> {
    match error.downcast_ref::<std::io::Error>()?.kind() {
        ErrorKind::StorageFull => Some("the file system is full: --out names another directory".to_owned()),
        ErrorKind::PermissionDenied => Some("vmbake needs no root, but it must read its inputs".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_is_passed_on_keeps_its_hint() {
        let exists = PublishError::Exists { path: "dist/x.raw".into() };
        let passed: Box<dyn Error> = Box::new(BakeError::from(exists));
        assert_eq!(hint(&*passed).as_deref(), Some("--force replaces it"));
        let missing = crate::compose::stage::StageError::from(MissingProgram { arch: "arm64".to_owned() });
        let passed: Box<dyn Error> = Box::new(BakeError::from(missing));
        assert!(hint(&*passed).is_some_and(|hint| hint.contains("make firstboot")));
        let absent = HttpError::Status {
            url: "https://api.github.com/x".into(),
            status: 403,
            retry_after: None,
            challenge: None,
        };
        let passed = FetchError::Download { name: "x".into(), source: absent.into() };
        assert!(hint(&passed).is_some_and(|hint| hint.contains("GITHUB_TOKEN")));
        let [path, artifact] = ["/opt/p", "a"].map(str::to_owned);
        let passed: Box<dyn Error> =
            Box::new(BakeError::from(MergeError::Interpreter { path, artifact, interpreter: "/bin/ruby".to_owned() }));
        assert!(hint(&*passed).is_some_and(|hint| hint.contains("`members`")));
        let surprise = MergeError::Privilege {
            path: "/usr/bin/x".into(),
            artifact: "a".into(),
            layer: "l".into(),
            privilege: "mode 4755".into(),
        };
        let passed: Box<dyn Error> = Box::new(BakeError::from(surprise));
        assert!(hint(&*passed).is_some_and(|hint| hint.ends_with("add to layer l: \"setuid\": [\"/usr/bin/x\"]")));
        let script = |upgrade| MergeError::Script {
            package: "p".into(),
            script: "postinst",
            sha256: "0".into(),
            upgrade,
            reason: "r".into(),
            text: "t".into(),
        };
        assert!(hint(&script(true)).is_some_and(|hint| hint.ends_with("\"sha256\": \"0\", \"upgrade\": true}")));
        assert!(hint(&script(false)).is_some_and(|hint| hint.ends_with("\"sha256\": \"0\"}")));
        let full = std::io::Error::from(ErrorKind::StorageFull);
        assert!(hint(&full).is_some_and(|hint| hint.contains("--out")));
    }
}
