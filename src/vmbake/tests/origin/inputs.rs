//! The record of inputs next to an image: its contents, and its dependence on every input.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use vmbake_bake::incremental::build_inputs::BuildInputs;
use vmbake_bake::incremental::published::Sidecar;
use vmbake_bake::{BakeError, BakeRequest};
use vmbake_common::atomic_file::PublishError;
use vmbake_common::catalog::Catalog;
use vmbake_common::digest::Digest;
use vmbake_common::qcow2_compression::Qcow2Compression;
use vmbake_disk::image::Format;
use vmbake_embedded::program;
use vmbake_pin::anchors::Anchors;
use vmbake_pin::sources::Sources;

use super::bakery::{bake, base_of, can_bake, request};
use crate::program::write_program;
use crate::tools::{have, skip::skip};

const INPUTS: &str = "tools.o.amd64.inputs.json";

fn digest_of(path: &Path) -> Digest {
    Digest::of(&fs::read(path).unwrap())
}

fn read(out: &Path) -> BuildInputs {
    let path = out.join(INPUTS);
    BuildInputs::parse(&path, &fs::read(&path).unwrap()).unwrap()
}

/// A bake on a raw base that its manifest does not pin.
fn unpinned(dir: &Path) -> BakeRequest {
    on_base(dir, base_of(dir))
}

fn on_base(dir: &Path, base: PathBuf) -> BakeRequest {
    let request = request(dir, base, "out", 2);
    let mut manifest: Value = serde_json::from_slice(&fs::read(&request.manifest).unwrap()).unwrap();
    assert!(manifest["vmconfig"]["os"].as_object_mut().unwrap().remove("image").is_some());
    fs::write(&request.manifest, manifest.to_string()).unwrap();
    request
}

/// Bakes by the program `vmbake`, with what the environment has in `variables`.
fn run(vmbake: &Path, request: &BakeRequest, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(vmbake);
    command.args(["bake", "tools", "--os", "o", "--offline", "--no-builtin", "--format", "raw"]);
    for (option, path) in [
        ("--manifest", request.manifest.as_path()),
        ("--base", request.base.as_ref().unwrap()),
        ("--layers", &request.manifest.with_file_name("layers")),
        ("--store", request.store.root()),
        ("--sources", &request.manifest.with_file_name("sources.json")),
        ("--out", &request.out),
    ] {
        command.arg(option).arg(path);
    }
    command.env_remove("SOURCE_DATE_EPOCH").envs(variables.iter().copied()).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_record_names_all_inputs_and_nothing_of_the_machine() {
    if !can_bake() {
        return;
    }
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let request = unpinned(dir.path());
    let baked = bake(&BakeRequest { size: Some(96 << 20), ..request.clone() }).unwrap();
    let inputs = read(&request.out);
    assert_eq!((inputs.kind.as_str(), inputs.os.as_str(), inputs.arch.as_str()), ("tools", "o", "amd64"));
    assert_eq!(inputs.program.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(inputs.program.digest, digest_of(&std::env::current_exe().unwrap()));
    assert_eq!(inputs.firstboot, Some(Digest::of(program("amd64").unwrap().1)));
    assert_eq!(inputs.manifest, digest_of(&request.manifest));
    assert_eq!(inputs.base, Some(digest_of(request.base.as_ref().unwrap())));
    assert_eq!(inputs.sources, digest_of(&dir.path().join("sources.json")));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../trust/sigstore-root.json");
    assert_eq!(inputs.trust, [("sigstore-root.json".to_owned(), digest_of(&root))].into());
    let layers: Vec<(&str, &str)> =
        inputs.layers.iter().map(|layer| (layer.name.as_str(), layer.version.as_str())).collect();
    assert_eq!(layers, [("tools", "7"), ("hygiene", "7")]);
    assert_eq!((inputs.partition, inputs.size, inputs.source_date_epoch), (None, Some(96 << 20), None));
    assert_eq!(inputs.formats, ["raw".to_owned()].into());

    let text = fs::read(request.out.join(INPUTS)).unwrap();
    assert_eq!(inputs.to_text().unwrap(), text);
    assert_eq!(baked.sidecars[&Sidecar::Inputs], Digest::of(&text));
    let listed = fs::read_to_string(request.out.join("SHA256SUMS")).unwrap();
    assert!(listed.contains(&format!("{}  {INPUTS}\n", Digest::of(&text).hex())), "{listed}");
    let text = String::from_utf8(text).unwrap();
    assert!(!text.contains('/') && !text.contains("base.raw"), "{text}");

    // A second one made in the same way would have other GUIDs.
    let base = elsewhere.path().join("copy.raw");
    fs::copy(request.base.as_ref().unwrap(), &base).unwrap();
    let other = on_base(elsewhere.path(), base);
    let other = BakeRequest { size: Some(96 << 20), threads: std::num::NonZeroUsize::MIN, ..other };
    bake(&other).unwrap();
    assert_eq!(fs::read_to_string(other.out.join(INPUTS)).unwrap(), text, "in another folder");
}

#[test]
fn the_compression_of_qcow2_is_an_input() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let formats = vec![Format::Raw.into(), Format::Qcow2.into()];
    let zstd = BakeRequest { formats, force: true, ..unpinned(dir.path()) };
    let image = |request: &BakeRequest| fs::read(request.out.join("tools.o.amd64.qcow2")).unwrap();
    let recorded = |request: &BakeRequest| fs::read_to_string(request.out.join(INPUTS)).unwrap();
    bake(&zstd).unwrap();
    let of_zstd = image(&zstd);
    assert!(!recorded(&zstd).contains("compression"), "the usual one is left out");

    // Clusters of the image that is there are not taken over, and its digest is not believed.
    let zlib = BakeRequest { compression: Qcow2Compression::Zlib, ..zstd.clone() };
    bake(&zlib).unwrap();
    let of_zlib = image(&zlib);
    assert!(of_zlib != of_zstd && recorded(&zlib).contains("\"compression\": \"zlib\""));
    let (out, store) = (dir.path().join("cold"), zlib.store.clone().without_caches());
    let cold = BakeRequest { out, store, threads: std::num::NonZeroUsize::MIN, ..zlib.clone() };
    bake(&cold).unwrap();
    assert!(image(&cold) == of_zlib, "from nothing, by one thread");
    assert_eq!(recorded(&cold), recorded(&zlib));

    bake(&zstd).unwrap();
    assert!(image(&zstd) == of_zstd);
    // A raw image is the same whatever the other one is.
    bake(&zlib).unwrap();
    bake(&BakeRequest { formats: vec![Format::Raw.into()], force: false, ..zstd }).unwrap();
    assert!(recorded(&zlib).contains("\"compression\": \"zlib\""), "nothing was baked");
}

/// What to change in a bake, and its name.
type Change<'a> = (&'static str, &'a dyn Fn(&mut BakeRequest));

#[test]
fn a_change_of_any_input_is_a_change() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let request = unpinned(dir.path());
    bake(&request).unwrap();
    let edited = |path: PathBuf, edit: &dyn Fn(&str) -> String| {
        let copy = dir.path().join("edited");
        fs::write(&copy, edit(&fs::read_to_string(path).unwrap())).unwrap();
        copy
    };
    let anchors = dir.path().join("trust");
    fs::create_dir(&anchors).unwrap();
    fs::write(anchors.join("sigstore-root.json"), "{}").unwrap();
    let changes: [Change<'_>; 9] = [
        ("manifest", &|request| request.manifest = edited(request.manifest.clone(), &|text| text.replace("dev", "2"))),
        ("base", &|request| {
            let copy = dir.path().join("other.raw");
            fs::copy(request.base.as_ref().unwrap(), &copy).unwrap();
            File::options().write(true).open(&copy).unwrap().write_all_at(b"x", 10).unwrap();
            request.base = Some(copy);
        }),
        ("layers", &|request| {
            let copy = dir.path().join("copied");
            let layers = request.manifest.with_file_name("layers");
            request.layers = Catalog::only(&copy);
            assert!(Command::new("cp").arg("-r").args([&layers, &copy]).status().unwrap().success());
            fs::write(copy.join("tools/files/etc/tool.conf"), "tool = 2\n").unwrap();
        }),
        ("sources", &|request| {
            let sources = edited(dir.path().join("sources.json"), &|text| format!("{text}\n"));
            request.sources = Sources::load(&Catalog::only(sources)).unwrap();
        }),
        ("trust", &|request| request.anchors = Anchors::load(&Catalog::only(&anchors)).unwrap()),
        ("partition", &|request| request.partition = Some(1)),
        ("size", &|request| request.size = Some(96 << 20)),
        ("formats", &|request| request.formats.push(Format::Qcow2.into())),
        ("epoch", &|request| request.epoch = Some(7)),
    ];
    let before = fs::read(request.out.join(INPUTS)).unwrap();
    for (what, change) in changes {
        let mut changed = request.clone();
        change(&mut changed);
        match bake(&changed) {
            Err(BakeError::Publish(PublishError::Exists { .. })) => {}
            other => panic!("{what}: {other:?}"),
        }
        // It was neither of the others: with what was there before, nothing is done.
        bake(&request).unwrap_or_else(|error| panic!("{what}: {error}"));
        let forced = BakeRequest { out: dir.path().join(what), ..changed };
        bake(&forced).unwrap();
        assert_ne!(fs::read(forced.out.join(INPUTS)).unwrap(), before, "{what}");
    }
}

#[test]
fn another_program_may_bake_other_bytes() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let request = unpinned(dir.path());
    let vmbake = Path::new(env!("CARGO_BIN_EXE_vmbake"));
    let first = run(vmbake, &request, &[]);
    assert!(first.status.success(), "{}", stderr(&first));
    assert_eq!(read(&request.out).program.digest, digest_of(vmbake));
    assert!(stderr(&run(vmbake, &request, &[])).contains("unchanged"));
    // The same program with a byte behind its end.
    let other = dir.path().join("vmbake");
    write_program(&other, &[&*fs::read(vmbake).unwrap(), b"x"].concat());
    let changed = run(&other, &request, &[]);
    assert_eq!(changed.status.code(), Some(1));
    assert!(stderr(&changed).contains("already exists"), "{}", stderr(&changed));
}

#[test]
fn the_environment_says_what_time_it_is() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let request = unpinned(dir.path());
    let vmbake = Path::new(env!("CARGO_BIN_EXE_vmbake"));
    for wrong in ["", "yesterday", "-1", "4294967296"] {
        let refused = run(vmbake, &request, &[("SOURCE_DATE_EPOCH", wrong)]);
        assert_eq!(refused.status.code(), Some(1), "{wrong:?}");
        let expected = format!("invalid SOURCE_DATE_EPOCH={wrong:?}: expected seconds since 1970");
        assert!(stderr(&refused).contains(&expected), "{}", stderr(&refused));
        assert!(!request.out.exists());
    }
    let baked = run(vmbake, &request, &[("SOURCE_DATE_EPOCH", "7")]);
    assert!(baked.status.success(), "{}", stderr(&baked));
    assert_eq!(read(&request.out).source_date_epoch, Some(7));
}

#[test]
fn a_program_that_cannot_tell_what_it_is_bakes_nothing() {
    if !can_bake() || !have(&["unshare"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let request = unpinned(dir.path());
    // Nothing below /proc.
    let hidden = dir.path().join("hidden");
    let text = format!(
        "#!/bin/sh\nexec unshare --map-root-user --mount -- sh -c 'mount -t tmpfs none /proc && exec \"$@\"' sh \"{}\" \"$@\"\n",
        env!("CARGO_BIN_EXE_vmbake")
    );
    fs::write(&hidden, text).unwrap();
    fs::set_permissions(&hidden, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    if !Command::new(&hidden).arg("--version").output().unwrap().status.success() {
        return skip("no user namespace may hide /proc");
    }
    let refused = run(&hidden, &request, &[]);
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("cannot read /proc/self/exe"), "{}", stderr(&refused));
    assert!(!request.out.exists());
}

/// Another validator agrees with ours about the form of the record.
#[test]
fn the_schema_tells_records_from_other_documents() {
    let python = crate::layers::python();
    let Some(python) = python.filter(|_| can_bake()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let request = unpinned(dir.path());
    bake(&request).unwrap();
    let schema = Command::new(env!("CARGO_BIN_EXE_vmbake")).args(["schema", "inputs"]).output().unwrap().stdout;
    fs::write(dir.path().join("schema.json"), schema).unwrap();
    let text = fs::read_to_string(request.out.join(INPUTS)).unwrap();
    let texts = [
        text.clone(),
        text.replace("\"kind\"", "\"sort\""),
        text.replace("\"formats\"", "\"x\": 1, \"formats\""),
        text.replace("\"base\": \"sha256:", "\"base\": \"sha256:x"),
    ];
    let mut paths = vec![dir.path().join("schema.json")];
    for (index, text) in texts.iter().enumerate() {
        paths.push(dir.path().join(format!("{index}.json")));
        fs::write(&paths[index + 1], text).unwrap();
    }
    let script = "import json, sys, jsonschema\n\
        schema = json.load(open(sys.argv[1]))\n\
        jsonschema.Draft202012Validator.check_schema(schema)\n\
        validator = jsonschema.Draft202012Validator(schema)\n\
        print([validator.is_valid(json.load(open(path))) for path in sys.argv[2:]])\n";
    let output = Command::new(python).args(["-c", script]).args(&paths).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[True, False, False, False]\n", "{}", stderr(&output));
}
