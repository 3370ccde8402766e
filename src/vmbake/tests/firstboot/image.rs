//! A baked image as far as the first boot needs it: plan, templates, accounts and the record of the bake.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use vmbake_common::catalog::Catalog;
use vmbake_firstboot::plan::{self, Plan};
use vmbake_layer::first_boot::compile;
use vmbake_layer::{Layer, Layers};

const TEMPLATES: &str = "/opt/podplane/share/templates/";
const PAUSE: &str = "registry.k8s.io/pause:3.10";

/// The image of a kind.
pub struct Image {
    pub plan: Plan,
    kind: String,
    layers: Vec<Layer>,
}

impl Image {
    pub fn new(kind: &str) -> Self {
        let layers = Layers::load(&Catalog::built_in()).unwrap().resolve(kind, "debian-13").unwrap();
        let plan = compile(&layers, "x86_64-linux-gnu").unwrap().plan;
        Self { plan, kind: kind.to_owned(), layers }
    }

    /// Makes it in the empty directory `root`.
    pub fn unpack(&self, root: &Path) {
        let manifest = format!(
            r#"{{"vmconfig": {{"version": "1", "kind": "{}", "os": {{"name": "debian-13", "arch": "amd64"}}}}}}"#,
            self.kind
        );
        put(root, "/opt/podplane/share/vmconfig-installed.json", &manifest);
        put(root, plan::PATH, &serde_json::to_string(&self.plan).unwrap());
        for (path, file) in self.layers.iter().flat_map(|layer| &layer.files) {
            if path.starts_with(TEMPLATES) {
                let text = std::str::from_utf8(&file.content).unwrap();
                put(root, path, &text.replace("@{image:registry.k8s.io/pause}", PAUSE));
            }
        }
        for path in self.plan.modes.keys() {
            put(root, path, "");
        }
        for path in self.plan.directories.keys().map(String::as_str).chain(["/etc/sudoers.d", "/home"]) {
            fs::create_dir_all(root.join(&path[1..])).unwrap();
        }
        self.accounts(root);
    }

    fn accounts(&self, root: &Path) {
        let mut passwd = "root:x:0:0:root:/root:/bin/bash\n".to_owned();
        let users = || self.layers.iter().flat_map(|layer| &layer.schema.users);
        let members = |group: &str| {
            let members = users().filter(|(_, account)| account.groups.iter().any(|one| one == group));
            members.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(",")
        };
        let mut group = format!("root:x:0:\nsystemd-journal:x:999:{}\n", members("systemd-journal"));
        for (name, account) in users() {
            writeln!(passwd, "{name}:x:{0}:{0}::/home/{name}:/usr/sbin/nologin", account.id).unwrap();
            writeln!(group, "{name}:x:{}:{}", account.id, members(name)).unwrap();
        }
        put(root, "/etc/passwd", &passwd);
        put(root, "/etc/group", &group);
        put(root, "/etc/shadow", "");
        put(root, "/etc/gshadow", "");
    }
}

/// Writes a file of mode 0644.
pub fn put(root: &Path, path: &str, content: &str) {
    let path = root.join(&path[1..]);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
}
