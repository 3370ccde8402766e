//! Watches a running machine: a child process and its output in, results out; the machine is stopped.

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
use super::{Check, CheckOptions, CheckResult, Monitor, State, probe};
use vmbake_common::hint::Hint;
use vmbake_common::message::FileError;
use vmbake_common::progress::{self, Progress};

/// Interval of checks from this host.
const PAUSE: Duration = Duration::from_secs(1);
/// Time to collect output that explains a failed boot.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// Time for an orderly shutdown.
const SHUTDOWN: Duration = Duration::from_secs(90);

/// Channels of a machine.
#[derive(Debug)]
pub struct Line {
    pub monitor: UnixStream,
    /// Reports of the machine.
    pub port: UnixStream,
}

/// Result of a checked run.
#[derive(Debug)]
pub struct CheckRun {
    /// In the given order.
    pub results: Vec<CheckResult>,
    /// Run time of the machine.
    pub seconds: f64,
    /// Why it ended before all checks passed.
    pub ended: Option<String>,
    /// Relevant lines of the console.
    pub console: String,
}

/// Error of a checked run.
#[derive(Debug, thiserror::Error)]
pub enum CheckRunError {
    #[error("QEMU exited during startup")]
    NoMachine { source: io::Error },
    #[error("lost the QEMU process")]
    Lost { source: io::Error },
    #[error(transparent)]
    File(#[from] FileError),
}

impl Hint for CheckRunError {
    vmbake_common::causes!(File; NoMachine, Lost);
}

/// An event.
enum Event {
    Console(Vec<u8>),
    Report(GuestReport),
    Off,
}

struct Watch<'a> {
    options: &'a CheckOptions,
    progress: &'a Progress,
    start: Instant,
    results: Vec<CheckResult>,
    console: Console,
    log: Option<File>,
    /// Time of a boot failure on the console.
    trouble: Option<Instant>,
    off: bool,
}

/// Watches until all checks have passed, one has failed for good, or the timeout; then stops the machine, orderly if `kept`.
pub fn watch(
    mut child: Child,
    line: Line,
    options: &CheckOptions,
    kept: bool,
    progress: &Progress,
) -> Result<CheckRun, CheckRunError> {
    let lost = |source| CheckRunError::Lost { source };
    let result = (|| {
        let mut monitor = Monitor::new(line.monitor).map_err(lost)?;
        monitor.begin().map_err(|source| CheckRunError::NoMachine { source })?;
        let forwards = monitor.forwards().map_err(lost)?;
        let mut watch = Watch::new(options, progress)?;
        let events = listen(child.stdout.take(), line.port);
        let ended = watch.until_decided(&events, &mut monitor, &forwards)?;
        if kept && !watch.off {
            watch.shut_down(&events, &mut monitor)?;
        }
        Ok(watch.run(ended))
    })();
    // It can have stopped already.
    let _ = child.kill();
    child.wait().map_err(lost)?;
    result
}

/// Reads console and reports in two threads, which end with the machine.
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
        // The receiver can be closed by now.
        let _ = sender.send(Event::Off);
    });
    events
}

impl<'a> Watch<'a> {
    fn new(options: &'a CheckOptions, progress: &'a Progress) -> Result<Self, CheckRunError> {
        let result = |check: &Check| CheckResult {
            check: check.to_string(),
            state: State::Pending,
            said: if check.port().is_some() { "not checked yet" } else { "the machine has not reported" }.to_owned(),
            seconds: 0.0,
        };
        let log = match &options.log {
            Some(path) => Some(File::create(path).map_err(|source| {
                CheckRunError::File(FileError::new(path.clone(), "write the console output", source))
            })?),
            None => None,
        };
        let results = options.checks.iter().map(result).collect();
        let console = Console::default();
        Ok(Self { options, progress, start: Instant::now(), results, console, log, trouble: None, off: false })
    }

    /// Why the run failed; `None` if all checks pass.
    fn until_decided(
        &mut self,
        events: &Receiver<Event>,
        monitor: &mut Monitor,
        forwards: &BTreeMap<u16, u16>,
    ) -> Result<Option<String>, CheckRunError> {
        let mut asked = Instant::now();
        loop {
            self.hear(events, PAUSE)?;
            if let Some(decided) = self.decided() {
                return Ok(decided);
            }
            if asked.elapsed() >= PAUSE {
                self.probe(monitor, forwards);
                asked = Instant::now();
            }
        }
    }

    /// Whether the run is over, and why.
    fn decided(&self) -> Option<Option<String>> {
        let is = |state| move |result: &CheckResult| result.state == state;
        if self.results.iter().all(is(State::Ok)) {
            return Some(None);
        }
        if !self.results.iter().any(is(State::Pending)) {
            return Some(Some("a check has failed".to_owned()));
        }
        if self.off {
            return Some(Some("the machine shut down".to_owned()));
        }
        if let (Some(sign), Some(since)) = (self.console.trouble(), self.trouble)
            && since.elapsed() >= LAST_WORDS
        {
            return Some(Some(format!("the boot failed: {sign}")));
        }
        let late = self.start.elapsed() >= self.options.timeout;
        late.then(|| Some(format!("checks did not pass within {} s", self.options.timeout.as_secs())))
    }

    /// Waits for events.
    fn hear(&mut self, events: &Receiver<Event>, patience: Duration) -> Result<(), CheckRunError> {
        match events.recv_timeout(patience) {
            Ok(Event::Console(bytes)) => self.shown(&bytes)?,
            // The boot itself is not a check.
            Ok(Event::Report(report)) if report.number == guest::BOOT => {
                self.progress.emit(progress::Event::Booted { said: report.said });
            }
            Ok(Event::Report(report)) => self.report(report.number - 1, report.state, report.said),
            Ok(Event::Off) | Err(RecvTimeoutError::Disconnected) => self.off = true,
            Err(RecvTimeoutError::Timeout) => {}
        }
        Ok(())
    }

    fn shown(&mut self, bytes: &[u8]) -> Result<(), CheckRunError> {
        if let (Some(log), Some(path)) = (&mut self.log, &self.options.log) {
            log.write_all(bytes).map_err(|source| {
                CheckRunError::File(FileError::new(path.clone(), "write the console output", source))
            })?;
        }
        self.console.push(bytes);
        if self.console.trouble().is_some() {
            self.trouble.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    /// Runs pending checks from this host.
    fn probe(&mut self, monitor: &mut Monitor, forwards: &BTreeMap<u16, u16>) {
        for (number, check) in self.options.checks.iter().enumerate() {
            let port = check.port().and_then(|port| forwards.get(&port));
            if let (Some(port), State::Pending) = (port, self.results[number].state) {
                let (state, said) = probe::run(check, *port, monitor)
                    .unwrap_or_else(|error| (State::Pending, format!("cannot check: {error}")));
                self.report(number, state, said);
            }
        }
    }

    /// Updates a check.
    fn report(&mut self, number: usize, state: State, said: String) {
        // Reports about unknown checks are ignored.
        let Some(result) = self.results.get_mut(number) else { return };
        let changed = result.state != state;
        if changed || result.said != said {
            (result.state, result.said) = (state, said);
            result.seconds = seconds(self.start.elapsed());
        }
        if changed {
            let said = result.said.lines().next().unwrap_or_default().to_owned();
            let (check, state) = (result.check.clone(), state.to_string());
            self.progress.emit(progress::Event::Check { check, state, said });
        }
    }

    /// Shuts the machine down, since its disk is kept.
    fn shut_down(&mut self, events: &Receiver<Event>, monitor: &mut Monitor) -> Result<(), CheckRunError> {
        monitor.power_down().map_err(|source| CheckRunError::Lost { source })?;
        let start = Instant::now();
        while !self.off && start.elapsed() < SHUTDOWN {
            self.hear(events, PAUSE)?;
        }
        if !self.off {
            self.progress.emit(progress::Event::PowerCut);
        }
        Ok(())
    }

    fn run(self, ended: Option<String>) -> CheckRun {
        let seconds = seconds(self.start.elapsed());
        CheckRun { results: self.results, seconds, ended, console: self.console.tail() }
    }
}

/// Seconds, rounded to a tenth.
fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10.0).round() / 10.0
}

impl CheckRun {
    /// Whether all checks pass.
    pub fn is_ok(&self) -> bool {
        self.ended.is_none()
    }
}
