//! debconf: what scripts hear, and what is left below `/var/cache/debconf`.

mod database;
mod hostile;
mod presets;
mod real;

use vmbake_disk::tree::Tree;

use crate::bake_inputs::parts::{Part, control, deb, package, text};

const CONFIG: &str = "/var/cache/debconf/config.dat";
const TEMPLATES: &str = "/var/cache/debconf/templates.dat";
const PASSWORDS: &str = "/var/cache/debconf/passwords.dat";

/// Templates of every type, with variables and translations.
const QUESTIONS: &str = "Template: ask/mode\nType: select\nChoices: fast, slow\\, safe, ${more}\n\
    Choices-de.UTF-8: schnell, langsam\\, sicher, ${more}\nDefault: slow, safe\nDescription: Mode:\n How it runs.\n .\n\
    \x20It is ${how}.\nDescription-de.UTF-8: Modus:\n Wie es läuft.\n .\n  * eins\n  * zwei\nDescription-pt_BR.UTF-8: Modo:\n\n\
    Template: ask/name\nType: string\nDefault: host\nDescription: Name:\n\n\
    Template: ask/parts\nType: multiselect\nChoices: a, b, c\nDefault: a, c\nDescription: Parts:\n\n\
    Template: ask/sure\nType: boolean\nDefault: true\nDescription: Sure?\n\n\
    Template: ask/secret\nType: password\nDescription: Password:\n\n\
    Template: ask/told\nType: note\nDescription: Told\n Much.\n\n\
    Template: ask/wrong\nType: error\nDescription: Wrong\n\n\
    Template: ask/title\nType: title\nDescription: Title ${how}\n";

/// A package whose scripts use debconf. `config` and `postinst` go on after their first lines.
fn asking(templates: &str, config: &str, postinst: &str) -> Part {
    let config = script(config);
    let postinst = script(postinst);
    let info = [("templates", templates), ("config", &config), ("postinst", &postinst)];
    package("ask", deb(&control("ask", ""), &info, &[]))
}

/// A script under debconf, with a function that logs a status and an answer.
fn script(rest: &str) -> String {
    format!(
        "#!/bin/sh\n. /usr/share/debconf/confmodule\nLOG=${{LOG:-/log}}\n\
         say() {{ RET=; \"$@\"; echo \"$1 $? [$RET]\" >> $LOG; }}\n{rest}"
    )
}

/// What is at a path, if there is something.
fn found(tree: &Tree, path: &str) -> Option<String> {
    tree.lookup(path.as_bytes()).map(|_| text(tree, path))
}
