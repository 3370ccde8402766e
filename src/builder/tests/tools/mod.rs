//! The programs that tests ask for a second opinion.

use std::path::Path;
use std::process::Command;

/// Whether they are all there. Where one is missing the test is skipped, but not in CI.
pub fn have(tools: &[&str]) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let found = |tool: &&&str| path.split(':').any(|dir| Path::new(dir).join(tool).exists());
    let Some(missing) = tools.iter().find(|tool| !found(tool)) else { return true };
    assert!(std::env::var_os("CI").is_none(), "{missing} is needed in CI");
    println!("skipped: {missing} is not installed");
    false
}

/// Whether python3 has that module. Where it lacks it the test is skipped, but not in CI.
#[allow(dead_code, reason = "not every test asks a module")]
pub fn python_has(module: &str) -> bool {
    let found = Command::new("python3").args(["-c", &format!("import {module}")]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return true;
    }
    assert!(std::env::var_os("CI").is_none(), "python3 needs {module} in CI");
    println!("skipped: python3 has no {module}");
    false
}
