//! Unknown syntax and commands are errors with their position, but only if they are reached.

use vmbake_shell::{ErrorKind, Files, Limits, Script, ShellError, TreeFiles, parses};

use crate::host::{self, Nothing};

pub fn error(source: &str) -> ShellError {
    let mut tree = host::tree("/work");
    let origin = tree.first_origin();
    let mut files = TreeFiles::new(&mut tree, Default::default(), origin);
    for (name, content) in [
        ("unknown", &b"\x7fELF"[..]),
        ("perlish", b"#!/usr/bin/perl\n"),
        ("environed", b"#!/usr/bin/env -S python3 -u\n"),
        ("plain", b"echo a\0\n"),
        ("verbose", b"#!/bin/sh -v\n"),
        ("script", b"#!/bin/sh\nf() { unknown; }\nf\n"),
    ] {
        files.write(format!("/usr/bin/{name}").as_bytes(), content.to_vec(), 0o755).unwrap();
    }
    match host::interpret(source, "/work", &mut tree, &mut Nothing, Limits::default()) {
        Err(error) => *error,
        Ok(finished) => panic!("{source}: {finished:?}"),
    }
}

#[test]
fn unknown_commands_stop_the_run_wherever_they_stand() {
    for source in [
        "unknown",
        "unknown || true",
        "if unknown; then :; fi",
        "unknown 2>/dev/null >&2 || :",
        "! unknown",
        "x=$(unknown) || :",
        "echo a | unknown | cat",
        "(unknown) || :",
        "find . -exec unknown {} \\;",
        "echo a | xargs unknown",
        "trap unknown EXIT",
        "eval unknown || :",
        "exec unknown",
        "command unknown",
        "env unknown",
        "/usr/bin/unknown",
        "sh -c unknown",
        "f() { script; }; f",
        "f() { (unknown); }; f",
    ] {
        assert_eq!(error(source).kind, foreign("unknown", "a compiled program"), "{source}");
    }
    assert_eq!(error("perlish a").kind, foreign("perlish", "a script for perl"));
    assert_eq!(error("environed").kind, foreign("environed", "a script for python3"));
    for source in ["plain", "verbose"] {
        assert_eq!(error(source).kind, ErrorKind::UnknownCommand, "{source}");
    }
}

#[test]
fn first_lines_that_a_machine_would_not_run_are_refused() {
    for line in [
        "#!/bin/sh -e -u",
        "#!/bin/sh\r",
        "#!/bin/sh -e # always",
        "#!/usr/bin/env sh -e",
        "#!/bin/sh -o errexit",
        "#!sh",
    ] {
        let source = format!("{line}\n: > /work/f\n");
        let kind = error(&source).kind;
        let ErrorKind::Unsupported { what } = &kind else { panic!("{line}: {kind:?}") };
        assert!(what.starts_with("the interpreter #!"), "{what}");
    }
}

#[test]
fn commands_do_not_begin_with_reserved_words() {
    for source in ["fi", "done", "true && }", "eval 'esac' || :", "trap then EXIT", "! ! true", "set() { :; }", "in"] {
        assert!(matches!(error(source).kind, ErrorKind::Syntax { .. }), "{source}");
    }
}

fn foreign(name: &str, what: &str) -> ErrorKind {
    ErrorKind::Foreign { name: name.to_owned(), what: what.to_owned() }
}

/// Programs are larger than any script that is read.
#[test]
fn a_large_program_is_compiled() {
    let mut tree = host::tree("/work");
    let origin = tree.first_origin();
    let mut files = TreeFiles::new(&mut tree, Default::default(), origin);
    files.write(b"/usr/bin/large", [&b"\x7fELF"[..], &[0; 100]].concat(), 0o755).unwrap();
    let limits = Limits { size_bytes: 100, ..Limits::default() };
    let error = host::interpret("large", "/work", &mut tree, &mut Nothing, limits).unwrap_err();
    assert_eq!(error.kind, foreign("large", "a compiled program"));
}

#[test]
fn errors_name_script_line_and_arguments() {
    let found = error("x='a b'\nif false; then\n  :\nelse\n  unknown -x \"$x\" >/dev/null || true\nfi\n");
    assert_eq!((found.script.as_str(), found.line), ("/work.script", 5));
    assert_eq!(found.command, ["unknown", "-x", "a b"]);
    assert_eq!(
        found.to_string(),
        "/work.script:5: unknown -x a b: unknown is a compiled program, which only a machine can run"
    );
    let found = error("echo 'echo a\n\ngrep --frob' > f; . ./f");
    assert_eq!((found.script.as_str(), found.line), ("./f", 3));
    assert_eq!(found.kind, ErrorKind::Unsupported { what: "--frob".to_owned() });
}

#[test]
fn what_is_not_reached_is_no_error() {
    let source = "if false; then unknown; fi\nfalse && unknown\ntrue || unknown\ncase a in b) unknown;; esac\nf() { unknown; }\nexit 0\n( ; bad syntax\n";
    let mut tree = host::tree("/work");
    let finished = host::interpret(source, "/work", &mut tree, &mut Nothing, Limits::default()).unwrap();
    assert_eq!(finished.status, 0);
    let script = Script { name: "s", source: source.as_bytes(), args: &[] };
    assert!(matches!(parses(&script), Err(found) if found.line == 7));
}

#[test]
fn what_no_run_can_know_is_refused() {
    let machine = |source: &str| matches!(error(source).kind, ErrorKind::Machine { .. });
    let random = |source: &str| matches!(error(source).kind, ErrorKind::Random { .. });
    let clock = |source: &str| matches!(error(source).kind, ErrorKind::Clock { .. });
    assert!(machine("uname -r"));
    assert!(machine("cat /proc/cpuinfo"));
    assert!(machine("read x < /sys/kernel/x"));
    assert!(machine("cat /sys/class/x/state"));
    assert!(machine("kill 1"));
    assert!(machine("df /"));
    assert!(machine("df --output=size /"));
    assert!(random("df --output=avail . | tail -n 1 > f"));
    assert!(random("head -c 4 /dev/urandom"));
    assert!(random("t=$(mktemp)"));
    assert!(random("d=$(mktemp -d); touch $d/x"));
    assert!(random("echo a > f.$$"));
    assert!(random("echo $$ > f"));
    assert!(random("#!/bin/bash\necho $RANDOM"));
    assert!(clock("date"));
    assert!(clock("x=$(date +%s) || true"));
}

/// Debian's tempfile is there in some releases only.
#[test]
fn tempfile_makes_files_that_must_be_gone() {
    let mut tree = host::tree("/work");
    let run = |source: &str, tree: &mut vmbake_disk::tree::Tree| {
        host::interpret(source, "/work", tree, &mut Nothing, Limits::default()).map(|found| found.stdout)
    };
    assert_eq!(run("tempfile; echo $?", &mut tree).unwrap(), b"127\n");
    let source = "printf x >/usr/bin/tempfile; chmod 755 /usr/bin/tempfile; f=$(tempfile -p own --suffix=.x -m 0640)\n\
        stat -c '%a %s' $f; echo ${f%/*} ${f##*.}; [ -e $f ] && rm $f; tempfile -d /nope; echo $?";
    assert_eq!(run(source, &mut tree).unwrap(), b"640 0\n/tmp x\n1\n");
    for (source, random) in [("f=$(tempfile)", true), ("tempfile -n /tmp/x", false), ("tempfile -m u+x", false)] {
        let kind = run(source, &mut tree).unwrap_err().kind;
        assert_eq!(matches!(kind, ErrorKind::Random { .. }), random, "{source}: {kind:?}");
    }
}

/// A pattern below `/sys` finds nothing, as where nothing is mounted.
#[test]
fn patterns_of_the_kernel_find_nothing() {
    let mut tree = host::tree("/work");
    let source = "cat /sys/class/iscsi_session/session*/state 2>/dev/null | grep -q . || echo none";
    let finished = host::interpret(source, "/work", &mut tree, &mut Nothing, Limits::default()).unwrap();
    assert_eq!(finished.stdout, b"none\n");
}

#[test]
fn options_and_syntax_that_are_not_known_are_refused() {
    for source in [
        "getopt ab: -a",
        "getopt -u -o a -- -a",
        "getopt -o :a -- -a",
        "getopt -o a b -- -a",
        "cat --frob f",
        "ln -s /etc l; rm -rf l/",
        "grep -P a f",
        "grep -R a .",
        "echo a | sed 's/\\(a\\)\\1/b/'",
        "echo a | sed 's/a/b/e'",
        "echo a | sed 'e'",
        "echo a | sed 's/[\\x41]/b/'",
        "echo a | sed '/[^]\\d]/d'",
        "echo a | grep '[[.a.]]'",
        "cp --frob a b",
        "cp -K mode",
        "find . -mtime +3",
        "find . -frob",
        "sort -R f",
        "cut -z f",
        "stat f",
        "stat -c %i f; touch f; stat -c %i f",
        "ls -l",
        "ln --frob a b",
        "echo a &",
        "set",
        "set -o pipefail",
        "printf %f 1",
        "if true; then alias a=b; fi",
        "alias a=b; a",
        "f() { alias a=b; }; f",
        "alias a",
        "alias a='b; c'",
        "alias a='b >f'",
        "alias a='b=1 c'",
        "alias a='b '",
        "alias a=",
        "alias a=b\nalias b='echo a'\na",
        "alias a=b\na() { :; }",
        "alias a=b\ncommand -v a",
        "alias a=b\ntype a",
        "alias a=b\nunalias a",
        "echo 'alias b=c' > s; alias a=b\n. ./s",
        "diff f /etc/passwd",
        "diff -u f f",
        "diff -q . f",
        "nice",
        "nice -10 true",
        "ionice -p 1",
        "ionice -c3 -p 1",
        "ionice -p $$",
        "find . -printf %s",
        "find . -printf %T@",
        "find . -regex '.*[[:digit:]]'",
        "find . -regextype awk -regex a",
        "find . -newermt 2020-01-01",
        "find . -execdir echo {} +",
        "mkdir d; ls -LR .",
        "tr '[b*]' a",
        "mktemp -u",
        "export LC_ALL=C; env",
        "head -n x",
        "echo ${@#a}",
        "exec 3<>f; rm f; cat <&3",
        "cmp a b c",
        "readlink --frob a",
        "chmod --frob 1 f",
        "xargs -P 2 < /dev/null",
        "wc --files0-from=f",
        "uniq -D f",
        "touch -d yesterday f",
    ] {
        let found = error(&format!("touch f\n{source}")).kind;
        assert!(matches!(found, ErrorKind::Unsupported { .. }), "{source}: {found:?}");
    }
    for source in [
        "if true; then fi",
        "echo $(",
        "case a in",
        "a=(1 2)",
        "for i in a; { echo; }",
        "echo 'a",
        "{ echo a; ",
        ";;",
        "a b() { :; }",
        "echo $((1+2)",
    ] {
        let found = error(source).kind;
        assert!(matches!(found, ErrorKind::Syntax { .. }), "{source}: {found:?}");
    }
    assert!(matches!(error("#!/usr/bin/perl\nprint 1").kind, ErrorKind::Unsupported { .. }));
}

#[test]
fn bash_scripts_have_conditionals() {
    let source = "#!/bin/bash\nfunction f { echo \"f$1\"; }\nf 1\n[[ a == a* && ! -e /nope || x ]] && echo y\n[[ a < b ]] && echo z\n[[ $1 == \"o*\" ]] || echo n\necho -e 'a\\tb' 'c\\d'\n";
    let mut tree = host::tree("/work");
    let finished = host::interpret(source, "/work", &mut tree, &mut Nothing, Limits::default()).unwrap();
    assert_eq!(finished.stdout.escape_ascii().to_string(), "f1\\ny\\nz\\nn\\na\\tb c\\\\d\\n");
    let plain = host::interpret("[[ a = a ]]", "/work", &mut tree, &mut Nothing, Limits::default()).unwrap();
    assert_eq!(plain.status, 127, "no such command in sh");
}

#[test]
fn an_array_with_a_parenthesis_in_it_is_a_syntax_error() {
    for source in ["a=(x ((1))y)", "a=(((1)))", "a=(x (y))", "a=(- ("] {
        let found = error(&format!("#!/bin/bash\n{source}\n")).kind;
        assert!(matches!(found, ErrorKind::Syntax { .. }), "{source}: {found:?}");
    }
}

#[test]
fn bash_scripts_can_fail_with_any_stage_of_a_pipeline() {
    let body = "false | true; echo $?\nset -o pipefail\nfalse | true; echo $?\n(exit 3) | false | true; echo $?\ntrue | cat; echo $?\n\
                if echo a | grep b | cat; then echo y; else echo n; fi\nset +o pipefail\nfalse | true; echo $?\nset -eo pipefail\nfalse | true\necho unreached\n";
    let mut tree = host::tree("/work");
    let source = format!("#!/bin/bash\n{body}");
    let finished = host::interpret(&source, "/work", &mut tree, &mut Nothing, Limits::default()).unwrap();
    let real = std::process::Command::new("bash").args(["-c", body]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&finished.stdout), String::from_utf8_lossy(&real.stdout));
    assert_eq!((Some(i32::from(finished.status)), finished.stdout.is_empty()), (real.status.code(), false));
    // A reader that ends early would end the writer, or not: that is a matter of time.
    let long = "#!/bin/bash\nset -o pipefail\nfor a in 1 2 3 4 5 6 7 8 9; do printf '%08192d' 0; done | head -n 1\n";
    assert!(matches!(error(long).kind, ErrorKind::Unsupported { .. }));
}
