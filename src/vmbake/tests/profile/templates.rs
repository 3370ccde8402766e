//! Templates: with known results, and malicious ones. `tests/test_templates.py` compares many more with Go.

use super::Desk;

#[test]
fn templates_become_what_go_makes_of_them() {
    for (template, expected) in [
        ("plain", "plain\n"),
        ("{{ .KubeVersion }}", "v1.34.2\n"),
        ("a\n{{- /* one */}}\n{{- /* two\nlines */}}\nb", "a\nb\n"),
        ("a {{/* }} */}}b", "a b\n"),
        ("{{ range .ClusterDNSIPs }}- {{ . }};{{ end }}", "- 10.10.10.10;\n"),
        ("{{ if .ExternalCloudProvider }}a{{ else if .InTreeCCMAvailable }}b{{ else }}c{{ end }}", "c\n"),
        (
            "{{ range $name, $on := .KubeletFeatureGates }}{{ $name }}={{ $on }}{{ end }}",
            "RotateKubeletServerCertificate=true\n",
        ),
        ("x\n{{- template \"greeting\" }}!", "x\nhello!\n"),
        ("{{ if and (eq .CloudProviderName \"hetzner\") (not .NoSuchThing) }}{{ end }}", ""),
        ("{{ semverCompare \">=1.34, <1.35\" .KubeVersion }}{{ \"}}\" }}", "true}}\n"),
        ("{{ len .ClusterDNSIPs }}{{ with .HTTPProxy }}{{ . }}{{ else }}-{{ end }}", "1-\n"),
    ] {
        let desk = Desk::with_file(template);
        match expected {
            "" => assert!(desk.content().is_err(), "{template}"),
            _ => assert_eq!(desk.content().unwrap(), expected, "{template}"),
        }
    }
}

#[test]
fn what_templates_must_not_do_is_refused_with_its_line() {
    // The first line of the content is line 17 of the file.
    let deep = format!("{}x{}", "{{ if .MaxPods }}".repeat(5000), "{{ end }}".repeat(5000));
    for (template, expected) in [
        (
            "a\n{{ env \"HOME\" }}",
            "p.yaml:18:1: function env is refused: expected one of: eq, ne, and, or, not, len, semverCompare",
        ),
        ("\n\n{{ env \"HOME\" }}", "p.yaml:19:1: function env is refused"),
        ("{{/* a\n\n}} */}}{{ env }}", "p.yaml:19:1: function env is refused"),
        ("{{ .KubeVersion | quote }}", "p.yaml:17:1: function quote is refused"),
        ("{{ printf \"%1000000000d\" 1 }}", "p.yaml:17:1: function printf is refused"),
        ("a\nb\n{{ index .KubeReserved \"cpu\" }}", "p.yaml:19:1: function index is refused"),
        ("{{ if (call .Token) }}{{ end }}", "p.yaml:17:1: function call is refused"),
        ("{{ define \"greeting\" }}{{ template \"greeting\" }}{{ end }}", "p.yaml:17:1: define is refused"),
        ("{{ block \"b\" . }}{{ end }}", "p.yaml:17:1: define is refused"),
        ("{{ range .ClusterDNSIPs }}{{ break }}{{ end }}", "p.yaml:17:1: break is refused"),
        ("{{ range .ClusterDNSIPs }}{{ continue }}{{ end }}", "p.yaml:17:1: continue is refused"),
        ("{{ range 1000000000 }}x{{ end }}", "p.yaml:17:1: range is refused: only values are supported"),
        ("{{ range len .KubeVersion }}x{{ end }}", "p.yaml:17:1: range is refused"),
        (
            "{{ range .ClusterDNSIPs }}{{ range $.ClusterDNSIPs }}{{ range $.ClusterDNSIPs }}{{ end }}{{ end }}{{ end }}",
            "p.yaml:17:1: range is refused: nested more than two levels deep",
        ),
        ("{{ $x := 5 }}\n{{ range $x }}{{ end }}", "p.yaml:18:1: range is refused: only values are supported"),
        ("a\n{{ .KubeVersoin }}", "p.yaml:18:1: unknown field .KubeVersoin"),
        ("{{ $.Nothing }}", "p.yaml:17:1: unknown field .Nothing"),
        ("a\n\n{{ template \"greetin\" }}", "p.yaml:19:1: expected one of the templates greeting, found greetin"),
        ("a\n{{ if .MaxPods }}", "p.yaml:1"),
        ("a{{ end }}b", "p.yaml:17:1: template: unexpected {{ end }} or {{ else }}"),
        ("a{{ else }}{{ env }}", "p.yaml:17:1: template: unexpected {{ end }} or {{ else }}"),
        ("a{{/* b }}", "p.yaml:18:1: template: unclosed comment"),
        ("a\n{{ \"", "p.yaml:19:1: template: unterminated string"),
        ("{{ semverCompare \"~~1\" .KubeVersion }}", "p.yaml:17:1: template: "),
        (deep.as_str(), "p.yaml:17:1: template: template nesting depth exceeded"),
    ] {
        let (said, _) = Desk::with_file(template).refusal();
        assert!(said.starts_with(expected), "{template:.80}: {said}");
    }
    let (_, hint) = Desk::with_file("{{ .KubeVersoin }}").refusal();
    assert_eq!(hint, "did you mean `KubeVersion`?");
}

#[test]
fn what_becomes_too_long_is_refused() {
    let gates: Vec<String> = (0..2000).map(|at| format!("Gate{at}=true")).collect();
    let long = "x".repeat(2000);
    let ranges = "{{ range .KubeletFeatureGates }}{{ range $.KubeletFeatureGates }}{{ end }}{{ end }}";
    for (template, expected) in [
        (format!("{{{{ range .KubeletFeatureGates }}}}{long}{{{{ end }}}}"), "the rendered template exceeds 1 MiB"),
        (ranges.to_owned(), "range iteration budget exhausted"),
    ] {
        let (said, _) = Desk::with_file(&template).set("node-kubelet-feature-gates", &gates.join(",")).refusal();
        assert!(said.ends_with(expected), "{said}");
    }
}

#[test]
fn named_templates_are_rendered_once_and_never_read_again() {
    let named = |text: &str| {
        Desk::with_file("{{ template \"greeting\" }}").profile("greeting: hello", &format!("greeting: '{text}'"))
    };
    assert_eq!(named("{{ .KubeVersion }}  ").content().unwrap(), "\nv1.34.2\n");
    for (text, expected) in [
        ("{{ \"{{\" }} .Token }}", "the result contains {{, which would be parsed as a template again"),
        ("{{ template \"greeting\" }}", "expected no `template` action in a named template, found greeting"),
    ] {
        let (said, _) = named(text).refusal();
        assert!(said.ends_with(expected), "{said}");
    }
}
