//! EC2, STS and SSM: parameters, pages, and documents that are none.

use super::client;
use super::server::{CannedAnswer, Server};
use crate::{Aws, AwsError, LaunchPermission, RegisterImage};
use vmbake_common::hint::Hint;

const SNAPSHOT: &str = "<item><snapshotId>snap-1</snapshotId><status>completed</status><volumeSize>8</volumeSize>\
    <encrypted>true</encrypted><kmsKeyId>arn:k</kmsKeyId><ownerId>123456789012</ownerId>\
    <startTime>2026-01-02T03:04:05.000Z</startTime><storageTier>standard</storageTier>\
    <tagSet><item><key>a</key><value>1 &amp; 2</value></item><item><key>b</key><value/></item></tagSet></item>";

const IMAGE: &str = "<item><imageId>ami-1</imageId><name>n</name><imageState>available</imageState>\
    <architecture>arm64</architecture><bootMode>uefi</bootMode><tpmSupport>v2.0</tpmSupport>\
    <imdsSupport>v2.0</imdsSupport><enaSupport>true</enaSupport><rootDeviceName>/dev/xvda</rootDeviceName>\
    <isPublic>false</isPublic><creationDate>2026-01-02T03:04:05.000Z</creationDate>\
    <deprecationTime>2030-01-01T00:00:00.000Z</deprecationTime><stateReason><code>c</code><message>m</message></stateReason>\
    <blockDeviceMapping><item><deviceName>/dev/xvda</deviceName><ebs><snapshotId>snap-1</snapshotId></ebs></item>\
    <item><deviceName>/dev/sdb</deviceName><virtualName>ephemeral0</virtualName></item></blockDeviceMapping></item>";

/// An answer of EC2 with a list.
fn list(name: &str, items: &str, next: &str) -> CannedAnswer {
    CannedAnswer::ok(&format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<R xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\
         <requestId>r</requestId><{name}>{items}</{name}><nextToken>{next}</nextToken></R>"
    ))
}

fn asked(answer: CannedAnswer) -> (Server, Aws) {
    let server = Server::always(answer);
    let aws = client(&server);
    (server, aws)
}

#[test]
fn snapshots_are_found_over_all_pages() {
    let server = Server::series(vec![
        list("snapshotSet", SNAPSHOT, "page2"),
        list("snapshotSet", "", "p3"),
        list("snapshotSet", SNAPSHOT, ""),
    ]);
    let found = client(&server).snapshots(&[("tag:a", &["x", "y z"]), ("status", &["completed"])]).unwrap();
    assert_eq!(found.len(), 2);
    let snapshot = &found[0];
    assert_eq!((snapshot.id.as_str(), snapshot.state.as_str(), snapshot.volume_size), ("snap-1", "completed", 8));
    assert_eq!(
        (snapshot.encrypted, snapshot.kms_key.as_deref(), snapshot.owner.as_str()),
        (true, Some("arn:k"), "123456789012")
    );
    assert_eq!(
        snapshot.tags,
        [("a", "1 & 2"), ("b", "")].map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    );
    let seen = server.seen();
    let body = String::from_utf8(seen[0].body.clone()).unwrap();
    assert_eq!(
        body,
        "Action=DescribeSnapshots&Version=2016-11-15&Owner.1=self&Filter.1.Name=tag%3Aa&Filter.1.Value.1=x&Filter.1.Value.2=y%20z\
         &Filter.2.Name=status&Filter.2.Value.1=completed&MaxResults=1000"
    );
    assert_eq!(
        [seen[1].parameter("NextToken"), seen[2].parameter("NextToken")],
        ["page2", "p3"].map(|t| Some(t.to_owned()))
    );
}

#[test]
fn a_snapshot_that_is_not_there_is_none() {
    let (_, aws) = asked(CannedAnswer::ec2(400, "InvalidSnapshot.NotFound"));
    assert_eq!(aws.snapshot("snap-1").unwrap(), None);
    let (server, aws) = asked(list("snapshotSet", SNAPSHOT, ""));
    assert_eq!(aws.snapshot("snap-1").unwrap().unwrap().id, "snap-1");
    assert_eq!(server.seen()[0].parameter("MaxResults"), None, "EC2 refuses both an id and a size of pages");
    let (_, aws) = asked(CannedAnswer::ec2(403, "UnauthorizedOperation"));
    assert!(aws.snapshot("snap-1").unwrap_err().is_denied());
}

#[test]
fn images_keep_what_ec2_says_of_them() {
    let (server, aws) = asked(list("imagesSet", IMAGE, ""));
    let image = aws.images(&[("name", &["n"])]).unwrap().remove(0);
    assert_eq!((image.id.as_str(), image.state.as_str(), image.architecture.as_str()), ("ami-1", "available", "arm64"));
    assert_eq!(
        [&image.boot_mode, &image.tpm, &image.imds],
        [&Some("uefi".to_owned()), &Some("v2.0".to_owned()), &Some("v2.0".to_owned())]
    );
    assert_eq!((image.ena, image.public, image.root_device.as_str()), (true, false, "/dev/xvda"));
    assert_eq!((image.snapshots, image.reason), (vec!["snap-1".to_owned()], Some("m".to_owned())));
    assert_eq!(image.deprecation.as_deref(), Some("2030-01-01T00:00:00.000Z"));
    assert_eq!(server.seen()[0].parameter("IncludeDeprecated").as_deref(), Some("true"));
}

#[test]
fn an_image_is_registered_with_all_that_ec2_would_assume_otherwise() {
    let (server, aws) = asked(CannedAnswer::ok("<R><imageId>ami-1</imageId></R>"));
    let tags = [("k".to_owned(), "v".to_owned())];
    let (name, description, architecture, boot_mode) = ("disk", "text", "arm64", "uefi");
    let (root_device, snapshot, volume_size, volume_type) = ("/dev/xvda", "snap-1", 8, "gp3");
    let register = RegisterImage {
        name,
        description,
        architecture,
        boot_mode,
        tpm: Some("v2.0"),
        imds_v2: true,
        root_device,
        snapshot,
        volume_size,
        volume_type,
        tags: &tags,
    };
    assert_eq!(aws.register_image(&register).unwrap(), "ami-1");
    let seen = server.seen().remove(0);
    for (name, value) in [
        ("Architecture", "arm64"),
        ("VirtualizationType", "hvm"),
        ("EnaSupport", "true"),
        ("BootMode", "uefi"),
        ("TpmSupport", "v2.0"),
        ("ImdsSupport", "v2.0"),
        ("BlockDeviceMapping.1.Ebs.SnapshotId", "snap-1"),
        ("BlockDeviceMapping.1.Ebs.VolumeSize", "8"),
        ("BlockDeviceMapping.1.Ebs.VolumeType", "gp3"),
        ("TagSpecification.1.ResourceType", "image"),
        ("TagSpecification.1.Tag.1.Key", "k"),
    ] {
        assert_eq!(seen.parameter(name).as_deref(), Some(value), "{name}");
    }
    assert!(!String::from_utf8(seen.body.clone()).unwrap().contains("Encrypted"));
    assert!(
        seen.header("authorization")
            .unwrap()
            .contains("/ec2/aws4_request, SignedHeaders=content-type;host;x-amz-date, ")
    );
}

#[test]
fn launch_permissions_are_of_four_kinds() {
    let item = |name: &str, value: &str| format!("<item><{name}>{value}</{name}></item>");
    let items = item("userId", "123456789012")
        + &item("group", "all")
        + &item("organizationArn", "arn:o")
        + &item("organizationalUnitArn", "arn:u");
    let (_, aws) = asked(CannedAnswer::ok(&format!(
        "<R><imageId>ami-1</imageId><launchPermission>{items}</launchPermission></R>"
    )));
    assert_eq!(aws.launch_permissions("ami-1").unwrap(), ["123456789012", "all", "arn:o", "arn:u"]);
    let (server, aws) = asked(CannedAnswer::ok("<R><return>true</return></R>"));
    let to =
        [LaunchPermission::Account("1".into()), LaunchPermission::Group, LaunchPermission::Organization("o".into())];
    aws.add_launch_permission("ami-1", &to).unwrap();
    let seen = server.seen().remove(0);
    let value = |name: &str| seen.parameter(name).unwrap_or_default();
    assert_eq!(value("LaunchPermission.Add.1.UserId"), "1");
    assert_eq!(value("LaunchPermission.Add.2.Group"), "all");
    assert_eq!(value("LaunchPermission.Add.3.OrganizationArn"), "o");
}

#[test]
fn what_may_not_be_public_is_said() {
    let (_, aws) = asked(CannedAnswer::ec2(400, "OperationNotPermitted"));
    let hint = aws.add_launch_permission("ami-1", &[LaunchPermission::Group]).unwrap_err().hint().unwrap();
    assert!(hint.contains("disable-image-block-public-access --region eu-central-1"), "{hint}");
}

#[test]
fn all_grantees_are_found() {
    let items = "<item><userId>1</userId></item><item><group>all</group></item>";
    let (server, aws) =
        asked(CannedAnswer::ok(&format!("<R><createVolumePermission>{items}</createVolumePermission></R>")));
    assert_eq!(aws.snapshot_permissions("snap-1").unwrap(), ["1", "all"]);
    assert_eq!(server.seen()[0].parameter("Attribute").as_deref(), Some("createVolumePermission"));
    let (_, aws) =
        asked(CannedAnswer::ok("<R><launchPermission><item><someone>x</someone></item></launchPermission></R>"));
    let error = aws.launch_permissions("ami-1").unwrap_err();
    assert!(matches!(error, AwsError::Answer { what: "launchPermission", .. }), "{error}");
}

#[test]
fn a_dry_run_is_right_when_it_would_be_done() {
    let (server, aws) = asked(CannedAnswer::ec2(412, "DryRunOperation"));
    aws.dry_run("RegisterImage", &[("Name", "n")]).unwrap();
    assert_eq!(server.seen()[0].parameter("DryRun").as_deref(), Some("true"));
    let (_, aws) = asked(CannedAnswer::ec2(403, "UnauthorizedOperation"));
    assert!(aws.dry_run("CopyImage", &[]).unwrap_err().to_string().starts_with("ec2:CopyImage: "));
}

#[test]
fn what_an_account_is_set_to() {
    let (_, aws) = asked(CannedAnswer::ok("<R><ebsEncryptionByDefault>true</ebsEncryptionByDefault></R>"));
    assert!(aws.encryption_by_default().unwrap());
    let (_, aws) =
        asked(CannedAnswer::ok("<R><imageBlockPublicAccessState>unblocked</imageBlockPublicAccessState></R>"));
    assert_eq!(aws.block_public_access().unwrap(), "unblocked");
    let result = "<GetCallerIdentityResult><Arn>arn:me</Arn><UserId>u</UserId><Account>123456789012</Account></GetCallerIdentityResult>";
    let (_, aws) = asked(CannedAnswer::ok(&format!("<GetCallerIdentityResponse>{result}</GetCallerIdentityResponse>")));
    let caller = aws.caller().unwrap();
    assert_eq!((caller.account.as_str(), caller.arn.as_str()), ("123456789012", "arn:me"));
    let reservation =
        |id: &str| format!("<item><instancesSet><item><instanceId>{id}</instanceId></item></instancesSet></item>");
    let (_, aws) = asked(list("reservationSet", &(reservation("i-1") + &reservation("i-2")), ""));
    assert_eq!(aws.instances_using("ami-1").unwrap(), ["i-1", "i-2"]);
}

#[test]
fn a_parameter_is_read_and_set() {
    let (_, aws) = asked(CannedAnswer::status(400, "", r#"{"__type":"ParameterNotFound"}"#));
    assert_eq!(aws.parameter("/p").unwrap(), None);
    let (server, aws) = asked(CannedAnswer::ok(r#"{"Parameter":{"Name":"/p","Value":"ami-1"}}"#));
    assert_eq!(aws.parameter("/p").unwrap().as_deref(), Some("ami-1"));
    aws.put_parameter("/p", "ami-2").unwrap();
    let seen = server.seen();
    assert_eq!(seen[1].header("x-amz-target"), Some("AmazonSSM.PutParameter"));
    let expected = serde_json::json!({
        "Name": "/p", "Value": "ami-2", "Type": "String", "DataType": "aws:ec2:image", "Overwrite": true,
    });
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&seen[1].body).unwrap(), expected);
    let (_, aws) =
        asked(CannedAnswer::status(400, "", r#"{"__type":"com.amazonaws.ssm#AccessDeniedException","message":"no"}"#));
    assert_eq!(aws.parameter("/p").unwrap_err().to_string(), "ssm:GetParameter (/p): AccessDeniedException: no");
}

#[test]
fn documents_that_are_none_are_refused() {
    const STATE: &str = "<imageBlockPublicAccessState>unblocked</imageBlockPublicAccessState>";
    let ask = |body: &str| asked(CannedAnswer::ok(body)).1.block_public_access();
    let entities = format!("<!DOCTYPE r [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]><r>{STATE}&b;</r>");
    let wide = format!("<r>{STATE}{}</r>", "<a/>".repeat(2_100_000));
    let truncated = format!("<r>{STATE}");
    for body in ["", "{}", &truncated, &entities, &wide, &format!("<r>{STATE}\u{0}</r>")] {
        assert!(matches!(ask(body), Err(AwsError::Answer { what: "XML", .. })), "{body:.60}");
    }
    for body in ["<r/>", "<r><imageBlockPublicAccessState/></r>", &format!("<r><r>{STATE}</r></r>")] {
        let lacking = "imageBlockPublicAccessState";
        assert!(matches!(ask(body), Err(AwsError::Answer { what, .. }) if what == lacking), "{body}");
    }
    let deep = format!("<r>{}{}{STATE}</r>", "<a>".repeat(200_000), "</a>".repeat(200_000));
    assert_eq!(ask(&deep).unwrap(), "unblocked");
    let wrong = SNAPSHOT.replace("<volumeSize>8<", "<volumeSize>-8<");
    let (_, aws) = asked(list("snapshotSet", &wrong, ""));
    assert!(matches!(aws.snapshots(&[]).unwrap_err(), AwsError::Answer { what: "volumeSize", .. }));
    let (_, aws) = asked(CannedAnswer::Whole { status: 200, headers: String::new(), body: vec![0xff, 0xfe] });
    assert!(matches!(aws.snapshots(&[]).unwrap_err(), AwsError::Answer { what: "XML", .. }));
}

#[test]
fn refusals_that_say_nothing_have_their_status() {
    for (body, code) in
        [("", "status 418"), ("<html>no</html>", "status 418"), ("<", "status 418"), ("{\"code\":\"C\"}", "C")]
    {
        let (_, aws) = asked(CannedAnswer::status(418, "", body));
        assert_eq!(aws.block_public_access().unwrap_err().code(), Some(code), "{body}");
    }
    let long = format!(
        "<Response><Errors><Error><Code>C</Code><Message>{}</Message></Error></Errors></Response>",
        "x".repeat(1 << 20)
    );
    let (_, aws) = asked(CannedAnswer::status(400, "", &long));
    assert!(aws.block_public_access().unwrap_err().to_string().len() < 2200);
}
