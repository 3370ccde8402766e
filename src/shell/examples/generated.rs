//! Compares the interpreter with the real dash and bash, as the tests do, for any number of generated programs or for those of a file.
#![allow(missing_docs, reason = "a program")]

#[path = "../tests/judge/mod.rs"]
mod judge;

use std::process::ExitCode;

use judge::report::Report;
use judge::{Dialect, Judge, Plan};

const USAGE: &str = "usage: generated [--dialect dash|bash] [--programs N] [--seed N] [--jobs N] [--reduce N] [--refusals] [--print] [--without NAME,...] [--file FILE]
  --dialect   shell to compare with (default: dash)
  --programs  number of programs to generate (default: 1000)
  --seed      seed of the programs (default: 1)
  --jobs      number of threads (default: 2)
  --reduce    number of differing programs to reduce (default: 40)
  --refusals  list what is refused
  --print     print the programs, and do not run them
  --without   leave out programs that use one of these productions
  --file      run the snippets of FILE, each after a line `=== NAME`, in place of generated programs";

struct Options {
    plan: Plan,
    file: Option<String>,
    refusals: bool,
    print: bool,
}

fn options() -> Option<Options> {
    let plan = Plan { dialect: Dialect::Dash, seed: 1, programs: 1000, jobs: 2, reduce: 40, without: &[] };
    let mut options = Options { plan, file: None, refusals: false, print: false };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        match name.as_str() {
            "--refusals" => options.refusals = true,
            "--print" => options.print = true,
            "--dialect" => {
                options.plan.dialect = match args.next()?.as_str() {
                    "dash" => Dialect::Dash,
                    "bash" => Dialect::Bash,
                    _ => return None,
                }
            }
            "--programs" => options.plan.programs = args.next()?.parse().ok()?,
            "--seed" => options.plan.seed = args.next()?.parse().ok()?,
            "--jobs" => options.plan.jobs = args.next()?.parse().ok().filter(|jobs| *jobs > 0)?,
            "--reduce" => options.plan.reduce = args.next()?.parse().ok()?,
            "--without" => {
                options.plan.without =
                    args.next()?.split(',').map(|name| &*name.to_owned().leak()).collect::<Vec<_>>().leak()
            }
            "--file" => options.file = Some(args.next()?),
            _ => return None,
        }
    }
    Some(options)
}

fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    if options.print {
        print_programs(options.plan);
        return ExitCode::SUCCESS;
    }
    match run(&options) {
        Ok(report) => {
            print!("{}", report.differences_text());
            if options.refusals {
                print!("{}", report.refusals_text());
            }
            println!("{:?}: {}", options.plan.dialect, report.summary());
            if report.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn print_programs(plan: Plan) {
    for number in 0..plan.programs {
        let program = judge::grammar::Grammar::new(plan.seed, number, plan.dialect, true, true).program();
        print!("=== {number}\n{}", program.text());
    }
}

fn run(options: &Options) -> Result<Report, String> {
    let plan = options.plan;
    let judge = Judge::new()?;
    let Some(file) = &options.file else { return Ok(judge.generated(plan)) };
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    Ok(judge.snippets(plan.dialect, &judge::snippets(&text)))
}
