//! Unsatisfiable requests: each error names the layer and the package, and has a hint.

use super::archive::{Workshop, said};
use crate::fixtures as parts;
use crate::origin::image::write_disk;

/// Keys of the layer, the error, and the hint.
const CASES: &[(&str, &str, &str)] = &[
    (r#""packages": ["ap"]"#, "layer web: packages: package ap not found in main", "did you mean `app`?"),
    (
        r#""packages": ["app=3.*"]"#,
        "layer web: no version matches app=3.*, available: 1.2, 2.0",
        "in a pattern, `*` matches any characters",
    ),
    (
        r#""packages": ["pi-only"]"#,
        "layer web: packages: package pi-only is available only for arm64, not for amd64",
        "use --arch arm64 to create the manifest",
    ),
    (
        r#""packages": ["app=1.2", "clash"]"#,
        "clash → clash-lib: conflicts with app → tool (1): Conflicts tool",
        "request only one of them, or exclude one with `without`",
    ),
    (
        r#""packages": ["newer-libc"], "hold": ["libc6"]"#,
        "newer-libc → libc6: depends on libc6 3.0, but a layer has it on hold at version 2.41-12",
        "remove libc6 from `hold`",
    ),
    (
        r#""packages": ["grub-pc"]"#,
        "grub-pc: grub-pc is a boot loader or generates an initial RAM disk, which is not supported in a bake",
        "kernels, initial RAM disks and boot menus come from the base: use `vmbake update KIND --only os.image` to pin a newer one",
    ),
    (
        r#""packages": ["tool"], "archive": "extra""#,
        "trust anchor absent.asc not found in trust",
        "use --trust to name a directory of trust anchors",
    ),
    (
        r#""packages": ["tool"], "archive": "exra""#,
        "layer web: archive exra is not listed in the sources, known archives: extra, main",
        "did you mean `extra`?",
    ),
];

#[test]
fn each_says_what_to_do() {
    let Some(workshop) = Workshop::new() else { return };
    for (keys, error, hint) in CASES {
        workshop.layer("web", &format!(", {keys}"));
        let updated = workshop.update(&[]);
        let text = said(&updated);
        assert_eq!(updated.status.code(), Some(1), "{keys}: {text}");
        assert!(text.contains("error: web.o.amd64: cannot pin the packages of its layers\n"), "{keys}: {text}");
        assert!(text.contains(error) && text.contains(&format!("hint: {hint}")), "{keys}: {text}");
        assert!(!workshop.manifest().contains("\"tool\""), "{keys}");
    }
}

#[test]
fn a_kind_is_a_layer_or_there_is_none() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.layer("web", "");
    for (args, expected) in [
        (&["update", "wbe", "--layers=layers"][..], "error: unknown kind wbe, expected one of: \n"),
        (
            &["update", "web", "--layers=layers", "--arch=riscv64"],
            "error: no source for web riscv64, expected one of: web.o.amd64, web.o.arm64\n",
        ),
        (&["bake", "web", "--os=o", "--layers=layers"], "error: manifests/web.o.amd64.json: manifest not found\n"),
        (
            &["update", "web", "--layers=layers", "--only=app", "--manifests=m"],
            "error: no entry app in the sources of web.o.amd64\n",
        ),
    ] {
        let text = said(&workshop.run(args));
        assert!(text.contains(expected), "{args:?}: {text}");
    }
}

#[test]
fn a_base_of_another_system_is_refused() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.layer("web", r#", "packages": ["tool"]"#);
    let menu = "menuentry 'x' {\n linux /boot/vmlinuz ro\n initrd /boot/initrd\n}\n";
    let dpkg = "Package: dpkg\nStatus: install ok installed\nArchitecture: arm64\nVersion: 1\n";
    for (release, status, expected) in [
        ("ID=fedora\nVERSION_ID=42\n", "", "base.raw: image of fedora 42, expected o"),
        ("ID=o\nVERSION_CODENAME=two\n", "", "base.raw: image of o two, expected o"),
        ("ID=o\n", dpkg, "base.raw: image for arm64, expected amd64"),
    ] {
        let files = [
            ("/boot/grub/grub.cfg", menu),
            ("/boot/vmlinuz", "v"),
            ("/boot/initrd", "i"),
            ("/etc/os-release", release),
            ("/var/lib/dpkg/status", status),
        ];
        std::fs::remove_file(workshop.path("base.raw")).unwrap();
        write_disk(&parts::base_with(&files), &workshop.path("base.raw"));
        let output = workshop.update(&[]);
        assert!(!output.status.success() && said(&output).contains(expected), "{}", said(&output));
    }
}
