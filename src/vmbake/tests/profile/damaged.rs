//! Malformed profiles and deployments: refused, or rendered as they are.

use proptest::prelude::*;
use vmbake_profile::{ControllerOptions, Deployment, MachinePhase, OperatingSystemConfig, Profile};

use crate::parsers::damaged;

const PROFILE: &[u8] = include_bytes!("../../../../examples/profiles/debian.yaml");
const DEPLOYMENT: &[u8] = include_bytes!("../../../../examples/profiles/deployment.yaml");

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_profiles(profile in damaged(PROFILE), deployment in damaged(DEPLOYMENT)) {
        let dir = tempfile::tempdir().unwrap();
        for (profile, deployment) in [(&profile[..], DEPLOYMENT), (PROFILE, &deployment[..])] {
            let [first, second] = [("p.yaml", profile), ("m.yaml", deployment)].map(|(name, text)| {
                std::fs::write(dir.path().join(name), text).unwrap();
                dir.path().join(name)
            });
            let Ok(profile) = Profile::open(&first) else { continue };
            let Ok(deployment) = Deployment::open(&second) else { continue };
            let Ok(config) = OperatingSystemConfig::render(profile, deployment, &given()) else { continue };
            // What was rendered is one document, and user data is what was meant, or refused.
            prop_assert_eq!(yaml_rust2::YamlLoader::load_from_str(&config.to_yaml()).unwrap().len(), 1);
            for text in MachinePhase::ALL.into_iter().flat_map(|phase| config.user_data(phase)) {
                prop_assert_eq!(yaml_rust2::YamlLoader::load_from_str(&text).unwrap().len(), 1);
            }
        }
    }
}

/// What a cluster gives.
fn given() -> ControllerOptions {
    let some = || Some("https://api.example.org".to_owned());
    ControllerOptions { kubernetes_ca: some(), server_url: some(), token: some(), ..ControllerOptions::default() }
}
