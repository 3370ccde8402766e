//! Imports over a base image, whose files are known to scripts, except for changes by machines before they run.

use serde_json::json;
use vmbake_common::digest::Digest;
use vmbake_disk::source::Map;
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};
use vmbake_profile::import::{ImportBase, ImportError, ImportedProfile, import};

use super::import::{content, desk, document};

const PROGRAMS: [&str; 15] = [
    "apt-get", "bash", "cat", "chmod", "curl", "dash", "find", "grep", "ln", "ls", "mkdir", "mv", "rm", "sed", "touch",
];

/// A base image with a few files.
fn image() -> ImportBase {
    let mut tree = Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default());
    let (origin, meta) = (tree.first_origin(), Metadata::root(0o755, Timestamp::default()));
    for path in [
        "/etc/empty",
        "/etc/rules",
        "/etc/sudoers.d",
        "/opt",
        "/tmp",
        "/usr/bin",
        "/usr/lib",
        "/usr/local/bin",
        "/var/lib",
    ] {
        tree.make_dirs(path.as_bytes(), &meta, origin).unwrap();
    }
    let file = |text: &str, mode| (Metadata::root(mode, Timestamp::default()), text.as_bytes().to_vec());
    let programs = PROGRAMS.map(|name| (format!("/usr/bin/{name}"), file("\x7fELF", 0o755)));
    let files = [
        ("/etc/a.cfg", "a\n"),
        ("/etc/b.cfg", "b\n"),
        ("/etc/hosts", "127.0.0.1 localhost\n"),
        ("/etc/motd", "hello\n"),
        ("/etc/passwd", "root:x:0:0::/root:/bin/bash\nnobody:x:65534:65534::/:/bin/sh\n"),
        ("/etc/rules/1", "1\n"),
        ("/etc/rules/2", "2\n"),
        ("/etc/sudoers.d/README", "read\n"),
        ("/usr/lib/a", "a\n"),
    ]
    .map(|(path, text)| (path.to_owned(), file(text, 0o644)));
    for (path, (meta, text)) in programs.into_iter().chain(files) {
        let len = text.len() as u64;
        let source = tree.sources_mut().add(std::sync::Arc::new(text));
        let kind = Kind::File(Map::whole(source, 0, len));
        tree.place(path.as_bytes(), Inode { meta, kind, origin }).unwrap();
    }
    for (path, target) in [("/bin", "usr/bin"), ("/usr/bin/sh", "dash"), ("/etc/link", "motd")] {
        tree.place(path.as_bytes(), Inode { meta: meta.clone(), kind: Kind::Symlink(target.into()), origin }).unwrap();
    }
    ImportBase { arch: "amd64".to_owned(), digest: Digest::of(b"image"), tree }
}

fn over(script: &str) -> Result<ImportedProfile, ImportError> {
    let desk = desk(script, &[]);
    let mut request = desk.request(&json!({}));
    request.base = Some(image());
    import(request)
}

#[test]
fn what_the_base_image_has_is_known() {
    for (script, path, expected) in [
        ("for f in /etc/*.cfg; do echo $f; done > /opt/x", "/opt/x", "/etc/a.cfg\n/etc/b.cfg\n"),
        ("ls /etc/rules | while read f; do echo $f >> /opt/x; done", "/opt/x", "1\n2\n"),
        ("if [ -z \"$(ls -A /etc/empty)\" ]; then echo yes > /opt/x; fi", "/opt/x", "yes\n"),
        ("grep -q hello /etc/link && cat /etc/link > /opt/x", "/opt/x", "hello\n"),
        ("[ -e /etc/none ] || echo no > /opt/x", "/opt/x", "no\n"),
        ("ls /opt /usr/local/bin > /opt/x", "/opt/x", "/opt:\nx\n\n/usr/local/bin:\n"),
        ("command -v curl > /opt/x", "/opt/x", "/usr/bin/curl\n"),
        ("cd /etc/rules; cat * > /opt/x", "/opt/x", "1\n2\n"),
        ("echo more >> /etc/motd", "/etc/motd", "hello\nmore\n"),
        ("sed -i s/hello/bye/ /etc/motd", "/etc/motd", "bye\n"),
        ("rm /etc/motd; [ -e /etc/motd ] || echo new > /etc/motd", "/etc/motd", "new\n"),
        ("echo y > /tmp/y; cat /tmp/y > /opt/x", "/opt/x", "y\n"),
        ("apt-get install -y jq; [ -e /opt/y ] || echo no > /opt/x", "/opt/x", "no\n"),
    ] {
        let imported = over(script).unwrap_or_else(|error| panic!("{script}: {error}"));
        assert_eq!(content(&imported, path).as_deref(), Some(expected), "{script}");
    }
    for (script, pointer, expected) in [
        ("chmod 600 /etc/motd", "/files/~1etc~1motd", Some(json!({"mode": "0600"}))),
        ("chmod 700 /etc/rules", "/directories/~1etc~1rules", Some(json!({"mode": "0700"}))),
        ("find /etc/rules -type f -delete", "/remove", Some(json!(["/etc/rules/1", "/etc/rules/2"]))),
        ("rm -r /etc/rules /etc/link", "/remove", Some(json!(["/etc/link", "/etc/rules"]))),
        ("mv /etc/motd /opt/m; mv /opt/m /etc/motd", "/remove", None),
        ("true", "/remove", None),
        ("true", "/bases", Some(json!({"amd64": Digest::of(b"image")}))),
    ] {
        let imported = over(script).unwrap_or_else(|error| panic!("{script}: {error}"));
        assert_eq!(document(&imported).pointer(pointer), expected.as_ref(), "{script}");
        assert_eq!(imported.instance.bases.len(), 1);
    }
}

#[test]
fn what_may_differ_on_a_machine_is_not_known() {
    for (script, expected) in [
        ("find /etc/sudoers.d -type f -delete", "the entries of /etc/sudoers.d"),
        ("grep -q ^nobody: /etc/passwd", "the file /etc/passwd"),
        ("for f in /etc/*.conf; do echo $f; done", "the entries of /etc"),
        ("ls /etc > /opt/x", "the entries of /etc"),
        ("echo x >> /etc/hosts", "the file /etc/hosts"),
        ("[ -e /var/lib/x ] || touch /opt/x", "the file /var/lib/x"),
        ("[ -e /etc/ssh ] || touch /opt/x", "the file /etc/ssh"),
        ("ls /tmp > /opt/x", "the entries of /tmp"),
        ("apt-get install -y jq; [ -e /etc/none ] || touch /opt/x", "the file /etc/none"),
        ("apt-get install -y jq; echo x >> /etc/motd", "the file /etc/motd"),
        ("echo x >> /etc/motd; apt-get install -y jq; cat /etc/motd > /opt/x", "the file /etc/motd"),
        ("mkdir /etc/x; apt-get install -y jq; ls /etc/x > /opt/x", "the entries of /etc/x"),
        ("apt-get install -y jq; ls /etc/empty > /opt/x", "the file /etc/empty"),
        ("echo '{}' | jq . > /opt/x", "the base image does not contain the program jq"),
        ("sudo touch /opt/x", "the base image does not contain the program sudo"),
        ("rm /etc/motd; apt-get install -y jq", "/etc/motd: a script removes it and installs packages"),
        ("echo x >> /usr/lib/a", "/usr/lib/a: a script changes a path of packages"),
        ("rm /usr/lib/a", "/usr/lib/a: a script removes a path of packages"),
        ("rm /etc/motd; mkdir /etc/motd", "/etc/motd: a script replaces a regular file"),
        ("ln /etc/motd /etc/other", "other names of the file /etc/motd"),
        ("mv /etc/rules /opt/rules", "the files of packages in /etc/rules"),
        ("cat /usr/bin/curl > /opt/x; [ /opt/x -nt /etc/motd ]", "the time of /opt/x"),
        ("touch /opt/x; touch -r /etc/motd /opt/x", "layers do not store file times"),
    ] {
        match over(script) {
            Ok(imported) => panic!("{script}: {}", document(&imported)),
            Err(error) => assert!(error.to_string().contains(expected), "{script}: {error}"),
        }
    }
}

#[test]
fn what_scripts_wrote_before_packages_came_is_in_the_layer() {
    let imported = over("echo more >> /etc/motd; echo a > /etc/empty/a; apt-get install -y jq").unwrap();
    assert_eq!(content(&imported, "/etc/motd").as_deref(), Some("hello\nmore\n"));
    assert_eq!(content(&imported, "/etc/empty/a").as_deref(), Some("a\n"));
    assert_eq!(document(&imported)["packages"], json!(["jq"]));
}
