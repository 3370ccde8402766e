//! locale(1), whose output is that of Debian 13.

use crate::bake_inputs::parts::{bake_onto, base, control, deb, package, text};

#[test]
fn scripts_are_told_the_locale_that_they_run_in() {
    let script = "#!/bin/sh\nset -e\nlocale > /all\nlocale charmap > /charmaps\nunset LC_ALL\nlocale charmap >> /charmaps\n\
        locale | head -n 3 > /posix\nexport LANG=de_DE LC_TIME=C\n\
        locale | sed -n '1p;3,5p;$p' > /some\n";
    let part = package("p", deb(&control("p", ""), &[("postinst", script)], &[]));
    let tree = bake_onto(base(), &[part], "").unwrap();
    let all = text(&tree, "/all");
    assert!(all.starts_with("LANG=\nLANGUAGE=\nLC_CTYPE=\"C.UTF-8\"\nLC_NUMERIC=\"C.UTF-8\"\nLC_TIME="), "{all}");
    assert!(all.ends_with("\nLC_IDENTIFICATION=\"C.UTF-8\"\nLC_ALL=C.UTF-8\n") && all.lines().count() == 15, "{all}");
    assert_eq!(text(&tree, "/posix"), "LANG=\nLANGUAGE=\nLC_CTYPE=\"POSIX\"\n");
    assert_eq!(text(&tree, "/some"), "LANG=de_DE\nLC_CTYPE=\"de_DE\"\nLC_NUMERIC=\"de_DE\"\nLC_TIME=C\nLC_ALL=\n");
    assert_eq!(text(&tree, "/charmaps"), "UTF-8\nANSI_X3.4-1968\n");
    for unknown in ["locale -a", "LC_ALL=de_DE locale charmap"] {
        let script = format!("#!/bin/sh\n{unknown}\n");
        let part = package("p", deb(&control("p", ""), &[("postinst", script.as_str())], &[]));
        assert!(bake_onto(base(), &[part], "").unwrap_err().contains("is not supported"), "{unknown}");
    }
}
