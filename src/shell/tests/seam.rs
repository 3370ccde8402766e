//! The interface between the interpreter and the commands of its caller.

use std::cell::RefCell;

use vmbake_disk::tree::{Timestamp, Tree};
use vmbake_shell::{
    Call, Commands, Errno, ErrorKind, Event, Files, Follow, Host, Limits, Node, Outcome, Question, Script, Settings,
    TreeFiles, run as run_script,
};

use crate::host;

/// A caller with a small debconf, a command that makes files, and some that end the run.
#[derive(Default)]
struct Caller {
    log: Vec<String>,
    debconf: bool,
}

impl Commands for Caller {
    fn run(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
        let words: Vec<String> = call.args.iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect();
        let name = String::from_utf8_lossy(call.base_name()).into_owned();
        match name.as_str() {
            "db_get" if self.debconf => {
                call.variables.set(b"RET", format!("value of {}", words[0]).as_bytes());
                Some(Outcome::Status(0))
            }
            "adduser" => {
                self.log.push(format!("{}:{} {name} {}", call.script, call.line, words.join(" ")));
                let path = call.path(b"home");
                call.files.create_dir(&path, 0o700).unwrap();
                call.stdout.extend_from_slice(b"added\n");
                call.stderr.extend_from_slice(b"warning\n");
                Some(Outcome::Status(3))
            }
            "upper" => {
                let text = (call.stdin)();
                call.stdout.extend(text.to_ascii_uppercase());
                Some(Outcome::Status(0))
            }
            "environment" => {
                let names: Vec<_> = call.variables.exported().into_keys().collect();
                call.stdout.extend(names.join(&b' '));
                Some(Outcome::Status(0))
            }
            "ssh-keygen" => Some(Outcome::Deferred("keys are made at the first boot".to_owned())),
            "reboot" => Some(Outcome::Refused("an image has no machine".to_owned())),
            "dpkg" => Some(Outcome::Unsupported(words.join(" "))),
            "instead" => {
                call.stdout.extend_from_slice(b"first\n");
                Some(Outcome::Exec(call.args.to_vec()))
            }
            _ => None,
        }
    }

    fn source(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
        self.debconf = call.name == b"/usr/share/debconf/confmodule";
        call.variables.export(b"DEBIAN_HAS_FRONTEND", b"1");
        self.debconf.then_some(Outcome::Status(0))
    }

    fn user_id(&self, _files: &dyn Files, name: &[u8]) -> Option<u32> {
        (name == b"redis").then_some(107)
    }
}

fn run(source: &str, caller: &mut Caller) -> Result<String, ErrorKind> {
    let mut tree = host::tree("/work");
    let finished =
        host::interpret(source, "/work", &mut tree, caller, Limits::default()).map_err(|error| error.kind)?;
    Ok(format!("{}{}", String::from_utf8(finished.stdout).unwrap(), finished.status))
}

#[test]
fn commands_of_the_caller_run_with_files_and_streams() {
    let mut caller = Caller::default();
    let source = "set -e\n/usr/sbin/adduser --system a || echo \"s$?\"\n[ -d home ] && echo dir\nprintf 'a\\nb\\n' | { read x; upper; }\nenvironment";
    assert_eq!(run(source, &mut caller).unwrap(), "added\ns3\ndir\nB\nHOME PATH PWD0");
    assert_eq!(caller.log, ["/work.script:2 adduser --system a"]);
}

#[test]
fn sourced_files_are_asked_for_first() {
    let source = "if true; then\n. /usr/share/debconf/confmodule\nfi\ndb_get x/y\necho \"$RET\"";
    assert_eq!(run(source, &mut Caller::default()).unwrap(), "value of x/y\n0");
    let source = "environment; echo; . /usr/share/debconf/confmodule; environment";
    assert_eq!(run(source, &mut Caller::default()).unwrap(), "HOME PATH PWD\nDEBIAN_HAS_FRONTEND HOME PATH PWD0");
    assert_eq!(run(". /nope/confmodule || :", &mut Caller::default()).unwrap(), "2", "dash ends there");
}

#[test]
fn functions_of_the_script_come_first_and_the_caller_before_programs() {
    let source = "adduser() { echo mine; }\nadduser\ncommand adduser >/dev/null || echo theirs";
    assert_eq!(run(source, &mut Caller::default()).unwrap(), "mine\ntheirs\n0");
}

#[test]
fn the_caller_can_end_a_run() {
    let mut caller = Caller::default();
    assert_eq!(
        run("ssh-keygen -A || true", &mut caller),
        Err(ErrorKind::Deferred { reason: "keys are made at the first boot".to_owned() })
    );
    assert!(matches!(run("if reboot; then :; fi", &mut caller), Err(ErrorKind::Refused { .. })));
    assert_eq!(run("x=$(dpkg --frob)", &mut caller), Err(ErrorKind::Unsupported { what: "--frob".to_owned() }));
}

#[test]
fn a_command_becomes_another_one() {
    let source = "x=1 instead env x=2 sh -c 'echo $x $0; exit 4' name || echo s$?; instead nope || echo s$?; echo a | instead upper";
    assert_eq!(run(source, &mut Caller::default()).unwrap(), "first\n2 name\ns4\nfirst\ns127\nfirst\nA\n0");
}

#[test]
fn names_of_accounts_are_those_of_the_caller() {
    let mut tree = host::tree("/work");
    let source = "touch f g; chown redis f; chown 5:6 g; chown nobody f 2>/dev/null || echo no; stat -c %u f; stat -c %u:%g g; chmod 4755 f; chown 0 f; stat -c %a f; install -o redis -m 600 f h; stat -c %u h; chgrp 9 h; stat -c %g h; id -u redis";
    let finished = host::interpret(source, "/work", &mut tree, &mut Caller::default(), Limits::default()).unwrap();
    assert_eq!(String::from_utf8(finished.stdout).unwrap(), "no\n107\n5:6\n755\n107\n9\n107\n");
}

#[test]
fn accounts_of_the_tree_are_known() {
    let source = "touch f; chown www-data:adm f; stat -c '%U %G %u:%g' f; chown www-data: f; stat -c %g f; id -u www-data; id -g www-data; id -gn www-data; id -Gn www-data; id www-data; id -u; whoami; find . -user www-data; find . -nouser";
    let mut tree = host::tree("/work");
    let finished = host::interpret(source, "/work", &mut tree, &mut host::Nothing, Limits::default()).unwrap();
    let expected = "www-data adm 33:4\n33\n33\n33\nwww-data\nwww-data adm\nuid=33(www-data) gid=33(www-data) groups=33(www-data),4(adm)\n0\nroot\n./f\n";
    assert_eq!(String::from_utf8(finished.stdout).unwrap(), expected);
}

#[test]
fn nothing_outside_of_the_tree_is_reached() {
    let mut tree = host::tree("/work");
    let source = "cd /../..; pwd; ls /..; mkdir -p ../../../x; ln -s ../../../../etc/passwd l; cat l | head -n 1; [ -e /root ] || echo none; echo a > ../../y; ls /y";
    let finished = host::interpret(source, "/work", &mut tree, &mut host::Nothing, Limits::default()).unwrap();
    let stdout = String::from_utf8(finished.stdout).unwrap();
    assert!(stdout.contains("root:x:0:0") && stdout.ends_with("none\n/y\n"), "{stdout}");
    let origin = tree.first_origin();
    let files = TreeFiles::new(&mut tree, Default::default(), origin);
    assert_eq!(files.lookup(b"/x/../x", Follow::No).map(|node| node.is_dir()), Ok(true));
    assert_eq!(files.read(b"/x", 10), Err(Errno::Eisdir));
    assert_eq!(Errno::Enotempty.to_string(), "Directory not empty");
}

/// A caller who cannot say what `SECRET` is, and whether there is `tool`.
#[derive(Default)]
struct Unsure {
    heard: Vec<String>,
}

impl Commands for Unsure {
    fn run(&mut self, _call: &mut Call<'_>) -> Option<Outcome> {
        None
    }

    fn ran(&mut self, event: &Event) {
        let words: Vec<String> = event.words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        self.heard.push(format!("{}:{}={}", event.line, words.join(" "), event.status));
    }

    fn unknown(&self, question: Question<'_>) -> bool {
        match question {
            Question::Value(text) => text.windows(6).any(|window| window == b"SECRET"),
            Question::Program(name) => name == b"tool",
            Question::Unset(_) | Question::Environment(_) | Question::Fields { .. } => false,
        }
    }
}

/// A tree that does not know what is below `/machine`.
struct Incomplete<'t> {
    files: TreeFiles<'t>,
    unknown: RefCell<Option<String>>,
    vacant: Vec<Vec<u8>>,
}

impl<'t> Incomplete<'t> {
    fn new(tree: &'t mut Tree) -> Self {
        let origin = tree.first_origin();
        let mut files = TreeFiles::new(tree, Timestamp::default(), origin);
        files.create_dir(b"/machine", 0o755).unwrap();
        Self { files, unknown: RefCell::default(), vacant: Vec::new() }
    }

    fn check(&self, path: &[u8]) -> Result<(), Errno> {
        let is_vacant = self.vacant.iter().any(|vacant| vacant == path);
        if !path.starts_with(b"/machine/") || is_vacant || self.files.lookup(path, Follow::No).is_ok() {
            return Ok(());
        }
        self.unknown.borrow_mut().get_or_insert_with(|| format!("the file {}", String::from_utf8_lossy(path)));
        Err(Errno::Enoent)
    }
}

impl Files for Incomplete<'_> {
    fn lookup(&self, path: &[u8], follow: Follow) -> Result<Node, Errno> {
        self.check(path)?;
        self.files.lookup(path, follow)
    }

    fn read(&self, path: &[u8], limit: usize) -> Result<Vec<u8>, Errno> {
        self.check(path)?;
        self.files.read(path, limit)
    }

    fn write(&mut self, path: &[u8], content: Vec<u8>, mode: u16) -> Result<(), Errno> {
        self.files.write(path, content, mode)
    }

    fn list(&self, path: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
        if path.starts_with(b"/machine") {
            self.unknown.borrow_mut().get_or_insert_with(|| "the entries of /machine".to_owned());
        }
        self.files.list(path)
    }

    fn read_link(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        self.check(path)?;
        self.files.read_link(path)
    }

    fn create_dir(&mut self, path: &[u8], mode: u16) -> Result<(), Errno> {
        self.check(path)?;
        self.files.create_dir(path, mode)
    }

    fn symlink(&mut self, target: &[u8], path: &[u8]) -> Result<(), Errno> {
        self.check(path)?;
        self.files.symlink(target, path)
    }

    fn hard_link(&mut self, from: &[u8], path: &[u8]) -> Result<(), Errno> {
        self.check(path)?;
        self.files.hard_link(from, path)
    }

    fn remove(&mut self, path: &[u8]) -> Result<(), Errno> {
        self.check(path)?;
        self.files.remove(path)
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), Errno> {
        self.check(from)?;
        self.files.rename(from, to)
    }

    fn set_mode(&mut self, path: &[u8], mode: u16) -> Result<(), Errno> {
        self.check(path)?;
        self.files.set_mode(path, mode)
    }

    fn set_owner(&mut self, path: &[u8], uid: u32, gid: u32, follow: Follow) -> Result<(), Errno> {
        self.check(path)?;
        self.files.set_owner(path, uid, gid, follow)
    }

    fn set_mtime(&mut self, path: &[u8], mtime: Option<(i64, u32)>) -> Result<(), Errno> {
        self.check(path)?;
        self.files.set_mtime(path, mtime)
    }

    fn unknown(&self) -> Option<String> {
        self.unknown.borrow().clone()
    }

    fn destination(&self, path: &[u8]) -> Result<Node, Errno> {
        self.files.lookup(path, Follow::Yes)
    }

    fn make_way(&mut self, path: &[u8]) -> Result<(), Errno> {
        self.vacant.push(path.to_vec());
        self.files.make_way(path)
    }

    fn ensure_dir(&mut self, path: &[u8], mode: u16) -> Result<(), Errno> {
        self.files.ensure_dir(path, mode)
    }
}

/// A caller who notes which of its calls are looked at.
#[derive(Default)]
struct Observed(Vec<bool>);

impl Commands for Observed {
    fn run(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
        (call.name == b"look").then(|| {
            self.0.push(call.is_observed);
            Outcome::Status(0)
        })
    }
}

#[test]
fn the_caller_hears_whether_a_call_is_looked_at() {
    for (source, expected) in [
        ("look", false),
        ("look > /dev/null", false),
        ("{ look; }", false),
        ("f() { look; }; f", false),
        ("look || true", true),
        ("if look; then :; fi", true),
        ("! look", true),
        ("x=$(look)", true),
        ("look | cat", true),
        ("look > f", true),
    ] {
        let mut caller = Observed::default();
        let mut tree = host::tree("/work");
        host::interpret(source, "/work", &mut tree, &mut caller, Limits::default()).unwrap();
        assert_eq!(caller.0, [expected], "{source}");
    }
}

/// The status and output, or why it was given up.
type Ended = Result<(u8, Vec<u8>), ErrorKind>;

fn unsure(source: &str) -> (Ended, Vec<String>) {
    let mut caller = Unsure::default();
    let mut tree = host::tree("/work");
    let mut files = Incomplete::new(&mut tree);
    let script = Script { name: "/work.script", source: source.as_bytes(), args: &[] };
    let settings = Settings { directory: b"/work".to_vec(), ..Settings::default() };
    let result = run_script(&script, &mut Host { files: &mut files, commands: &mut caller }, &settings);
    (result.map(|done| (done.status, done.stdout)).map_err(|error| error.kind), caller.heard)
}

#[test]
fn nothing_depends_on_what_the_caller_cannot_say() {
    for source in [
        "[ -z SECRET ] || true",
        "test SECRET = x || true",
        "x=SECRET; [ $x ] || true",
        "case SECRET in a) ;; esac",
        "x=aSECRET; echo ${x#a}",
        "x=SECRET; echo ${#x}",
        "x=SECRET; echo ${x:-y}",
        "echo SECRET | grep -q x || true",
        "echo SECRET | sed s/S/x/",
        "echo SECRET | tr S x",
        "echo SECRET | awk '{print $1}'",
        "echo SECRET > f; sed -i s/S/x/ f",
        "dirname SECRET/x",
        "[ -e /machine/x ] || true",
        "cat /machine/x || true",
        "grep -q x /machine/x || true",
        "echo x | tee -a /machine/x",
        "echo x >> /machine/x",
        "rm -f /machine/x",
        "touch /machine/x",
        "chmod 600 /machine/x || true",
        "cp /machine/x /work/y || true",
        "[ -n \"$(find /machine/x)\" ] || true",
        "while read line; do :; done < /machine/x || true",
        "cd /machine; echo x >> x",
        "cat < /machine/x || true",
        "sed -i s/a/b/ /machine/x || true",
        ". /machine/x || true",
        "for f in /machine/*; do :; done",
        "echo /machine/x*",
        "case /machine/* in *) ;; esac; [ -z \"$(ls -A /machine)\" ] || true",
        "find /machine -type f -delete || true",
        "find /machine | xargs -r rm -f || true",
        "ls /machine | while read f; do :; done || true",
        "(rm -rf /machine/x) || true",
        "mkdir /machine/x || true",
        "ln -s a /machine/x || true",
        "touch f; ln f /machine/x || true",
        "touch f; cp -n f /machine/x",
        "touch f; cp -u f /machine/x",
        "touch f; mv -n f /machine/x",
        "set -C; echo a > /machine/x || true",
        "trap '[ -e /machine/x ]' EXIT",
        "x=$(cat /machine/x 2>/dev/null) || true",
        "f() { [ -e /machine/x ]; }; f || true",
        "eval 'test -e /machine/x' || true",
        "tool || true",
        "command -v tool || true",
        "which tool || true",
    ] {
        let (result, _) = unsure(source);
        let given_up = matches!(&result, Err(ErrorKind::Unknown { .. } | ErrorKind::UnknownCommand));
        assert!(given_up, "{source}: {result:?}");
    }
}

#[test]
fn what_a_command_makes_whatever_is_there_goes_on() {
    let source = "echo a > /machine/a; echo b >> /machine/a; touch f; cp f /machine/b; mv f /machine/c; mkdir -p /machine/d/e; \
                  install -m 600 /machine/a /machine/f; install -d /machine/g; ln -sf x /machine/l; echo t | tee /machine/t; \
                  sed -i s/a/z/ /machine/a; cat /machine/a; [ -d /machine/d ] && [ -L /machine/l ]";
    assert_eq!(unsure(source).0, Ok((0, b"t\nz\nb\n".to_vec())));
}

#[test]
fn an_answer_that_is_not_known_ends_the_run_at_its_line() {
    let mut tree = host::tree("/work");
    let mut files = Incomplete::new(&mut tree);
    let script = Script { name: "/work.script", source: b"set -e\n:\n[ -e /machine/x ] || :\n:", args: &[] };
    let mut host = Host { files: &mut files, commands: &mut host::Nothing };
    let error = run_script(&script, &mut host, &Settings::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/work.script:3: [ -e /machine/x ]: the result depends on the file /machine/x, which is not known here"
    );
}

#[test]
fn what_the_caller_cannot_say_is_passed_on() {
    let source =
        "x=SECRET; echo \"a $x\" > f; cat f | tee g; cp g h; printf '%s' \"$(cat h)\"; [ -e f ] && other || echo no";
    let (result, heard) = unsure(source);
    assert_eq!(result, Ok((0, b"a SECRET\na SECRETno\n".to_vec())));
    assert!(heard.contains(&"1:cp g h=0".to_owned()) && heard.contains(&"1:other=127".to_owned()), "{heard:?}");
}
