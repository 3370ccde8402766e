//! A publisher's workshop: a site with files, a bundle directory, and the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::requested::yard::{Yard, stated};

pub struct Shop {
    pub yard: Yard,
}

/// Keys of a layer by which machines take settings.
pub const SETTINGS: &str = r#", "first_boot": {"inputs": {"user_data": "/etc/user-data.env", "detected": "/etc/detected.env",
    "mutable": "/etc/mutable.env", "defaults": "/etc/defaults.env", "marker": "/etc/marker"}}"#;

/// `bundle.json` of `acme.agent`, with what else it asks for.
pub fn document(asks: &str) -> String {
    format!(
        r#"// A comment.
        {{"schema": 1, "publisher": "acme", "name": "agent", "version": "1.0.0+a1", "description": "An agent.", "os": ["o"],
        "arch": ["amd64", "arm64"], "state": ["/var/lib/agent"],
        "asks": {{"paths": ["/opt/tool", "/etc/agent", "/etc/systemd/system"]{asks}}}}}"#
    )
}

/// The layer of that bundle, with more keys.
pub fn layer(more: &str) -> String {
    let tool = stated().replace("\"tool\":", "\"acme.tool\":");
    format!(
        r#"{{"name": "acme.agent", "version": "1", "description": "d", "os": ["o"], "requires": ["settings"],
        "files": {{"/etc/agent/agent.conf": {{"content": "port = 1\n"}}}},
        "units": {{"enable": ["agent.service"], "files": {{"agent.service": ["[Service]", "ExecStart=/opt/tool/bin/tool", "[Install]",
        "WantedBy=multi-user.target"]}}}},
        "first_boot": {{"variables": {{"AGENT_SERVER": {{"required": true}}, "AGENT_LEVEL": {{"default": "info"}}}},
        "files": [{{"path": "/etc/agent/env", "mode": "0600", "content": {{"environment": ["AGENT_SERVER", "AGENT_LEVEL"]}}}}],
        "services": [{{"unit": "agent.service"}}]}}{tool}{more}}}"#
    )
}

impl Shop {
    /// `None` if a tool is missing.
    pub fn new() -> Option<Self> {
        let shop = Self { yard: Yard::new()? };
        shop.yard.layer("settings", SETTINGS);
        shop.write("", "");
        Some(shop)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.yard.path(name)
    }

    /// Writes the bundle, which asks for more, and does more.
    pub fn write(&self, asks: &str, more: &str) {
        self.put("agent/bundle.json", &document(asks));
        self.put("agent/layers/acme.agent/layer.json", &layer(more));
    }

    pub fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Packs it with the site at hand; whether that succeeded, and what was said.
    pub fn pack(&self, out: &str, more: &[&str]) -> (bool, String) {
        let out = format!("--out={out}");
        self.yard.online(&[&["bundle", "pack", "agent", &out], more].concat(), &[])
    }

    /// A packed bundle, which must be written.
    pub fn packed(&self, out: &str, more: &[&str]) -> PathBuf {
        let (ok, said) = self.pack(out, more);
        assert!(ok, "{said}");
        self.path(out)
    }

    /// Runs `vmbake bundle` in the workshop, without what is built in.
    pub fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
        let more: &[&str] = if args[0] == "init" { &[] } else { &["--no-builtin=layers"] };
        command
            .arg("bundle")
            .args(args)
            .args(more)
            .current_dir(self.path("."))
            .env("XDG_CONFIG_HOME", self.path("config"));
        command.env("DOCKER_CONFIG", self.path("config")).output().unwrap()
    }

    /// The same; whether it succeeded, and its stderr.
    pub fn said(&self, args: &[&str]) -> (bool, String) {
        let Output { status, stdout, stderr } = self.run(args);
        (status.success(), String::from_utf8(stderr).unwrap() + &String::from_utf8(stdout).unwrap())
    }

    /// What `bundle check` says.
    pub fn check(&self, bundle: &str) -> (bool, String) {
        self.said(&["check", bundle])
    }

    pub fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    pub fn key(&self, name: &str) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
        let made = command.args(["key", "generate", "--out", name]).current_dir(self.path(".")).output().unwrap();
        assert!(made.status.success(), "{made:?}");
    }
}

/// Every file below a folder with its bytes.
pub fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut found, mut todo) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = todo.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => todo.push(path),
                false => found.push((path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap())),
            }
        }
    }
    found.sort();
    found
}
