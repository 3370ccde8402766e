//! Texts that are others in each real run: process ids, and the names that mktemp makes up. They may be compared, and be names of files
//! that do not stay. Nothing else may be made of them, for it would not be recognized.

mod variants;

use std::collections::BTreeSet;

use crate::descriptors::Handle;
use crate::error::ErrorKind;
use crate::eval::{Run, Stop};
use crate::files::Follow;
use crate::shell::Shell;

/// What `$$` expands to: larger than any process id of Linux, so that it is found again in names and contents. A script that leaves it in a
/// file fails, also where it stands for another number that only a machine has.
pub const PID: &[u8] = b"4194305";

/// What the random part of a name begins with, as far as digits leave room: few other texts have it.
const FILLING: &[u8] = b"qJzXvKwQ";

/// Programs that may make something else of parts of lines that they read.
const EDITORS: [&[u8]; 2] = [b"sed", b"sort"];

/// Programs that change nothing but what they write: they can run once more for other random texts.
const PURE: [&[u8]; 28] = [
    b"awk",
    b"mawk",
    b"basename",
    b"cat",
    b"cmp",
    b"cut",
    b"diff",
    b"dirname",
    b"egrep",
    b"expr",
    b"fgrep",
    b"grep",
    b"getopt",
    b"head",
    b"id",
    b"md5sum",
    b"printf",
    b"sed",
    b"seq",
    b"sha256sum",
    b"sort",
    b"tac",
    b"tail",
    b"test",
    b"[",
    b"tr",
    b"uniq",
    b"wc",
];

/// Whether a program changes files.
fn edits(name: &[u8], args: &[Vec<u8>]) -> bool {
    let has = |letter: u8, long: &[u8]| {
        let is_option = |arg: &Vec<u8>| arg.starts_with(b"-") && !arg.starts_with(b"--") && arg.contains(&letter);
        args.iter().any(|arg| is_option(arg) || arg.starts_with(long))
    };
    match name {
        b"sed" => has(b'i', b"--in-place") || has(b's', b"--separate"),
        b"sort" => has(b'o', b"--output"),
        _ => false,
    }
}

/// What a program did with random texts.
#[derive(Default)]
struct Flow {
    /// What it read that has random texts.
    read: Vec<u8>,
    /// All that it wrote.
    written: Vec<u8>,
}

/// Random texts of a run.
#[derive(Default)]
pub(crate) struct Random {
    texts: BTreeSet<Vec<u8>>,
    flow: Flow,
    /// Files whose name or content may have one of them.
    paths: BTreeSet<Vec<u8>>,
    /// The other run that a program runs in, to compare what it does.
    run: Option<usize>,
}

impl Random {
    pub(crate) fn add(&mut self, text: &[u8]) {
        if !self.texts.contains(text) {
            self.texts.insert(text.to_vec());
        }
    }

    /// Where the random texts in a text begin and end.
    fn places(&self, text: &[u8]) -> Vec<(usize, usize)> {
        let of = |random: &Vec<u8>| {
            let windows = text.windows(random.len()).enumerate().filter(|(_, window)| *window == &random[..]);
            windows.map(|(at, window)| (at, at + window.len())).collect::<Vec<_>>()
        };
        self.texts.iter().flat_map(of).collect()
    }

    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        self.texts.iter().any(|random| text.windows(random.len()).any(|window| window == &random[..]))
    }

    /// Whether a text is a part of another that divides none of its random texts.
    fn is_part(&self, whole: &[u8], part: &[u8]) -> bool {
        let places = self.places(whole);
        let divides = |at: usize| places.iter().any(|(from, to)| *from < at && at < *to);
        let Some(last) = whole.len().checked_sub(part.len()) else { return false };
        (0..=last).any(|at| whole[at..].starts_with(part) && !divides(at) && !divides(at + part.len()))
    }

    /// Whether a text made of another has less of its random texts, and is not a part that leaves out whole ones only.
    fn is_lost(&self, before: &[u8], after: &[u8]) -> bool {
        self.places(after).len() < self.places(before).len() && !self.is_part(before, after)
    }

    /// What is read of a file in the running run.
    pub(crate) fn content(&self, text: Vec<u8>) -> Vec<u8> {
        match self.run {
            Some(run) => self.in_run(&text, run),
            None => text,
        }
    }

    /// Whether a program runs once more, and changes nothing.
    pub(crate) fn is_other_run(&self) -> bool {
        self.run.is_some()
    }

    /// Notes what a program reads.
    pub(crate) fn read(&mut self, text: &[u8]) {
        if self.is_in(text) {
            self.flow.read.extend_from_slice(text);
        }
    }

    /// Notes what a program writes.
    pub(crate) fn written(&mut self, text: &[u8]) {
        if !self.texts.is_empty() {
            self.flow.written.extend_from_slice(text);
        }
    }
}

/// The random part of a name, of this length; none if the number is too large for it.
pub(crate) fn made_up(number: usize, length: usize) -> Option<Vec<u8>> {
    let digits = number.to_string();
    let filling = length.checked_sub(digits.len()).filter(|left| *left > 0)?;
    Some(FILLING.iter().cycle().take(filling).copied().chain(digits.bytes()).collect())
}

impl Shell<'_> {
    /// Refuses what is made of a random text.
    fn refuse_random<T>(&self, what: &str) -> Run<T> {
        let what = format!("{what} a process id, or of a name that mktemp made up");
        Err(self.fatal(ErrorKind::Random { what }))
    }

    /// Refuses an expansion that takes a part of a random text, or replaces one.
    pub(crate) fn require_random(&self, before: &[u8], after: &[u8]) -> Run<()> {
        if self.random.is_lost(before, after) { self.refuse_random("a part of") } else { Ok(()) }
    }

    /// Refuses what a command of the caller made of its input if it shows no random text of that.
    pub(crate) fn require_found(&self, input: &[u8], output: &[u8]) -> Run<()> {
        match self.random.is_in(input) && !self.random.is_in(output) {
            true => self.refuse_random("what the command makes of"),
            false => Ok(()),
        }
    }

    /// Refuses the length of a text with a process id. Other random texts have the same length in each run.
    pub(crate) fn require_length(&self, text: &[u8]) -> Run<()> {
        let has_id = self.random.texts.contains(PID) && text.windows(PID.len()).any(|window| window == PID);
        if has_id { self.refuse_random("the length of") } else { Ok(()) }
    }

    /// Refuses to compute with a random text.
    pub(crate) fn require_number(&self, text: &[u8]) -> Run<()> {
        if self.random.is_in(text) { self.refuse_random("a number computed from") } else { Ok(()) }
    }

    /// Runs a program, and refuses what it writes if that depends on a random text.
    pub(crate) fn following_random(
        &mut self,
        name: &[u8],
        args: &[Vec<u8>],
        run: impl Fn(&mut Self, &[Vec<u8>]) -> Run<Option<Run<u8>>>,
    ) -> Run<Option<Run<u8>>> {
        if self.random.run.is_some() || self.random.texts.is_empty() {
            return run(self, args);
        }
        self.require_known_operands(name, args)?;
        let is_pure = PURE.contains(&name) && !edits(name, args);
        let reads = is_pure && matches!(self.descriptor(0), Some(Handle::Input(_))) && !self.input_is_uncertain();
        let input = if reads { Some(self.unread(Self::peek_input)?) } else { None };
        let outer = std::mem::take(&mut self.random.flow);
        let state = self.state.clone();
        let result = run(self, args)?;
        let Flow { read, written } = std::mem::replace(&mut self.random.flow, outer);
        let depends = !read.is_empty() || args.iter().any(|arg| self.random.is_in(arg));
        let status = match &result {
            Some(Ok(status)) => Some(*status),
            Some(Err(Stop::Error)) => Some(2),
            _ => None,
        };
        let is_made = if depends && is_pure && status.is_some() {
            let found = (written, status);
            let after = std::mem::replace(&mut self.state, state);
            let alike = self.is_alike(args, input.as_deref(), &found, |shell, args| match run(shell, args)? {
                Some(Ok(status)) => Ok(Some(status)),
                Some(Err(stop)) => Err(stop),
                None => Ok(None),
            });
            self.state = after;
            self.random.flow.written.extend(found.0);
            !alike?
        } else {
            let is_cut = EDITORS.contains(&name) && !read.is_empty() && !self.random.is_in(&written);
            let is_made = is_cut && written.split(|byte| *byte == b'\n').any(|line| !self.random.is_part(&read, line));
            self.random.flow.written.extend(written);
            is_made
        };
        self.random.flow.read.extend(read);
        match is_made {
            true => self.refuse_random(&format!("what {} makes of", String::from_utf8_lossy(name))),
            false => Ok(result),
        }
    }

    /// Refuses numbers, modes and owners that are random texts.
    fn require_known_operands(&self, name: &[u8], args: &[Vec<u8>]) -> Run<()> {
        let is_given = |arg: &[u8]| self.random.is_in(arg) && !arg.contains(&b'/');
        let is_wrong = match name {
            b"chmod" | b"chown" | b"chgrp" => args.iter().any(|arg| is_given(arg) && !self.exists(arg)),
            b"sleep" => args.iter().any(|arg| is_given(arg)),
            b"touch" | b"mkdir" | b"install" => args.windows(2).any(|pair| {
                let takes = matches!((name, &pair[0][..]), (b"touch", b"-d" | b"-t") | (_, b"-m" | b"-o" | b"-g"));
                takes && is_given(&pair[1])
            }),
            _ => false,
        };
        let is_option = |arg: &Vec<u8>| arg.starts_with(b"-") && is_given(arg);
        match is_wrong || (!PURE.contains(&name) && name != b"ionice" && args.iter().any(is_option)) {
            true => self.refuse_random("an option or number made of"),
            false => Ok(()),
        }
    }

    /// Remembers a path that may have a random text in its name or content at the end.
    pub(crate) fn note(&mut self, path: &[u8], content: &[u8]) {
        if self.random.run.is_some() {
            return;
        }
        let has_id = |bytes: &[u8]| bytes.windows(PID.len()).any(|window| window == PID);
        if !self.random.texts.is_empty() || has_id(path) || has_id(content) {
            let path = self.name_without_links(path);
            self.random.paths.insert(path);
        }
    }

    /// Notes that a path, and what is below it, gets another one.
    pub(crate) fn note_rename(&mut self, from: &[u8], to: &[u8]) {
        let below = self.random.paths.range(from.to_vec()..).take_while(|path| path.starts_with(from));
        let moved = below.map(|path| [to, &path[from.len()..]].concat());
        let moved = moved.filter(|path| path.len() == to.len() || path[to.len()] == b'/').collect::<Vec<_>>();
        self.random.paths.extend(moved);
    }

    /// The path that is left behind although its name or content is not known before a real run.
    pub(crate) fn left_behind(&self) -> Option<Vec<u8>> {
        let has = |bytes: &[u8]| self.random.is_in(bytes) || bytes.windows(PID.len()).any(|window| window == PID);
        let is_random = |path: &Vec<u8>| {
            let Ok(node) = self.files.lookup(path, Follow::No) else { return false };
            let limit = self.budget.limits.file_bytes;
            let in_content = || self.files.read(path, limit).is_ok_and(|content| has(&content));
            let in_target = || self.files.read_link(path).is_ok_and(|target| has(&target));
            has(path) || (node.is_file() && in_content()) || (node.is_symlink() && in_target())
        };
        let temporary = self.temporaries.iter().find(|path| self.files.lookup(path, Follow::No).is_ok());
        temporary.or_else(|| self.random.paths.iter().find(|path| is_random(path))).cloned()
    }
}
