//! The machine that scripts of a profile see: their commands in, the result of each out.
//!
//! Nothing is executed or downloaded. `vmbake_shell` applies commands that change files to a tree. Packages, downloads and units are
//! recorded. An unknown command stops the import.

mod arguments;
mod fetch;
mod left;
mod packages;
mod phase;
mod programs;
mod sudo;
mod unit_file;
pub(super) mod units;

use std::collections::{BTreeMap, BTreeSet};

use vmbake_shell::{Call, Commands, Event, Files, Host, Outcome, Question, Script, Settings, ShellError};

pub(super) use packages::decides_packages;

pub(super) use fetch::{Fetched, Unpacked, What, has_token, token_of};

use super::base::SUDO;
use super::error::CommandLocation;
use super::program::{Phase, Program};
use super::report::{Statement, StatementClass};
use super::rules::Rules;
use super::runtime::{is_marked, legible, may_divide, own_path, unknown_text};

/// Files of accounts.
const PASSWD: &[u8] = b"/etc/passwd";
const GROUP: &[u8] = b"/etc/group";
/// Variables that systemd, cloud-init or sudo may set for a script.
const SESSION: [&str; 18] = [
    "INSTANCE_ID",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "MAIL",
    "MEMORY_PRESSURE_WATCH",
    "MEMORY_PRESSURE_WRITE",
    "NOTIFY_SOCKET",
    "SHELL",
    "SUDO_COMMAND",
    "SUDO_GID",
    "SUDO_UID",
    "SUDO_USER",
    "SYSTEMD_EXEC_PID",
    "TERM",
    "USER",
];
/// Programs whose output differs between machines.
const PRINTING: [&[u8]; 9] = [
    b"apt",
    b"apt-get",
    b"apt-mark",
    b"cloud-init",
    b"sha256sum",
    b"sha512sum",
    b"sysctl",
    b"tar",
    b"update-ca-certificates",
];
/// Programs that write nothing to standard error when they succeed.
const WITHOUT_MESSAGES: [&[u8]; 6] = [b"base64", b"chown", b"dpkg", b"jq", b"lsb_release", b"sleep"];
/// Options with which they print nothing.
const SILENT: [&[u8]; 4] = [b"--quiet", b"--status", b"-q", b"-qq"];
/// The directories of programs.
const PATHS: [&str; 4] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];
/// The search path of services of systemd in Debian 13, and so of cloud-init: their environment has no more.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin";

/// What commands came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Effects {
    /// Packages, by the names that the archive of the system has for them.
    pub(super) packages: BTreeSet<String>,
    /// Those whose recommended packages come as well.
    pub(super) recommends: BTreeSet<String>,
    /// Those that dpkg installs without a question about configuration files that exist.
    pub(super) keep_conffiles: BTreeSet<String>,
    /// Packages that are held.
    pub(super) held: BTreeSet<String>,
    pub(super) fetched: Vec<Fetched>,
    pub(super) unpacked: Vec<Unpacked>,
    /// Lists that checksums were compared by, with what is fetched in them.
    pub(super) lists: BTreeSet<Vec<u8>>,
    pub(super) enabled: BTreeSet<String>,
    pub(super) disabled: BTreeSet<String>,
    pub(super) masked: BTreeSet<String>,
    /// Units that the profile does not define and that were last stopped, or started by the verb.
    pub(super) foreign_stopped: BTreeSet<String>,
    pub(super) foreign_started: BTreeMap<String, &'static str>,
    /// Units that are started, in the order in which they first are.
    pub(super) started: Vec<String>,
    pub(super) modules: BTreeSet<String>,
    /// Programs that the first boot runs.
    pub(super) commands: Vec<Vec<String>>,
    /// Units that were run here.
    pub(super) done: BTreeMap<String, units::Done>,
    /// Scripts that were run here, by their paths.
    pub(super) scripts: BTreeSet<String>,
    pub(super) statements: Vec<Statement>,
}

impl Effects {
    /// The effects without how they came about: which commands, scripts and units ran.
    pub(super) fn lasting(&self) -> Self {
        Self { done: BTreeMap::new(), scripts: BTreeSet::new(), statements: Vec::new(), ..self.clone() }
    }
}

/// A status, and what was written to standard error.
pub(super) type Ran = Result<(u8, Vec<u8>), Box<ShellError>>;

pub(super) struct Machine<'a> {
    pub(super) rules: &'a Rules,
    /// What `uname -m` prints.
    pub(super) machine: &'static str,
    /// Scripts that only a machine can run.
    pub(super) deferred: &'a BTreeSet<String>,
    /// Names of the secrets that OSM keeps: the provisioning, and the kubeconfig to begin with.
    pub(super) secrets: [String; 2],
    /// The phase that has not begun.
    pub(super) next: Option<&'a Phase>,
    pub(super) effects: Effects,
    /// Scripts of the profile that each time were left to the machine.
    pub(super) left: Vec<Vec<String>>,
    /// Why everything was given up, in a script that another one runs.
    pub(super) failure: Option<ShellError>,
    /// The last command that failed, with its status.
    pub(super) failed: Option<(CommandLocation, u8)>,
    fails: bool,
    /// What the last script that failed wrote to standard error.
    pub(super) stderr: Vec<u8>,
    /// Whether everything was given up because a command failed.
    pub(super) is_broken: bool,
    /// Programs that units and cloud-init start.
    pub(super) entries: BTreeSet<String>,
    /// Units that run now.
    running: Vec<String>,
    /// The result of the running command.
    current: Option<(StatementClass, String)>,
    by_sudo: Option<(StatementClass, String)>,
    sleeps: BTreeMap<(String, u32), u32>,
    /// Whether a unit runs whose commands systemd ends after some time.
    is_limited: bool,
    /// Whether every program that is known here may be there, although the tree does not have it.
    pub(super) has_all_programs: bool,
}

impl<'a> Machine<'a> {
    pub(super) fn new(program: &Program<'a>, deferred: &'a BTreeSet<String>) -> Self {
        let [_, next] = program.phases;
        Self {
            rules: program.rules,
            machine: program.machine,
            deferred,
            secrets: program.secrets.clone(),
            next: Some(next),
            effects: Effects::default(),
            left: Vec::new(),
            failure: None,
            failed: None,
            fails: false,
            stderr: Vec::new(),
            is_broken: false,
            entries: BTreeSet::new(),
            running: Vec::new(),
            current: None,
            by_sudo: None,
            sleeps: BTreeMap::new(),
            is_limited: false,
            has_all_programs: true,
        }
    }

    /// Runs a script of dash with these variables; gives the status and what was written to standard error.
    fn shell(
        &mut self,
        files: &mut dyn Files,
        (name, text): (&str, &str),
        variables: Vec<(Vec<u8>, Vec<u8>)>,
        exits_on_failure: bool,
    ) -> Ran {
        let mut environment = BTreeMap::from([(b"PATH".to_vec(), PATH.as_bytes().to_vec())]);
        environment.extend(variables);
        // cloud-init runs a file whose name has the digits of the machine's instance.
        let zero = Some(own_path().into_bytes());
        let settings = Settings { environment, exits_on_failure, zero, ..Settings::default() };
        let script = Script { name, source: text.as_bytes(), args: &[] };
        let mut host = Host { files, commands: self };
        vmbake_shell::run(&script, &mut host, &settings).map(|done| (done.status, done.stderr))
    }

    /// Records the result of the running command.
    fn note(&mut self, class: StatementClass, reason: impl Into<String>) -> Outcome {
        self.current = Some((class, reason.into()));
        Outcome::Status(0)
    }

    fn dropped(&mut self, reason: &str) -> Outcome {
        self.note(StatementClass::Dropped, reason)
    }

    /// What a rule says of a command.
    fn by_rule(&mut self, words: &str) -> Option<Outcome> {
        let rule = self.rules.of(words)?;
        let rule = rule.clone();
        if let Some(reason) = rule.drop {
            return Some(self.note(StatementClass::Dropped, format!("by a rule: {reason}")));
        }
        if let Some(how) = rule.user_data {
            return Some(self.note(StatementClass::UserData, format!("by a rule: {how}")));
        }
        self.effects.commands.extend(rule.first_boot);
        Some(self.note(StatementClass::FirstBoot, "by a rule"))
    }

    /// A program that the base image does not have, before packages come.
    fn missing(&self, call: &Call<'_>) -> Option<Outcome> {
        let name = call.name;
        let exists = |path: &[u8]| call.files.destination(path).is_ok();
        let is_there = match name.contains(&b'/') {
            true => exists(name),
            false => PATHS.iter().any(|directory| exists(&[directory.as_bytes(), b"/", name].concat())),
        };
        let what = || format!("the base image does not contain the program {}", text(name));
        (!self.has_all_programs && !is_there).then(|| Outcome::Refused(what()))
    }
}

impl Commands for Machine<'_> {
    fn run(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
        let words = words(call.name, call.args);
        let commands = self.effects.commands.len();
        if let Some(outcome) = self.by_rule(&words) {
            // What it would read is read.
            (call.stdin)();
            if self.begins(call) {
                return Some(Outcome::Unsupported("a rule for the command that starts the provisioning".to_owned()));
            }
            if self.effects.commands.len() > commands {
                self.left.push(Vec::new());
                call.files.may_have_more(b"/");
                self.has_all_programs = true;
            }
            return Some(outcome);
        }
        if let Some(outcome) = self.deferred_script(call) {
            return Some(outcome);
        }
        if let Some(outcome) = self.missing(call).filter(|_| call.is_system()) {
            return Some(outcome);
        }
        if !call.is_system() {
            return None;
        }
        let outcome = self.known(call)?;
        let is_done = matches!(outcome, Outcome::Status(0) | Outcome::Assumed);
        if is_done && call.is_captured && call.stdout.is_empty() && prints(call) {
            let name = String::from_utf8_lossy(call.base_name()).into_owned();
            call.stdout.extend_from_slice(unknown_text(&format!("output-of-{name}")).as_bytes());
        }
        if is_done && call.are_errors_captured && !WITHOUT_MESSAGES.contains(&call.base_name()) {
            let name = String::from_utf8_lossy(call.base_name()).into_owned();
            call.stderr.extend_from_slice(unknown_text(&format!("messages-of-{name}")).as_bytes());
        }
        Some(outcome)
    }

    fn ran(&mut self, event: &Event) {
        let Some((name, args)) = event.words.split_first() else { return };
        let place = CommandLocation {
            script: event.script.to_string(),
            line: event.line,
            command: legible(&words(name, args)),
        };
        if event.status == 0 {
            self.fails = false;
        } else if event.script.as_ref() != SUDO {
            // Scripts that end by a command that failed fail, too: the first one says why.
            if !self.fails {
                self.failed = Some((place.clone(), event.status));
            }
            self.fails = true;
        }
        if event.script.starts_with('/') {
            self.effects.scripts.insert(event.script.to_string());
        }
        let found = self.current.take();
        if event.script.as_ref() == SUDO {
            self.by_sudo = found.or(self.by_sudo.take());
            return;
        }
        let by_sudo = if name == b"sudo" { self.by_sudo.take() } else { None };
        let (class, reason) = found.or(by_sudo).unwrap_or((StatementClass::Baked, String::new()));
        self.effects.statements.push(Statement { place, class, reason });
    }

    fn unknown(&self, question: Question<'_>) -> bool {
        match question {
            Question::Value(text) => is_marked(text) || has_token(text),
            Question::Program(_) => true,
            Question::Unset(name) => SESSION.iter().any(|known| known.as_bytes() == name),
            Question::Environment(prefix) => SESSION.iter().any(|known| known.as_bytes().starts_with(prefix)),
            Question::Fields { text, is_alone } => may_divide(text, is_alone),
        }
    }

    fn substituted(&self, output: Vec<u8>) -> Vec<u8> {
        fetch::value(output)
    }

    fn user_id(&self, files: &dyn Files, name: &[u8]) -> Option<u32> {
        account_id(files, PASSWD, name)
    }

    fn group_id(&self, files: &dyn Files, name: &[u8]) -> Option<u32> {
        account_id(files, GROUP, name)
    }

    fn user_name(&self, files: &dyn Files, id: u32) -> Option<Vec<u8>> {
        if id == 0 { Some(b"root".to_vec()) } else { base_account(files, PASSWD) }
    }

    fn group_name(&self, files: &dyn Files, id: u32) -> Option<Vec<u8>> {
        if id == 0 { Some(b"root".to_vec()) } else { base_account(files, GROUP) }
    }

    fn machine(&self) -> Option<&'static str> {
        Some(self.machine)
    }
}

/// Bytes as a text.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The first argument.
fn first<'a>(call: &Call<'a>) -> Option<&'a [u8]> {
    call.args.first().map(Vec::as_slice)
}

/// A command as one text.
fn words(name: &[u8], args: &[Vec<u8>]) -> String {
    let all: Vec<String> = std::iter::once(name)
        .chain(args.iter().map(Vec::as_slice))
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    all.join(" ")
}

/// Whether a program prints something that is not known here.
fn prints(call: &Call<'_>) -> bool {
    PRINTING.contains(&call.base_name()) && !call.args.iter().any(|arg| SILENT.contains(&arg.as_slice()))
}

/// Accounts are those of the base: their file is not known, and the run is given up.
fn base_account<T>(files: &dyn Files, path: &[u8]) -> Option<T> {
    let _ = files.read(path, 0);
    None
}

/// The id of root; no account of Debian has a name of digits alone.
fn account_id(files: &dyn Files, path: &[u8], name: &[u8]) -> Option<u32> {
    match name {
        b"root" => Some(0),
        name if name.iter().all(u8::is_ascii_digit) => None,
        _ => base_account(files, path),
    }
}

/// The variables that units of OSM read from `/etc/environment`.
fn assignments(files: &dyn Files) -> Vec<(Vec<u8>, Vec<u8>)> {
    const LARGEST: usize = 64 << 10;
    let text = files.read(b"/etc/environment", LARGEST).unwrap_or_default();
    let line = |line: &[u8]| {
        let at = line.iter().position(|byte| *byte == b'=')?;
        let (name, value) = line.split_at(at);
        (!name.is_empty() && !name.starts_with(b"#")).then(|| (name.to_vec(), value[1..].to_vec()))
    };
    text.split(|byte| *byte == b'\n').filter_map(line).collect()
}
