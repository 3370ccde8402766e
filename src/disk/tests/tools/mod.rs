//! Runs the programs that verify what this crate reads and writes.

use std::process::Command;

/// Whether `program` is installed; a test that needs it is skipped where it is not, but not in CI.
pub fn have(program: &str) -> bool {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]).any(|dir| dir.join(program).exists())
    });
    if !found {
        crate::skip::skip(&format!("{program} is not installed"));
    }
    found
}

/// Runs a program to its end and returns what it said; it must succeed.
pub fn run(program: &str, args: &[&str]) -> String {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output = Command::new(program).args(args).env("PATH", path).output().expect("program starts");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{program} {args:?}: {text}");
    text
}
