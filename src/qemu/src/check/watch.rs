//! A machine is watched while it runs: a child process and what it says enter, verdicts leave, and the machine is off.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::console::Console;
use super::guest::{self, GuestReport};
use super::{Check, CheckVerdict, Judge, Monitor, State, probe};
use vmbake_common::hint::Hint;
use vmbake_common::message::FileError;
use vmbake_common::progress::{self, Progress};

/// Between two questions from outside.
const PAUSE: Duration = Duration::from_secs(1);
/// For the lines that explain why a boot has failed.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// For an orderly end.
const SHUTDOWN: Duration = Duration::from_secs(90);

/// How a machine is spoken with.
#[derive(Debug)]
pub struct Line {
    /// qemu's monitor.
    pub monitor: UnixStream,
    /// The port on which the machine reports.
    pub port: UnixStream,
}

/// What became of all checks.
#[derive(Debug)]
pub struct Trial {
    /// In the order in which they were given.
    pub verdicts: Vec<CheckVerdict>,
    /// How long the machine ran.
    pub seconds: f64,
    /// Why it ended before all checks held.
    pub ended: Option<String>,
    /// Of the console, the lines that matter.
    pub console: String,
}

/// Why a machine could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error("qemu ended before there was a machine")]
    NoMachine { source: io::Error },
    #[error("lost qemu")]
    Lost { source: io::Error },
    #[error(transparent)]
    File(#[from] FileError),
}

impl Hint for TrialError {
    vmbake_common::causes!(File; NoMachine, Lost);
}

/// What happened in the machine.
enum Event {
    Console(Vec<u8>),
    Report(GuestReport),
    Off,
}

struct Watch<'a> {
    judge: &'a Judge,
    progress: &'a Progress,
    start: Instant,
    verdicts: Vec<CheckVerdict>,
    console: Console,
    log: Option<File>,
    /// When the console showed that nothing will come of it.
    trouble: Option<Instant>,
    off: bool,
}

/// Watches until every check has held, or one cannot any more, or time is over; then ends the machine, in order if `kept`.
pub fn watch(
    mut child: Child,
    line: Line,
    judge: &Judge,
    kept: bool,
    progress: &Progress,
) -> Result<Trial, TrialError> {
    let lost = |source| TrialError::Lost { source };
    let result = (|| {
        let mut monitor = Monitor::new(line.monitor).map_err(lost)?;
        monitor.begin().map_err(|source| TrialError::NoMachine { source })?;
        let forwards = monitor.forwards().map_err(lost)?;
        let mut watch = Watch::new(judge, progress)?;
        let events = listen(child.stdout.take(), line.port);
        let ended = watch.until_decided(&events, &mut monitor, &forwards)?;
        if kept && !watch.off {
            watch.shut_down(&events, &mut monitor)?;
        }
        Ok(watch.trial(ended))
    })();
    // It may be off already.
    let _ = child.kill();
    child.wait().map_err(lost)?;
    result
}

/// Hears the console and the reports, each in a thread of its own, which end with the machine.
fn listen(console: Option<ChildStdout>, port: UnixStream) -> Receiver<Event> {
    let (sender, events) = channel();
    let reports: Sender<Event> = sender.clone();
    thread::spawn(move || {
        let mut port = BufReader::new(port);
        while let Ok(Some(report)) = guest::report(&mut port) {
            if reports.send(Event::Report(report)).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        let mut console = console;
        while let Some(Ok(len @ 1..)) = console.as_mut().map(|console| console.read(&mut bytes)) {
            if sender.send(Event::Console(bytes[..len].to_vec())).is_err() {
                return;
            }
        }
        // Nobody may listen any more.
        let _ = sender.send(Event::Off);
    });
    events
}

impl<'a> Watch<'a> {
    fn new(judge: &'a Judge, progress: &'a Progress) -> Result<Self, TrialError> {
        let verdict = |check: &Check| CheckVerdict {
            check: check.to_string(),
            state: State::Pending,
            said: if check.port().is_some() { "not asked yet" } else { "the machine has not answered" }.to_owned(),
            seconds: 0.0,
        };
        let log = match &judge.log {
            Some(path) => Some(File::create(path).map_err(|source| {
                TrialError::File(FileError::new(path.clone(), "write what the console shows", source))
            })?),
            None => None,
        };
        let verdicts = judge.checks.iter().map(verdict).collect();
        let console = Console::default();
        Ok(Self { judge, progress, start: Instant::now(), verdicts, console, log, trouble: None, off: false })
    }

    /// Why the machine was given up; `None` if all holds.
    fn until_decided(
        &mut self,
        events: &Receiver<Event>,
        monitor: &mut Monitor,
        forwards: &BTreeMap<u16, u16>,
    ) -> Result<Option<String>, TrialError> {
        let mut asked = Instant::now();
        loop {
            self.hear(events, PAUSE)?;
            if let Some(decided) = self.decided() {
                return Ok(decided);
            }
            if asked.elapsed() >= PAUSE {
                self.ask(monitor, forwards);
                asked = Instant::now();
            }
        }
    }

    /// Whether there is nothing left to wait for, and why.
    fn decided(&self) -> Option<Option<String>> {
        let is = |state| move |verdict: &CheckVerdict| verdict.state == state;
        if self.verdicts.iter().all(is(State::Ok)) {
            return Some(None);
        }
        if !self.verdicts.iter().any(is(State::Pending)) {
            return Some(Some("a check has failed".to_owned()));
        }
        if self.off {
            return Some(Some("the machine went off".to_owned()));
        }
        if let (Some(sign), Some(since)) = (self.console.trouble(), self.trouble)
            && since.elapsed() >= LAST_WORDS
        {
            return Some(Some(format!("the boot failed: {sign}")));
        }
        let late = self.start.elapsed() >= self.judge.timeout;
        late.then(|| Some(format!("not all checks held within {} s", self.judge.timeout.as_secs())))
    }

    /// Takes what has happened, or waits for it.
    fn hear(&mut self, events: &Receiver<Event>, patience: Duration) -> Result<(), TrialError> {
        match events.recv_timeout(patience) {
            Ok(Event::Console(bytes)) => self.shown(&bytes)?,
            // The boot itself is no check.
            Ok(Event::Report(report)) if report.number == guest::BOOT => {
                self.progress.tell(progress::Event::Booted { said: report.said });
            }
            Ok(Event::Report(report)) => self.report(report.number - 1, report.state, report.said),
            Ok(Event::Off) | Err(RecvTimeoutError::Disconnected) => self.off = true,
            Err(RecvTimeoutError::Timeout) => {}
        }
        Ok(())
    }

    fn shown(&mut self, bytes: &[u8]) -> Result<(), TrialError> {
        if let (Some(log), Some(path)) = (&mut self.log, &self.judge.log) {
            log.write_all(bytes).map_err(|source| {
                TrialError::File(FileError::new(path.clone(), "write what the console shows", source))
            })?;
        }
        self.console.push(bytes);
        if self.console.trouble().is_some() {
            self.trouble.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    /// Asks what can be asked from here and does not hold yet.
    fn ask(&mut self, monitor: &mut Monitor, forwards: &BTreeMap<u16, u16>) {
        for (number, check) in self.judge.checks.iter().enumerate() {
            let port = check.port().and_then(|port| forwards.get(&port));
            if let (Some(port), State::Pending) = (port, self.verdicts[number].state) {
                let (state, said) = probe::ask(check, *port, monitor)
                    .unwrap_or_else(|error| (State::Pending, format!("cannot be asked: {error}")));
                self.report(number, state, said);
            }
        }
    }

    /// Notes what is new about a check.
    fn report(&mut self, number: usize, state: State, said: String) {
        // What a machine says about checks that there are not is its own affair.
        let Some(verdict) = self.verdicts.get_mut(number) else { return };
        let changed = verdict.state != state;
        if changed || verdict.said != said {
            (verdict.state, verdict.said) = (state, said);
            verdict.seconds = seconds(self.start.elapsed());
        }
        if changed {
            let said = verdict.said.lines().next().unwrap_or_default().to_owned();
            let (check, state) = (verdict.check.clone(), state.to_string());
            self.progress.tell(progress::Event::Check { check, state, said });
        }
    }

    /// Has the machine end itself, as what its disk says is kept.
    fn shut_down(&mut self, events: &Receiver<Event>, monitor: &mut Monitor) -> Result<(), TrialError> {
        monitor.power_down().map_err(|source| TrialError::Lost { source })?;
        let start = Instant::now();
        while !self.off && start.elapsed() < SHUTDOWN {
            self.hear(events, PAUSE)?;
        }
        if !self.off {
            self.progress.tell(progress::Event::PowerCut);
        }
        Ok(())
    }

    fn trial(self, ended: Option<String>) -> Trial {
        let seconds = seconds(self.start.elapsed());
        Trial { verdicts: self.verdicts, seconds, ended, console: self.console.tail() }
    }
}

/// Seconds, to a tenth.
fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10.0).round() / 10.0
}

impl Trial {
    /// Whether all holds.
    pub fn is_ok(&self) -> bool {
        self.ended.is_none()
    }
}
