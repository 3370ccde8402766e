//! Calls a program as a postinst does whose caller no frontend has started.

use std::cell::RefCell;
use std::collections::BTreeMap;

use vmbake_shell::{Call, Outcome, Variables};

use super::System;
use crate::merge::database::Database;
use crate::merge::maintainer;
use crate::merge::maintainer::files::TargetFiles;
use crate::merge::place::Target;

struct NoVariables;

impl Variables for NoVariables {
    fn get(&self, _name: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn set(&mut self, _name: &[u8], _value: &[u8]) {}

    fn export(&mut self, _name: &[u8], _value: &[u8]) {}

    fn exported(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        BTreeMap::new()
    }
}

/// How a program ended, and what it wrote to standard output and error.
pub(super) type Ran = (Outcome, String, String);

pub(super) fn call(
    target: &mut Target,
    database: &mut Database,
    program: &str,
    args: &[&str],
    command: impl FnOnce(&mut System<'_, '_>, &mut Call<'_>) -> Outcome,
) -> Ran {
    let args: Vec<Vec<u8>> = args.iter().map(|arg| arg.as_bytes().to_vec()).collect();
    let (package, arch, script, source) = ("p", "all", "postinst", &b""[..]);
    let script =
        maintainer::Call { package, stem: package, arch, script, source, args: &["configure", ""], control: None };
    let (target, fault) = (RefCell::new(target), RefCell::new(None));
    let mut files = TargetFiles::new(&target, &fault);
    let mut system = System::new(&target, database, &script);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut call = Call {
        name: program.as_bytes(),
        file: None,
        args: &args,
        variables: &mut NoVariables,
        files: &mut files,
        stdin: &mut Vec::new,
        stdout: &mut stdout,
        stderr: &mut stderr,
        cwd: b"/",
        umask: 0o022,
        is_observed: false,
        is_tolerated: false,
        is_captured: false,
        are_errors_captured: false,
        has_descriptors: false,
        script: "own",
        line: 1,
    };
    let outcome = command(&mut system, &mut call);
    (outcome, String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}
