//! The same scripts under the real debconf, with separate files.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{CONFIG, PASSWORDS, QUESTIONS, TEMPLATES, asking, found, script};
use crate::bake_inputs::parts::{bake_onto, base_with};
use crate::program::write_program;
use crate::tools::skip::skip;

const FRONTEND: &str = "/usr/share/debconf/frontend";

/// What a package does, and what was there before.
struct Case {
    name: &'static str,
    config: &'static str,
    postinst: &'static str,
    before: [&'static str; 2],
}

const NEW: [&str; 2] = ["", ""];

/// As if another package had been there, and an older version of this one.
const OLD: [&str; 2] = [
    "Name: ask/mode\nTemplate: ask/mode\nValue: fast\nOwners: ask\nFlags: seen\n\n\
     Name: ask/old\nTemplate: ask/old\nOwners: ask\nVariables:\n a = b\\nc\n\n\
     Name: other/shared\nTemplate: ask/name\nValue: x\nOwners: other\n\n",
    "Name: ask/mode\nDefault: gone\nDescription: Old\nType: string\nOwners: ask/mode\n\n\
     Name: ask/name\nDescription: Old\nType: string\nOwners: ask/missing, other/shared\n\n\
     Name: ask/old\nDescription: Old\nType: string\nOwners: ask/old\n\n",
];

const ALL: &str = "for q in mode name parts sure secret told wrong; do say db_input high ask/$q; done\nsay db_go\n\
    for q in mode name parts sure secret told wrong title none; do say db_get ask/$q; say db_fget ask/$q seen; done\n";

const CASES: &[Case] = &[
    Case { name: "nothing is asked", config: "", postinst: "", before: NEW },
    Case { name: "all is asked", config: ALL, postinst: ALL, before: NEW },
    Case { name: "all is asked again", config: ALL, postinst: ALL, before: OLD },
    Case {
        name: "values and flags",
        config: "say db_set ask/name a   b\nsay db_set ask/name 'x  y'\nsay db_get ask/name\nsay db_set ask/name\nsay db_get ask/name\n\
            say db_set ask/none x\nsay db_set\nsay db_fset ask/name seen true\nsay db_fget ask/name seen\n\
            say db_fget ask/name isdefault\nsay db_fset ask/sure isdefault false\nsay db_fget ask/sure seen\nsay db_fset ask/sure own yes\n\
            say db_fget ask/sure own\nsay db_fset ask/sure seen\nsay db_fget ask/none seen\nsay db_get\nsay db_get a b\n\
            say db_reset ask/sure\nsay db_reset ask/none\nsay db_fget ask/sure seen\nsay db_set ask/sure 'a\\nb'",
        postinst: "say db_get ask/sure\nsay db_fget ask/sure own\nsay db_reset ask/sure\nsay db_get ask/sure",
        before: NEW,
    },
    Case {
        name: "variables",
        config: "say db_subst ask/mode more 'x,  y, ${more}'\nsay db_subst ask/mode how '${how}'\nsay db_subst ask/none a b\nsay db_subst ask/mode\n\
            say db_subst ask/mode empty\nsay db_metaget ask/mode choices\nsay db_metaget ask/mode Choices-C\nsay db_metaget ask/mode description\n\
            say db_metaget ask/mode extended_description\nsay db_metaget ask/mode extended_description-de.UTF-8\nsay db_metaget ask/mode type\n\
            say db_metaget ask/mode owners\nsay db_metaget ask/mode default\nsay db_metaget ask/mode none\nsay db_metaget ask/none type\n\
            say db_metaget ask/mode priority\nsay db_metaget ask/mode value\nsay db_metaget ask/mode name\nsay db_input low ask/mode\n\
            say db_metaget ask/mode priority\nsay db_set ask/mode x\nsay db_go\nsay db_get ask/mode\nsay db_set ask/mode y\nsay db_input medium ask/mode\n\
            say db_go\nsay db_get ask/mode\nsay db_set ask/mode fas\nsay db_input medium ask/mode\nsay db_go\nsay db_get ask/mode",
        postinst: "say db_metaget ask/mode choices",
        before: NEW,
    },
    Case {
        name: "escapes",
        config: "say db_capb escape backup\nsay db_set ask/name 'a\\nb\\\\c  d'\nsay db_get ask/name\nsay db_metaget ask/mode extended_description\n\
            say db_subst ask/mode how 'one\\ntwo\\ three'\nsay db_metaget ask/mode extended_description\nsay db_capb\nsay db_get ask/name\n\
            say db_capb multiselect",
        postinst: "say db_get ask/name\nsay db_metaget ask/mode extended_description",
        before: NEW,
    },
    Case {
        name: "owners",
        config: "say db_register ask/name ask/more\nsay db_register ask/secret ask/secret2\nsay db_register ask/none ask/x\nsay db_set ask/more v\n\
            say db_register ask/sure ask/more\nsay db_unregister ask/old\nsay db_unregister ask/none\nsay db_input low ask/name\n\
            say db_unregister ask/name\nsay db_clear\nsay db_unregister ask/name\nsay db_get ask/name\nsay db_unregister other/shared\nsay db_register",
        postinst: "say db_get ask/more\nsay db_unregister ask/more\nsay db_get ask/more",
        before: OLD,
    },
    Case { name: "purge", config: "", postinst: "say db_purge\nsay db_purge x\nsay db_get ask/name", before: OLD },
    Case {
        name: "the frontend",
        config: "say db_version 2.0\nsay db_version 1.0\nsay db_version 3\nsay db_version\nsay db_version 2 0\nsay db_title A title\nsay db_settitle ask/title\n\
            say db_settitle ask/none\nsay db_settitle\nsay db_info\nsay db_info ask/told\nsay db_info ask/none\nsay db_beginblock\nsay db_endblock\n\
            say db_input urgent ask/name\nsay db_input high ask/none\nsay db_input high\nsay db_go now\nsay db_progress START 0 10 ask/title\n\
            say db_progress STEP 3\nsay db_progress SET 5\nsay db_progress INFO ask/title\nsay db_progress INFO ask/none\nsay db_progress STOP\n\
            say db_progress\nsay db_progress START 3 1 ask/title\nsay db_progress JUMP 1\nsay db_progress SET\nsay _db_cmd NONSENSE a  b\n\
            say _db_cmd ''\nsay _db_cmd EXIST ask/name\nsay _db_cmd EXIST ask/none\nsay _db_cmd get ask/name\nsay db_text high ask/told",
        postinst: "say db_get ask/parts\ndb_stop\necho out",
        before: NEW,
    },
    Case {
        name: "fields",
        config: "unset IFS\nset -- $(echo a b)\necho $# >>$LOG\ndb_get ask/name\nset -- $(echo a b)\necho $# >>$LOG\necho \"<${IFS-unset}>\" >>$LOG",
        postinst: "db_get ask/name\nset -- $(echo a b)\necho $# >>$LOG",
        before: NEW,
    },
    Case {
        name: "own templates",
        config: "F=${LOG%log}more\nprintf 'Template: more/one\\nType: string\\nDefault: d\\nDescription: One\\n' > $F\n\
            say db_x_loadtemplatefile $F\nsay db_get more/one\nsay db_x_loadtemplatefile $F else\nsay db_metaget more/one owners\n\
            say db_x_loadtemplatefile /nope\nsay db_x_loadtemplatefile\nrm $F\nsay db_data own/made type string\nsay db_data own/made type string\n\
            say db_data own/none default x\nsay db_data own/made\nsay db_get own/made",
        postinst: "say db_unregister more/one\nsay db_get more/one",
        before: NEW,
    },
];

/// Runs the scripts of a case as dpkg would, and gives what is left.
fn real(case: &Case, dir: &Path) -> Vec<Option<String>> {
    let write = |name: &str, text: &str| fs::write(dir.join(name), text).unwrap();
    let at = dir.display();
    write(
        "debconf.conf",
        &format!(
            "Config: both\nTemplates: templates\n\nName: config\nDriver: File\nMode: 644\nReject-Type: password\nFilename: {at}/config.dat\n\n\
             Name: passwords\nDriver: File\nMode: 600\nBackup: false\nRequired: false\nAccept-Type: password\nFilename: {at}/passwords.dat\n\n\
             Name: both\nDriver: Stack\nStack: config, passwords\n\nName: templates\nDriver: File\nMode: 644\nFilename: {at}/templates.dat\n"
        ),
    );
    if !case.before[0].is_empty() {
        write("config.dat", case.before[0]);
        write("templates.dat", case.before[1]);
    }
    write("ask.templates", QUESTIONS);
    for (name, text) in [("ask.config", case.config), ("ask.postinst", case.postinst)] {
        write_program(&dir.join(name), script(text).as_bytes());
    }
    let output = Command::new("timeout")
        .args(["60", FRONTEND])
        .arg(dir.join("ask.postinst"))
        .args(["configure", ""])
        .env_clear()
        .envs([("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), ("HOME", "/nonexistent"), ("LC_ALL", "C.UTF-8")])
        .envs([("DEBIAN_FRONTEND", "noninteractive"), ("PERL_DL_NONLAZY", "1")])
        .env("DEBCONF_SYSTEMRC", dir.join("debconf.conf"))
        .env("LOG", dir.join("log"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}: {}", case.name, String::from_utf8_lossy(&output.stderr));
    LEFT.iter().map(|(name, _)| fs::read_to_string(dir.join(name)).ok()).collect()
}

const LEFT: [(&str, &str); 7] = [
    ("log", "/log"),
    ("config.dat", CONFIG),
    ("passwords.dat", PASSWORDS),
    ("templates.dat", TEMPLATES),
    ("config.dat-old", "/var/cache/debconf/config.dat-old"),
    ("passwords.dat-old", "/var/cache/debconf/passwords.dat-old"),
    ("templates.dat-old", "/var/cache/debconf/templates.dat-old"),
];

#[test]
fn scripts_hear_and_leave_what_they_do_under_the_real_debconf() {
    if !Path::new(FRONTEND).exists() {
        return skip("debconf is not installed");
    }
    for case in CASES {
        let dir = tempfile::tempdir().unwrap();
        let expected = real(case, dir.path());
        let [config, templates] = case.before;
        let files = if config.is_empty() { vec![] } else { vec![(CONFIG, config), (TEMPLATES, templates)] };
        let tree = bake_onto(base_with(&files), &[asking(QUESTIONS, case.config, case.postinst)], "").unwrap();
        for ((name, path), expected) in LEFT.iter().zip(expected) {
            let text = found(&tree, path);
            assert!(
                text == expected,
                "{}: {name}:\n{}\n--- expected\n{}",
                case.name,
                text.unwrap_or_default(),
                expected.unwrap_or_default()
            );
        }
    }
}
