//! Package indexes: parsing and refusals.

use std::io::{Read as _, Write as _};
use std::process::Command;

use flate2::Compression as Level;
use vmbake_common::digest::Digest;
use vmbake_proof::apt::{AptError, Compression, IndexFile, Packages};

use super::lab::have;

const HEX: &str = "6794c2344d5e7870a1baede7c7e05682ea1ce60c71affb256d279fe02a0f7217";

fn stanza(package: &str, version: &str) -> String {
    format!(
        "Package: {package}\nVersion: {version}\nArchitecture: amd64\nFilename: pool/{package}_{version}.deb\n\
         Size: 608\nMD5sum: eb4b264026f50d9ab8f6712e6c74efbb\nSHA256: {HEX}\nDescription: t\n more\n .\n end\n\n"
    )
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Level::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    liblzma::read::XzEncoder::new(bytes, 6).read_to_end(&mut out).unwrap();
    out
}

/// The entry of this index in a release.
fn index(bytes: &[u8], compression: Compression) -> IndexFile {
    IndexFile {
        path: "main/binary-amd64/Packages".to_owned(),
        by_hash: None,
        size: bytes.len() as u64,
        digest: Digest::of(bytes),
        compression,
        arch: "amd64".to_owned(),
        content_size: None,
    }
}

fn read(text: &str) -> Result<Packages, AptError> {
    Packages::read(&index(text.as_bytes(), Compression::None), text.as_bytes(), &["a", "b"])
}

#[test]
fn wanted_packages_are_found_in_every_form() {
    let text = stanza("x", "1") + &stanza("a", "1:1.0-1") + "\n \n" + &stanza("b", "2") + stanza("a", "2.0").trim_end();
    let forms = [
        (text.clone().into_bytes(), Compression::None),
        (gz(text.as_bytes()), Compression::Gz),
        ([gz(&text.as_bytes()[..300]), gz(&text.as_bytes()[300..])].concat(), Compression::Gz),
        (xz(text.as_bytes()), Compression::Xz),
    ];
    for (bytes, compression) in forms {
        let index = IndexFile { content_size: Some(text.len() as u64), ..index(&bytes, compression) };
        let packages = Packages::read(&index, &*bytes, &["a", "b"]).unwrap();
        let newest = packages.newest("a").unwrap();
        assert_eq!(newest.version.to_string(), "1:1.0-1");
        assert_eq!((newest.size, newest.digest.hex().as_str(), newest.arch.as_str()), (608, HEX, "amd64"));
        assert_eq!(packages.version("a", "2.0").unwrap().filename, "pool/a_2.0.deb");
        assert_eq!(packages.newest("b").unwrap().version.to_string(), "2");
        for missing in [packages.newest("x"), packages.newest("c"), packages.version("a", "3")] {
            assert!(matches!(missing, Err(AptError::NoPackage { .. })), "{missing:?}");
        }
    }
}

#[test]
fn an_index_that_is_not_the_signed_one_is_never_parsed() {
    let text = stanza("a", "1");
    let packed = gz(text.as_bytes());
    let good = index(&packed, Compression::Gz);
    let read = |bytes: &[u8], index: &IndexFile| Packages::read(index, bytes, &["a"]).unwrap_err().to_string();
    let flipped: Vec<u8> =
        packed.iter().enumerate().map(|(at, byte)| if at == 40 { byte ^ 1 } else { *byte }).collect();
    let cut = &packed[..packed.len() - 1];
    let name = "main/binary-amd64/Packages";
    let len = packed.len();
    assert!(read(&flipped, &good).starts_with(&format!("{name}: expected digest sha256:")));
    assert_eq!(read(cut, &good), format!("{name}: {} bytes, expected {len}", len - 1));
    assert_eq!(read(&[&*packed, &packed].concat(), &good), format!("{name}: {} bytes, expected {len}", len + 1));
    let huge = IndexFile { size: 1 << 40, ..good.clone() };
    assert!(read(&packed, &huge).starts_with(&format!("{name}: index of 1099511627776 bytes, more than")));
}

#[test]
fn content_is_bounded_by_what_the_release_says_of_it() {
    let bomb = gz(&vec![b'\n'; 64 << 20]);
    let text = stanza("a", "1");
    let packed = gz(text.as_bytes());
    let (len, read) = (text.len() as u64, |bytes: &[u8], content_size| {
        let index = IndexFile { content_size: Some(content_size), ..index(bytes, Compression::Gz) };
        Packages::read(&index, bytes, &["a"]).map(|_| ())
    });
    assert!(read(&packed, len).is_ok());
    for (bytes, content_size, found) in [(&packed, len - 1, len), (&packed, len + 1, len), (&bomb, 1000, 1001)] {
        let error = read(bytes, content_size).unwrap_err();
        assert!(matches!(error, AptError::Size { found: real, .. } if real == found), "{error}");
    }
}

#[test]
fn signed_garbage_is_an_error() {
    for (compression, bytes) in [(Compression::Gz, b"not gzip".to_vec()), (Compression::Xz, xz(b"x")[..20].to_vec())] {
        let error = Packages::read(&index(&bytes, compression), &*bytes, &["a"]).unwrap_err();
        assert!(matches!(error, AptError::Read { .. }), "{error}");
    }
}

#[test]
fn entries_are_refused_only_where_they_are_wanted() {
    let good = stanza("a", "1");
    let cases = [
        ("a path upwards", good.replace("pool/a_1.deb", "pool/../../etc/x"), "path \"pool/../../etc/x\" leaves"),
        ("an absolute path", good.replace("pool/", "/pool/"), "path \"/pool/a_1.deb\" leaves"),
        ("an address", good.replace("pool/", "http://pool/"), "path \"http://pool/a_1.deb\" leaves"),
        ("MD5 only", good.replace("SHA256", "SHA1"), "a: neither SHA256 nor SHA512"),
        ("a short digest", good.replace(HEX, &HEX[2..]), "corrupt: sha256"),
        ("no length", good.replace("Size: 608\n", ""), "missing field Size"),
        ("a length that is none", good.replace("608", "+608"), "corrupt: Size \"+608\" of a"),
        ("a version that is none", good.replace("Version: 1", "Version: a b"), "corrupt: Version \"a b\" of a"),
        ("a second length", good.replace("Size", "SIZE: 1\nSize"), "duplicate field size"),
        ("a second name", good.replace("Version", "Package: z\nVersion"), "duplicate field package"),
        (
            "the same version, another file",
            good.clone() + &good.replace(HEX, &HEX.replace('6', "7")),
            "corrupt: a 1 is listed twice",
        ),
        ("a line that is not a field", good.replace("Size", "x\nSize"), "corrupt"),
    ];
    for (name, text, message) in cases {
        let error = read(&text).expect_err(name).to_string();
        let rest = error.strip_prefix("main/binary-amd64/Packages: ").unwrap_or_else(|| panic!("{name}: {error}"));
        assert!(rest.starts_with(message), "{name}: {error}");
        let unwanted = text.replace("Package: a\n", "Package: unwanted\n") + &stanza("b", "1");
        assert!(read(&unwanted).is_ok(), "{name}");
    }
}

#[test]
fn variants_of_entries_pass() {
    let good = stanza("a", "1");
    let sha512 = format!("SHA512: {HEX}{HEX}");
    let name_last = good.trim_end().replace("Package: a\n", "") + "\npackage:a \n";
    for (name, text, arch) in [
        ("for all architectures", good.replace("amd64", "all"), "all"),
        ("the same twice", good.clone() + &good, "amd64"),
        ("SHA-512 only", good.replace(&format!("SHA256: {HEX}"), &sha512), "amd64"),
        ("a dot in front", good.replace("pool/", "./pool/"), "amd64"),
        ("the name last", name_last, "amd64"),
        ("together with one for another architecture", stanza("a", "2").replace("amd64", "arm64") + &good, "amd64"),
    ] {
        let packages = read(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let package = packages.newest("a").unwrap();
        assert_eq!((package.version.to_string().as_str(), package.arch.as_str()), ("1", arch), "{name}");
        assert_eq!(package.filename, "pool/a_1.deb", "{name}");
    }
}

#[test]
fn a_file_is_checked_by_length_and_digest() {
    let content = b"content of the package";
    let hex = Digest::of(content).hex();
    let text = stanza("a", "1").replace(HEX, &hex).replace("608", &content.len().to_string());
    let packages = read(&text).unwrap();
    let package = packages.newest("a").unwrap();
    package.check("a.deb", &content[..]).unwrap();
    let check = |bytes: &[u8]| package.check("a.deb", bytes).unwrap_err().to_string();
    assert_eq!(check(&content[1..]), "a.deb: 21 bytes, expected 22");
    assert_eq!(check(&[content, &content[..]].concat()), "a.deb: 23 bytes, expected 22");
    assert!(check(b"content of the packagE").starts_with("a.deb: expected digest sha256:"));
}

#[test]
fn the_newest_version_is_the_one_that_dpkg_prefers() {
    if !have("dpkg") {
        return;
    }
    let versions = ["1.0", "1.0-1", "1.0~rc1", "1:0.1", "1.0+b4", "1.0-1+b1", "1.0.0", "1.10", "1.9", "1.0-1~bpo1"];
    for (at, first) in versions.iter().enumerate() {
        for second in &versions[..at] {
            let packages = read(&(stanza("a", first) + &stanza("a", second))).unwrap();
            let newest = packages.newest("a").unwrap().version.to_string();
            let args = ["--compare-versions", first, "gt", second];
            let first_wins = Command::new("dpkg").args(args).status().unwrap().success();
            assert_eq!(newest == *first, first_wins, "{first} {second}");
        }
    }
}
