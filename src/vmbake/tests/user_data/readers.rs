//! Documents with malicious values, as read by PyYAML, libyaml, a YAML 1.2 parser and the first-boot program.

use super::*;

/// What a program of Python prints about documents; none where it cannot be asked.
fn ask_python(program: &str, documents: &[String]) -> Option<serde_json::Value> {
    let python = "/usr/bin/python3";
    let found = Command::new(python)
        .args(["-c", "import yaml"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|code| code.success());
    if !found {
        crate::tools::skip::skip("python3-yaml is not installed");
        return None;
    }
    let files = Files::new();
    let input = files.put("documents", serde_json::to_vec(documents).unwrap());
    let output = Command::new(python).args(["-c", program]).arg(input).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Both readers of YAML 1.1 that PyYAML has; cloud-init uses its safe loader, which is the first.
const READ: &str = r#"
import json, sys, yaml
loaders = [yaml.SafeLoader] + ([yaml.CSafeLoader] if yaml.__with_libyaml__ else [])
read = [[yaml.load(document, loader) for loader in loaders] for document in json.load(open(sys.argv[1]))]
assert all(one == other for one, *others in read for other in others), "the loaders differ"
json.dump([one for one, *_ in read], sys.stdout)
"#;

#[test]
fn hostile_values_arrive_as_they_were_sent() {
    let names =
        ["AWS_S3_USE_PATH_STYLE", "CLUSTER_ID", "NETSY_SECRET_ACCESS_KEY", "SSH_AUTHORIZED_KEYS", "PROVIDER_ZONE"];
    let part = prop_oneof![
        Just("'"),
        Just("\""),
        Just("\\"),
        Just("$(id)"),
        Just("`id`"),
        Just("${HOME}"),
        Just("{{ ds }}"),
        Just("\n"),
        Just("# "),
        Just(": "),
        Just("- "),
        Just("---"),
        Just("\n...\n"),
        Just("%YAML 1.2\n"),
        Just("!!python/name:os.system"),
        Just("&a *a"),
        Just("|"),
        Just(">"),
        Just("yes"),
        Just("0600"),
        Just("~"),
        Just(" "),
        Just("\u{2028}"),
        Just("\u{2029}"),
        Just("\u{feff}"),
        Just("\u{a0}"),
        Just("é"),
        Just("🦀"),
        Just("\u{fffd}"),
        Just("## template: jinja\n"),
        Just("a"),
    ];
    let value = prop_oneof![
        3 => prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat()),
        1 => any::<String>(),
    ];
    let strategy = prop::collection::vec(value, names.len());
    let mut runner = TestRunner::deterministic();
    let (mut documents, mut sent, mut refusals) = (Vec::new(), Vec::new(), 0);
    while documents.len() < 300 {
        let values = strategy.new_tree(&mut runner).unwrap().current();
        let settings: Vec<(&str, &str)> = names.into_iter().zip(values.iter().map(String::as_str)).collect();
        let settings = with(&settings);
        // Half of them would be refused for their line ends alone.
        let lines = |name: &str| name.starts_with("SSH");
        let settings: BTreeMap<_, _> = settings
            .into_iter()
            .map(|(name, value)| if lines(&name) { (name, value) } else { (name, value.replace('\n', "")) })
            .collect();
        match try_render(&request(settings.clone())) {
            Ok(rendered) => {
                assert!(rendered.user_data.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)));
                documents.push(rendered.user_data);
                sent.push(settings);
            }
            Err(error) => {
                let control =
                    |name: &str, value: &str| value.chars().any(|c| c.is_control() && !(lines(name) && c == '\n'));
                let reason = settings.iter().any(|(name, value)| control(name, value) || env::unfit(value).is_some());
                assert!(reason || settings["CLUSTER_ID"].is_empty(), "{error}: {settings:?}");
                refusals += 1;
            }
        }
    }
    assert!(refusals < documents.len(), "{refusals}");
    for (document, settings) in documents.iter().zip(&sent) {
        let read = yaml_rust2::YamlLoader::load_from_str(document).unwrap();
        let content = read[0]["write_files"][0]["content"].as_str().unwrap();
        assert_eq!(&env::parse(Path::new("env"), content.as_bytes()).unwrap(), settings, "{document}");
    }
    let Some(read) = ask_python(READ, &documents) else { return };
    for ((document, settings), read) in documents.iter().zip(&sent).zip(read.as_array().unwrap()) {
        let file = &read["write_files"][0];
        assert_eq!(
            (file["permissions"].as_str(), read["write_files"][1].is_null()),
            (Some("0600"), true),
            "{document}"
        );
        let content = file["content"].as_str().unwrap();
        assert_eq!(&env::parse(Path::new("env"), content.as_bytes()).unwrap(), settings, "{document}");
        let pairs = settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        assert_eq!(content, env::render(pairs).unwrap(), "{document}");
    }
}
