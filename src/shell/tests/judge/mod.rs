//! Compares the interpreter with the real dash and bash. A grammar generates programs from a seed; status, output and files must be equal unless the
//! interpreter refuses the program. The grammar is independent of the interpreter's parser.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "a test fails by panicking")]

pub mod grammar;
pub mod interpreter;
pub mod jail;
pub mod left;
pub mod program;
pub mod random;
pub mod report;
pub mod shrink;

use std::path::Path;
use std::thread;

use tempfile::TempDir;

use self::grammar::Grammar;
use self::interpreter::{Base, Found};
use self::jail::{Jail, Worker};
use self::left::{Left, Parts};
use self::program::Node;
use self::report::{Difference, Report};

/// The operands of every program.
pub const ARGS: [&str; 3] = ["one", "two words", "*"];

/// Programs of one batch.
const BATCH: usize = 100;

/// Nested commands of a program take stack, in debug builds most.
const STACK_BYTES: usize = 16 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Dash,
    Bash,
}

/// What to run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub dialect: Dialect,
    pub seed: u64,
    pub programs: usize,
    pub jobs: usize,
    /// Differing programs to reduce; each takes some seconds.
    pub reduce: usize,
    /// Programs that use one of these productions are left out.
    pub without: &'static [&'static str],
}

/// How one program went.
pub enum Verdict {
    Equal,
    Refused(Box<vmbake_shell::ShellError>),
    Different {
        expected: Left,
        found: Result<Left, String>,
        parts: Parts,
    },
    /// The real shell did not end by itself, or its results differ from run to run.
    Undecided,
}

/// Statuses of shells that the kernel ended: SIGKILL, SIGSEGV of a recursion without end, SIGXCPU, SIGXFSZ.
const KILLED: [u8; 4] = [128 + 9, 128 + 11, 128 + 24, 128 + 25];

/// The chroot and the interpreter's tree.
pub struct Judge {
    jail: Jail,
    base: Base,
    _directory: TempDir,
}

impl Judge {
    /// In memory if possible: many small files are made. The error is the reason why it does not work here.
    pub fn new() -> Result<Self, String> {
        Self::below(Path::new("/dev/shm")).or_else(|_| Self::below(&std::env::temp_dir()))
    }

    fn below(directory: &Path) -> Result<Self, String> {
        let directory =
            tempfile::tempdir_in(directory).map_err(|error| format!("the chroot of the shells: {error}"))?;
        let jail = Jail::new(directory.path())?;
        let base = Base::new(&jail.programs);
        Ok(Self { jail, base, _directory: directory })
    }

    /// Derives programs and runs them.
    pub fn generated(&self, plan: Plan) -> Report {
        let reports = thread::scope(|scope| {
            let jobs: Vec<_> = (0..plan.jobs)
                .map(|job| {
                    let work = move || self.job(plan, job);
                    thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work).unwrap()
                })
                .collect();
            jobs.into_iter().map(|job| job.join().unwrap()).collect::<Vec<_>>()
        });
        reports.into_iter().fold(Report::default(), Report::add)
    }

    fn job(&self, plan: Plan, job: usize) -> Report {
        let mut worker = self.jail.worker(letter(job));
        let mut report = Report::default();
        let batches = plan.programs.div_ceil(BATCH);
        for batch in (job..batches).step_by(plan.jobs) {
            let first = batch * BATCH;
            let last = plan.programs.min(first + BATCH);
            let derive =
                |number| Grammar::new(plan.seed, number, plan.dialect, self.jail.as_root, self.jail.has_proc).program();
            let (numbers, programs): (Vec<usize>, Vec<Node>) = (first..last)
                .map(|number| (number, derive(number)))
                .filter(|(_, program)| plan.without.iter().all(|label| !program.labels().contains(label)))
                .unzip();
            let texts: Vec<String> = programs.iter().map(Node::text).collect();
            let verdicts = self.batch(&mut worker, plan.dialect, &texts);
            for ((number, program), verdict) in numbers.into_iter().zip(programs).zip(verdicts) {
                let name = format!("seed {}, program {number}", plan.seed);
                if let Some(different) = report.count(name, &program.text(), verdict) {
                    let reduce = report.differences.len() < plan.reduce.div_ceil(plan.jobs);
                    let reduced = if reduce {
                        shrink::shrink(&program, |texts| self.batch(&mut worker, plan.dialect, texts), different)
                    } else {
                        different
                    };
                    report.differences.push(reduced);
                }
            }
        }
        report
    }

    /// Whether programs run as the real root.
    #[allow(dead_code, reason = "for tests")]
    pub fn is_root(&self) -> bool {
        self.jail.as_root
    }

    /// Runs given programs, with names.
    pub fn snippets(&self, dialect: Dialect, snippets: &[(String, String)]) -> Report {
        let mut worker = self.jail.worker(letter(0));
        let mut report = Report::default();
        for chunk in snippets.chunks(BATCH) {
            let texts: Vec<String> = chunk.iter().map(|(_, text)| text.clone()).collect();
            for ((name, text), verdict) in chunk.iter().zip(self.batch(&mut worker, dialect, &texts)) {
                if let Some(different) = report.count(name.clone(), text, verdict) {
                    report.differences.push(Difference { is_reduced: true, ..different });
                }
            }
        }
        report
    }

    fn batch(&self, worker: &mut Worker<'_>, dialect: Dialect, texts: &[String]) -> Vec<Verdict> {
        let texts: Vec<String> = texts.iter().map(|text| with_first_line(dialect, text)).collect();
        let mut verdicts = Vec::new();
        for chunk in texts.chunks(BATCH) {
            let found: Vec<Found> =
                chunk.iter().enumerate().map(|(index, text)| self.base.run(text, &worker.slot(index))).collect();
            let compared: Vec<usize> = (0..chunk.len()).filter(|index| !found[*index].is_refusal(dialect)).collect();
            let mut expected = worker.run(dialect, chunk, &compared);
            let first = verdicts.len();
            for (index, found) in found.into_iter().enumerate() {
                verdicts.push(match found {
                    Found::Refused { error, .. } if !compared.contains(&index) => Verdict::Refused(error),
                    found => verdict(expected.remove(&index), found),
                });
            }
            let is_different = |index: &usize| matches!(verdicts[first + index], Verdict::Different { .. });
            let different: Vec<usize> = (0..chunk.len()).filter(is_different).collect();
            let again = worker.run(dialect, chunk, &different);
            for index in different {
                if let Verdict::Different { expected, .. } = &verdicts[first + index]
                    && again.get(&index) != Some(expected)
                {
                    verdicts[first + index] = Verdict::Undecided;
                }
            }
        }
        verdicts
    }
}

fn letter(job: usize) -> char {
    char::from(b'a' + u8::try_from(job % 26).unwrap())
}

fn with_first_line(dialect: Dialect, text: &str) -> String {
    let first = if dialect == Dialect::Bash { "#!/bin/bash" } else { "#!/bin/sh" };
    if text.starts_with("#!") { text.to_owned() } else { format!("{first}\n{text}") }
}

fn verdict(expected: Option<Left>, found: Found) -> Verdict {
    let Some(expected) = expected.filter(|left| !KILLED.contains(&left.status)) else { return Verdict::Undecided };
    let every = Parts { status: true, stdout: true, tree: true };
    match found {
        Found::Left(found) if found == expected => Verdict::Equal,
        Found::Left(found) => {
            let parts = expected.compare(&found);
            Verdict::Different { expected, found: Ok(found), parts }
        }
        Found::Refused { error, .. } => {
            let found = Err(format!("the tree changed before the refusal: {error}"));
            Verdict::Different { expected, found, parts: every }
        }
        Found::Panicked(message) => Verdict::Different { expected, found: Err(message), parts: every },
    }
}

/// The snippets of a text: names and programs, each after a line `=== NAME`.
pub fn snippets(text: &str) -> Vec<(String, String)> {
    let parts = format!("\n{text}");
    let parts = parts.split("\n=== ").skip(1);
    parts
        .map(|part| part.split_once('\n').unwrap_or((part, "")))
        .map(|(name, text)| (name.to_owned(), format!("{text}\n")))
        .collect()
}
