//! Progress on stderr: the same events as text or JSON.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use vmbake_bake::BakeRequest;
use vmbake_common::progress::human_bytes;

use super::errors::{Home, stderr};
use crate::origin::bakery::{base_of, can_bake, request};

fn bake(request: &BakeRequest, out: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
    command.args(["bake", "tools", "--os", "o", "--offline", "--no-builtin", "--format", "raw"]).args(more);
    for (option, path) in [
        ("--manifest", request.manifest.as_path()),
        ("--base", request.base.as_ref().unwrap()),
        ("--layers", &request.manifest.with_file_name("layers")),
        ("--store", request.store.root()),
        ("--sources", &request.manifest.with_file_name("sources.json")),
        ("--out", out),
    ] {
        command.arg(option).arg(path);
    }
    let output = command.env_remove("SOURCE_DATE_EPOCH").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

fn events(output: &Output) -> Vec<Value> {
    stderr(output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

/// The line of a step, made of the data of its event.
fn line(event: &Value) -> String {
    let text = |key: &str| event[key].as_str().unwrap().to_owned();
    let bytes = |key: &str| human_bytes(event[key].as_u64().unwrap());
    let detail = match event["event"].as_str().unwrap() {
        "verified" => {
            let proofs = event["proofs"].as_array().unwrap().iter();
            let proofs: Vec<String> =
                proofs.map(|one| format!("{} {}", one["count"], one["by"].as_str().unwrap())).collect();
            format!("{} artifacts: {}; the base image: {}", event["artifacts"], proofs.join(", "), text("base"))
        }
        "read" => format!("{}: {} files", text("path"), event["files"]),
        "layers" => {
            let layers = event["layers"].as_array().unwrap().iter();
            layers.map(|layer| layer.as_str().unwrap()).collect::<Vec<_>>().join(", ")
        }
        "merged" => format!("{} files", event["files"]),
        "authored" => format!("{} of {}", bytes("bytes"), bytes("disk_bytes")),
        "wrote" | "unchanged" => format!("{}, {}", text("path"), bytes("bytes")),
        other => panic!("{other} is not a step of this bake"),
    };
    format!("{:>9}  {detail}\n", event["event"].as_str().unwrap())
}

#[test]
fn a_bake_tells_the_same_as_lines_and_as_json() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (request, out) = (request(dir.path(), base_of(dir.path()), "unused", 2), dir.path().join("out"));
    let told = events(&bake(&request, &out, &["--progress", "json"]));
    let names: Vec<&str> = told.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["verified", "read", "layers", "merged", "authored", "wrote"]);
    let raw = out.join("tools.o.amd64.raw");
    let expected = json!({"event": "wrote", "path": raw.to_str(), "bytes": fs::metadata(&raw).unwrap().len()});
    assert_eq!(told[5], expected);

    let lines: String = told.iter().map(line).collect();
    for plain in [&["--force", "--no-cache"][..], &["--force", "--no-cache", "--progress", "plain"]] {
        assert_eq!(stderr(&bake(&request, &out, plain)), lines, "{plain:?}");
    }

    let quiet = bake(&request, &out, &["--force", "--json"]);
    assert_eq!(stderr(&quiet), "", "the result is all");
    let both = bake(&request, &out, &["--json", "--progress", "json"]);
    assert_eq!(both.stdout, quiet.stdout);
    let unchanged = json!({"event": "unchanged", "path": raw.to_str(), "bytes": expected["bytes"]});
    assert_eq!(events(&both), [unchanged]);
}

#[test]
fn an_error_is_an_object_too() {
    let home = Home::new();
    let hint = "did you mean `node`?";
    let expected = json!({"event": "error", "message": "unknown kind nod, expected one of: knc, knd, node", "causes": [], "hint": hint});
    for args in [["--progress", "json", "bake", "nod"], ["bake", "nod", "--progress", "json"]] {
        let output = home.vmbake(&args);
        assert_eq!((output.status.code(), events(&output)), (Some(1), vec![expected.clone()]), "{args:?}");
    }
    let output = home.vmbake(&["inspect", "secret.raw", "--progress=json"]);
    let [error] = &events(&output)[..] else { panic!("{output:?}") };
    assert_eq!(error["causes"], json!(["Permission denied (os error 13)"]), "{error}");
}
