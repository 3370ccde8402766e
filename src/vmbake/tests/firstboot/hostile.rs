//! Values that are special to a shell, a template or a file format are preserved.

use super::image::Image;
use super::machine::{Machine, as_root, scratch};
use super::settings::Choice;
use super::trees::judge;

const HOSTILE: &str =
    "a\"b'c: {{ 7 * 7 }} {% if x %} {# #} # \\n \\ $(id) `id` ${HOME} \t é\u{1f600}\u{85}\u{2028}\u{7f}\n- next: [";

/// What takes any text.
const NAMES: [&str; 16] = [
    "CLUSTER_ID",
    "INSTANCE_ID",
    "NETSY_BUCKET",
    "NETSY_ENDPOINT",
    "NETSY_KEY_PREFIX",
    "NETSY_SECRET_ACCESS_KEY",
    "OIDC_ISSUER",
    "PROVIDER_ZONE",
    "REGISTRY_BUCKET",
    "REGISTRY_ENDPOINT",
    "REGISTRY_SECRET_ACCESS_KEY",
    "TELEMETRY_LOG_SERVICES",
    "TELEMETRY_S3_ASSUME_ROLE",
    "TELEMETRY_S3_BUCKET",
    "TELEMETRY_S3_ENDPOINT",
    "TELEMETRY_S3_REGION",
];

#[test]
fn values_reach_every_file_unchanged() {
    if !as_root("hostile::values_reach_every_file_unchanged") {
        return;
    }
    let image = Image::new("knc");
    let work = scratch();
    let mut roots = Vec::new();
    for provider in 0..4 {
        let mut user_data = Choice([1, provider, 0, 1, 1]).user_data();
        user_data.extend(NAMES.map(|name| (name.to_owned(), HOSTILE.to_owned())));
        let machine = Machine::new(work.path().join(provider.to_string()), &image, "amd64", &user_data);
        machine.succeed(&["configure"]);
        let said = machine.succeed(&["exec", "kube-apiserver"]);
        assert!(said.contains(&format!("    --oidc-issuer-url={HOSTILE}\n")), "{said}");
        roots.push(machine.root);
    }
    judge(&roots);
}
