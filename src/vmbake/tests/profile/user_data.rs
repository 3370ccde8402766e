//! Files and commands of profiles as cloud-init reads them from OSM's user data.

use serde_json::{Value, json};
use vmbake::cli::error_report;
use vmbake_profile::MachinePhase;
use vmbake_profile::import::{ImportError, ImportedProfile};

use super::Desk;
use super::import::{content, document, import_of};

/// A double-quoted scalar of YAML, with only ASCII in it.
fn quoted(text: &str) -> String {
    let escaped: String = text.chars().map(|char| format!("\\U{:08x}", u32::from(char))).collect();
    format!("\"{escaped}\"")
}

/// A profile whose provisioning writes `/opt/f` and runs one command.
fn desk(encoding: &str, data: &str, command: &str) -> Desk {
    let mut desk = Desk::new();
    desk.options.clear();
    desk.profile = format!(
        "apiVersion: operatingsystemmanager.k8c.io/v1alpha1\nkind: OperatingSystemProfile\nmetadata: {{name: example-debian}}\nspec:\n  \
         osName: debian\n  osVersion: '13'\n  version: v1.0.0\n  supportedCloudProviders: [{{name: hetzner}}]\n  bootstrapConfig: {{}}\n  \
         provisioningConfig:\n    files:\n    - path: /opt/f\n      content:\n        inline:\n          encoding: '{encoding}'\n          \
         data: {}\n    modules:\n      runcmd:\n      - {}\n",
        quoted(data),
        quoted(command)
    );
    desk
}

fn imported(encoding: &str, data: &str, command: &str) -> Result<ImportedProfile, ImportError> {
    import_of(&desk(encoding, data, command), &json!({}))
}

/// Checked with PyYAML 6.0 and cloud-init 22.4.
#[test]
fn line_breaks_at_the_end_of_a_file_are_those_of_cloud_init() {
    for (encoding, data, expected) in [
        ("", "A=1", "A=1"),
        ("", "A=1\n", "A=1"),
        ("", "A=1\n\n\n", "A=1"),
        ("", "A=1\n  \n", "A=1\n  "),
        ("", "A=1\n\n\tb\n", "A=1\n\n\tb"),
        ("", "", ""),
        ("", "\n\n", ""),
        ("b64", "A=1", "A=1"),
        ("b64", "A=1\n", "A=1\n"),
        ("b64", " A=1\r\n\n", " A=1\r\n\n"),
        ("b64", "", ""),
    ] {
        let imported = imported(encoding, data, "cp /opt/f /opt/g; echo B=2 >> /opt/g").unwrap();
        assert_eq!(content(&imported, "/opt/f").as_deref(), Some(expected), "{encoding} {data:?}");
        assert_eq!(content(&imported, "/opt/g"), Some(format!("{expected}B=2\n")), "{encoding} {data:?}");
    }
}

/// The file that the first boot writes to a path.
fn boot_text(imported: &ImportedProfile, path: &str) -> Option<String> {
    let layer = document(imported);
    let file = layer["first_boot"]["files"].as_array()?.iter().find(|file| file["path"] == path)?;
    file.pointer("/content/text").and_then(Value::as_str).map(str::to_owned)
}

#[test]
fn files_of_the_first_boot_end_as_those_of_cloud_init() {
    let optional = "a\n{{- if .InitialTaints }}\nt={{ .InitialTaints }}\n{{- end }}\n";
    for (encoding, data, expected) in [
        ("", "t={{ .InitialTaints }}\n", "t={{ INITIAL_TAINTS }}"),
        ("b64", "t={{ .InitialTaints }}\n", "t={{ INITIAL_TAINTS }}\n"),
        ("b64", "{{ .InitialTaints }}\n", "{{ INITIAL_TAINTS }}\n"),
        ("b64", optional, "a\n{% if INITIAL_TAINTS %}\nt={{ INITIAL_TAINTS }}\n{% endif %}\n"),
        ("b64", "{{ .KubernetesCACert }}\n", "{{ KUBERNETES_CA|base64 }}\n"),
    ] {
        let imported = imported(encoding, data, "echo").unwrap_or_else(|error| panic!("{data}: {error}"));
        assert_eq!(boot_text(&imported, "/opt/f").as_deref(), Some(expected), "{encoding} {data:?}");
    }
    let error = imported("", optional, "echo").unwrap_err();
    assert!(matches!(error, ImportError::Choice { .. }), "{error}");
    assert!(error_report::hint(&error).is_some_and(|hint| hint.contains("encoding: b64")), "{error}");
    // What a script writes ends with its own line break.
    let script = "#!/bin/sh\necho \"{{ .InitialTaints }}\" > /opt/g\n";
    let imported = imported("", script, "sh /opt/f").unwrap();
    assert_eq!(boot_text(&imported, "/opt/g").as_deref(), Some("{{ INITIAL_TAINTS }}\n"));
}

#[test]
fn what_cloud_init_would_read_differently_is_not_imported() {
    let mut cases = Vec::new();
    for command in [
        "",
        "echo a: b",
        "echo a:",
        "echo a #b",
        "echo a\tb",
        "echo a ",
        " echo a",
        "\"echo\" a",
        "'echo' a",
        "> /opt/g",
        "| cat",
        "[ -e /opt/f ] || true",
        "{ echo a; }",
        "- a",
        "? a",
        "! echo a",
        "& a",
        "* a",
        "# a",
        "%a",
        "@a",
        "`echo true`",
        "true",
        "null",
        "~",
        "1",
        "2026-01-01",
        "=",
        "echo a\u{85}",
        "echo a\u{2028}b",
        "echo \u{feff}",
        "echo \u{7f}",
        "echo \u{1}",
    ] {
        cases.push(("a", command, "move the command to a script in `files`, and call the script"));
    }
    for data in [
        " a",
        "  \na",
        "\n  a",
        "  ",
        "a\rb",
        "a\r\n",
        "a\u{85}b",
        "a\u{2028}b",
        "a\u{2029}b",
        "\u{feff}a",
        "a\u{2}b",
        "a\u{7f}b",
    ] {
        cases.push((data, "echo", "set `encoding: b64` for this file"));
        assert_eq!(content(&imported("b64", data, "echo").unwrap(), "/opt/f").as_deref(), Some(data), "{data:?}");
    }
    for (data, command, hint) in cases {
        let error = match imported("", data, command) {
            Ok(imported) => panic!("{data:?} {command:?}: {}", document(&imported)),
            Err(error) => error,
        };
        assert_eq!(error_report::hint(&error).as_deref(), Some(hint), "{data:?} {command:?}: {error}");
        // Rendering says the same.
        let config = desk("", data, command).set("server-url", "https://h.example").render().unwrap();
        let rendered = config.user_data(MachinePhase::Provisioning).unwrap_err();
        assert_eq!(error.to_string(), rendered.to_string(), "{data:?} {command:?}");
    }
    // Without an optional value, the first line begins with blanks.
    let error = imported("", "{{ if .InitialTaints }}a{{ end }}\n  b", "echo").unwrap_err().to_string();
    assert_eq!(error, "cloud-init would read /opt/f differently");
}
