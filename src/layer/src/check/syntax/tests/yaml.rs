//! YAML of cloud-init and netplan.

use super::{are_found, found, found_in};

/// PyYAML 6.0.
#[test]
fn ends_of_lines_in_yaml() {
    let path = "/etc/cloud/cloud.cfg.d/x.cfg";
    let valid = [
        "a: 'x\u{2028}y'\n",
        "a: x\u{2028}b: y\n",
        "a: x\u{2028} y\n",
        "a:\u{2028}  b: 1\n",
        "a: {k: '|'}\n",
        "a: {k: a|b}\n",
        "---\n...\n",
        "a: 1\n...\n...\n",
    ];
    are_found(path, &valid.map(|text| (text, "")));
    for text in ["a: x\u{2028}y\n", "# x\u{2028}y\na: 1\n", "a: x\u{85}y\n", "...\n", "...\na: 1\n", "# c\n...\n"] {
        assert!(!found(path, text).is_empty(), "{text:?}");
    }
}

/// cloud-init 25.1.4 with PyYAML.
#[test]
fn settings_of_cloud_init() {
    let valid = [
        "a: 1\n",
        "",
        "# c\n",
        "#cloud-config\na: 1\n",
        "null\n",
        "{}\n",
        "datasource_list: [ NoCloud ]\n",
        "? a\n: 1\n",
        "---\na: 1\n...\n",
        "é: ü\n",
        "%YAML 1.1\n---\na: 1\n",
        "a: {b: 1,}\n",
        "a: http://x:80\n",
        "\"a\" : 1\n",
        "a: b\r\nc: d\r\n",
        "a: &x 1\nb: *x\n",
        "a: 'a\n\nb'\n",
        "a: \"a\nb: c\"\n",
        "a: [\nb\n]\n",
        "a:\n  - [\n  b\n  ]\n",
        "a: 'x'# y\nb: [x]# y\n",
        "a: 'b\n\tc'\n",
        "a: {\n  b: c\n}\n",
        "a: !!str 1\nb: !!binary YQ==\nc: !!set {x}\nd: ! e\n",
        "x: &x {a: 1}\ny: {<<: *x}\nz: {<<: {a: 1}}\n",
        "a: |\n x\ty\n \tz\nb: \"x\ty\" # \tc\n# \tc\n",
        "a: >-\n x\n\n  y\tz\n\nb: 'x\n  \ty'\n",
        "## template: jinja\na: 1\n",
        "a: !!bool \"yes\"\nb: !!int 0x1_f\nc: !!int 1:20\nd: !!float 1e3\ne: !!null x\nf: !!binary\n",
        "a: 08\nb: 2020-1-1\nc: 2020-02-29\nd: 2001-12-14t21:59:43.10-5\ne: \"2020-13-45\"\nf: !!timestamp 2020-1-1\n",
        "a: &x 1 # R&D\nb: &y [*x] # &x\nc: &z\n  d: *y\n",
        "x: &x [{a: 1}]\nb:\n  <<: *x\nc:\n  <<: [{a: 1}, {b: 2}]\n",
        "a: &x {b: *x}\n",
        "a: !!omap [{b: 1}, {c: 2}]\nd: !!pairs [{b: 1}]\n",
        "=: 1\n",
        "\u{feff}a: 1\n",
        "%YAML 1.2\n---\na: \u{1f600}\n",
    ];
    are_found("/etc/cloud/cloud.cfg.d/x.cfg", &valid.map(|text| (text, "")));
    are_found(
        "/etc/cloud/cloud.cfg.d/x.cfg",
        &[
            ("- a\n", "1"),
            ("a\n", "1"),
            ("a:1\n", "1"),
            ("1\n", "1"),
            ("a: 1\nb: c: d\n", "2"),
            ("a: 1\n---\nb: 2\n", "2"),
            ("a: *x\n", "1"),
            ("a: 1\nb:\n  a: 2\n  c: 3\n  a: 4\n", "~5"),
            ("a: 1\na: 2\n", "~2"),
            ("x: 1\na: b\tc\n", "2"),
            ("a: b\t# c\n", "1"),
            ("x: 1\na: !foo x\n", "2"),
            ("a: !!python/object x\n", "1"),
            ("a: !!seq x\n", "1"),
            ("x: 1\n? [a]\n: b\n", "2"),
            ("{a: b}: c\n", "1"),
            ("a: =\n", "1"),
            ("a: <<\n", "1"),
            ("<<: 1\n", "1"),
            ("a: ]\n", "1"),
            ("x: 1\na: !!bool x\n", "2"),
            ("a: !!bool\n", "1"),
            ("a: !!int \"\"\n", "1"),
            ("a: !!int 08\n", "1"),
            ("a: !!int 1:2x\n", "1"),
            ("a: !!float x\n", "1"),
            ("a: !!timestamp x\n", "1"),
            ("a: !!binary \"a\"\n", "1"),
            ("a: !<tag:yaml.org,2002:bool> x\n", "1"),
            ("a: 0b_\n", "1"),
            ("a: 2020-13-45\n", "1"),
            ("a: 2020-02-30 10:00:00\n", "1"),
            ("a: 2001-12-14t21:59:43.10-25:00\n", "1"),
            ("a: 0000-01-01\n", "1"),
            ("2020-13-45: 1\n", "1"),
            ("a: ! \"2020-13-45\"\n", "1"),
            ("a: &x 1\nb: &x 2\n", "2"),
            ("a: &x\n  b: 1\nc:\n- &x d\n", "4"),
            ("a: &x [1]\nb: {<<: *x}\n", "2"),
            ("a: {<<: [{b: 1}, 2]}\n", "1"),
            ("a: &x {a: 1}\n? *x\n: 2\n", "2"),
            ("a: !!omap [1]\n", "1"),
            ("a: !!pairs [{a: 1, b: 2}]\n", "1"),
            ("x: 1\na: \"\u{7}\"\n", "2"),
            ("a: \u{80}\n", "1"),
            ("a: \u{ffff}\n", "1"),
            ("a: \u{0}b\n", "1"),
        ],
    );
    let bytes: [&[u8]; 4] =
        [b"x: 1\na: \xff\n", b"x: 1\n# \xe4\n", b"## template: jinja\na: \xff\n", b"x: 1\na: \xed\xa0\x80\n"];
    for bytes in bytes {
        assert_eq!(found_in("/etc/cloud/cloud.cfg.d/x.cfg", bytes), "2", "{bytes:?}");
    }
    for text in [
        "a: [1\n",
        "a:\n\tb: 1\n",
        "a: \"x\n",
        "a: @x\n",
        "a: `x`\n",
        "a: 'it's'\n",
        "a: |\n x\ny\n",
        "a: 1 #c\n b: 2\n",
    ] {
        assert_ne!(found("/etc/cloud/cloud.cfg.d/x.cfg", text), "", "{text:?}");
    }
}

/// PyYAML 6.0, and `netplan generate` of netplan 1.1.
#[test]
fn blocks_of_text_within_brackets() {
    let valid = [
        "a: |\n  {x\n",
        "a: {b: '|'}\nc: |\n  x\n",
        "a:\n- [b, {c: d}]\n- >-\n  x\n",
        "a: {b: x}\nc: {d: [e]}\nf:\n  g: |\n    x\n",
        "a: &x\n  b: c\nd: !!map\n  e: |\n    f\n",
        "a: &x {b: c}\nd: [*x]\ne: |\n  x\n",
    ];
    let refused = [("a: {b: |\n  x\n}\n", "1"), ("a: [\n |\n x\n]\n", "2"), ("a: 1\nb: &x [{c: >-\n  x\n}]\n", "2")];
    for path in ["/etc/cloud/cloud.cfg.d/x.cfg", "/etc/netplan/x.yaml"] {
        if path.contains("cloud") {
            are_found(path, &valid.map(|text| (text, "")));
        }
        for (text, line) in refused {
            assert!(found(path, text).starts_with(line), "{path}: {text:?}: {}", found(path, text));
        }
    }
    let valid = "network:\n  version: 2\n  ethernets:\n    all: {match: {name: 'e*'}, dhcp4: yes}\n";
    are_found(
        "/etc/netplan/x.yaml",
        &[(valid, ""), ("network: {version: 2\n", "2"), ("network:\n  a: 1\n b: 2\n", "3")],
    );
}

/// `netplan generate` of netplan 1.1.
#[test]
fn networks_of_netplan() {
    let path = "/etc/netplan/x.yaml";
    for text in ["", "# c\n", "- network\n", "network: {}\n", "network: {version: \"2\", renderer: networkd}\n"] {
        assert_eq!(found(path, text), "", "{text:?}");
    }
    for text in [
        "network:\n",
        "foo: 1\n",
        "network: [1]\n",
        "network: {version: 3}\n",
        "network: {renderer: x}\n",
        "network: {foo: {}}\n",
    ] {
        assert_eq!(found(path, text), "1", "{text:?}");
    }
    let names = [
        ("\"a b\": {}", "3"),
        ("\"e*\": {}", "3"),
        ("e0:", "3"),
        ("e0: []", "3"),
        ("renderer: networkd", ""),
        ("5: {}", ""),
    ];
    for (name, expected) in names {
        assert_eq!(found(path, &format!("network:\n  ethernets:\n    {name}\n")), expected, "{name}");
    }
    for (setting, is_valid) in [
        ("dhcp4: On", true),
        ("dhcp4: 'yes'", true),
        ("dhcp4: t", false),
        ("dhcp4: 1", false),
        ("dhcp4:", false),
        ("dhcp5: true", false),
        ("interfaces: [a]", false),
        ("addresses: [10.0.0.1/24, 'fe80::1/64', {10.0.0.2/8: {lifetime: 0}}]", true),
        ("addresses: [10.0.0.1]", false),
        ("addresses: 10.0.0.1/24", false),
        ("addresses: [10.0.0.1/33]", false),
        ("addresses: [10.0.0.1/0]", false),
        ("gateway4: 10.0.0.1", true),
        ("gateway4: 'fe80::1'", false),
        ("mtu: '1500'", true),
        ("mtu: 0x10", false),
        ("nameservers: {addresses: [1.1.1.1, 'fe80::1'], search: [a]}", true),
        ("nameservers: {addresses: 1.1.1.1}", false),
        ("nameservers: {addresses: [x]}", false),
        ("nameservers: [1.1.1.1]", false),
        ("match: {name: x}", true),
        ("match: {nam: x}", false),
        ("set-name: x", false),
        ("routes: {}", false),
        ("renderer: foo", false),
    ] {
        let expected = if is_valid { "" } else { "4" };
        assert_eq!(found(path, &format!("network:\n  ethernets:\n    e0:\n      {setting}\n")), expected, "{setting}");
    }
    are_found(path, &[("network:\n  vrfs: {v: {table: 5}}\n  modems: {m: {pin: 1}}\n  tunnels: {t: {mark: 1}}\n", "")]);
    // Aliases have values of other nodes, and deep collections are not judged.
    let alias = "network:\n  ethernets:\n    e0: &a {dhcp4: true}\n    e1: *a\n";
    are_found(path, &[(alias, ""), (&format!("a: {}{}\n", "[".repeat(40), "]".repeat(40)), "")]);
}
