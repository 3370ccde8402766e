//! The root file system as a container image: the files of an OCI image layout (OCI image specification 1.1) with one
//! layer, and the list that `docker load` reads.
//!
//! Documents contain no clock or host; their time is that of files created by the bake.

use std::fs::File;
use std::sync::Arc;

use serde_json::{Value, json};
use vmbake_common::digest::Digest;
use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_disk::source::{FileSource, Map, ReadAt};
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};
use vmbake_layer::{Container, Layer};
use vmbake_manifest::Manifest;
use vmbake_oci::{Descriptor, INDEX, Index, MARKER, MARKER_FILE, REF_NAME};

use crate::packed::Packed;

const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
/// Readers without support for zstd are common.
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// The list of images for `docker load` (Docker Image Specification v1.2).
const DOCKER_LIST: &str = "manifest.json";
/// Annotation with containerd's name of an image.
const CONTAINERD_NAME: &str = "io.containerd.image.name";
/// Directory of the blobs.
const BLOBS: &str = "blobs/sha256";
/// The program of an image whose layers state none.
const INIT: &str = "/sbin/init";
/// The signal that shuts systemd down.
const INIT_STOP: &str = "SIGRTMIN+3";
/// `PATH` of root on Debian.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A container image without its layer.
pub(super) struct ContainerImage {
    /// `<kind>.<os-name>.<arch>`.
    name: String,
    kind: String,
    version: String,
    architecture: &'static str,
    time: Timestamp,
    created: String,
    settings: Container,
}

impl ContainerImage {
    /// The image of a tree, with the settings of its layers.
    pub(super) fn new(manifest: &Manifest, layers: &[Layer], tree: &Tree, time: Timestamp) -> Result<Self, Message> {
        let content = manifest.content();
        let architecture = architecture(&content.os.arch);
        let created = jiff::Timestamp::from_second(time.secs).map(|time| time.to_string());
        Ok(Self {
            name: manifest.name(),
            kind: content.kind.clone(),
            version: content.version.clone(),
            architecture: architecture.ok_or_else(|| {
                message!("no container image can be written for {:?}: it has no name in OCI images", content.os.arch)
            })?,
            time,
            created: created.map_err(|error| message!("the time of the image is out of range: {error}"))?,
            settings: settings(layers, tree)?,
        })
    }

    /// The layout with this layer, as a tree: few documents, and the layer as a reference to its file.
    pub(super) fn layout(&self, layer: &Packed, file: File) -> Result<Tree, Message> {
        let failed = |source| message!("cannot write the documents of the container image").by(source);
        let (config, manifest) = self.documents(layer).map_err(failed)?;
        let entry = Descriptor::new(MANIFEST_TYPE, Digest::of(&manifest), manifest.len() as u64);
        let (name, full) = (self.reference(), format!("localhost/{}:latest", self.reference()));
        let entry = entry.annotated(&[(CONTAINERD_NAME, &full), (REF_NAME, &name)]);
        let entry = entry.of_platform("linux", self.architecture);
        let index = serde_json::to_vec(&Index::of(vec![entry])).map_err(failed)?;
        let docker = serde_json::to_vec(&json!([{
            "Config": blob_path(&Digest::of(&config)),
            "RepoTags": [full],
            "Layers": [blob_path(&layer.digest)],
        }]));
        let source = FileSource::new(file).map_err(|error| message!("cannot read the layer back").by(error))?;
        let mut files: Vec<(String, Arc<dyn ReadAt>)> = vec![(blob_path(&layer.digest), Arc::new(source))];
        files.extend([config, manifest].map(|text| (blob_path(&Digest::of(&text)), Arc::new(text) as Arc<dyn ReadAt>)));
        let texts = [(MARKER_FILE, MARKER.as_bytes().to_vec()), (INDEX, index), (DOCKER_LIST, docker.map_err(failed)?)];
        files.extend(texts.map(|(name, text)| (name.to_owned(), Arc::new(text) as Arc<dyn ReadAt>)));
        self.tree(files)
    }

    fn tree(&self, files: Vec<(String, Arc<dyn ReadAt>)>) -> Result<Tree, Message> {
        let failed = |error| message!("cannot lay out the container image").by(error);
        let mut tree = Tree::new(Metadata::root(0o755, self.time), Origin::default());
        let origin = tree.first_origin();
        tree.make_dirs(BLOBS.as_bytes(), &Metadata::root(0o755, self.time), origin).map_err(failed)?;
        for (path, source) in files {
            let len = source.len();
            let kind = Kind::File(Map::whole(tree.sources_mut().add(source), 0, len));
            let inode = Inode { meta: Metadata::root(0o644, self.time), kind, origin };
            tree.place(format!("/{path}").as_bytes(), inode).map_err(failed)?;
        }
        Ok(tree)
    }

    /// The configuration and the manifest.
    fn documents(&self, layer: &Packed) -> Result<(Vec<u8>, Vec<u8>), serde_json::Error> {
        let config = serde_json::to_vec(&json!({
            "architecture": self.architecture,
            "os": "linux",
            "created": self.created,
            "config": self.runtime(),
            "rootfs": {"type": "layers", "diff_ids": [layer.content]},
            "history": [{"created": self.created, "created_by": format!("vmbake bake {}", self.kind)}],
        }))?;
        let mut annotations = std::collections::BTreeMap::from([
            ("org.opencontainers.image.created".to_owned(), self.created.clone()),
            ("org.opencontainers.image.title".to_owned(), self.name.clone()),
            ("org.opencontainers.image.version".to_owned(), self.version.clone()),
        ]);
        annotations.extend(self.settings.annotations.clone());
        let manifest = serde_json::to_vec(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": Descriptor::new(CONFIG_TYPE, Digest::of(&config), config.len() as u64),
            "layers": [Descriptor::new(LAYER_TYPE, layer.digest, layer.len)],
            "annotations": annotations,
        }))?;
        Ok((config, manifest))
    }

    /// The member `config` of the configuration; settings without a value are left out.
    fn runtime(&self) -> Value {
        let Container { entrypoint, cmd, user, working_dir, stop_signal, exposed_ports, labels, .. } = &self.settings;
        let environment: Vec<_> =
            self.settings.environment.iter().map(|(name, text)| format!("{name}={text}")).collect();
        let ports: serde_json::Map<_, _> = exposed_ports.iter().map(|port| (port.clone(), json!({}))).collect();
        let all = [
            ("Entrypoint", json!(entrypoint)),
            ("Cmd", json!(cmd)),
            ("Env", json!(environment)),
            ("User", json!(user)),
            ("WorkingDir", json!(working_dir)),
            ("StopSignal", json!(stop_signal)),
            ("ExposedPorts", Value::Object(ports)),
            ("Labels", json!(labels)),
        ];
        let is_set = |value: &Value| match value {
            Value::Null => false,
            Value::Array(list) => !list.is_empty(),
            Value::Object(map) => !map.is_empty(),
            _ => true,
        };
        all.into_iter().filter(|(_, value)| is_set(value)).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The name of the image, of characters that references can have.
    fn reference(&self) -> String {
        self.name.replace('+', "-")
    }
}

/// The settings of the layers, with the defaults of the image. A program or user that the image lacks is refused.
fn settings(layers: &[Layer], tree: &Tree) -> Result<Container, Message> {
    let mut all = Container::merged(layers);
    let path = all.environment.entry("PATH".to_owned()).or_insert_with(|| PATH.to_owned()).clone();
    let words = |words: &Option<Vec<String>>| words.iter().flatten().next().cloned();
    match (words(&all.entrypoint), words(&all.cmd)) {
        (None, None) => {
            if is_program(tree, INIT) {
                all.cmd = Some(vec![INIT.to_owned()]);
                all.stop_signal.get_or_insert_with(|| INIT_STOP.to_owned());
            }
        }
        (Some(program), _) | (None, Some(program)) => {
            let folder = all.working_dir.as_deref().unwrap_or("/");
            let is_found = match program.contains('/') {
                true => is_program(tree, &format!("{}/{program}", if program.starts_with('/') { "" } else { folder })),
                false => path.split(':').any(|dir| is_program(tree, &format!("{dir}/{program}"))),
            };
            if !is_found {
                return Err(message!(
                    "`container` of layer.json: the image has no executable file {program:?}; $PATH is {path}"
                ));
            }
        }
    }
    for (part, file) in all.user.iter().flat_map(|user| user.split(':')).zip(["/etc/passwd", "/etc/group"]) {
        if !part.bytes().all(|byte| byte.is_ascii_digit()) && !is_listed(tree, file, part) {
            return Err(message!("`user` of `container` in layer.json: {part:?} is not in {file} of the image"));
        }
    }
    Ok(all)
}

fn is_program(tree: &Tree, path: &str) -> bool {
    let found = tree.resolve(path.as_bytes()).map(|id| tree.inode(id));
    found.is_ok_and(|inode| matches!(inode.kind, Kind::File(_)) && inode.meta.mode & 0o111 != 0)
}

/// Whether an account is in a list, such as passwd(5).
fn is_listed(tree: &Tree, file: &str, name: &str) -> bool {
    let text = tree.read(file.as_bytes(), 4 << 20).unwrap_or_default();
    text.split(|byte| *byte == b'\n')
        .any(|line| line.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b":")))
}

/// Path of a blob in the layout.
pub(super) fn blob_path(digest: &Digest) -> String {
    format!("{BLOBS}/{}", digest.hex())
}

/// Debian's architecture as Go names it (`GOARCH`), which OCI images use.
pub(super) fn architecture(debian: &str) -> Option<&'static str> {
    Some(match debian {
        "amd64" => "amd64",
        "arm64" => "arm64",
        "armhf" | "armel" => "arm",
        "i386" => "386",
        "loong64" => "loong64",
        "mips64el" => "mips64le",
        "ppc64el" => "ppc64le",
        "riscv64" => "riscv64",
        "s390x" => "s390x",
        _ => return None,
    })
}
