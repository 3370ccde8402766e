//! Settings of logrotate.

use super::{are_found, found, unescaped};

/// logrotate 3.22.
#[test]
fn log_files_that_are_named_twice() {
    are_found(
        "/etc/logrotate.d/x",
        &[
            ("/a {\n}\n/b /c\n/d {\n}\n", ""),
            ("/a {\n}\n/a {\n}\n", "3"),
            ("/a /a {\n}\n", "1"),
            ("\"/a\" {\n}\n/b\n/a\n{\n}\n", "4"),
            ("/a {\nignoreduplicates\n}\n/a {\n}\n", ""),
            ("/a {\n}\n/a {\nignoreduplicates\n}\n", "3"),
            ("ignoreduplicates\n/a {\n}\n/a {\n}\n", ""),
        ],
    );
}

/// `logrotate -d` of logrotate 3.22.
#[test]
fn settings_of_logrotate() {
    are_found(
        "/etc/logrotate.d/x",
        &[
            ("weekly\n/var/log/x {\n weekly\n}\n", ""),
            ("/var/log/x\n/var/log/y {\n weekly\n}", ""),
            ("\"/var/log/x y\" /var/log/z\n{\n weekly\n}\n", ""),
            ("/var/log/x{\n postrotate\n true }\n endscript\n}\n", ""),
            ("/var/log/x\n weekly\n}\n", "1"),
            ("/var/log/x {\n weekly\n}\n}\n", "4"),
            ("/var/log/x {\n postrotate\n true\n}\n", "2"),
            ("/var/log/x {\n /y {\n weekly\n}\n}\n", "2 5"),
        ],
    );
}

/// Lines of a section of logrotate, and files that start with `!`, as `logrotate -d` of logrotate 3.22 accepts or reports them.
#[test]
fn directives_of_logrotate() {
    let path = "/etc/logrotate.d/x";
    let file = |line: &str| match (line.strip_prefix('!'), unescaped(line)) {
        (Some(file), _) => unescaped(file),
        (None, text) => format!("/var/log/x {{\n{text}\n}}\n"),
    };
    for line in include_str!("../logrotate/valid.txt").lines() {
        assert_eq!(found(path, &file(line)), "", "{line}");
    }
    let missed = include_str!("../logrotate/invalid.txt").lines().filter(|line| found(path, &file(line)).is_empty());
    assert_eq!(missed.collect::<Vec<_>>(), [""; 0]);
}
