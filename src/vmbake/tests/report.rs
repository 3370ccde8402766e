//! HTML reports: malicious names stay text, all information is optional, and the same image gives the same bytes.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use vmbake_common::escape;
use vmbake_disk::tree::{Kind, Tree};

use crate::origin::bakery::{baked, can_bake};
use crate::origin::image::{TOOLS, change, content, empty, file, link, put, text, vmbake, write_disk};
use crate::tools::have;

/// Paths that would like to be markup, an attribute, a script, another line, or another text than they are. Names that are not UTF-8,
/// which no volume of ours has, are in `tests/test_report_page.py`.
const HOSTILE: [&[u8]; 11] = [
    b"/</script><script>alert(1)</script>",
    b"/<!--<script>",
    b"/\" onload=\"alert(1)",
    b"/' onclick='alert(1)",
    b"/a\nb\r\tc",
    b"/\xe2\x80\xaegpj.exe",
    b"/\xe2\x80\xa8\xe2\x80\x8b",
    b"/{{ page }}{% if %}",
    b"/&lt;b&gt;&amp;",
    b"/]]>-->",
    b"/\\x41\\u003c",
];

/// Text of files that pages show.
const EVIL: &str = "</script></style><img src=x onerror=alert(1)>\"' {{ 1 }}";

fn hostile() -> Tree {
    let mut tree = empty();
    for path in HOSTILE {
        let kind = content(&mut tree, b"x");
        put(&mut tree, path, kind);
        let below = [b"/folder", path, b"/file"].concat();
        let kind = content(&mut tree, &[b'x'; 100_000]);
        put(&mut tree, &below, kind);
    }
    put(&mut tree, b"/link", Kind::Symlink(b"</script>\t".to_vec()));
    file(&mut tree, "/etc/os-release", &format!("ID=debian\nIMAGE_ID='{EVIL}'\nPRETTY_NAME=\"<b>{EVIL}\"\n"));
    let stanza =
        format!("Package: a\nStatus: install ok installed\nArchitecture: all\nVersion: {EVIL}\nMaintainer: {EVIL}\n");
    file(&mut tree, "/var/lib/dpkg/status", &stanza);
    file(&mut tree, "/var/lib/dpkg/info/<b>.list", "/link\n");
    file(&mut tree, "/etc/passwd", &format!("{EVIL}:x:0:0::/:<b>\n"));
    file(&mut tree, "/etc/systemd/system/multi-user.target.wants/<b>\".service", "x");
    file(
        &mut tree,
        "/opt/podplane/share/firstboot.json",
        &format!("{{\"variables\": {{{:?}: {{}}}}, \"commands\": [[{:?}]]}}", EVIL, EVIL),
    );
    tree
}

/// Runs `vmbake report`, which must write the page.
fn page(image: &Path, out: &Path, more: &[&str]) -> String {
    let output = vmbake(&[&["report", image.to_str().unwrap(), "--out", out.to_str().unwrap()], more].concat());
    assert!(output.status.success() && output.stdout.is_empty(), "{}", text(&output.stderr));
    fs::read_to_string(out).unwrap()
}

fn disk(dir: &Path, name: &str, tree: &Tree) -> PathBuf {
    write_disk(tree, &dir.join(name));
    dir.join(name)
}

/// The data of the table.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// A column of the table, by paths.
fn column(data: &Value, at: usize) -> Vec<(String, Value)> {
    let rows = data["rows"].as_array().unwrap().iter();
    rows.map(|row| (row[0].as_str().unwrap().to_owned(), row[at].clone())).collect()
}

/// The tags of a page but for closing ones, each with its attributes and without what they say.
fn tags(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some((_, from)) = rest.split_once('<') {
        let name: String = from.chars().take_while(|char| char.is_alphanumeric()).collect();
        let (inside, after) = from.split_once('>').unwrap();
        found.push(format!("{name} {}", inside.split('"').step_by(2).collect::<String>()));
        let raw =
            matches!(name.as_str(), "script" | "style").then(|| after.split_once(&format!("</{name}>")).unwrap().1);
        rest = raw.unwrap_or(after);
    }
    found
}

#[test]
fn hostile_names_stay_text() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = disk(dir.path(), "<b>\"'.raw", &hostile());
    let found = page(&image, &dir.path().join("page.html"), &[]);
    let paths: Vec<Vec<u8>> =
        column(&data(&found), 0).iter().map(|(path, _)| escape::unescape(path.as_bytes()).unwrap()).collect();
    for path in HOSTILE {
        assert!(paths.iter().any(|found| found == path), "{:?} is a row, byte by byte", escape::name(path));
    }
    let target = column(&data(&found), 7).into_iter().find(|(path, _)| path == "/link").unwrap().1;
    assert_eq!(target, "</script>\\x09");
    assert_eq!(found.matches("<script").count(), 2);
    assert_eq!(found.matches("</script").count(), 2);
    let own = tags(&found);
    assert!(own.len() > 200, "{}", own.len());
    for tag in &own {
        assert!(!["img", "b", "iframe", "object"].iter().any(|name| tag.starts_with(&format!("{name} "))), "{tag}");
        assert!(!tag.contains("alert") && !tag.contains(" on"), "{tag}");
    }
    assert!(
        found.chars().all(|char| char == '\n' || escape::line(char.to_string()) == char.to_string()),
        "no direction turns"
    );
    assert!(
        found.contains("&lt;&#x2f;script&gt;&lt;&#x2f;style&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#x27; {{ 1 }}")
    );
}

#[test]
fn what_is_not_known_is_said() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let damaged = |path: &str, text: &str| {
        let mut tree = empty();
        file(&mut tree, "/etc/os-release", "ID=debian\n");
        file(&mut tree, path, text);
        tree
    };
    let cases: [(&str, Tree, &str); 4] = [
        ("none", damaged("/etc/hostname", "x"), "no record of origins"),
        ("record", damaged("/opt/podplane/share/vmbake-origin.json", "{}"), "the record of origins is not used: "),
        ("status", damaged("/var/lib/dpkg/status", "no field\n"), "components are unknown: "),
        ("plan", damaged("/opt/podplane/share/firstboot.json", "{"), "firstboot.json cannot be read: EOF"),
    ];
    for (name, tree, expected) in cases {
        let image = disk(dir.path(), &format!("{name}.raw"), &tree);
        let found = page(&image, &dir.path().join("page.html"), &["--force"]);
        assert!(found.contains(expected), "{name}: {expected}");
        assert!(found.contains("not recorded: layers, artifacts and the base image are unknown"), "{name}");
        assert_eq!(data(&found)["layers"], serde_json::json!(["image, origin not recorded"]), "{name}");
        assert!(column(&data(&found), 0).iter().any(|(path, _)| path == "/etc/os-release"), "{name}");
        assert!(found.contains("Nothing was verified"), "{name}");
    }
    // A disk with partitions in which nothing is.
    let found = page(&dir.path().join("none.blank"), &dir.path().join("page.html"), &["--force"]);
    for expected in ["files are unknown: ", "The files of this image are unknown", "BIOS boot"] {
        assert!(found.contains(expected), "{expected}");
    }
    assert!(!found.contains("id=\"data\"") && !found.contains("id=\"treemap\""));
}

#[test]
fn the_same_image_gives_the_same_bytes() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "a longer name"].map(|name| dir.path().join(name));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&two).unwrap();
    let image = disk(&one, "disk.raw", &hostile());
    fs::copy(&image, two.join("disk.raw")).unwrap();
    let first = page(&image, &one.join("page.html"), &["--jobs", "1"]);
    let second = page(&two.join("disk.raw"), &two.join("page.html"), &["--jobs", "2"]);
    assert_eq!(first, second);
    for name in [dir.path().to_str().unwrap(), "a longer name"] {
        assert!(!first.contains(name), "{name}");
    }
    // The folders of two images that are compared are not told either.
    let compared = page(&image, &one.join("compared.html"), &["--compare", two.join("disk.raw").to_str().unwrap()]);
    assert!(compared.contains("No changes since disk.raw."));
    assert!(compared.contains(">before: no record of origins") && !compared.contains(dir.path().to_str().unwrap()));
}

#[test]
fn changes_are_told_and_marked() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let status =
        |version: &str| format!("Package: p\nStatus: install ok installed\nArchitecture: all\nVersion: {version}\n");
    let mut tree = empty();
    file(&mut tree, "/etc/os-release", "ID=debian\n");
    file(&mut tree, "/var/lib/dpkg/status", &status("1.9"));
    file(&mut tree, "/usr/bin/gone", "gone");
    file(&mut tree, "/usr/bin/same", "same");
    file(&mut tree, "/usr/bin/p", "1");
    file(&mut tree, "/var/lib/dpkg/info/p.list", "/.\n/bin/p\n/usr\n");
    link(&mut tree, "/bin", "usr/bin");
    let old = disk(dir.path(), "old.raw", &tree);
    tree.remove(b"/usr/bin/gone").unwrap();
    file(&mut tree, "/usr/bin/p", "2");
    file(&mut tree, "/usr/bin/new", "new").mode = 0o4755;
    file(&mut tree, "/var/lib/dpkg/status", &status("1.10"));
    let new = disk(dir.path(), "new.raw", &tree);
    let found = page(&new, &dir.path().join("page.html"), &["--compare", old.to_str().unwrap()]);
    assert!(
        found.contains("Since old.raw: paths: 1 added, 1 removed, 2 changed; packages: 1; artifacts: 0; layers: 0.")
    );
    assert!(found.contains("<td>p</td><td>1.9</td><td>1.10</td>"), "the package");
    assert!(
        found.contains("<td>&#x2f;usr&#x2f;bin&#x2f;new</td><td>none</td><td>mode 4755, owner 0:0</td>"),
        "set-uid"
    );
    let marks: Vec<_> = column(&data(&found), 8).into_iter().filter(|(_, mark)| mark != "").collect();
    let expected = [
        ("/usr/bin/new", "added"),
        ("/usr/bin/p", "changed"),
        ("/var/lib/dpkg/status", "changed"),
        ("/usr/bin/gone", "removed"),
    ];
    assert_eq!(marks, expected.map(|(path, mark)| (path.to_owned(), Value::from(mark))));
    // By its list, through the link of the root.
    let data = data(&found);
    let owner = column(&data, 6).into_iter().find(|(path, _)| path == "/usr/bin/p").unwrap().1;
    assert_eq!(data["artifacts"][usize::try_from(owner.as_u64().unwrap()).unwrap()], "p");
}

#[test]
fn nothing_is_overwritten_or_left_half_written() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = disk(dir.path(), "disk.raw", &empty());
    let (out, noise) = (dir.path().join("page.html"), dir.path().join("noise.raw"));
    let mine = || fs::read_to_string(&out).unwrap();
    fs::write(&out, "mine").unwrap();
    fs::write(&noise, "no disk").unwrap();
    let count = || fs::read_dir(dir.path()).unwrap().count();
    let before = count();
    let report = |arguments: &[&Path]| {
        let arguments = arguments.iter().map(|path| path.to_str().unwrap());
        vmbake(&["report"].into_iter().chain(arguments).collect::<Vec<_>>())
    };
    let folder = dir.path().join("folder/page.html");
    let [flag, force, compare] = ["--out", "--force", "--compare"].map(Path::new);
    let cases: [(&[&Path], &str); 4] = [
        (&[&noise, flag, &folder], "noise.raw"),
        (&[&image, flag, &out], "page.html: already exists\nhint: use --force to replace it"),
        (&[&noise, flag, &out, force], "noise.raw"),
        (&[&image, flag, &out, force, compare, &noise], "noise.raw"),
    ];
    for (arguments, expected) in cases {
        let found = report(arguments);
        assert!(!found.status.success() && text(&found.stderr).contains(expected), "{}", text(&found.stderr));
        assert_eq!(mine(), "mine");
        assert_eq!(count(), before, "nothing else is left");
    }
}

#[test]
fn a_baked_image_tells_its_layers_and_its_release() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (_, out) = baked(dir.path(), 1);
    let image = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
    let image = image.into_iter().find(|path| path.extension().is_some_and(|end| end == "raw")).unwrap();
    let found = page(&image, &dir.path().join("page.html"), &[]);
    let data = data(&found);
    let layers: Vec<&str> = data["layers"].as_array().unwrap().iter().map(|layer| layer.as_str().unwrap()).collect();
    assert!(layers.contains(&"base") && layers.len() > 1, "{layers:?}");
    let name = image.file_stem().unwrap().to_str().unwrap();
    for expected in [
        format!("<h1>{name}</h1>"),
        format!("<td>{name}.raw</td><td class=\"long\">fs-verity sha256:"),
        "<dt>baked by</dt><dd>vmbake ".to_owned(),
    ] {
        assert!(found.contains(&expected), "{expected}");
    }
    // What comes of the checks: a digest that is not the listed one is told, folders are not.
    fs::write(image.with_extension("cdx.json"), "{}").unwrap();
    let store = dir.path().join("store");
    let verified =
        page(&image, &dir.path().join("page.html"), &["--force", "--verify", "--store", store.to_str().unwrap()]);
    for expected in [
        format!("<td>ok</td><td>sha256</td><td>{name}.json</td>"),
        format!("<td class=\"bad\">FAILED</td><td>sha256</td><td>{name}.cdx.json</td>"),
        format!("<td>ok</td><td>origin</td><td>{name}.raw</td>"),
    ] {
        assert!(verified.contains(&expected) && !found.contains(&expected), "{expected}");
    }
    assert!(found.contains("Nothing was verified") && !verified.contains("Nothing was verified"));
    assert!(!verified.contains(dir.path().to_str().unwrap()));
    // A record that was changed is told, and not believed.
    let changed = dir.path().join("changed.raw");
    change(&image, &changed, |tree| {
        file(tree, "/opt/podplane/share/vmbake-origin.json", "{}");
    });
    let found = page(&changed, &dir.path().join("changed.html"), &[]);
    assert!(found.contains("the record of origins is not used: "));
    // Invalid documents next to it are reported as well.
    fs::write(out.join("SHA256SUMS"), "x\n").unwrap();
    fs::write(image.with_extension("inputs.json"), "{").unwrap();
    let found = page(&image, &dir.path().join("page.html"), &["--force"]);
    assert!(found.contains("<li>SHA256SUMS is not used:1: expected a digest and a name</li>"));
    assert!(found.contains(".inputs.json is not used") && !found.contains(dir.path().to_str().unwrap()));
}
