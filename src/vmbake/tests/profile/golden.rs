//! Test vectors of the operating-system-manager: inputs are in `data/profile`, expected results in its repository or a
//! directory given by `VMBAKE_VECTORS`.

use std::path::{Path, PathBuf};
use std::{env, fs};

use yaml_rust2::{Yaml, YamlLoader};

use vmbake_profile::{ControllerOptions, Deployment, MachinePhase, OperatingSystemConfig, Profile};

/// A deployment, whose results have this name, and whether the cloud is left to a controller.
const CASES: [(&str, &str, bool); 5] = [
    ("aws", "ubuntu-aws-containerd", true),
    ("dualstack", "ubuntu-aws-dualstack", false),
    ("dualstack-6", "ubuntu-aws-dualstack-IPv6+IPv4", false),
    ("openstack", "ubuntu-openstack-containerd", true),
    ("kubelet", "kubelet-configuration-containerd", false),
];

/// Where the results are: a folder with all files, or a checkout.
struct Vectors {
    results: PathBuf,
    profile: PathBuf,
    /// How many of the cases must be there.
    fewest: usize,
}

fn vectors() -> Option<Vectors> {
    let Some(root) = env::var_os("VMBAKE_VECTORS").map(PathBuf::from) else {
        crate::tools::skip::leave_out("VMBAKE_VECTORS does not name results of the operating-system-manager");
        return None;
    };
    let places = [
        (root.join("osm"), root.join("osm/osp-ubuntu.yaml"), 2),
        (root.join("pkg/controllers/osc/testdata"), root.join("deploy/osps/default/osp-ubuntu.yaml"), CASES.len()),
    ];
    let found = places.into_iter().find(|(results, profile, _)| results.is_dir() && profile.is_file());
    let (results, profile, fewest) = found.expect("VMBAKE_VECTORS has no results");
    Some(Vectors { results, profile, fewest })
}

fn load(path: &Path) -> Option<Yaml> {
    let text = fs::read_to_string(path).ok()?;
    YamlLoader::load_from_str(&text).unwrap().into_iter().next()
}

fn options(wanted: &Yaml, is_external: bool) -> ControllerOptions {
    let mut files = wanted["spec"]["provisioningConfig"]["files"].as_vec().unwrap().iter();
    let ca = files.find(|file| file["path"].as_str() == Some("/etc/kubernetes/pki/ca.crt")).unwrap();
    let ca = ca["content"]["inline"]["data"].as_str().unwrap();
    ControllerOptions {
        cluster_dns: vec!["10.0.0.0".parse().unwrap()],
        external_cloud_provider: is_external,
        http_proxy: "http://test-http-proxy.com".to_owned(),
        no_proxy: "http://test-no-proxy.com".to_owned(),
        insecure_registries: ["192.168.100.100:5000", "10.0.0.1:5000"].map(str::to_owned).to_vec(),
        mirrors: [("docker.io".to_owned(), vec!["https://registry.docker-cn.com".to_owned()])].into(),
        pause_image: "192.168.100.100:5000/kubernetes/pause:v3.1".to_owned(),
        feature_gates: [("GracefulNodeShutdown".to_owned(), true), ("IdentifyPodOS".to_owned(), false)].into(),
        // A file of this ends with the line end of its template.
        kubernetes_ca: Some(ca.strip_suffix('\n').unwrap().to_owned()),
        server_url: Some("https://foo.bar:6443".to_owned()),
        token: Some("top-secret".to_owned()),
        ..ControllerOptions::default()
    }
}

#[test]
fn ubuntu_is_rendered_as_its_makers_do() {
    let Some(vectors) = vectors() else { return };
    let mut count = 0;
    for (deployment, name, is_external) in CASES {
        let Some(Yaml::Hash(mut wanted)) = load(&vectors.results.join(format!("osc-{name}.yaml"))) else { continue };
        // The cluster's own count of changes.
        let metadata = wanted.get_mut(&Yaml::String("metadata".to_owned())).unwrap().as_mut_hash().unwrap();
        metadata.remove(&Yaml::String("resourceVersion".to_owned())).unwrap();
        let wanted = Yaml::Hash(wanted);
        let inputs =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/profile").join(format!("{deployment}.yaml"));
        let config = OperatingSystemConfig::render(
            Profile::open(&vectors.profile).unwrap(),
            Deployment::open(&inputs).unwrap(),
            &options(&wanted, is_external),
        )
        .unwrap();
        let found = YamlLoader::load_from_str(&config.to_yaml()).unwrap();
        assert_eq!(sorted(&found[0]), sorted(&wanted), "{name}");
        for phase in MachinePhase::ALL {
            let secret = load(&vectors.results.join(format!("secret-{name}-{}.yaml", phase.name()))).unwrap();
            let wanted = decoded(secret["data"]["cloud-config"].as_str().unwrap());
            assert_eq!(config.user_data(phase).unwrap(), wanted, "{name}, {}", phase.name());
        }
        count += 1;
    }
    assert!(count >= vectors.fewest, "{count} results were found");
}

/// With the keys of all mappings in one order.
fn sorted(yaml: &Yaml) -> Yaml {
    match yaml {
        Yaml::Hash(hash) => {
            let mut entries: Vec<_> = hash.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            entries.sort();
            Yaml::Hash(entries.into_iter().collect())
        }
        Yaml::Array(items) => Yaml::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

fn decoded(base64: &str) -> String {
    let mut child = std::process::Command::new("base64")
        .arg("-d")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let text = base64.to_owned();
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut input, text.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}
