//! Bake records speed up deltas without changing them.

use std::fs;

use serde_json::Value;
use vmbake_bake::BakeRequest;
use vmbake_disk::image::Format;

use super::lab::{statement_of, stderr, text, vmbake};
use crate::origin::bakery::{bake, base_of, can_bake, request};

#[test]
fn records_of_bakes_change_no_byte() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let base = base_of(dir.path());
    let formats = vec![Format::Raw.into(), Format::Qcow2.into()];
    let old = BakeRequest { formats: formats.clone(), ..request(dir.path(), base.clone(), "old", 2) };
    let new = BakeRequest { formats, size: Some(96 << 20), ..request(dir.path(), base, "new", 2) };
    for request in [&old, &new] {
        bake(request).unwrap();
    }
    for format in ["raw", "qcow2"] {
        let name = format!("tools.o.amd64.{format}");
        let mut made = Vec::new();
        for (folder, store) in [("with", "store"), ("without", "none")] {
            let out = dir.path().join(format!("{folder}-{format}/d.delta"));
            let [from, to, store] = [old.out.join(&name), new.out.join(&name), dir.path().join(store)];
            let args = ["delta", text(&from), text(&to), "-o", text(&out), "--store", text(&store)];
            let output = vmbake(&args, &[]);
            assert!(output.status.success(), "{}", stderr(&output));
            made.push([fs::read(&out).unwrap(), fs::read(statement_of(&out)).unwrap()]);
        }
        assert!(made[0] == made[1], "{format}");
        let statement: Value = serde_json::from_slice(&made[0][1]).unwrap();
        let sums = fs::read_to_string(new.out.join("FSVERITYSUMS")).unwrap();
        assert!(sums.contains(statement["result"]["disk_fsverity"].as_str().unwrap()));
    }
}
