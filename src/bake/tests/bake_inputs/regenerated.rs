//! Files of layers that a program has to process, and what a bake makes of them.

use std::path::Path;
use std::process::Command;

use vmbake_disk::tree::{Kind, Tree};

use super::parts::{BASE_STATUS, bake_onto, base, base_with, control, deb, link, package, text, warnings};
use crate::tools::have;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../vmbake/tests/data");
const CERTIFICATE: &str = include_str!("../../../vmbake/tests/data/certificates/first.pem");
const LOCAL: &str = "/usr/local/share/ca-certificates";

/// The name of a certificate's file, and the hash of its subject, as `openssl x509 -subject_hash` prints it.
const HASHES: [(&str, &str); 4] = [
    ("first.pem", "8f04a6b7"),
    ("latin.pem", "106c54e8"),
    ("same-name.pem", "8f04a6b7"),
    ("several-values.pem", "ef1d6ec2"),
];

fn data(path: &str) -> String {
    std::fs::read_to_string(format!("{DATA}/{path}")).unwrap()
}

/// A layer with one file.
fn with_file(path: &str, content: &str) -> String {
    format!(", \"files\": {{{path:?}: {{\"content\": {content:?}}}}}")
}

/// A base on which ca-certificates notes its triggers.
fn with_ca_certificates() -> Tree {
    let status = format!(
        "{BASE_STATUS}Package: ca-certificates\nStatus: install ok installed\nArchitecture: all\nVersion: 1\n\n"
    );
    base_with(&[
        ("/var/lib/dpkg/status", &status),
        ("/var/lib/dpkg/info/ca-certificates.postinst", "#!/bin/sh\necho \"$@\" >>/etc/ran\n"),
        ("/etc/ssl/certs/README", ""),
    ])
}

#[test]
fn certificates_set_off_the_script_of_their_package() {
    let tree = bake_onto(with_ca_certificates(), &[], &with_file(&format!("{LOCAL}/a.crt"), CERTIFICATE)).unwrap();
    assert_eq!(text(&tree, "/etc/ran"), "triggered update-ca-certificates\n");
    let tree = bake_onto(with_ca_certificates(), &[], &with_file("/etc/x", "")).unwrap();
    assert!(tree.lookup(b"/etc/ran").is_none());
}

/// The script is as short as update-ca-certificates allows: selected files first, then local ones.
#[test]
fn certificates_of_the_base_that_a_layer_removes_are_named() {
    let script = "#!/bin/sh\nset -e\n: >/etc/ssl/certs/ca-certificates.crt\n\
        sed -e '/^$/d' -e '/^#/d' -e '/^!/d' /etc/ca-certificates.conf | while read crt; do\n\
        [ -f /usr/share/ca-certificates/$crt ] || continue\ncat /usr/share/ca-certificates/$crt >>/etc/ssl/certs/ca-certificates.crt\ndone\n";
    let (first, latin) = (data("certificates/first.pem"), data("certificates/latin.pem"));
    let bundle = format!("{first}{latin}");
    let status = format!(
        "{BASE_STATUS}Package: ca-certificates\nStatus: install ok installed\nArchitecture: all\nVersion: 1\n\n"
    );
    let base = || {
        base_with(&[
            ("/var/lib/dpkg/status", &status),
            ("/var/lib/dpkg/info/ca-certificates.postinst", script),
            ("/etc/ca-certificates.conf", "m/First.crt\nm/Latin.crt\n"),
            ("/usr/share/ca-certificates/m/First.crt", &first),
            ("/usr/share/ca-certificates/m/Latin.crt", &latin),
            ("/etc/ssl/certs/ca-certificates.crt", &bundle),
        ])
    };
    let conf = |text: &str| with_file("/etc/ca-certificates.conf", text);
    let both =
        "/etc/ssl/certs/ca-certificates.crt: 2 certificates of the base are no longer trusted: First.crt, Latin.crt";
    let one = "/etc/ssl/certs/ca-certificates.crt: 1 certificate of the base is no longer trusted: Latin.crt";
    for (keys, left, expected) in [
        (conf("m/First.crt\n!m/Latin.crt\n"), &*first, Some(one)),
        (conf("m/First.crt\n"), &first, Some(one)),
        (conf("# none\n"), "", Some(both)),
        (r#", "remove": ["/usr/share/ca-certificates/m/Latin.crt"]"#.to_owned(), &first, Some(one)),
        (r#", "remove": ["/usr/share/ca-certificates"]"#.to_owned(), "", Some(both)),
        (conf("m/First.crt\n\nm/Latin.crt\n"), &bundle, None),
    ] {
        let tree = bake_onto(base(), &[], &keys).unwrap();
        assert_eq!(text(&tree, "/etc/ssl/certs/ca-certificates.crt"), left, "{keys}");
        assert_eq!(warnings(base(), &[], &keys), expected.as_slice(), "{keys}");
    }
}

#[test]
fn certificates_that_would_not_be_trusted_are_refused() {
    let damaged = CERTIFICATE.replacen("MII", "M*I", 1);
    let key = format!("{CERTIFICATE}-----BEGIN PRIVATE KEY-----\n");
    for (name, content, expected) in [
        ("a.pem", CERTIFICATE, "its name does not end with .crt, so it is not trusted"),
        ("a.crt", "hello", "it contains no certificate"),
        ("a.crt", &damaged, "certificate number 1 is corrupt"),
        ("a.crt", &key, "it contains a private key"),
    ] {
        let error =
            bake_onto(with_ca_certificates(), &[], &with_file(&format!("{LOCAL}/{name}"), content)).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let error = bake_onto(base(), &[], &with_file(&format!("{LOCAL}/a.crt"), CERTIFICATE)).unwrap_err();
    assert!(error.contains("the package ca-certificates is not installed"), "{error}");
}

/// What `openssl rehash` leaves in a directory with these certificates and these links: name and target of each link.
fn rehashed(links: &[(&str, &str)]) -> Vec<(String, String)> {
    let certificates = HASHES.map(|(name, _)| (format!("/etc/certs/{name}"), data(&format!("certificates/{name}"))));
    let mut files: Vec<(&str, &str)> = certificates.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    files.extend([("/usr/bin/openssl", "\x7fELF"), ("/etc/certs/notes.txt", CERTIFICATE)]);
    let links: String = links.iter().map(|(name, target)| format!("ln -s {target} /etc/certs/{name}\n")).collect();
    let script = format!("#!/bin/sh\nset -e\ncd /etc/certs\n{links}openssl rehash .\n");
    let tree =
        bake_onto(base_with(&files), &[package("own", deb(&control("own", ""), &[("postinst", &script)], &[]))], "");
    let tree = tree.unwrap();
    let Kind::Directory(entries) = &tree.inode(tree.lookup(b"/etc/certs").unwrap()).kind else { panic!() };
    let names = entries.keys().map(|name| String::from_utf8(name.clone()).unwrap());
    let links = names.filter(|name| !name.contains(".pem") && !name.contains(".txt"));
    links.map(|name| (name.clone(), link(&tree, &format!("/etc/certs/{name}")))).collect()
}

#[test]
fn certificates_are_linked_by_the_hashes_of_their_subjects() {
    let expected = [
        ("106c54e8.0", "latin.pem"),
        ("8f04a6b7.0", "first.pem"),
        ("8f04a6b7.1", "same-name.pem"),
        ("ef1d6ec2.0", "several-values.pem"),
    ];
    let found = rehashed(&[("00000000.0", "latin.pem"), ("8f04a6b7.7", "gone.pem")]);
    assert_eq!(found, expected.map(|(name, target)| (name.to_owned(), target.to_owned())));
    // What is linked stays.
    let found = rehashed(&[("8f04a6b7.0", "same-name.pem")]);
    assert!(found.contains(&("8f04a6b7.1".to_owned(), "first.pem".to_owned())), "{found:?}");
}

#[test]
fn openssl_makes_the_same_links() {
    if !have(&["openssl"]) {
        return;
    }
    for links in [&[][..], &[("8f04a6b7.0", "same-name.pem"), ("00000000.3", "latin.pem")]] {
        let dir = tempfile::tempdir().unwrap();
        for (name, hash) in HASHES {
            std::fs::copy(Path::new(DATA).join("certificates").join(name), dir.path().join(name)).unwrap();
            let run = ["x509", "-noout", "-subject_hash", "-in", name];
            let output = Command::new("openssl").args(run).current_dir(dir.path()).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), hash);
        }
        for (name, target) in links {
            std::os::unix::fs::symlink(target, dir.path().join(name)).unwrap();
        }
        assert!(Command::new("openssl").args(["rehash", "."]).current_dir(dir.path()).status().unwrap().success());
        let mut expected: Vec<(String, String)> = std::fs::read_dir(dir.path())
            .unwrap()
            .filter_map(|entry| {
                let path = entry.unwrap().path();
                let target = std::fs::read_link(&path).ok()?.display().to_string();
                Some((path.file_name().unwrap().to_str().unwrap().to_owned(), target))
            })
            .collect();
        expected.sort();
        // Of two certificates with one subject, which is first depends on the order of the directory.
        let names = |links: &[(String, String)]| links.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let found = rehashed(links);
        assert_eq!(names(&found), names(&expected));
        let alone = |links: &[(String, String)]| {
            let mut links = links.to_vec();
            links.retain(|(name, _)| !name.starts_with("8f04"));
            links
        };
        assert_eq!(alone(&found), alone(&expected));
    }
}

/// The menus are those of grub-mkconfig 2.12 for a base with Debian's `/etc/default/grub`, for the arguments of a layer, and for that with the
/// settings of `15_x.cfg`.
#[test]
fn the_boot_menu_is_that_of_grub_mkconfig() {
    let base =
        || base_with(&[("/etc/default/grub", &data("grub/default")), ("/boot/grub/grub.cfg", &data("grub/base.cfg"))]);
    let arguments = r#", "kernel_arguments": ["net.ifnames=0", "vmbake.x=1"]"#;
    let settings = "GRUB_TIMEOUT=0\nGRUB_TIMEOUT_STYLE=hidden\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet  splash\"\n";
    let more = with_file("/etc/default/grub.d/15_x.cfg", settings);
    for (keys, expected) in [
        (String::new(), "base.cfg"),
        (arguments.to_owned(), "arguments.cfg"),
        (format!("{arguments}{more}"), "timeout.cfg"),
    ] {
        let tree = bake_onto(base(), &[], &keys).unwrap();
        assert_eq!(text(&tree, "/boot/grub/grub.cfg"), data(&format!("grub/{expected}")), "{keys}");
    }
    for (content, expected) in [
        ("GRUB_DEFAULT=1\n", "a bake cannot apply changes of GRUB_DEFAULT"),
        ("GRUB_CMDLINE_LINUX=\"$(blkid)\"\nGRUB_CMDLINE_LINUX_DEFAULT=`false`\n", "blkid"),
    ] {
        let error = bake_onto(base(), &[], &with_file("/etc/default/grub.d/x.cfg", content)).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let changed = data("grub/base.cfg").replace(" ro single", " ro rescue");
    let changed = base_with(&[("/etc/default/grub", &data("grub/default")), ("/boot/grub/grub.cfg", &changed)]);
    let error = bake_onto(changed, &[], arguments).unwrap_err();
    assert!(error.contains("differs from the output of grub-mkconfig for the base's /etc/default/grub"), "{error}");
}

#[test]
fn kernel_arguments_need_a_menu() {
    let keys = r#", "kernel_arguments": ["a=1"]"#;
    let error = bake_onto(base(), &[], keys).unwrap_err();
    assert!(error.contains("the root file system has no /boot/grub/grub.cfg"), "{error}");
    let menu = [("/boot/grub/grub.cfg", "menuentry 'x' {\n  linux /vmlinuz root=/dev/vda1 ro\n  initrd /i\n}\n")];
    let tree = bake_onto(base_with(&menu), &[], keys).unwrap();
    assert_eq!(text(&tree, "/boot/grub/grub.cfg"), menu[0].1.replace(" ro\n", " ro a=1\n"));
    for argument in ["a b", "", "a\\\"b", "$x", "a;b", "a\\nb"] {
        let error = bake_onto(base_with(&menu), &[], &format!(", \"kernel_arguments\": [\"{argument}\"]")).unwrap_err();
        assert!(error.contains("is not a single kernel argument"), "{error}");
    }
}

#[test]
fn locales_must_be_in_the_image() {
    let base = || base_with(&[("/usr/lib/locale/C.utf8/LC_CTYPE", ""), ("/usr/lib/locale/de_DE.utf8/LC_CTYPE", "")]);
    let tree = bake_onto(base(), &[], r#", "locale": ["de_DE.UTF-8", "C.UTF-8"]"#).unwrap();
    assert_eq!(text(&tree, "/etc/default/locale"), "LANG=de_DE.UTF-8\n");
    let list = |text: &str| bake_onto(base(), &[], &with_file("/etc/locale.gen", text));
    list("# en_US.UTF-8 UTF-8\nde_DE.UTF-8 UTF-8\n").unwrap();
    for error in [
        list("de_DE.UTF-8 UTF-8\nen_US.UTF-8 UTF-8\n").unwrap_err(),
        bake_onto(base(), &[], r#", "locale": ["de_DE.UTF-8", "en_US.UTF-8"]"#).unwrap_err(),
    ] {
        assert_eq!(error, "layer k: the image has no locale en_US.UTF-8: /usr/lib/locale/en_US.utf8 does not exist");
    }
}

#[test]
fn what_no_bake_can_make_is_refused() {
    let postfix = "alias_maps = hash:/etc/aliases\nvirtual_alias_maps = texthash:/etc/postfix/virtual\n";
    let modules = "kernel/x.ko.xz:\nextra/listed.ko: kernel/x.ko.xz\n";
    let base = || base_with(&[("/etc/postfix/main.cf", postfix), ("/usr/lib/modules/6.1/modules.dep", modules)]);
    for (path, expected) in [
        ("/etc/grub.d/50_mine", "it takes effect only when `grub-mkconfig` runs"),
        ("/usr/lib/modules/6.1/extra/x.ko", "kernel modules cannot be indexed without the package kmod"),
        (
            "/lib/modules/6.1/extra/x.ko.xz",
            "/usr/lib/modules/6.1/extra/x.ko.xz, of layer k: kernel modules cannot be indexed",
        ),
        ("/usr/lib/modules/6.1/extra/listed.ko", "kernel modules cannot be indexed without the package kmod"),
        ("/usr/share/pam-configs/mine", "it takes effect only when `pam-auth-update` runs"),
        ("/etc/aliases", "uses it as an indexed table"),
    ] {
        let error = bake_onto(base(), &[], &with_file(path, "x\n")).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    for path in [
        "/etc/postfix/virtual",
        "/etc/ssl/certs/x.pem",
        "/etc/sysctl.d/x.conf",
        "/opt/x.ko",
        "/usr/lib/modules/6.2/x.ko",
    ] {
        bake_onto(base(), &[], &with_file(path, "x = 1\n")).unwrap();
    }
    bake_onto(base(), &[], &with_file("/etc/modprobe.d/x.conf", "options x y=1\n")).unwrap();
}

#[test]
fn modules_that_cannot_be_indexed_are_refused() {
    let with_kmod = |version: &str| {
        let status = format!(
            "{BASE_STATUS}Package: kmod\nStatus: install ok installed\nArchitecture: amd64\nVersion: {version}\n\n"
        );
        let base =
            base_with(&[("/var/lib/dpkg/status", &status), ("/usr/lib/modules/6.1/modules.dep", "kernel/x.ko:\n")]);
        bake_onto(base, &[], &with_file("/usr/lib/modules/6.1/extra/x.ko", "x")).unwrap_err()
    };
    let error = with_kmod("33+1-1");
    assert!(
        error.contains("kernel modules cannot be indexed as by kmod 33+1-1: only kmod 30 and 34 are supported"),
        "{error}"
    );
    let error = with_kmod("34.2-2");
    assert!(
        error.starts_with("layer k: cannot index its kernel modules: /usr/lib/modules/6.1/extra/x.ko: "),
        "{error}"
    );
}

/// Files of layers set off the triggers of packages, as those of packages do.
#[test]
fn files_of_layers_set_off_triggers() {
    let status =
        format!("{BASE_STATUS}Package: schemas\nStatus: install ok installed\nArchitecture: all\nVersion: 1\n\n");
    let base = base_with(&[
        ("/var/lib/dpkg/status", &status),
        ("/var/lib/dpkg/triggers/File", "/usr/share/schemas schemas/noawait\n"),
        ("/var/lib/dpkg/info/schemas.postinst", "#!/bin/sh\necho \"$@\" >>/etc/ran\n"),
    ]);
    let tree = bake_onto(base, &[], &with_file("/usr/share/schemas/a.xml", "x")).unwrap();
    assert_eq!(text(&tree, "/etc/ran"), "triggered /usr/share/schemas\n");
}
