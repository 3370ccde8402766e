//! Files of apt.

use super::{are_found, found, unescaped};

/// `apt-config dump` of apt 3.0: a file enters, the line of the statement that it refuses leaves, or of
/// one that it takes as a value without a name.
#[test]
fn settings_of_apt() {
    let path = "/etc/apt/apt.conf.d/90x";
    for line in include_str!("../apt/valid.txt").lines() {
        let warned = found(path, &unescaped(line));
        assert!(warned.is_empty() || warned.starts_with('~'), "{line}: {warned}");
    }
    for line in include_str!("../apt/invalid.txt").lines() {
        assert_eq!(found(path, &unescaped(line)), "1", "{line}");
    }
    are_found(
        path,
        &[
            ("A \"x\";\nAcquire::http::Proxy=\"http://x\";\n", "2"),
            ("A \"x\"\nB \"y\";\n", "1"),
            ("A {\n  B \"x\";\n", "~1"),
        ],
    );
    assert_eq!(found("/etc/apt/apt.conf.d/x.disabled", "A \"x\"\n"), "");
}

/// `apt-cache policy` of apt 3.0.
#[test]
fn preferences_of_apt() {
    are_found(
        "/etc/apt/preferences.d/x",
        &[
            ("# c\n\nPackage: *\nPin: release a=x\nPin-Priority: 100\n", ""),
            ("Explanation: x\nPackage: a\n b\n# d\nPin: Origin \"\"\nPin-Priority: -32768", ""),
            ("package: src:a\r\npin: version 1.*\r\npin-priority: +5\r\n", ""),
            ("Package: *\nPin: release a=x\nPin-Priority: never\n", ""),
            ("Package: a\nPin: origin x\nPin-Priority: never\n", "1"),
            ("Package: *\nPin: release a=x\n", "1"),
            ("Package: *\nPin-Priority: 100\n", "1"),
            ("Pin: release a=x\nPin-Priority: 100\n", "1"),
            ("Package: a\nPin: origin x\nPin-Priority: 1\n\n\nPackage: b\nPin: origin x\nPin-Priority: 0\n", "6"),
            ("Package: *\nPin: release a=x\nPin-Priority: abc\n", "1"),
            ("Package: *\nPin: release a=x\nPin-Priority: 32768\n", "1"),
            ("Package: *\nPin: version 1.*\nPin-Priority: 100\n", "1"),
            ("Package: a\nPin: foo x\nPin-Priority: 100\n", "1"),
            ("foo bar\n", "1"),
            ("Explanation: x\n\nPackage: *\nPin: origin x\nPin-Priority: 100\n", "1"),
        ],
    );
}

/// `apt-get indextargets` of apt 3.0.4.
#[test]
fn sources_of_apt() {
    are_found(
        "/etc/apt/sources.list.d/x.list",
        &[
            ("deb http://x/debian trixie main\n", ""),
            ("# c\n\n   deb http://x/debian trixie main # c\n", ""),
            ("deb http://x/debian ./\ndeb [trusted=yes] http://x/debian /\n", ""),
            ("deb [ arch=amd64 ] http://x/debian trixie main\ndeb []  http://x/debian trixie main\r\n", ""),
            ("deb \"cdrom:[Debian x]/\" trixie main\ndeb cdrom:[Debian x]/ trixie main\n", ""),
            ("deb mirror+file:/etc/apt/mirrors/debian.list trixie main\ndeb http://x/debian $(ARCH)/ \n", ""),
            ("deb http://x/debian trixie\n", "1"),
            ("deb http://x/debian ./ main\n", "1"),
            ("deb http://x/debian\n", "1"),
            ("deb\n", "1"),
            ("rpm http://x trixie main\nDEB http://x trixie main\n", "1 2"),
            ("deb [arch=amd64 http://x/debian trixie main\n", "1"),
            ("deb [arch] http://x/debian trixie main\n", "1"),
            ("deb [signed-by=\"/x\" arch+=amd64 foo=x] http://x/debian trixie main\n", ""),
            ("deb [signed-by=\"\"] http://x/debian trixie main\n", "1"),
            ("deb [arch=amd64 signed-by=] http://x/debian trixie main\n", "1"),
            ("deb [=x] http://x/debian trixie main\n", "1"),
            ("deb [signed-by = /x] http://x/debian trixie main\n", "1"),
            ("deb [arch=amd64]http://x/debian trixie main\n", "1"),
            ("deb x trixie main\ndeb /srv/x trixie main\n", "1 2"),
            ("deb http://x/debian \"trixie main\n", "1"),
            ("deb [arch=\"amd64 i386\"] http://x/debian trixie main\n", ""),
            ("deb [signed-by=\"/x.gpg /y.gpg\"] http://x/debian trixie main\n", ""),
            ("deb [arch=amd64 ]http://x/debian trixie main\n", ""),
            ("deb [signed-by=/a] http://x/debian trixie main\ndeb [signed-by=/b] http://x/debian sid main\n", ""),
            ("deb [signed-by=/a] http://x/debian trixie main\ndeb http://x/debian trixie contrib\n", ""),
            ("deb [signed-by=ABCDEFABCDEFABCDABCDEFABCDEFABCDABCDEFAB!] http://x/debian trixie main\n", ""),
            ("deb [signed-by=x] http://x/debian trixie main\n", "1"),
            ("deb [arch=\"amd64] http://x/debian trixie main\n", "1"),
            ("deb [signed-by=/a] http://x/debian trixie main\ndeb [signed-by=/b] http://x/debian/ trixie main\n", "2"),
            (
                "deb [signed-by=/a] http://x/debian trixie main\ndeb-src [signed-by=/b] http://x/debian trixie main\n",
                "2",
            ),
        ],
    );
    let whole = "Types: deb deb-src\nURIs: http://x/debian\nSuites: trixie\nComponents: main\n";
    are_found(
        "/etc/apt/sources.list.d/x.sources",
        &[
            (whole, ""),
            ("types: deb\r\nuris:\n http://x/debian\n \nsuites: trixie\n# c\ncomponents: main", ""),
            ("\n# c\n", ""),
            ("Types: deb\nURIs: http://x\nSuites: ./\n", ""),
            ("Enabled: no\nTypes: deb\n", ""),
            ("Enabled: no\n", "1"),
            ("URIs: http://x\nSuites: trixie\nComponents: main\n", "1"),
            ("# c\n\nTypes: deb\nSuites: trixie\nComponents: main\n", "3"),
            ("Types: deb\nURIs: http://x\nComponents: main\n", "1"),
            ("Types: deb\nURIs: http://x\nSuites: trixie\n", "1"),
            ("Types: deb\nURIs: http://x\nSuites: ./\nComponents: main\n", "1"),
            ("Types: rpm\nURIs: http://x\nSuites: ./\n", "1"),
            ("Types: deb\nURIs: /srv/x\nSuites: ./\n\n\nTypes: deb\n", "1 6"),
            ("garbage\n", "1"),
            (
                "Types: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: main\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mDMEY865UxYJ\n -----END PGP PUBLIC KEY BLOCK-----\n",
                "",
            ),
            ("Enabled: No\nTypes: deb\n", ""),
            ("Types: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: main\n\n \n", ""),
            (" x\nTypes: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: main\n", ""),
            (
                "Types: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: main\nSigned-By: /a\n\nTypes: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: main\n",
                "",
            ),
            (
                "Types: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: main\nSigned-By: /a\n\nTypes: deb\nURIs: http://x/debian\nSuites: sid\nComponents: main\nSigned-By: /b\n",
                "",
            ),
            ("Types: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: main\nX y\n", "5"),
            ("Types: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: main\nSigned-By: x y\n", "1"),
            (
                "Types: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: main\nSigned-By: /a\n\nTypes: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: contrib\nSigned-By: /b\n",
                "7",
            ),
        ],
    );
}
