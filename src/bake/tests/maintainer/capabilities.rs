//! setcap.

use super::parts::{run, system};

#[test]
fn capabilities_need_the_layer_s_word() {
    let base = || system(&[("/usr/bin/ping", "program")]);
    let error = run(base(), "setcap cap_net_raw+ep /usr/bin/ping").map(|_| ()).unwrap_err();
    assert!(error.starts_with("/usr/bin/ping: artifact own contains it with file capabilities"), "{error}");
    for line in ["setcap cap_net_raw+ep /usr/bin/nix", "setcap -r /usr/bin/ping"] {
        run(base(), &format!("if {line}; then exit 1; fi")).expect(line);
    }
    for line in [
        "setcap cap_foo+ep /usr/bin/ping",
        "setcap -v cap_net_raw+ep /usr/bin/ping",
        "setcap -r",
        "setcap",
        "setcap -r /usr/bin/ping cap_chown+ep",
    ] {
        let error = run(base(), line).map(|_| ()).expect_err(line);
        assert!(error.starts_with("own: its postinst (sha256 "), "{line}: {error}");
    }
}

#[test]
fn capabilities_are_written_where_the_layer_lists_the_file() {
    use crate::bake_inputs::parts::{bake_onto, control, deb, package};

    // Several files in one call: those behind one that fails are left alone.
    let script = "#!/bin/sh\nsetcap cap_net_raw+ep /usr/bin//ping cap_chown+ep /usr/bin/second cap_chown+ep /nix cap_chown+ep /usr/bin/third\n\
        [ $? = 1 ]\n";
    let own = package("own", deb(&control("own", ""), &[("postinst", script)], &[]));
    let base = system(
        &["ping", "second", "third"]
            .map(|name| (format!("/usr/bin/{name}"), "program"))
            .each_ref()
            .map(|(path, text)| (path.as_str(), *text)),
    );
    let tree = bake_onto(base, &[own], r#", "setuid": ["/usr/bin/ping", "/usr/bin/second"]"#).unwrap();
    for (name, expected) in
        [("ping", Some([1, 0, 0, 2, 0, 0x20, 0, 0])), ("second", Some([1, 0, 0, 2, 1, 0, 0, 0])), ("third", None)]
    {
        let meta = &tree.inode(tree.lookup(format!("/usr/bin/{name}").as_bytes()).unwrap()).meta;
        let value = meta.xattrs.get(&b"security.capability"[..]);
        assert_eq!(value.map(|value| value[..8].to_vec()), expected.map(|value| value.to_vec()), "{name}");
    }
}

#[test]
fn capabilities_stay_until_the_owner_or_the_content_changes() {
    use crate::bake_inputs::parts::{bake_onto, control, deb, package};

    let baked = |line: &str| {
        let script = format!(
            "#!/bin/sh\nset -e\nuseradd -u 1500 -d /opt/t t\nchown t /opt/t/ping\nsetcap cap_net_raw+ep /opt/t/ping\n{line}\n"
        );
        let own = package("own", deb(&control("own", ""), &[("postinst", script.as_str())], &[]));
        bake_onto(system(&[("/opt/t/ping", "program")]), &[own], r#", "setuid": ["/opt/t/ping"]"#)
    };
    for (line, stays) in [
        ("chmod 0755 /opt/t/ping", true),
        (": >>/opt/t/ping", true),
        ("mv /opt/t/ping /opt/t/x; mv /opt/t/x /opt/t/ping", true),
        ("chown t /opt/t/ping", false),
        ("echo x >>/opt/t/ping", false),
        ("usermod -u 1600 t", false),
        ("dpkg-statoverride --update --add root root 0755 /opt/t/ping", false),
    ] {
        match baked(line) {
            Ok(tree) => {
                let meta = &tree.inode(tree.lookup(b"/opt/t/ping").unwrap()).meta;
                assert!(stays && meta.xattrs.contains_key(&b"security.capability"[..]), "{line}");
            }
            Err(error) => {
                assert!(
                    !stays && error.ends_with("has neither a setuid or setgid bit nor capabilities"),
                    "{line}: {error}"
                );
            }
        }
    }
    let error = baked("cp -a /opt/t/ping /opt/t/copy").map(|_| ()).unwrap_err();
    assert!(error.starts_with("/opt/t/copy: artifact own contains it with file capabilities"), "{error}");
}
