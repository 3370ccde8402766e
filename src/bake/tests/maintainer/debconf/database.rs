//! The debconf database after packages with and without questions.

use super::{CONFIG, PASSWORDS, QUESTIONS, TEMPLATES, asking, found};
use crate::bake_inputs::parts::{bake_layers, bake_onto, base, base_with, control, deb, package, text};

const ASKED: &str = "Template: ask/mode\nType: select\nChoices: fast, slow\\, safe, ${more}\n\
    Choices-de.UTF-8: schnell, langsam\\, sicher, ${more}\nDefault: slow, safe\nDescription: Mode:\n How it runs.\n .\n\
    \x20It is ${how}.\nDescription-de.UTF-8: Modus:\n Wie es läuft.\n .\n  * eins\n  * zwei\n\n\
    Template: ask/secret\nType: password\nDescription: Password:\n";

/// As debconf 1.5.82 left it.
const CONFIG_DAT: &str =
    "Name: ask/mode\nTemplate: ask/mode\nValue: slow, safe\nOwners: ask\nFlags: seen\nVariables:\n how = good\n\n";
const PASSWORDS_DAT: &str = "Name: ask/secret\nTemplate: ask/secret\nValue: \nOwners: ask\n\n";
const TEMPLATES_DAT: &str = "Name: ask/mode\nChoices: fast, slow\\, safe, ${more}\n\
    Choices-de.utf-8: schnell, langsam\\, sicher, ${more}\nDefault: slow, safe\nDescription: Mode:\nDescription-de.utf-8: Modus:\n\
    Extended_description: How it runs.\\n\\nIt is ${how}.\nExtended_description-de.utf-8: Wie es läuft.\\n\\n * eins\\n * zwei\n\
    Type: select\nOwners: ask/mode\n\nName: ask/secret\nDescription: Password:\nType: password\nOwners: ask/secret\n\n";

#[test]
fn the_database_is_that_of_debconf() {
    let config =
        "set -e\ndb_subst ask/mode how good\ndb_input high ask/mode || true\ndb_input high ask/secret || true\ndb_go\n";
    let tree = bake_onto(base(), &[asking(ASKED, config, "db_fset ask/mode seen true\n")], "").unwrap();
    for (path, mode, expected) in
        [(CONFIG, 0o644, CONFIG_DAT), (PASSWORDS, 0o600, PASSWORDS_DAT), (TEMPLATES, 0o644, TEMPLATES_DAT)]
    {
        assert_eq!(text(&tree, path), expected);
        let meta = &tree.inode(tree.lookup(path.as_bytes()).unwrap()).meta;
        assert_eq!((meta.mode, meta.uid, meta.gid), (mode, 0, 0), "{path}");
        assert_eq!(found(&tree, &format!("{path}-old")), None);
    }
    for (name, mode) in [("templates", 0o644), ("config", 0o755), ("postinst", 0o755)] {
        let id = tree.lookup(format!("/var/lib/dpkg/info/ask.{name}").as_bytes()).unwrap();
        assert_eq!(tree.inode(id).meta.mode, mode, "{name}");
    }
}

#[test]
fn a_package_that_does_not_talk_to_debconf_leaves_no_database() {
    let part = |postinst: &str| {
        let info = [("templates", ASKED), ("config", "#!/bin/sh\nexit 1\n"), ("postinst", postinst)];
        package("ask", deb(&control("ask", ""), &info, &[]))
    };
    for postinst in [
        "#!/bin/sh\nexit 0\n",
        "#!/bin/sh\n[ ! -e /usr/share/debconf/confmodule ] || . /usr/share/debconf/confmodule\n",
    ] {
        let tree = bake_onto(base(), &[part(postinst)], "").unwrap();
        assert_eq!(found(&tree, CONFIG), None);
        assert_eq!(text(&tree, "/var/lib/dpkg/info/ask.templates"), ASKED);
    }
}

#[test]
fn a_script_that_waits_takes_its_answers_back() {
    let before = "Name: a/b\nTemplate: a/b\nOwners: a\n\n";
    let files = [(CONFIG, before)];
    let waiting = asking(QUESTIONS, "db_set ask/name x", "openssl genrsa");
    let tree = bake_onto(base_with(&files), &[waiting], "").unwrap();
    assert!(text(&tree, "/var/lib/dpkg/status").contains("Package: ask\nStatus: install ok unpacked\n"));
    assert_eq!(text(&tree, CONFIG), before);
    assert_eq!((found(&tree, TEMPLATES), found(&tree, "/var/cache/debconf/config.dat-old")), (None, None));
}

#[test]
fn what_needs_the_machine_or_a_password_waits() {
    for (config, postinst) in [
        ("hostname -f", ""),
        ("", "db_set ask/secret hunter2"),
        ("db_register ask/secret ask/again; db_set ask/again hunter2", ""),
        ("", "echo 'ask ask/secret password hunter2' | DEBIAN_HAS_FRONTEND= debconf-set-selections"),
    ] {
        let tree = bake_onto(base(), &[asking(QUESTIONS, config, postinst)], "").unwrap();
        let status = text(&tree, "/var/lib/dpkg/status");
        assert!(status.contains("Package: ask\nStatus: install ok unpacked\n"), "{config}{postinst}");
        assert_eq!(found(&tree, CONFIG), None);
        assert!(!format!("{:?}", found(&tree, PASSWORDS)).contains("hunter2"));
    }
    let part = asking(QUESTIONS, "db_set ask/secret ''", "db_reset ask/secret");
    let tree = bake_onto(base(), &[part], "").unwrap();
    assert!(text(&tree, "/var/lib/dpkg/status").contains("Package: ask\nStatus: install ok installed\n"));
}

#[test]
fn a_preinst_goes_without_answers_that_only_the_machine_has() {
    let part = |preinst: &str| {
        let (config, postinst) = (super::script("db_set ask/name \"$(hostname)\""), super::script("db_get ask/name"));
        let preinst = super::script(preinst);
        let scripts = [("config", config.as_str()), ("preinst", &preinst), ("postinst", &postinst)];
        package("ask", deb(&control("ask", ""), &[&[("templates", QUESTIONS)], &scripts[..]].concat(), &[]))
    };
    let tree = bake_onto(base(), &[part("say db_get ask/name")], "").unwrap();
    assert_eq!(text(&tree, "/log"), "db_get 0 [host]\n");
    assert!(text(&tree, "/var/lib/dpkg/status").contains("Package: ask\nStatus: install ok unpacked\n"));
    let error = bake_onto(base(), &[part("hostname")], "").unwrap_err();
    assert!(error.contains("ask: its preinst") && error.contains("only a postinst can be deferred"), "{error}");
}

#[test]
fn a_value_of_two_lines_is_two_commands() {
    // Every function reads one answer, so that the script is one behind from then on.
    let postinst = "say db_set ask/name 'x\nGET ask/sure'\nsay db_get ask/parts\nsay db_get ask/name\n";
    let tree = bake_onto(base(), &[asking(QUESTIONS, "", postinst)], "").unwrap();
    assert_eq!(text(&tree, "/log"), "db_set 0 [value set]\ndb_get 0 [true]\ndb_get 0 [a, c]\n");
}

#[test]
fn each_run_keeps_what_the_one_before_left() {
    let set = |value: &str| format!("db_set ask/name {value}");
    let part = |name: &'static str, value: &str| {
        let mut part = asking(QUESTIONS, &set(value), "");
        part.name = name;
        let postinst = super::script("");
        let config = super::script(&set(value));
        let info = [("templates", QUESTIONS), ("config", config.as_str()), ("postinst", postinst.as_str())];
        part.bytes = deb(&control(name, ""), &info, &[]);
        part
    };
    let value =
        |text: &str| text.split("\n\n").find(|record| record.starts_with("Name: ask/name\n")).unwrap().to_owned();
    // Two scripts of one layer, and two layers.
    for layers in [
        bake_layers(&[("k", "", &[part("one", "1"), part("two", "2")])]),
        bake_layers(&[("k", "", &[part("one", "1")]), ("l", "", &[part("two", "2")])]),
    ] {
        let tree = layers.unwrap();
        let (new, old) = (value(&text(&tree, CONFIG)), value(&text(&tree, "/var/cache/debconf/config.dat-old")));
        assert_eq!(new, "Name: ask/name\nTemplate: ask/name\nValue: 2\nOwners: one, two");
        assert_eq!(old, "Name: ask/name\nTemplate: ask/name\nValue: 1\nOwners: one");
        assert_eq!(found(&tree, "/var/cache/debconf/passwords.dat-old"), None, "passwords have no backup");
    }
}

#[test]
fn owners_are_named_as_debconf_finds_them() {
    // A preinst knows the package by its name, a postinst by its file.
    let preinst = super::script("say db_get ask/name");
    let postinst = super::script("say db_get ask/sure");
    let info = [("templates", QUESTIONS), ("preinst", preinst.as_str()), ("postinst", postinst.as_str())];
    let part = package("ask", deb(&control("ask", "Multi-Arch: same\n"), &info, &[]));
    let tree = bake_onto(base(), &[part], "").unwrap();
    assert!(text(&tree, CONFIG).starts_with("Name: ask/mode\nTemplate: ask/mode\nOwners: ask, ask:amd64\n\n"));
    assert_eq!(text(&tree, "/log"), "db_get 0 [host]\ndb_get 0 [true]\n");
}

#[test]
fn programs_of_debconf_work_on_the_database() {
    let postinst = "#!/bin/sh\nset -e\nprintf 'x\\\\y\\nz\\n' | debconf-escape -e > /log\nprintf 'a\\\\nb' | debconf-escape -u >> /log\n\
        debconf-loadtemplate ask /var/lib/dpkg/info/ask.templates\n\
        echo 'GET ask/name\nSET ask/name other\nNONE' | debconf-communicate ask >> /log || echo $? >> /log\n\
        printf '# c\\n\\nask ask/mode select fast\\nask ask/mode seen false\\nnew new/one string a \\\\\\n b\\nx\\nx y odd z\\n' > /in\n\
        debconf-set-selections /in 2>> /log || echo $? >> /log\nrm /in\ndebconf-show ask >> /log\n";
    let info = [("templates", QUESTIONS), ("postinst", postinst)];
    let tree = bake_onto(base(), &[package("ask", deb(&control("ask", ""), &info, &[]))], "").unwrap();
    assert_eq!(
        text(&tree, "/log"),
        "x\\\\y\\nz\\na\nb0 host\n0 value set\n20 Unsupported command \"none\" (full line was \"NONE\") received from confmodule.\n20\n\
         error: parse error on 'x'\nwarning: Unknown type odd, skipping 'x y odd z'\n1\n\
         \x20 ask/mode: fast\n  ask/name: other\n  ask/parts: a, c\n  ask/secret: (password omitted)\n  ask/sure: true\n  ask/title:\n\
         \x20 ask/told:\n  ask/wrong:\n"
    );
    let config = text(&tree, CONFIG);
    assert!(config.contains("Name: new/one\nTemplate: new/one\nValue: a  b\nOwners: new\nFlags: seen\n\n"), "{config}");
    assert!(
        text(&tree, TEMPLATES)
            .contains("Name: new/one\nDescription: Dummy template\nExtended_description: This is a fake")
    );

    // Under a frontend the database is locked.
    let locked = "say debconf-communicate ask\nsay debconf-set-selections\nsay debconf-loadtemplate ask /x\n";
    let tree = bake_onto(base(), &[asking(QUESTIONS, "", locked)], "").unwrap();
    assert_eq!(
        text(&tree, "/log"),
        "debconf-communicate 1 []\ndebconf-set-selections 1 []\ndebconf-loadtemplate 1 []\n"
    );
}

#[test]
fn programs_of_the_tree_talk_to_the_frontend_that_runs() {
    let tool = "#!/bin/sh\n[ \"$DEBIAN_HAS_FRONTEND\" ] && echo joined >> /log\n. /usr/share/debconf/confmodule\n\
        db_get ask/name || true\necho \"$RET\" >> /log\n";
    let alone = "#!/bin/sh\n/usr/bin/tool\n/usr/bin/tool\n";
    for (postinst, expected) in [
        (super::script("/usr/bin/tool"), "joined\nhost\n"),
        // The package's templates are not loaded.
        (alone.to_owned(), "10 ask/name doesn't exist\n10 ask/name doesn't exist\n"),
    ] {
        let info = [("templates", QUESTIONS), ("postinst", postinst.as_str())];
        let program =
            crate::bake_inputs::parts::with_mode(crate::bake_inputs::parts::file("./usr/bin/tool", tool), 0o755);
        let part = package("ask", deb(&control("ask", ""), &info, &[program]));
        let tree = bake_onto(base(), &[part], "").unwrap();
        assert_eq!(text(&tree, "/log"), expected);
    }
}
