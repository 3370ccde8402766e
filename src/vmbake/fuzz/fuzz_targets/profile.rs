//! Profiles of the operating-system-manager: what is rendered is valid, and everything else is refused.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use vmbake_profile::import::{ImportRequest, Rules, import};
use vmbake_profile::{ControllerOptions, Deployment, MachinePhase, OperatingSystemConfig, Profile};

static FILE: LazyLock<tempfile::NamedTempFile> = LazyLock::new(|| tempfile::NamedTempFile::new_in("/dev/shm").unwrap());
static DEPLOYMENT: LazyLock<Deployment> = LazyLock::new(|| {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/profiles");
    Deployment::open(&examples.join("deployment.yaml")).unwrap()
});

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(FILE.path(), bytes).unwrap();
    let Ok(profile) = Profile::open(FILE.path()) else { return };
    let request = ImportRequest {
        profile: profile.clone(),
        deployment: DEPLOYMENT.clone(),
        options: ControllerOptions::default(),
        system: Some("debian-13".to_owned()),
        rules: Rules::default(),
        extensions: Vec::new(),
        base: None,
        is_untested_fine: true,
    };
    if let Ok(imported) = import(request) {
        // Whatever the scripts do, no mark or token is left in a layer.
        let is_left = |text: &Vec<u8>| text.windows(3).any(|char| char.starts_with(&[0xee, 0x80]) && char[2] <= 0x83);
        assert!(!imported.files.values().any(is_left));
    }
    let some = || Some("https://api.example.org".to_owned());
    let options =
        ControllerOptions { kubernetes_ca: some(), server_url: some(), token: some(), ..ControllerOptions::default() };
    if let Ok(config) = OperatingSystemConfig::render(profile, DEPLOYMENT.clone(), &options) {
        let _ = config.to_yaml();
        for phase in MachinePhase::ALL {
            let _ = config.user_data(phase);
        }
    }
});
