//! Installs files that were delivered to this machine, then reconfigures and restarts dependent services.

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::accounts::Accounts;
use crate::bootstrap;
use crate::configure;
use crate::error::Error;
use crate::machine::Here;
use crate::mutable;
use crate::plan::{KeyDestination, Plan, Receive};
use crate::record::Record;
use crate::root::{Kind, Listed, Lock, Owner, Root};
use crate::services::{self, Occasion};
use crate::template::Scope;

/// Maximum length of a delivered file, in bytes; certificates and keys have some kilobytes.
const MAX_FILE: u64 = 1 << 20;

/// A file that is older than the last run by less than this, in nanoseconds, is processed again: the kernel's timestamps come from a
/// clock that lags by up to 10 ms. Processing a file twice changes nothing, and restarts nothing unless a trigger requires
/// it; but manual changes of settings in between would be lost, and files mostly arrive right before a run.
const LAG: u32 = 20_000_000;
const SECOND: u32 = 1_000_000_000;

/// A unit, and the content of the file that triggers its restart.
type Watched<'a> = (&'a str, Option<Vec<u8>>);

/// Time of a file: seconds and nanoseconds since 1970.
type Time = (i64, u32);

/// Processes deliveries; returns whether there were any. The lock is released before services are restarted: one of them can be ordered
/// after a unit that waits for it.
pub fn run(root: &Root, plan: &Plan, record: &mut Record, lock: Lock) -> Result<bool, Error> {
    let receive = plan.receive.as_ref().ok_or(Error::NothingReceived)?;
    let trigger = format!("{}/{}", receive.directory, receive.trigger);
    // Before anything is read: later deliveries trigger another run.
    let mut asked = root.remove(&trigger)?;
    let start = now();
    if asked && !root.dry_run() {
        // Files arrive in bursts, which are better handled at once; there is no event for the end of a burst.
        thread::sleep(Duration::from_secs(1));
    }
    // A timestamp in the future is from before the clock was set back, and is ignored.
    let last = root.find(&receive.stamp)?.map(|found| found.modified).filter(|last| *last <= start);
    let lagging = last.map(|(seconds, nanoseconds)| match nanoseconds.checked_sub(LAG) {
        Some(nanoseconds) => (seconds, nanoseconds),
        None => (seconds - 1, nanoseconds + SECOND - LAG),
    });
    let new: Vec<Listed> = root.list(&receive.directory)?.into_iter().filter(|file| is_new(file, lagging)).collect();
    asked |= new.iter().any(|file| is_new(file, last));
    if new.is_empty() && !asked {
        return Ok(false);
    }
    let taken = take(root, plan, receive, &new);
    if root.find(&trigger)?.is_some() {
        // Another run follows, and processes these files again: the timestamp is not set.
        return taken.map(|_| true);
    }
    if !asked && matches!(taken, Ok(false)) {
        return Ok(false);
    }
    // Refused files do not block the others; they are reported at the end.
    let before = watched(root, plan)?;
    let configured = configure::run(root, plan, record);
    let after = watched(root, plan)?;
    let changed: Vec<&str> = after.iter().filter(|one| !before.contains(one)).map(|(unit, _)| *unit).collect();
    if configured.is_err() {
        // The next run cannot detect this change of the file.
        services::restart(root, &changed)?;
    }
    configured?;
    let variables = configure::variables(root, plan)?;
    let scope = Scope { variables: &variables, machine: &Here::new(root) };
    drop(lock);
    let restarted = services::handle(root, plan, &scope, Occasion::Receive, &changed, false);
    root.stamp(&receive.stamp, start)?;
    restarted.and(taken).map(|_| true)
}

/// Units with a trigger file, and its current content.
fn watched<'a>(root: &Root, plan: &'a Plan) -> Result<Vec<Watched<'a>>, Error> {
    let files = plan.services.iter().filter_map(|service| Some((service.unit.as_str(), service.on_change.as_ref()?)));
    files.map(|(unit, path)| Ok((unit, root.read(path, MAX_FILE)?))).collect()
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos())
}

fn is_new(file: &Listed, last: Option<Time>) -> bool {
    last.is_none_or(|last| file.found.modified > last)
}

/// Copies each file to its destination; returns whether anything changed. A refused file does not block the
/// others.
fn take(root: &Root, plan: &Plan, receive: &Receive, new: &[Listed]) -> Result<bool, Error> {
    let accounts = Accounts::read(root)?;
    let (mut changed, mut failed) = (false, None);
    let mut count = |copied: Result<bool, Error>| match copied {
        Ok(one) => changed |= one,
        Err(error) => failed = failed.take().or(Some(error)),
    };
    for file in new {
        count(take_one(root, plan, receive, &accounts, file));
    }
    for (name, place) in &plan.keys {
        count(take_key(root, receive, &accounts, name, place));
    }
    failed.map_or(Ok(changed), Err)
}

fn take_key(
    root: &Root,
    receive: &Receive,
    accounts: &Accounts,
    name: &str,
    place: &KeyDestination,
) -> Result<bool, Error> {
    let source = format!("{}/{name}", receive.keys);
    let is_file = root.find(&source)?.is_some_and(|found| found.kind == Kind::File);
    if !is_file || root.find(&place.certificate)?.is_none() {
        return Ok(false);
    }
    let owner = accounts.owner(0o640, "root", &place.group)?;
    copy(root, &source, &format!("{}/{name}", place.directory), &owner)
}

fn take_one(root: &Root, plan: &Plan, receive: &Receive, accounts: &Accounts, file: &Listed) -> Result<bool, Error> {
    let name = file.name.to_string_lossy();
    let source = format!("{}/{name}", receive.directory);
    let is_file = file.found.kind == Kind::File;
    if name == receive.mutable.as_str() && is_file {
        let inputs = plan.inputs.as_ref().ok_or(Error::NothingReceived)?;
        if !bootstrap::is_done(root, inputs)? {
            return Err(Error::NotReady { path: root.shown(&inputs.marker) });
        }
        return mutable::update(root, plan, &source, &inputs.mutable, false);
    }
    match plan.received.get(name.as_ref()).filter(|_| is_file) {
        Some(place) => {
            let owner = accounts.owner(0o640, "root", &place.group)?;
            copy(root, &source, &format!("{}/{name}", place.directory), &owner)
        }
        None => {
            // Quoted: file names must not inject log lines.
            crate::report(&format!("warning: {source:?}: ignored: not an expected file"));
            Ok(false)
        }
    }
}

fn copy(root: &Root, from: &str, to: &str, owner: &Owner) -> Result<bool, Error> {
    let content = root.read(from, MAX_FILE)?.ok_or_else(|| Error::missing(&root.shown(from)))?;
    root.write(to, &content, owner)
}
