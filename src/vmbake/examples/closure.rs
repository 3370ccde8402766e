//! `closure [--recommends] ARCH STATUS PACKAGES...`: which packages would be chosen for each line of stdin, in addition to those of
//! a status file, from unsigned indexes. As with apt-get, a package whose name ends in `-` is removed. Prints one JSON object per line: `packages` with their versions, or `error`.

use std::io::BufRead;
use std::process::ExitCode;

use vmbake_common::escape;
use vmbake_manifest::package_request::{Choice, PackageRequest};
use vmbake_pin::closure::rehearse;
use vmbake_proof::apt::PackageIndex;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("closure: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let recommends = Choice::All(arguments.first().is_some_and(|first| first == "--recommends"));
    arguments.retain(|argument| argument != "--recommends");
    let [arch, status, indexes @ ..] = &arguments[..] else {
        return Err("[--recommends] ARCH STATUS PACKAGES...".into());
    };
    let base = PackageIndex::installed(&std::fs::read_to_string(status)?);
    let mut package_indexes = Vec::new();
    for path in indexes {
        package_indexes.push((path.as_str(), PackageIndex::unsigned(&std::fs::read_to_string(path)?, arch)));
    }
    let archives: Vec<(&str, &PackageIndex)> =
        package_indexes.iter().map(|(name, package_index)| (*name, package_index)).collect();
    for line in std::io::stdin().lock().lines() {
        let (mut packages, mut remove_packages) = (Vec::new(), Vec::new());
        for word in line?.split_whitespace() {
            match word.strip_suffix('-') {
                Some(name) => remove_packages.push(name.to_owned()),
                None => packages.push(word.to_owned().into()),
            }
        }
        let recommends = recommends.clone();
        let request = PackageRequest { packages, recommends, remove_packages, ..PackageRequest::default() };
        let requests = vec![("asked".to_owned(), request)];
        let answer = match rehearse(&archives, &base, &requests) {
            Ok(packages) => serde_json::json!({ "packages": packages }),
            Err(error) => serde_json::json!({ "error": escape::chain(&error) }),
        };
        println!("{answer}");
    }
    Ok(())
}
