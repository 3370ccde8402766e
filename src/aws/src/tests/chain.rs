//! Sources of credentials, regions and endpoints. Each case is a separate process with a separate environment: this test program, which
//! runs only [`opened`].

use std::fs;
use std::process::Command;

use super::server::{CannedAnswer, Seen, Server};
use crate::{Aws, Settings};
use vmbake_common::hint::Hint;
use vmbake_store::http::{Client, Mirrors};

/// Set for the process of a case.
const CASE: &str = "VMBAKE_AWS_CASE";
const CALLER: &str = "<R><GetCallerIdentityResult><Account>1</Account><Arn>arn:me</Arn></GetCallerIdentityResult></R>";
const CREDENTIALS: &str = r#"{"Version":1,"Code":"Success","Type":"AWS-HMAC","AccessKeyId":"AKIDSERVED","SecretAccessKey":"sssss",
    "Token":"t","SessionToken":"t","LastUpdated":"2026-01-01T00:00:00Z","Expiration":"2099-01-01T00:00:00Z"}"#;

/// What `aws sso login` keeps of the session `corp`: the name is the SHA-1 of that of the session.
const SESSION: &str = ".aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json";

/// In the process of a case: opens a client, and requests its identity.
#[test]
fn opened() {
    let Ok(profile) = std::env::var(CASE) else { return };
    let profile = Some(profile).filter(|profile| !profile.is_empty());
    let allow_http = std::env::var_os("VMBAKE_AWS_ALLOW_HTTP").is_some();
    let settings = Settings { profile, allow_http, ..Settings::default() };
    let opened = Aws::open(&Client::new(Mirrors::default()), &settings);
    match opened.and_then(|aws| Ok((aws.caller()?.arn, aws.region().to_owned()))) {
        Ok((arn, region)) => println!("opened: {arn} in {region}"),
        Err(error) => println!("opened: {error}; {}", error.hint().unwrap_or_default()),
    }
}

/// What [`opened`] says with this environment, configuration and profile; a variable without a value is not set.
fn open(server: &Server, environment: &[(&str, &str)], config: &str, profile: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let config = config.replace("URL", &server.url).replace("HOME", home.path().to_str().unwrap());
    fs::write(home.path().join("config"), config).unwrap();
    fs::write(home.path().join("token"), "web identity").unwrap();
    let provided = CREDENTIALS.replace("AKIDSERVED", "AKIDPROCESS");
    fs::write(home.path().join("credentials.json"), provided).unwrap();
    fs::create_dir_all(home.path().join(".aws/sso/cache")).unwrap();
    fs::write(home.path().join(SESSION), r#"{"accessToken":"a","expiresAt":"2099-01-01T00:00:00Z"}"#).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "tests::chain::opened", "--nocapture"]).env_clear();
    command.env(CASE, profile).env("HOME", home.path()).env("PATH", "/usr/bin:/bin");
    command.env("AWS_CONFIG_FILE", home.path().join("config")).env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    command.env("AWS_ENDPOINT_URL", &server.url).env("AWS_EC2_METADATA_DISABLED", "true");
    for (name, value) in environment {
        if value.is_empty() {
            command.env_remove(name);
            continue;
        }
        command.env(name, value.replace("URL", &server.url).replace("HOME", home.path().to_str().unwrap()));
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| Some(line.split_once("opened: ")?.1));
    line.unwrap_or_else(|| panic!("{text} {}", String::from_utf8_lossy(&output.stderr))).to_owned()
}

/// A test server for STS, a container's endpoint and an instance's metadata.
fn server() -> Server {
    Server::start(|_, seen: &Seen| {
        let body = String::from_utf8_lossy(&seen.body);
        let assumed = |action: &str, id: &str| {
            CannedAnswer::ok(&format!(
                "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result><Credentials>\
                 <AccessKeyId>{id}</AccessKeyId><SecretAccessKey>sssss</SecretAccessKey><SessionToken>t</SessionToken>\
                 <Expiration>2099-01-01T00:00:00Z</Expiration></Credentials><AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/r/s</Arn>\
                 <AssumedRoleId>i:s</AssumedRoleId></AssumedRoleUser></{action}Result></{action}Response>"
            ))
        };
        match seen.path.as_str() {
            "/" if body.contains("Action=GetCallerIdentity") => {
                let key = seen.header("authorization").unwrap().split(['=', '/']).nth(1).unwrap().to_owned();
                CannedAnswer::ok(&CALLER.replace("arn:me", &key))
            }
            "/" if body.contains("Action=AssumeRoleWithWebIdentity") => assumed("AssumeRoleWithWebIdentity", "AKIDWEB"),
            "/" if body.contains("Action=AssumeRole") => assumed("AssumeRole", "AKIDROLE"),
            path if path.starts_with("/federation/credentials?") => {
                assert_eq!(seen.header("x-amz-sso_bearer_token"), Some("a"));
                CannedAnswer::ok(
                    r#"{"roleCredentials":{"accessKeyId":"AKIDSSO","secretAccessKey":"sssss","sessionToken":"t","expiration":4000000000000}}"#,
                )
            }
            "/container" => CannedAnswer::ok(CREDENTIALS),
            "/latest/api/token" => {
                CannedAnswer::status(200, "x-aws-ec2-metadata-token-ttl-seconds: 21600\r\n", "token")
            }
            path if path.ends_with("/placement/region") => CannedAnswer::ok("eu-north-1"),
            path if path.ends_with("/security-credentials/") => CannedAnswer::ok("role"),
            path if path.contains("/security-credentials") => CannedAnswer::ok(CREDENTIALS),
            _ => CannedAnswer::status(404, "", ""),
        }
    })
}

const KEYS: [(&str, &str); 3] =
    [("AWS_ACCESS_KEY_ID", "AKIDENV"), ("AWS_SECRET_ACCESS_KEY", "sssss"), ("AWS_REGION", "eu-west-1")];

const PROFILES: &str = "\
[default]\nregion = eu-west-2\naws_access_key_id = AKIDDEFAULT\naws_secret_access_key = sssss\n\
[profile static]\nregion = eu-west-3\naws_access_key_id = AKIDSTATIC\naws_secret_access_key = sssss\n\
[profile role]\nregion = eu-west-3\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = static\n\
[profile process]\nregion = eu-west-3\ncredential_process = cat HOME/credentials.json\n\
[profile sso]\nregion = eu-west-3\nsso_session = corp\nsso_account_id = 1\nsso_role_name = r\n\
[sso-session corp]\nsso_region = eu-west-1\nsso_start_url = https://corp.example/start\n\
[profile missing]\nregion = eu-west-3\n\
[profile failing]\nregion = eu-west-3\ncredential_process = false\n";

#[test]
fn the_environment_comes_first_unless_a_profile_is_named() {
    let server = server();
    assert_eq!(open(&server, &KEYS, PROFILES, ""), "AKIDENV in eu-west-1");
    assert_eq!(open(&server, &[], PROFILES, ""), "AKIDDEFAULT in eu-west-2");
    assert_eq!(open(&server, &[("AWS_PROFILE", "static")], PROFILES, ""), "AKIDSTATIC in eu-west-3");
    assert_eq!(open(&server, &KEYS[..2], PROFILES, "static"), "AKIDSTATIC in eu-west-3");
    assert_eq!(open(&server, &[("AWS_DEFAULT_REGION", "eu-south-1")], PROFILES, ""), "AKIDDEFAULT in eu-south-1");
}

#[test]
fn profiles_may_assume_roles_have_sessions_and_run_programs() {
    let server = server();
    assert_eq!(open(&server, &[], PROFILES, "sso"), "AKIDSSO in eu-west-3");
    assert_eq!(open(&server, &[], PROFILES, "role"), "AKIDROLE in eu-west-3");
    assert_eq!(open(&server, &[], PROFILES, "process"), "AKIDPROCESS in eu-west-3");
}

#[test]
fn web_identities_containers_and_instances_are_asked() {
    let server = server();
    let web = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "HOME/token"),
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r"),
        ("AWS_ROLE_SESSION_NAME", "s"),
        ("AWS_REGION", "eu-west-1"),
    ];
    assert_eq!(open(&server, &web, "", ""), "AKIDWEB in eu-west-1");
    let container = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "URL/container"), ("AWS_REGION", "eu-west-1")];
    assert_eq!(open(&server, &container, "", ""), "AKIDSERVED in eu-west-1");
    let instance = [("AWS_EC2_METADATA_DISABLED", "false"), ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "URL")];
    assert_eq!(open(&server, &instance, "", ""), "AKIDSERVED in eu-north-1");
}

#[test]
fn endpoints_of_services_come_from_environment_and_profile() {
    let (server, elsewhere) = (server(), server());
    let named = [("AWS_ENDPOINT_URL", "http://127.0.0.1:9"), ("AWS_ENDPOINT_URL_STS", elsewhere.url.as_str())];
    assert_eq!(open(&server, &named, PROFILES, ""), "AKIDDEFAULT in eu-west-2");
    let config = PROFILES.replace("[profile static]\n", "[profile static]\nservices = s\n")
        + "[services s]\nsts =\n  endpoint_url = URL\n";
    let named = [("AWS_ENDPOINT_URL", ""), ("AWS_ACCESS_KEY_ID", "")];
    assert_eq!(open(&server, &named, &config, "static"), "AKIDSTATIC in eu-west-3");
}

/// 192.0.2.1 is of a network for documentation (RFC 5737): no machine answers there.
#[test]
fn no_endpoint_on_another_machine_is_asked_without_tls() {
    let exposed = "http://192.0.2.1:9";
    let role = &[("AWS_ROLE_ARN", "arn:aws:iam::1:role/r"), ("AWS_WEB_IDENTITY_TOKEN_FILE", "HOME/token")];
    let metadata = &[("AWS_EC2_METADATA_DISABLED", "false"), ("AWS_EC2_METADATA_SERVICE_ENDPOINT", exposed)];
    let profile = PROFILES.replace("[profile static]\n", "[profile static]\nservices = s\n")
        + "[services s]\nec2 =\n  endpoint_url = http://192.0.2.1:9\n";
    let region = ("AWS_REGION", "eu-west-1");
    /// Environment, configuration and profile.
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str);
    let cases: &[Case<'_>] = &[
        (&[KEYS[0], KEYS[1], KEYS[2], ("AWS_ENDPOINT_URL", exposed)], "", ""),
        (&[KEYS[0], KEYS[1], KEYS[2], ("AWS_ENDPOINT_URL_SSM", exposed)], "", ""),
        (&[role[0], role[1], region, ("AWS_ENDPOINT_URL_STS", exposed)], "", ""),
        (&[region, ("AWS_ENDPOINT_URL_STS", exposed)], PROFILES, "role"),
        (&[("AWS_ENDPOINT_URL", "")], &profile, "static"),
        (&[metadata[0], metadata[1]], "", ""),
        (&[metadata[0], metadata[1], region], "", ""),
    ];
    let server = server();
    for (environment, config, profile) in cases {
        let text = open(&server, environment, config, profile);
        let refused = format!("{exposed}: refusing plain HTTP to another machine");
        let refused_below = format!("{exposed}/latest/");
        assert!(text.starts_with(&refused) || text.starts_with(&refused_below), "{environment:?}: {text}");
        assert!(text.contains("pass --allow-http to permit it"), "{text}");
    }
    // Linux connects 0.0.0.0 to this machine, though it is not a loopback address.
    let elsewhere = server.url.replace("127.0.0.1", "0.0.0.0");
    let role = [role[0], role[1], region, ("AWS_ENDPOINT_URL", elsewhere.as_str())];
    let text = open(&server, &role, "", "");
    assert!(text.starts_with(&elsewhere) && text.contains("plain HTTP"), "{text}");
    let allowed = [&role[..], &[("VMBAKE_AWS_ALLOW_HTTP", "1")]].concat();
    assert_eq!(open(&server, &allowed, "", ""), "AKIDWEB in eu-west-1");
}

#[test]
fn what_is_missing_is_said() {
    let server = server();
    let text = open(&server, &KEYS[..2], "", "");
    assert!(text.starts_with("no AWS region is configured; set it with --region"), "{text}");
    for (profile, reason) in [("missing", ""), ("absent", ""), ("failing", "exit status: 1")] {
        let text = open(&server, &[], PROFILES, profile);
        assert!(
            text.starts_with(&format!("no AWS credentials: profile {profile}: ")) && text.contains(reason),
            "{text}"
        );
        assert!(text.contains("--profile selects another profile"), "{text}");
    }
    let text = open(&server, &[("AWS_REGION", "eu-west-1")], "", "");
    assert!(text.starts_with("no AWS credentials: "), "{text}");
}
