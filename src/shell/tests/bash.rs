//! Compares bash scripts with the real bash.

use std::fs;
use std::path::Path;
use std::process::Command;

use vmbake_shell::ErrorKind;

use crate::host;

/// Bodies of scripts. Each prints something, so that one that is not run cannot pass.
const BODIES: [&str; 24] = [
    "cat <<<word",
    "x='two  words'; cat <<<$x; cat <<<\"$x\"",
    "cat <<< \"a\nb\"; cat <<<''",
    "cat <<<\"$(printf 'a\\n\\n')\"; cat <<<$(echo '*')",
    "cat <<<'$HOME `x`'; cat <<<\"$HOME\"; cat <<<~",
    "touch a b; cat <<<*; cat <<<\"$*\"",
    "read x y <<<'one two three'; echo \"$x,$y\"",
    "cat <<<a <<<b; cat <<A <<<c\nlost\nA\ncat <<<d <<A\nkept\nA",
    "while read -r line; do echo \"[$line]\"; done <<<a\"b\"",
    "f() { cat; }; f <<<in; { cat; cat; } <<<once; (cat) <<<sub",
    "cat 3<<<x <&3; if grep -q b <<<abc; then echo yes; fi; grep -q z <<<abc || echo no",
    "set -euo pipefail; y=$(cat <<<a | tr a b); echo \"$y\"; cat <<<\"${none-}\"",
    "echo 'v=1; echo in' >env; source ./env; echo \"$v $?\"",
    "echo 'return 3; echo unreached' >env; source ./env; echo $?; source ./env || echo failed",
    "source ./nope; echo $?; source ./ ; echo $?",
    "set -e; source ./nope || echo caught; echo next; source ./nope; echo unreached",
    "echo 'A=\"b c\"' >env; f() { source ./env; echo \"$A $1\"; }; f x; command -v source; source /dev/null; echo $?",
    "source() { echo \"mine $1\"; }; source ./nope",
    "x=; if [[ -z $x && -n a ]]; then echo y; fi; [[ -n $x || b != a ]] && echo z; [[ $x = '' ]]; echo $?",
    "v='a b'; [[ $v = a* ]] && echo glob; [[ $v == \"a*\" ]] || echo literal; [[ ! -z $v ]] && echo set",
    "if [[ $(echo -e \"1.10\\n1.9\" | sort | head -n1) = \"1.10\" ]]; then echo older; else echo newer; fi",
    "set -xeuo pipefail; echo -e 'a\\tb\\\\c'; false | true; echo unreached",
    "set -o pipefail; false | cat; echo $?; set +o pipefail; false | cat; echo $?",
    "arch=${HOST_ARCH-}; for a in x y; do cat <<<\"$a$arch\" >>sums; done; cat sums; cd /; cd - >/dev/null; cat <<<\"$a\"",
];

#[test]
fn scripts_of_bash_do_what_they_do_below_bash() {
    if !Command::new("bash").args(["-c", ":"]).status().is_ok_and(|status| status.success()) || !host::has_dash() {
        return crate::skip::skip("the shell compared with bash: bash or dash is missing");
    }
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let mut differing = 0;
    for (number, body) in BODIES.iter().enumerate() {
        let directory = root.join(format!("{number}"));
        let source = format!("#!/bin/bash\n{body}\n");
        let expected = host::below("bash", &source, &directory);
        assert!(!expected.stdout.is_empty(), "{body}");
        let found = host::ours(&source, directory.to_str().unwrap());
        if found.as_ref() != Ok(&expected) {
            differing += 1;
            println!("--- {body}\n  bash {expected:?}\n  ours {found:?}");
        }
    }
    assert_eq!(differing, 0, "of {} bodies", BODIES.len());
}

fn kind(source: &str) -> ErrorKind {
    host::ours(source, "/work").unwrap_err().kind
}

#[test]
fn scripts_of_sh_have_none_of_it() {
    assert!(matches!(kind("#!/bin/sh\ncat <<<a"), ErrorKind::Syntax { .. }));
    let left = host::ours("#!/bin/sh\necho 'echo in' >env\nsource ./env\ncommand -v source\necho $?", "/work").unwrap();
    assert_eq!(left.stdout, "127\\n", "no such command");
}

#[test]
fn a_script_of_the_tree_has_its_own_language() {
    let source = "#!/bin/sh\nprintf '#!/bin/bash\\ncat <<<inner\\n' >f; chmod +x f; ./f";
    assert_eq!(host::ours(source, "/work").unwrap().stdout, "inner\\n");
}

/// What is refused, and the line.
const REFUSED: [(&str, u32); 23] = [
    ("touch f\ncoproc cat", 2),
    ("touch f\nselect x in a b; do :; done", 2),
    ("touch f\ntime true", 2),
    ("touch f\nif false; then\n  sleep 1 &\nfi", 3),
    ("touch f\nf() {\n  echo a > >(cat)\n}", 3),
    ("touch f\n: $(trap : DEBUG)", 2),
    ("touch f\nfalse && shopt -s extglob", 2),
    ("touch f\nset -o posix", 2),
    ("touch f\nset -m", 2),
    ("touch f\nenable -n echo", 2),
    ("touch f\nexec -a x true", 2),
    ("touch f\ncat <<E\na\n$(complete x)\nE", 4),
    ("touch f\necho $(cat <<E\na\nE\necho b; echo c)", 5),
    ("touch f\neval 'echo a\ncoproc cat'", 3),
    ("touch f\ntrap 'select x in a; do :; done' EXIT", 2),
    ("touch f\nif false; then bash -c \"eval 'time true'\"; fi", 2),
    ("touch f\nbash -ec 'fc'", 2),
    ("touch f\n((echo a)\n(echo b))", 2),
    ("touch f\nx='a\nb'; echo 'c\nd' $(\nfc)", 5),
    ("touch f\nx=1 x10=2; echo {$x,b}10", 2),
    ("touch f\necho {$,b}x", 2),
    ("touch f\na=(1\n[3]={a,b})", 3),
    ("touch f\ncat <<E\n${x/b/$(echo q)}\nE", 2),
];

#[test]
fn what_is_not_implemented_is_refused_before_the_first_command() {
    for (text, line) in REFUSED {
        let mut tree = host::tree("/work");
        let source = format!("#!/bin/bash\n{text}\n");
        let found = host::interpret(&source, "/work", &mut tree, &mut host::Nothing, Default::default()).unwrap_err();
        assert!(matches!(found.kind, ErrorKind::Unsupported { .. }), "{text}: {found:?}");
        assert_eq!(found.line, line + 1, "{text}: {found}");
        assert!(tree.resolve(b"/work/f").is_err(), "{text}");
    }
}

#[test]
fn messages_have_the_text_of_bash_where_they_are_kept() {
    for (text, expected) in [
        ("(die) 2>&1 | cat", ": line 2: die: command not found\\n"),
        ("x=$(./die 2>&1); echo \"$x\"", ": line 2: ./die: No such file or directory\\n"),
        ("{ cat <none; } 2>log; cat log", ": line 2: none: No such file or directory\\n"),
        ("(cd none) 2>&1 | cat", ": line 2: cd: none: No such file or directory\\n"),
        ("(set -u; echo $none) 2>&1 | cat", ": line 2: none: unbound variable\\n"),
    ] {
        let left = host::ours(&format!("#!/bin/bash\n{text}"), "/work").unwrap();
        assert!(left.stdout.ends_with(expected), "{text}: {}", left.stdout);
    }
    for text in ["readonly r=1; (declare r=2) 2>log", "x=$( ((1/0)) 2>&1 )", "(shopt -s none) 2>&1 | cat"] {
        assert!(matches!(kind(&format!("#!/bin/bash\n{text}")), ErrorKind::Unsupported { .. }), "{text}");
    }
}

#[test]
fn what_follows_an_exit_is_not_read() {
    let left = host::ours("#!/bin/bash\necho a; exit 3\n\u{0}(((`'\"\n", "/work").unwrap();
    assert_eq!((left.status, left.stdout.as_str()), (Some(3), "a\\n"));
}

/// The snippets below `bash/`, with names. Each begins with a line `=== name`.
fn snippets() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bash");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let group = file.file_stem().unwrap().to_string_lossy().into_owned();
        for part in format!("\n{}", fs::read_to_string(&file).unwrap()).split("\n=== ").skip(1) {
            let (name, text) = part.split_once('\n').unwrap_or((part, ""));
            found.push((format!("{group}: {name}"), format!("#!/bin/bash\n{text}\n")));
        }
    }
    found
}

#[test]
fn snippets_of_bash_do_what_they_do_below_bash() {
    if !Command::new("bash").args(["-c", ":"]).status().is_ok_and(|status| status.success()) || !host::has_dash() {
        return crate::skip::skip("the shell compared with bash: bash or dash is missing");
    }
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let snippets = snippets();
    let mut differing = 0;
    for (number, (name, source)) in snippets.iter().enumerate() {
        let directory = root.join(format!("{number}"));
        let expected = host::below("bash", source, &directory);
        let found = host::ours(source, directory.to_str().unwrap());
        if found.as_ref() != Ok(&expected) {
            differing += 1;
            println!("--- {name}\n{source}\n  bash {expected:?}\n  ours {found:?}");
        }
    }
    assert_eq!(differing, 0, "of {} snippets", snippets.len());
}

#[test]
fn commands_as_text_are_parsed_before_the_first_command() {
    for text in ["eval 'echo ('", "trap 'if' EXIT", "bash -c 'echo a | | b'", "sh -c 'echo ${'", "eval echo '\"a'"] {
        let mut tree = host::tree("/work");
        let source = format!("#!/bin/bash\ntouch f\n{text}\n");
        let found = host::interpret(&source, "/work", &mut tree, &mut host::Nothing, Default::default()).unwrap_err();
        assert!(matches!(found.kind, ErrorKind::Syntax { .. }), "{text}: {found:?}");
        assert_eq!(found.line, 3, "{text}: {found}");
        assert!(tree.resolve(b"/work/f").is_err(), "{text}");
    }
}

#[test]
fn whole_scripts_of_bash_are_checked_without_running_them() {
    let parses = |text: &str| {
        let source = format!("#!/bin/bash\n{text}\n");
        vmbake_shell::parses(&vmbake_shell::Script { name: "script", source: source.as_bytes(), args: &[] })
    };
    assert_eq!(parses("shopt -s extglob\ncase a in @(a|b)) : ;; esac\nexit\n((("), Ok(()));
    assert_eq!(parses("echo a\ncoproc cat").unwrap_err().line, 3);
    assert_eq!(parses("echo a\n\nfi").unwrap_err().line, 4);
}

#[test]
fn what_depends_on_how_a_stage_was_written_is_refused() {
    assert!(matches!(
        kind("#!/bin/bash\necho a | while read l; do trap 'echo T' EXIT; done"),
        ErrorKind::Unsupported { .. }
    ));
    assert!(matches!(
        kind("#!/bin/bash\nf() { local v=1; false; }; (trap 'echo $v' EXIT; set -e; f)"),
        ErrorKind::Unsupported { .. }
    ));
}
