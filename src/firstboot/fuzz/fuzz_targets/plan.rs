//! Plans: any JSON is parsed or refused, and a parsed plan can be checked.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmbake_firstboot::check::check;
use vmbake_firstboot::plan::Plan;

fuzz_target!(|bytes: &[u8]| {
    let Ok(value) = serde_json::from_slice(bytes) else { return };
    if let Ok(plan) = Plan::read(&value) {
        check(&plan, &plan, &|path| Some(path.to_owned()));
    }
});
