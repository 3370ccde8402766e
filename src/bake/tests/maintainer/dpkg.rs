//! dpkg(1), dpkg-query(1) and dpkg-trigger(1).

use vmbake_disk::tree::Tree;

use super::helpers::{refusal, said};
use crate::bake_inputs::parts::{bake_onto, base, base_with, control, deb, package, text};

const STATUS: &str = "Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nMulti-Arch: same\n\
    Source: glibc (2.41-11)\nVersion: 2.41-12+b1\nDescription: C library\n More of it.\n\n\
    Package: tool\nStatus: install ok installed\nArchitecture: all\nVersion: 1:2.0-3\nDepends: libc6, other-tool | mta\n\
    Conffiles:\n /etc/tool d41d8cd98f00b204e9800998ecf8427e\nDescription: a tool\n\n\
    Package: gone\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 1\n\n";

fn packages() -> Tree {
    let info = "/var/lib/dpkg/info";
    let files = [
        ("/var/lib/dpkg/status".to_owned(), STATUS),
        ("/var/lib/dpkg/arch".to_owned(), "amd64\narm64\n"),
        (format!("{info}/libc6:amd64.list"), "/.\n/usr/lib/libc.so.6\n"),
        (format!("{info}/tool.list"), "/.\n/etc/tool\n/usr/bin/tool\n"),
        (format!("{info}/tool.md5sums"), "d41d8cd98f00b204e9800998ecf8427e  usr/bin/tool\n"),
        (format!("{info}/tool.postinst"), "#!/bin/sh\n"),
        ("/var/lib/dpkg/diversions".to_owned(), "/usr/bin/tool\n/usr/bin/tool.real\nother\n"),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    base_with(&files)
}

fn check(pairs: &[(&str, &str)]) -> Tree {
    let commands: Vec<&str> = pairs.iter().map(|(command, _)| *command).collect();
    let (found, tree) = said(packages(), &commands);
    for ((command, expected), found) in pairs.iter().zip(&found) {
        assert_eq!(found, expected, "{command}");
    }
    tree
}

#[test]
fn versions_compare_as_by_dpkg() {
    let (versions, others) = (["''", "1", "1~", "1.0", "2:0"], ["''", "1", "1~", "1.0-1"]);
    // For each operator, the pairs for which it holds: rows of the versions, columns of the others.
    let table = [
        ("lt", ".XXX ...X .X.X ...X ...."),
        ("le", "XXXX .X.X .XXX ...X ...."),
        ("eq", "X... .X.. ..X. .... ...."),
        ("ne", ".XXX X.XX XX.X XXXX XXXX"),
        ("ge", "X... XXX. X.X. XXX. XXXX"),
        ("gt", ".... X.X. X... XXX. XXXX"),
        ("lt-nl", ".... X..X XX.X X..X X..."),
        ("le-nl", "X... XX.X XXXX X..X X..."),
        ("ge-nl", "XXXX .XX. ..X. .XX. .XXX"),
        ("gt-nl", ".XXX ..X. .... .XX. .XXX"),
    ];
    let mut commands = Vec::new();
    let mut expected = Vec::new();
    for (operator, rows) in table {
        for (version, row) in versions.iter().zip(rows.split(' ')) {
            for (other, holds) in others.iter().zip(row.chars()) {
                commands.push(format!("dpkg --compare-versions {version} {operator} {other}"));
                expected.push(if holds == 'X' { "" } else { "=1\n" });
            }
        }
    }
    for (command, result) in [
        ("1 '<' 1", ""),
        ("1 '>' 1", ""),
        ("1 '<<' 1", "=1\n"),
        ("1 '<=' 1", ""),
        ("1 = 1", ""),
        ("1 '>=' 2", "=1\n"),
        ("2 '>>' 1", ""),
        ("-- 1 lt 2", ""),
        ("1 xx 2", "=2\n"),
        ("1 lt", "=2\n"),
        ("'' lt-nl 1", "=1\n"),
    ] {
        commands.push(format!("dpkg --compare-versions {command}"));
        expected.push(result);
    }
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let (found, _) = said(base(), &commands);
    for ((command, expected), found) in commands.iter().zip(expected).zip(&found) {
        assert_eq!(found, expected, "{command}");
    }
}

#[test]
fn dpkg_says_what_it_knows_of_itself() {
    check(&[
        ("dpkg --print-architecture", "amd64\n"),
        ("dpkg --print-foreign-architectures", "arm64\n"),
        ("dpkg --assert-multi-arch", ""),
        ("dpkg --validate-version -- 1:2-3", ""),
        ("dpkg --validate-version 1.a~b+c-d~1", ""),
        ("dpkg --validate-version 1:2:3", ""),
        ("dpkg --validate-version ' 1'", ""),
        ("dpkg --validate-version a1", "=1\n"),
        ("dpkg --validate-version 1_2", "=1\n"),
        ("dpkg --validate-version 1-2_3", "=1\n"),
        ("dpkg --validate-version 1:", "=2\n"),
        ("dpkg --validate-version ''", "=2\n"),
        ("dpkg --validate-version x:1", "=2\n"),
        ("dpkg --validate-version 99999999999:1", "=2\n"),
        ("dpkg --validate-version -- -1", "=2\n"),
        ("dpkg --validate-version '1 2'", "=2\n"),
        ("dpkg --validate-version 1-", "=2\n"),
        ("dpkg --validate-pkgname tool", ""),
        ("dpkg --validate-pkgname A_", ""),
        ("dpkg --validate-pkgname -- -x", "=2\n"),
        ("dpkg --validate-pkgname 'x y'", "=2\n"),
    ]);
}

#[test]
fn packages_are_shown_by_formats() {
    let format = "dpkg-query -W -f";
    check(&[
        ("dpkg-query -W", "gone\t1\nlibc6:amd64\t2.41-12+b1\nown\t1.0-1\ntool\t1:2.0-3\n"),
        ("dpkg-query -W mta nope", "mta\t\n=1\n"),
        ("dpkg-query --show 'lib*' tool:all tool:amd64", "libc6:amd64\t2.41-12+b1\ntool\t1:2.0-3\n=1\n"),
        (
            &format!("{format} '${{Status}}|${{db:Status-Abbrev}}|${{Version}}\\n' gone mta own tool"),
            "deinstall ok config-files|dc |1\nunknown ok not-installed|un |\n\
             install ok half-configured|iF |1.0-1\ninstall ok installed|ii |1:2.0-3\n",
        ),
        (
            &format!("{format}='${{db:Status-Want}} ${{db:Status-Status}} ${{db:Status-Eflag}} ${{nothing}}\\n' tool"),
            "install installed ok \n",
        ),
        (
            &format!("{format} '${{source:Package}} ${{source:Version}} ${{source:Upstream-Version}}\\n' libc6 tool"),
            "glibc 2.41-11 2.41\ntool 1:2.0-3 2.0\n",
        ),
        (&format!("{format} '${{Package;6}}|${{Package;-6}}|${{binary:Summary}}\\t' tool"), "  tool|tool  |a tool\t"),
        (&format!("{format} '${{Conffiles}}\\n' tool"), " /etc/tool d41d8cd98f00b204e9800998ecf8427e\n"),
        (&format!("{format} '${{db-fsys:Files}}' libc6"), " /.\n /usr/lib/libc.so.6\n"),
        (
            "dpkg -s tool",
            "Package: tool\nStatus: install ok installed\nArchitecture: all\nVersion: 1:2.0-3\n\
             Depends: libc6, other-tool | mta\nConffiles:\n /etc/tool d41d8cd98f00b204e9800998ecf8427e\nDescription: a tool\n",
        ),
        ("dpkg -s mta", "=1\n"),
        ("dpkg --get-selections tool libc6", "tool\t\t\t\t\t\tinstall\nlibc6:amd64\t\t\t\t\tinstall\n"),
        (
            "dpkg -l tool mta",
            "Desired=Unknown/Install/Remove/Purge/Hold\n\
             | Status=Not/Inst/Conf-files/Unpacked/halF-conf/Half-inst/trig-aWait/Trig-pend\n\
             |/ Err?=(none)/Reinst-required (Status,Err: uppercase=bad)\n\
             ||/ Name           Version      Architecture Description\n\
             +++-==============-============-============-=================================\n\
             un  mta            <none>       <none>       (no description available)\n\
             ii  tool           1:2.0-3      all          a tool\n",
        ),
        ("dpkg -l nope", "=1\n"),
    ]);
}

#[test]
fn files_and_their_packages_are_found() {
    check(&[
        ("dpkg -L libc6", "/.\n/usr/lib/libc.so.6\n"),
        ("dpkg-query --listfiles tool", "/.\n/etc/tool\n/usr/bin/tool\ndiverted by other to: /usr/bin/tool.real\n"),
        ("dpkg -L nope", "=1\n"),
        ("dpkg -S /etc/tool", "tool: /etc/tool\n"),
        ("dpkg -S libc.so", "libc6:amd64: /usr/lib/libc.so.6\n"),
        (
            "dpkg-query --search /usr/bin/tool",
            "diversion by other from: /usr/bin/tool\ndiversion by other to: /usr/bin/tool.real\ntool: /usr/bin/tool\n",
        ),
        ("dpkg -S '/nope*'", "=1\n"),
        ("dpkg-query --control-path tool postinst", "/var/lib/dpkg/info/tool.postinst\n"),
        ("dpkg-query --control-path tool nope", ""),
        ("dpkg-query --control-list tool", "md5sums\npostinst\n"),
        ("dpkg-query --control-show tool postinst", "#!/bin/sh\n"),
        ("dpkg-query --control-show tool nope", "=2\n"),
    ]);
}

#[test]
fn triggers_set_off_the_packages_that_want_them() {
    let interested = |name: &'static str, trigger: &str| {
        let postinst = format!("#!/bin/sh\n[ \"$1\" != triggered ] || echo \"$2\" >>/etc/{name}\n");
        let (triggers, control) = (format!("interest {trigger}\n"), control(name, ""));
        package(name, deb(&control, &[("postinst", &postinst), ("triggers", &triggers)], &[]))
    };
    let script = "#!/bin/sh\nset -e\ndpkg-trigger --check-supported\ndpkg-trigger --no-await update-things\n\
        dpkg-trigger --by-package=own /usr/share/own/file\ndpkg-trigger --no-act others\nif dpkg-trigger ' x'; then exit 1; fi\n\
        if dpkg-trigger; then exit 1; fi\n";
    let zown = package("zown", deb(&control("zown", ""), &[("postinst", script)], &[]));
    let parts =
        [interested("one", "update-things"), interested("two", "/usr/share/own"), interested("six", "others"), zown];
    let tree = bake_onto(base(), &parts, "").unwrap();
    assert_eq!(
        (text(&tree, "/etc/one"), text(&tree, "/etc/two")),
        ("update-things\n".to_owned(), "/usr/share/own\n".to_owned())
    );
    assert!(tree.lookup(b"/etc/six").is_none());
}

#[test]
fn paths_lose_their_links() {
    check(&[
        ("ln -s ../bin/./sh /etc/one", ""),
        ("ln -s two /etc/two", ""),
        ("ln -s /nowhere/x /etc/three", ""),
        ("dpkg-realpath /etc/one", "/usr/bin/sh\n"),
        ("dpkg-realpath /etc/two", "=2\n"),
        ("dpkg-realpath /etc/three", "/nowhere/x\n"),
        ("dpkg-realpath /etc//./passwd/", "/etc/passwd\n"),
        ("dpkg-realpath /etc/../bin", "/usr/bin\n"),
        ("dpkg-realpath /..", "/\n"),
        ("dpkg-realpath bin/nothing", "/usr/bin/nothing\n"),
        ("dpkg-realpath --root '' /bin", "/usr/bin\n"),
        ("dpkg-realpath ''", "=2\n"),
    ]);
}

#[test]
fn what_would_change_packages_is_refused() {
    for command in [
        "dpkg --configure -a",
        "dpkg -i x.deb",
        "dpkg --compare-versions 1_2 lt 2",
        "dpkg --assert-nothing",
        "dpkg-query --root=/x -W",
        "dpkg-query -W -f '${Package'",
        "dpkg-trigger --admindir=/x y",
        "dpkg-realpath --root /x /etc",
    ] {
        let error = refusal(base(), &format!("{command} || true"));
        assert!(error.contains("is not supported"), "{command}: {error}");
    }
}
