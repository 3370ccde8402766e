//! setcap.

use super::parts::{run, system};

#[test]
fn capabilities_need_the_layer_s_word() {
    let base = || system(&[("/usr/bin/ping", "program")]);
    let error = run(base(), "setcap cap_net_raw+ep /usr/bin/ping").map(|_| ()).unwrap_err();
    assert!(error.starts_with("/usr/bin/ping: artifact own brings it with file capabilities"), "{error}");
    for line in ["setcap cap_net_raw+ep /usr/bin/nix", "setcap -r /usr/bin/ping"] {
        run(base(), &format!("if {line}; then exit 1; fi")).expect(line);
    }
    for line in ["setcap cap_foo+ep /usr/bin/ping", "setcap -v cap_net_raw+ep /usr/bin/ping", "setcap -r"] {
        let error = run(base(), line).map(|_| ()).expect_err(line);
        assert!(error.starts_with("own: its postinst (sha256 "), "{line}: {error}");
    }
}

#[test]
fn capabilities_are_written_where_the_layer_lists_the_file() {
    use crate::bake_inputs::parts::{bake_onto, control, deb, package};

    let script = "#!/bin/sh\nsetcap cap_net_raw+ep /usr/bin/ping\n";
    let own = package("own", deb(&control("own", ""), &[("postinst", script)], &[]));
    let base = system(&[("/usr/bin/ping", "program")]);
    let tree = bake_onto(base, &[own], r#", "setuid": ["/usr/bin/ping"]"#).unwrap();
    let meta = &tree.inode(tree.lookup(b"/usr/bin/ping").unwrap()).meta;
    let value = meta.xattrs.get(&b"security.capability"[..]).unwrap();
    assert_eq!(value[..8], [1, 0, 0, 2, 0, 0x20, 0, 0]);
}
