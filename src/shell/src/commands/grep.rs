//! `grep`.

mod exclusion;
mod matching;

use std::borrow::Cow;

use super::attributes::{Through, below};
use super::options::{Accepted, Options, parse};
use super::regex::{Expression, Syntax};
use super::{complain, complain_exactly, count, inputs, split_lines};
use crate::eval::Run;
use crate::files::Follow;
use crate::shell::Shell;
use exclusion::Exclusion;
use matching::{any_matches, as_word, places};

const OPTIONS: Accepted = Accepted {
    letters: b"EFGPbchiHlLnoqrRsvwxye:f:m:azA:B:C:",
    long: &[
        ("extended-regexp", b'E'),
        ("fixed-strings", b'F'),
        ("count", b'c'),
        ("no-filename", b'h'),
        ("ignore-case", b'i'),
        ("files-with-matches", b'l'),
        ("line-number", b'n'),
        ("only-matching", b'o'),
        ("quiet", b'q'),
        ("silent", b'q'),
        ("no-messages", b's'),
        ("invert-match", b'v'),
        ("word-regexp", b'w'),
        ("line-regexp", b'x'),
        ("regexp=", b'e'),
        ("file=", b'f'),
        ("max-count=", b'm'),
        ("text", b'a'),
        ("basic-regexp", b'G'),
        ("byte-offset", b'b'),
        ("with-filename", b'H'),
        ("files-without-match", b'L'),
        ("after-context=", b'A'),
        ("before-context=", b'B'),
        ("context=", b'C'),
        ("no-group-separator", b'N'),
        ("label=", b'0'),
        ("recursive", b'r'),
        ("include=", b'1'),
        ("exclude=", b'2'),
        ("exclude-dir=", b'3'),
        ("color?", b'k'),
        ("colour?", b'k'),
    ],
    strict: false,
};

pub(super) fn grep(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    run(shell, args, Syntax::Grep)
}

pub(super) fn egrep(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    run(shell, args, Syntax::Egrep)
}

pub(super) fn fgrep(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    run(shell, args, Syntax::Fixed)
}

fn run(shell: &mut Shell<'_>, args: &[Vec<u8>], default: Syntax) -> Run<u8> {
    let args: Vec<Vec<u8>> = args.iter().map(|arg| contextual(arg)).collect();
    let mut options = parse(shell, &args, &OPTIONS)?;
    if let Some(unknown) = [b'z', b'P'].into_iter().find(|letter| options.has(*letter)) {
        return shell.unsupported(&[b'-', unknown]);
    }
    if options.value(b'k') == Some(b"always") {
        return shell.unsupported(b"--color=always");
    }
    let Some(patterns) = patterns(shell, &mut options)? else { return Ok(2) };
    let syntax = options.iter().rev().find_map(|(letter, _)| match letter {
        b'E' => Some(Syntax::Egrep),
        b'F' => Some(Syntax::Fixed),
        b'G' => Some(Syntax::Grep),
        _ => None,
    });
    // A shorter match of a word must not take its end for that of the line.
    if options.has(b'w')
        && options.has(b'o')
        && patterns.iter().any(|pattern| pattern.contains(&b'$') && pattern.contains(&b'|'))
    {
        return shell.unsupported(b"-w with an alternative that has an anchor");
    }
    // Without lines to select, files are not read.
    let inverted = options.has(b'v') && !options.has(b'x') && !options.has(b'w');
    let nothing = inverted && patterns.iter().all(Vec::is_empty) && !patterns.is_empty();
    if nothing && !options.has(b'L') {
        return Ok(1);
    }
    let mut expressions = Vec::new();
    let ignore_case = options.has(b'i') || options.has(b'y');
    let syntax = syntax.unwrap_or(default);
    let mut words = Vec::new();
    for pattern in patterns {
        let expression = Expression::new(shell, &pattern, syntax, ignore_case)?;
        if expression.complains_of_class(shell, "grep")? {
            return Ok(2);
        }
        if expression.warns() {
            complain(shell, "grep", b"warning: a repetition at start of expression")?;
        }
        expressions.push(expression);
        if let Some(pattern) = as_word(&pattern, syntax).filter(|_| options.has(b'w') && !options.has(b'x')) {
            words.push(Expression::new(shell, &pattern, syntax, ignore_case)?);
        }
    }
    let recursive = options.has(b'r') || options.has(b'R');
    let mut groups = Vec::new();
    let (files, mut failed) =
        if recursive { recurse(shell, &options, &mut groups)? } else { (options.operands.clone(), false) };
    let shown = options.iter().rev().find_map(|(letter, _)| match letter {
        b'H' => Some(true),
        b'h' => Some(false),
        _ => None,
    });
    // With one operand, only files below a directory are named.
    let is_below = || options.operands.first().is_none_or(|operand| is_directory(shell, operand));
    let named = shown.unwrap_or(options.operands.len() > 1 || (recursive && is_below()));
    let (before, after) = contexts(shell, &options)?;
    let search = Search { options: &options, expressions: &expressions, words: &words, named, before, after };
    let exclusion = Exclusion::new(&options);
    let (mut found, mut divided) = (false, false);
    // The directories with a file about which something was written.
    let mut written = Vec::new();
    let standard = [b"-".to_vec()];
    for (at, file) in if files.is_empty() && !recursive { &standard[..] } else { &files }.iter().enumerate() {
        let is_dir = match &file[..] {
            b"-" => shell.input_is_dir(),
            path => shell.stat(path, Follow::Yes).is_ok_and(|node| node.is_dir()),
        };
        // Those below directories have been chosen.
        if groups.get(at).is_none_or(Option::is_none) && file != b"-" && exclusion.has_operand(file, is_dir) {
            continue;
        }
        if is_dir {
            // A directory reads as empty, and fails.
            if options.has(b'L') {
                search.listed(shell, file)?;
            } else if options.has(b'c') && !options.has(b'q') && !options.has(b'l') {
                search.counted(shell, file, 0)?;
            }
            if !options.has(b's') {
                let name: &[u8] = if file == b"-" { b"(standard input)" } else { file };
                complain_exactly(shell, "grep", &[name, b": Is a directory"].concat())?;
            }
            failed = true;
            continue;
        }
        if options.has(b's') && file != b"-" && !readable(shell, file) {
            failed = true;
            continue;
        }
        if search.prints() && search.most(shell)? > 1 && is_own_output(shell, file)? {
            complain_exactly(shell, "grep", &[&file[..], b": input file is also the output"].concat())?;
            failed = true;
            continue;
        }
        let (contents, wrong) = inputs(shell, "grep", std::slice::from_ref(file))?;
        failed |= wrong;
        let writes = shell.writes();
        for (name, content) in contents {
            found |= search.file(shell, &name, &content, &mut divided)?;
        }
        if let Some(Some(group)) = groups.get(at)
            && shell.writes() > writes
        {
            written.push(*group);
        }
        if found && options.has(b'q') {
            return Ok(0);
        }
    }
    if written.windows(2).any(|pair| pair[0] == pair[1]) {
        shell.mark_output()?;
    }
    if failed && options.has(b'q') && shell.descriptor(2).is_none() {
        return shell.unsupported(b"-q with a closed standard error");
    }
    Ok(if failed { 2 } else { u8::from(!found) })
}

fn is_directory(shell: &Shell<'_>, operand: &[u8]) -> bool {
    operand != b"-" && shell.stat(operand, Follow::Yes).is_ok_and(|node| node.is_dir())
}

/// Whether lines of a file would be written to the file itself.
fn is_own_output(shell: &Shell<'_>, file: &[u8]) -> Run<bool> {
    if file != b"-" {
        return Ok(shell.own_output_file(&shell.path(file)).is_some());
    }
    match shell.input_path(0).is_some_and(|path| shell.own_output_file(&path).is_some()) {
        true => shell.unsupported(b"a file as input and output"),
        false => Ok(false),
    }
}

/// `-5` as `-C5`.
fn contextual(arg: &[u8]) -> Vec<u8> {
    match arg.strip_prefix(b"-") {
        Some(digits) if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => [b"-C", digits].concat(),
        _ => arg.to_vec(),
    }
}

/// The lines of context before and behind a selected one.
fn contexts(shell: &Shell<'_>, options: &Options) -> Run<(usize, usize)> {
    let number = |letter: u8| options.value(letter).map(|text| count(shell, text)).transpose();
    let both = number(b'C')?.unwrap_or(0);
    Ok((number(b'B')?.unwrap_or(both), number(b'A')?.unwrap_or(both)))
}

/// The files below the operands, links not followed, with the numbers of those operands that are directories.
fn recurse(shell: &mut Shell<'_>, options: &Options, groups: &mut Vec<Option<usize>>) -> Run<(Vec<Vec<u8>>, bool)> {
    if options.has(b'R') {
        return shell.unsupported(b"-R");
    }
    let here = options.operands.is_empty();
    let exclusion = Exclusion::new(options);
    let operands = if here { vec![b".".to_vec()] } else { options.operands.clone() };
    let (mut files, mut failed) = (Vec::new(), false);
    for (number, operand) in operands.into_iter().enumerate() {
        groups.resize(files.len(), None);
        let Ok(node) = shell.stat(&operand, Follow::Yes) else {
            files.push(operand);
            continue;
        };
        if !node.is_dir() {
            files.push(operand);
            continue;
        }
        if !here && exclusion.has_operand(&operand, true) {
            continue;
        }
        for path in below(shell, &operand, Through::Operands)? {
            if exclusion.has_below(&path[operand.len().min(path.len())..]) {
                continue;
            }
            match shell.stat(&path, Follow::No) {
                Ok(node) if node.is_file() => {
                    files.push(if here { path.strip_prefix(b"./").unwrap_or(&path).to_vec() } else { path });
                }
                Ok(_) => {}
                Err(_) => failed = true,
            }
        }
        groups.resize(files.len(), Some(number));
    }
    Ok((files, failed))
}

fn readable(shell: &Shell<'_>, path: &[u8]) -> bool {
    path == b"-" || path == b"/dev/null" || shell.stat(path, Follow::Yes).is_ok_and(|node| node.is_file())
}

/// The patterns: of `-e`, of `-f`, or the first operand. `None` where their file cannot be read, which was told.
fn patterns(shell: &mut Shell<'_>, options: &mut Options) -> Run<Option<Vec<Vec<u8>>>> {
    let mut texts: Vec<Vec<u8>> =
        options.iter().filter(|(letter, _)| *letter == b'e').map(|(_, text)| text.to_vec()).collect();
    let files: Vec<Vec<u8>> =
        options.iter().filter(|(letter, _)| *letter == b'f').map(|(_, path)| path.to_vec()).collect();
    let mut patterns: Vec<Vec<u8>> = Vec::new();
    for path in &files {
        let (contents, failed) = inputs(shell, "grep", std::slice::from_ref(path))?;
        if failed {
            return Ok(None);
        }
        for line in contents.iter().flat_map(|(_, content)| split_lines(content)) {
            patterns.push(line.strip_suffix(b"\n").unwrap_or(line).to_vec());
        }
    }
    if texts.is_empty() && files.is_empty() {
        if options.operands.is_empty() {
            complain(shell, "grep", b"no pattern")?;
            return Ok(None);
        }
        texts.push(options.operands.remove(0));
    }
    patterns.extend(texts.iter().flat_map(|text| text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec)));
    Ok(Some(patterns))
}

/// What is searched for, and what is printed of it.
struct Search<'s> {
    options: &'s Options,
    expressions: &'s [Expression],
    /// With `-w`: the expressions with what may surround a word.
    words: &'s [Expression],
    named: bool,
    before: usize,
    after: usize,
}

impl Search<'_> {
    /// The places for which a line is selected, none if it is not: all that `-o` writes, else the whole line.
    fn matches(&self, shell: &mut Shell<'_>, line: &[u8]) -> Run<Vec<(usize, usize)>> {
        let options = self.options;
        let places_count = options.has(b'o') || options.has(b'x') || (options.has(b'w') && self.words.is_empty());
        if self.words.is_empty() && places_count {
            return places(shell, options, self.expressions, line);
        }
        let deciding = if self.words.is_empty() { self.expressions } else { self.words };
        let mut found = if any_matches(shell, deciding, line)? { vec![(0, 0)] } else { Vec::new() };
        if !found.is_empty() && options.has(b'o') {
            found.extend(places(shell, options, self.expressions, line)?);
        }
        Ok(found)
    }

    /// Searches one content. Says whether a line was selected.
    fn file(&self, shell: &mut Shell<'_>, name: &[u8], content: &[u8], divided: &mut bool) -> Run<bool> {
        let options = self.options;
        let most = self.most(shell)?;
        let lists = options.has(b'l') || options.has(b'L');
        let prints = self.prints();
        let has_nul = content.contains(&0) && !options.has(b'a');
        let binary = prints && has_nul;
        // In a binary file, NUL ends a line, too.
        let text = |byte: &u8| if *byte == 0 { b'\n' } else { *byte };
        let content: Cow<'_, [u8]> =
            if has_nul { content.iter().map(text).collect::<Vec<_>>().into() } else { content.into() };
        let lines: Vec<&[u8]> = split_lines(&content).map(|line| line.strip_suffix(b"\n").unwrap_or(line)).collect();
        let (mut selected, mut printed, mut open) = (0, 0, 0);
        let (mut offset, mut left) = (0, 0);
        for (at, line) in lines.iter().enumerate() {
            if selected >= most && (open == 0 || !prints) {
                break;
            }
            let places = if selected < most { self.matches(shell, line)? } else { Vec::new() };
            if selected >= most || places.is_empty() != options.has(b'v') {
                if open > 0 && prints {
                    open -= 1;
                    printed = at + 1;
                    self.line(shell, name, (at, offset), line, b'-', None)?;
                }
                offset += line.len() + 1;
                continue;
            }
            selected += 1;
            if options.has(b'q') || lists {
                break;
            }
            if prints {
                if binary {
                    return shell.unsupported(b"a binary file");
                }
                let start = printed.max(at.saturating_sub(self.before));
                let contexts = b"ABC".iter().any(|letter| options.has(*letter));
                if contexts && *divided && (start > printed || printed == 0) && !options.has(b'N') {
                    shell.out(b"--\n")?;
                }
                let mut earlier: usize = offset - lines[start..at].iter().map(|line| line.len() + 1).sum::<usize>();
                for (at, line) in lines.iter().enumerate().take(at).skip(start) {
                    self.line(shell, name, (at, earlier), line, b'-', None)?;
                    earlier += line.len() + 1;
                }
                self.line(shell, name, (at, offset), line, b':', Some(&places))?;
                (printed, open, *divided) = (at + 1, self.after, true);
            }
            offset += line.len() + 1;
            if name == b"-" && selected == most && !options.has(b'q') && !lists {
                // Behind the last line of those that -m asks for, input is left.
                left = content.len().saturating_sub(offset);
            }
        }
        shell.give_back(left, false);
        if options.has(b'L') && selected == 0 || (options.has(b'l') && !options.has(b'L') && selected > 0) {
            self.listed(shell, name)?;
        } else if options.has(b'c') && !options.has(b'q') && !lists {
            self.counted(shell, name, selected)?;
        }
        Ok(selected > 0)
    }

    /// Whether lines are printed.
    fn prints(&self) -> bool {
        !b"qlLc".iter().any(|letter| self.options.has(*letter))
    }

    /// How many lines are selected at most.
    fn most(&self, shell: &Shell<'_>) -> Run<usize> {
        Ok(self.options.value(b'm').map(|text| count(shell, text)).transpose()?.unwrap_or(usize::MAX))
    }

    fn shown<'n>(&'n self, name: &'n [u8]) -> &'n [u8] {
        if name == b"-" { self.options.value(b'0').unwrap_or(b"(standard input)") } else { name }
    }

    /// Writes the name of a file for `-l` and `-L`.
    fn listed(&self, shell: &mut Shell<'_>, name: &[u8]) -> Run<()> {
        if self.options.has(b'q') { Ok(()) } else { shell.out(&[self.shown(name), b"\n"].concat()) }
    }

    fn counted(&self, shell: &mut Shell<'_>, name: &[u8], selected: usize) -> Run<()> {
        let prefix = if self.named { [self.shown(name), b":"].concat() } else { Vec::new() };
        shell.out(&[&prefix[..], selected.to_string().as_bytes(), b"\n"].concat())
    }

    /// Writes a line, with `-o` the places of it that match; lines of the context have none.
    fn line(
        &self,
        shell: &mut Shell<'_>,
        name: &[u8],
        (at, offset): (usize, usize),
        line: &[u8],
        mark: u8,
        places: Option<&[(usize, usize)]>,
    ) -> Run<()> {
        let options = self.options;
        let prefix = |offset: usize| {
            let mut prefix = if self.named { [self.shown(name), &[mark]].concat() } else { Vec::new() };
            if options.has(b'n') {
                prefix.extend([(at + 1).to_string().as_bytes(), &[mark]].concat());
            }
            if options.has(b'b') {
                prefix.extend([offset.to_string().as_bytes(), &[mark]].concat());
            }
            prefix
        };
        if !options.has(b'o') {
            return shell.out(&[&prefix(offset)[..], line, b"\n"].concat());
        }
        for (start, end) in places.filter(|_| !options.has(b'v')).unwrap_or_default() {
            if start < end {
                shell.out(&[&prefix(offset + start)[..], &line[*start..*end], b"\n"].concat())?;
            }
        }
        Ok(())
    }
}
