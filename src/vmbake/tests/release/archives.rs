//! Archives of the root file system and container images: verified, rebuilt, and read by other tools.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use vmbake_bake::BakeRequest;
use vmbake_common::digest::Digest;
use vmbake_common::output_format::OutputFormat;

use super::lab::{NAME, edit, relist, stderr, text, vmbake};
use super::rebuild::Baked;
use crate::origin::bakery::{bake, base_of, can_bake, request};
use crate::tools::have;

const ALL: [&str; 2] = ["--format", "raw,tar,tar.zst,oci"];

/// Runs a program, which must succeed.
fn run(program: &str, args: &[&str]) -> String {
    let done = Command::new(program).args(args).output().unwrap();
    assert!(done.status.success(), "{program}: {}", stderr(&done));
    String::from_utf8(done.stdout).unwrap()
}

/// Adds a key to the layer `tools`.
fn set(baked: &Baked, key: &str) {
    edit(&baked.path("layers/tools/layer.json"), |text| text.replacen('{', &format!("{{{key}, "), 1));
}

#[test]
fn archives_are_verified_and_rebuilt() {
    if !can_bake() {
        return;
    }
    let baked = Baked::inputs();
    let done = baked.bake(&ALL);
    assert!(done.status.success(), "{}", stderr(&done));
    let vmbake = Path::new(env!("CARGO_BIN_EXE_vmbake"));
    let (code, said, differences) = baked.again(vmbake, "layers");
    assert_eq!((code, differences.as_str()), (0, ""), "{said:?}");
    for end in ["raw", "tar", "tar.zst", "oci.tar"] {
        assert!(said.contains(&format!("ok {NAME}.{end}: identical")), "{end}: {said:?}");
    }
    let sums = fs::read_to_string(baked.path("out/SHA256SUMS")).unwrap();
    let provenance = fs::read_to_string(baked.path(&format!("out/{NAME}.provenance.json"))).unwrap();
    for end in ["tar", "tar.zst", "oci.tar"] {
        assert!(sums.contains(&format!("  {NAME}.{end}\n")), "{sums}");
        assert!(provenance.contains(&format!("\"{NAME}.{end}\"")), "{provenance}");
    }
}

#[test]
fn a_changed_archive_is_found() {
    if !can_bake() {
        return;
    }
    let baked = Baked::inputs();
    let done = baked.bake(&["--format", "tar"]);
    assert!(done.status.success(), "{}", stderr(&done));
    let (out, file) = (baked.path("out"), format!("{NAME}.tar"));
    let mut content = fs::read(out.join(&file)).unwrap();
    let at = content.windows(9).position(|bytes| bytes == b"echo tool").unwrap();
    content[at] = b'E';
    fs::write(out.join(&file), content).unwrap();
    relist(&out, &file);
    let (store, sources) = (baked.path("store"), baked.path("sources.json"));
    let inputs = ["--no-builtin=sources", "--sources", text(&sources), "--store", text(&store)];
    let found = vmbake(&[&["verify", "image", text(&out), "--json"][..], &inputs].concat(), &[]);
    let report: Value = serde_json::from_slice(&found.stdout).unwrap();
    let failed = |check: &&Value| check["state"] == "failed" && check["check"] == "origin" && check["file"] == file;
    let check = report["checks"].as_array().unwrap().iter().find(failed);
    let said = check.unwrap_or_else(|| panic!("{report}"))["said"].as_str().unwrap();
    assert!(said.starts_with("/usr/bin/tool in the image has sha256:"), "{said}");
}

/// The files of a bake of all archives.
fn outputs(dir: &Path, base: &Path, threads: usize) -> Vec<Vec<u8>> {
    let formats = vec![OutputFormat::Tar, OutputFormat::TarZst, OutputFormat::Oci];
    let out = format!("out-{threads}");
    let request = BakeRequest { formats, ..request(dir, base.to_owned(), &out, threads) };
    bake(&request).unwrap().outputs.iter().map(|output| fs::read(&output.path).unwrap()).collect()
}

#[test]
fn the_bytes_of_archives_do_not_depend_on_the_threads() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let base = base_of(dir.path());
    let (one, three) = (outputs(dir.path(), &base, 1), outputs(dir.path(), &base, 3));
    assert!(one == three);
    // Not written again.
    assert!(outputs(dir.path(), &base, 1) == one);
    assert!(zstd::decode_all(&one[1][..]).unwrap() == one[0]);
}

/// Extracts the layout and prints its documents: checks the digest and the length of each blob.
const LAYOUT: &str = "
import gzip, hashlib, json, sys, tarfile
archive = tarfile.open(sys.argv[1])
read = lambda name: archive.extractfile(name).read()
def blob(entry):
    content = read('blobs/' + entry['digest'].replace(':', '/'))
    assert hashlib.sha256(content).hexdigest() == entry['digest'].split(':')[1] and len(content) == entry['size']
    return content
assert json.loads(read('oci-layout')) == {'imageLayoutVersion': '1.0.0'}
index = json.loads(read('index.json'))
entry, = index['manifests']
manifest = json.loads(blob(entry))
config = json.loads(blob(manifest['config']))
layer, = manifest['layers']
content = gzip.decompress(blob(layer))
assert 'sha256:' + hashlib.sha256(content).hexdigest() == config['rootfs']['diff_ids'][0]
docker, = json.loads(read('manifest.json'))
print(json.dumps({'index': index, 'manifest': manifest, 'config': config, 'docker': docker}))
";

#[test]
fn a_container_image_has_the_settings_of_its_layers() {
    if !can_bake() || !have(&["python3"]) {
        return;
    }
    let baked = Baked::inputs();
    set(
        &baked,
        r#""container": {"entrypoint": ["tool", "--serve"], "cmd": ["a b"], "environment": {"LANG": "C.UTF-8"},
            "user": "root:0", "working_dir": "/etc", "stop_signal": "SIGINT", "exposed_ports": ["80", "53/udp"],
            "labels": {"org.example.team": "one"}, "annotations": {"org.opencontainers.image.source": "https://example.org"}}"#,
    );
    let done = baked.bake(&ALL);
    assert!(done.status.success(), "{}", stderr(&done));
    let file = baked.path(&format!("out/{NAME}.oci.tar"));
    let found: Value = serde_json::from_str(&run("python3", &["-c", LAYOUT, text(&file)])).unwrap();
    let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let expected = json!({
        "Entrypoint": ["tool", "--serve"], "Cmd": ["a b"], "Env": ["LANG=C.UTF-8", path], "User": "root:0",
        "WorkingDir": "/etc", "StopSignal": "SIGINT", "ExposedPorts": {"80": {}, "53/udp": {}},
        "Labels": {"org.example.team": "one"},
    });
    assert_eq!(found["config"]["config"], expected);
    assert_eq!(found["config"]["architecture"], "amd64");
    assert_eq!(found["config"]["os"], "linux");
    assert_eq!(found["manifest"]["annotations"]["org.opencontainers.image.source"], "https://example.org");
    assert_eq!(found["manifest"]["annotations"]["org.opencontainers.image.created"], found["config"]["created"]);
    assert_eq!(found["index"]["manifests"][0]["platform"], json!({"os": "linux", "architecture": "amd64"}));
    assert_eq!(found["docker"]["RepoTags"], json!([format!("localhost/{NAME}:latest")]));
    let tar = fs::read(baked.path(&format!("out/{NAME}.tar"))).unwrap();
    assert_eq!(found["config"]["rootfs"]["diff_ids"], json!([Digest::of(&tar).to_string()]));
    skopeo(&file, &found);
}

/// skopeo reads the same configuration, and copies the image.
fn skopeo(file: &Path, found: &Value) {
    if !have(&["skopeo"]) {
        return;
    }
    let image = format!("oci-archive:{}", file.display());
    let config = run("skopeo", &["inspect", "--config", &image]);
    assert_eq!(serde_json::from_str::<Value>(&config).unwrap()["config"], found["config"]["config"]);
    let dir = tempfile::tempdir().unwrap();
    let target = format!("dir:{}", dir.path().display());
    run("skopeo", &["copy", "--insecure-policy", &image, &target]);
}

#[test]
fn settings_that_the_image_cannot_fulfil_are_refused() {
    if !can_bake() {
        return;
    }
    for (container, expected) in [
        (r#"{"entrypoint": ["missing"]}"#, "`container` of layer.json: the image has no executable file \"missing\""),
        (r#"{"cmd": ["/etc/tool.conf"]}"#, "the image has no executable file \"/etc/tool.conf\""),
        (r#"{"user": "nobody"}"#, "\"nobody\" is not in /etc/passwd of the image"),
        (r#"{"user": "0:staff"}"#, "\"staff\" is not in /etc/group of the image"),
        (r#"{"stop_signal": "TERM"}"#, "signal \"TERM\" is unknown"),
        (r#"{"exposed_ports": ["http"]}"#, "port \"http\" is invalid"),
        (r#"{"working_dir": "srv"}"#, "path \"srv\" is not absolute"),
        (r#"{"environment": {"A=B": "c"}}"#, "\"A=B\" is not a name of an environment variable"),
    ] {
        let baked = Baked::inputs();
        set(&baked, &format!("\"container\": {container}"));
        let done = baked.bake(&ALL);
        assert!(!done.status.success() && stderr(&done).contains(expected), "{container}: {}", stderr(&done));
        assert!(!baked.path("out").join(format!("{NAME}.tar")).exists());
    }
}

#[test]
fn an_archive_is_not_a_disk() {
    if !can_bake() {
        return;
    }
    let baked = Baked::inputs();
    let done = baked.bake(&["--format", "tar,tar.zst,oci"]);
    assert!(done.status.success(), "{}", stderr(&done));
    for (end, what) in [("tar", "a tar archive"), ("tar.zst", "compressed with zstd"), ("oci.tar", "a tar archive")] {
        let file = baked.path(&format!("out/{NAME}.{end}"));
        for command in [&["inspect"][..], &["preflight", "aws"], &["boot"], &["publish", "aws", "--dry-run"]] {
            let refused = vmbake(&[command, &[text(&file)]].concat(), &[]);
            assert!(!refused.status.success() && stderr(&refused).contains(what), "{command:?}: {}", stderr(&refused));
        }
        let refused = vmbake(&["push", text(&file), "localhost:1/a:1", "--dry-run"], &[]);
        assert!(stderr(&refused).contains("file name is not NAME.raw or NAME.qcow2"), "{}", stderr(&refused));
    }
}
