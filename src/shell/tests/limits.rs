//! A script that loops, recurses or writes without an end stops with an error, soon and in the stack that a thread has.

use std::time::{Duration, Instant};

use vmbake_shell::{ErrorKind, Files, Limits, TreeFiles};

use crate::host::{self, Nothing};

fn limit(source: &str) -> &'static str {
    let mut tree = host::tree("/work");
    let begin = Instant::now();
    let kind = host::interpret(source, "/work", &mut tree, &mut Nothing, Limits::default()).unwrap_err().kind;
    // Minutes on no machine; seconds on a busy one.
    assert!(begin.elapsed() < Duration::from_secs(120), "{source}");
    match kind {
        ErrorKind::Limit { what, .. } => what,
        other => panic!("{source}: {other:?}"),
    }
}

#[test]
fn endless_scripts_stop() {
    for (source, what) in [
        ("while :; do :; done", "steps"),
        ("until false; do continue; done", "steps"),
        ("f() { f; }; f", "nested calls"),
        ("f() { if true; then (f); fi; }; f", "nested commands"),
        ("f() { x=$(f); }; f", "nested calls"),
        ("eval 'eval \"eval : \"'; x='eval \"$x\"'; eval \"$x\"", "nested calls"),
        ("echo '. ./f' > f; . ./f", "nested calls"),
        ("printf '#!/bin/sh\\n./s\\n' > s; chmod 755 s; ./s", "nested calls"),
        ("x=aaaaaaaa; while :; do x=$x$x; done", "bytes of variables"),
        (
            "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done",
            "bytes of one value or output",
        ),
        ("x=$(seq 1 200000); for i in $x; do :; done", "fields"),
        ("printf '%999999999s' a > /dev/null", "bytes of one value or output"),
        ("i=0; while :; do i=$((i+1)); eval \"v$i=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"; done", "bytes of variables"),
        ("echo a > f; while :; do cat f f > g; cat g g > f; done", "bytes of one value or output"),
        ("trap 'while :; do :; done' EXIT", "steps"),
        ("seq 1 99999999999", "steps"),
        ("echo aa | sed ':a;s/a/a/;ta'", "steps"),
        ("awk 'BEGIN { while (1) x++ }'", "bytes of work"),
        ("awk 'BEGIN { for (;;); }'", "bytes of work"),
        ("awk 'BEGIN { do ; while (1) }'", "bytes of work"),
        ("awk 'BEGIN { x = \"a\"; while (1) x = x x }'", "bytes of variables"),
        ("awk 'BEGIN { while (1) a[i++] = \"aaaaaaaaaaaaaaaaaaaaaaaa\" }'", "bytes of variables"),
        ("awk 'BEGIN { while (1) a[i++] }'", "bytes of variables"),
        ("awk 'BEGIN { while (1) $0 = $0 \"aaaaaaaaaaaaaaaa\" $0 }'", "bytes of one value or output"),
        ("awk 'BEGIN { x = \"aaaa\"; while (1) gsub(/a/, \"&&\", x) }'", "bytes of variables"),
        (
            "awk 'BEGIN { while (1) print \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\" }'",
            "bytes of one value or output",
        ),
        ("awk 'BEGIN { printf \"%999999999d\", 1 }'", "bytes of one value or output"),
        ("awk 'BEGIN { $999999999 = 1 }'", "fields"),
        ("awk 'BEGIN { NF = 999999999 }'", "fields"),
        ("awk 'BEGIN { while (1) if (\"a\" ~ \"a\" i++) n++ }'", "bytes of work"),
    ] {
        let found = limit(source);
        let calls = |what: &str| matches!(what, "nested calls" | "nested commands");
        assert!(found == what || found == "bytes of work" || (calls(found) && calls(what)), "{source}: {found}");
    }
}

#[test]
fn deep_syntax_is_refused() {
    for source in [
        format!("{} a {}", "{ ".repeat(20_000), "; }".repeat(20_000)),
        "( ".repeat(20_000),
        "$(".repeat(20_000),
        "${a:-".repeat(20_000),
        "\"$(".repeat(20_000),
        "$((".repeat(20_000),
        "if ".repeat(20_000),
        "f() ".repeat(20_000) + "{ :; }",
        "`\\`".repeat(20_000),
        format!("[ {} a ]", "! ".repeat(20_000)),
        format!("[ a -a {} a ]", "( ".repeat(20_000).replace('(', "\\(")),
        format!("echo $(({}1))", "-".repeat(20_000)),
        format!("echo $((1{}))", "?1:1".repeat(20_000)),
        format!("find . {} -true", "! ".repeat(20_000)),
        format!("expr {} 1", "\\( ".repeat(20_000)),
        format!("grep '{}' /etc/passwd", "\\(".repeat(20_000)),
        format!("awk 'BEGIN {{ print {}1{} }}'", "(".repeat(20_000), ")".repeat(20_000)),
        format!("awk 'BEGIN {{ print {}1 }}'", "-".repeat(20_000)),
        format!("awk 'BEGIN {{ print {}1 }}'", "$".repeat(20_000)),
        format!("awk 'BEGIN {{ print 1{} }}'", "+1".repeat(3_000)),
        format!("awk 'BEGIN {{ print 1{} }}'", "+1".repeat(20_000)),
        format!("awk 'BEGIN {{ print 1{} }}'", " \"a\"".repeat(20_000)),
        format!("awk 'BEGIN {{ print 1{} }}'", "^1".repeat(20_000)),
        format!("awk 'BEGIN {{ print 1{} }}'", "?1:1".repeat(20_000)),
        format!("awk 'BEGIN {{ {}1 }}'", "x=".repeat(20_000)),
        format!("awk 'BEGIN {{ {}1 }}'", "if (1) ".repeat(20_000)),
        format!("awk 'BEGIN {} 1'", "{".repeat(20_000)),
    ] {
        let mut tree = host::tree("/work");
        let result = host::interpret(&source, "/work", &mut tree, &mut Nothing, Limits::default());
        let error = result.expect_err(&source[..20]);
        assert!(
            matches!(error.kind, ErrorKind::Limit { .. } | ErrorKind::Syntax { .. } | ErrorKind::Unsupported { .. }),
            "{:?}: {error:?}",
            &source[..20]
        );
    }
}

#[test]
fn nested_calls_of_nested_commands_fit_the_stack_of_a_thread() {
    let (begin, end) = ("if :; then case a in a) for i in 1; do { ( ", " ) }; done;; esac; fi");
    let source = format!("f() {{ {} f {}; }}; f", begin.repeat(6), end.repeat(6));
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
        let mut tree = host::tree("/work");
        host::interpret(&source, "/work", &mut tree, &mut Nothing, Limits::default()).map(|finished| finished.status)
    });
    let result = thread.unwrap().join().unwrap();
    let error = result.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Limit { .. }), "{error:?}");
}

#[test]
fn patterns_and_expressions_take_bounded_time() {
    let a = "a".repeat(5_000);
    for source in [
        format!("case {a} in {}b) ;; esac", "*a".repeat(200)),
        format!("x={a}; echo ${{x##{}b}}", "*a".repeat(200)),
        format!("echo {a} | grep -E '{}b'", "(a*)*".repeat(20)),
        format!("echo {a} | sed -E 's/(a|aa)+(a|aa)+b/x/g'"),
        format!("echo {a} | grep -oE '(a|b)*c'"),
    ] {
        let mut tree = host::tree("/work");
        let begin = Instant::now();
        let _ = host::interpret(&source, "/work", &mut tree, &mut Nothing, Limits::default());
        assert!(begin.elapsed() < Duration::from_secs(60), "{}", &source[source.len() - 60..]);
    }
}

/// A long chain of operators is a deep tree, which is dropped by recursion.
#[test]
fn programs_of_awk_in_nested_calls_fit_the_stack_of_a_thread() {
    let (begin, end) = ("if :; then case a in a) for i in 1; do { ( ", " ) }; done;; esac; fi");
    let chain = format!("awk 'BEGIN {{ if (0) print 1{} }}'", "+1".repeat(1_900));
    let deep = format!("awk 'BEGIN {{ print {}1{} }}'", "(".repeat(90), ")".repeat(90));
    for program in [chain, deep] {
        let source = format!("f() {{ {program}; {} f {}; }}; f", begin.repeat(6), end.repeat(6));
        let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
            let mut tree = host::tree("/work");
            host::interpret(&source, "/work", &mut tree, &mut Nothing, Limits::default()).map(|found| found.status)
        });
        let error = thread.unwrap().join().unwrap().unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Limit { what: "nested commands", .. }), "{error:?}");
    }
}

#[test]
fn endless_scripts_of_bash_stop() {
    for (source, what) in [
        ("x='a[x]'; echo $((x))", "nested expressions"),
        ("x=x; echo $((x))", "nested expressions"),
        ("i=0; while :; do a[i++]=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done", "bytes of variables"),
        ("a=(x); while :; do a+=(\"${a[@]}\"); done", "fields"),
        ("declare -A m; i=0; while :; do m[k$((i++))]=v; done", "bytes of variables"),
        ("x=a; while :; do x+=$x; done", "bytes of variables"),
        ("x=a; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do x+=$x; done; echo ${x//*z/}", "bytes of work"),
        (
            "x=a; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do x+=$x; done; [[ $x == !(b)!(c) ]]",
            "bytes of work",
        ),
        ("x=a; while :; do x=${x//a/aa}; done", "bytes of variables"),
        ("printf -v x '%999999999s' a", "bytes of one value or output"),
        ("mapfile a < <(seq 1 999999)", "steps"),
    ] {
        assert_eq!(limit(&format!("#!/bin/bash\n{source}\n")), what, "{source}");
    }
}

/// Only commands that go through the content of a large file are refused; others know it by its size.
#[test]
fn large_files_are_read_up_to_a_limit() {
    let limits = Limits { file_bytes: 100, ..Limits::default() };
    let run = |source: &str| {
        let mut tree = host::tree("/work");
        let origin = tree.first_origin();
        let mut files = TreeFiles::new(&mut tree, Default::default(), origin);
        files.write(b"/work/large", vec![b'a'; 101], 0o644).unwrap();
        host::interpret(source, "/work", &mut tree, &mut Nothing, limits)
    };
    let source = "cp large a; cp -a a b; mv b c; ln c d; ln -s d e; chmod 600 e; chown 1:2 d; touch d; install -m 600 d f; [ -s f ] || exit; \
        stat -c %s a c d f; rm c d; test -e c || echo *; find . -type f -size +0 | wc -l";
    let found = run(source).unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "101\n101\n101\n101\na e f large\n3\n");
    for source in [
        "cat large",
        "sha256sum large",
        "cat < large",
        "read x < large",
        "echo x >> large",
        "cat <> large",
        ". ./large",
    ] {
        let error = run(source).unwrap_err();
        let is_kind = matches!(error.kind, ErrorKind::Limit { .. } | ErrorKind::Unsupported { .. });
        assert!(is_kind && error.to_string().contains("large"), "{source}: {error}");
    }
}
