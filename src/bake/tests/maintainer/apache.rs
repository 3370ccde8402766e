//! a2enmod(8), its like, and a2query(1).

use vmbake_disk::tree::Tree;

use super::helpers::{refusal, said};
use crate::bake_inputs::parts::{base_with, link};

fn server() -> Tree {
    let etc = "/etc/apache2";
    let files = [
        (format!("{etc}/mods-available/mime.load"), "LoadModule mime_module x.so\n"),
        (format!("{etc}/mods-available/mime.conf"), ""),
        (format!("{etc}/mods-available/dav.load"), "# Depends: mime\n# Conflicts: old\nLoadModule dav_module x.so\n"),
        (format!("{etc}/mods-available/old.load"), "\n# Conflicts: dav\n"),
        (format!("{etc}/mods-available/lost.load"), "# Depends: nothing\n"),
        (format!("{etc}/mods-available/cgi.load"), ""),
        (format!("{etc}/mods-available/cgid.load"), ""),
        (format!("{etc}/mods-available/mpm_event.load"), "# Conflicts: mpm_worker\n"),
        (format!("{etc}/mods-available/mpm_worker.load"), "# Conflicts: mpm_event\n"),
        (format!("{etc}/mods-available/status.load"), ""),
        (format!("{etc}/mods-enabled/status.load"), "not a link\n"),
        (format!("{etc}/sites-available/000-default.conf"), ""),
        (format!("{etc}/sites-enabled/README"), ""),
        (format!("{etc}/conf-available/own.conf"), "# Depends: dav\n"),
        (format!("{etc}/conf-enabled/README"), ""),
    ];
    base_with(&files.iter().map(|(path, text)| (path.as_str(), *text)).collect::<Vec<_>>())
}

#[test]
fn modules_sites_and_configuration_are_enabled_and_asked_for() {
    let pairs = [
        ("a2query -m dav", "=1\n"),
        ("a2enconf -q own", "=1\n"),
        ("a2enmod -m -q dav", "Enabling module mime.\nEnabling module dav.\n"),
        ("a2enmod -m -q dav.load", ""),
        (
            "a2enmod dav",
            "Considering dependency mime for dav:\nModule mime already enabled\nConsidering conflict old for dav:\nModule dav already enabled\n",
        ),
        ("a2enmod -q old", "=1\n"),
        ("a2enmod -q lost", "=1\n"),
        ("a2enmod -q status", "=1\n"),
        ("a2enmod -q nope", "=1\n"),
        ("a2query -M", "invalid\n"),
        ("a2enmod -m -q mpm_event cgi", "Enabling module mpm_event.\nEnabling module cgid.\n"),
        ("a2enmod -m -q mpm_worker", "=1\n"),
        ("a2query -M", "event\n"),
        ("a2enconf -m -q own", "Enabling conf own.\n"),
        ("a2ensite -q 000-default", "Enabling site 000-default.\n"),
        ("a2query -m dav", "dav (enabled by maintainer script)\n"),
        ("a2query -s 000-default.conf", "000-default (enabled by site administrator)\n"),
        ("a2query -c own", "own (enabled by maintainer script)\n"),
        ("a2query -q -c own", ""),
        ("a2dismod -q mime", "=1\n"),
        ("a2dismod -m -f -q mime", "Module dav disabled.\nModule mime disabled.\n"),
        ("a2dismod -m -q mime", ""),
        ("a2dissite 000-default", "Site 000-default disabled.\n"),
        ("a2query -m mime", "=33\n"),
        ("a2query -s 000-default", "=32\n"),
        ("a2enmod -m -q mime", "Enabling module mime.\n"),
    ];
    let (found, tree) = said(server(), &pairs.map(|(command, _)| command));
    for ((command, expected), found) in pairs.iter().zip(&found) {
        assert_eq!(found, expected, "{command}");
    }
    assert_eq!(link(&tree, "/etc/apache2/mods-enabled/mime.load"), "../mods-available/mime.load");
    assert_eq!(link(&tree, "/etc/apache2/mods-enabled/mime.conf"), "../mods-available/mime.conf");
    assert_eq!(link(&tree, "/etc/apache2/conf-enabled/own.conf"), "../conf-available/own.conf");
    for (path, there) in [
        ("/etc/apache2/mods-enabled/dav.load", false),
        ("/etc/apache2/mods-enabled/cgi.load", false),
        ("/etc/apache2/sites-enabled/000-default.conf", false),
        ("/var/lib/apache2/module/enabled_by_maint/mime", true),
        ("/var/lib/apache2/module/disabled_by_maint/mime", false),
        ("/var/lib/apache2/module/disabled_by_maint/dav", true),
        ("/var/lib/apache2/module/enabled_by_maint/dav", false),
        ("/var/lib/apache2/site/disabled_by_admin/000-default", true),
        ("/var/lib/apache2/site/enabled_by_admin/000-default", false),
        ("/var/lib/apache2/conf/enabled_by_maint/own", true),
    ] {
        assert_eq!(tree.lookup(path.as_bytes()).is_some(), there, "{path}");
    }
}

#[test]
fn what_is_not_known_is_refused() {
    for command in [
        "a2enmod",
        "a2enmod 'd*'",
        "a2dismod -p dav",
        "a2enmod --what dav",
        "a2query",
        "a2enmod -q mime; a2dismod -q mime",
    ] {
        let error = refusal(server(), &format!("{command} || true"));
        assert!(error.contains("is not supported"), "{command}: {error}");
    }
}
