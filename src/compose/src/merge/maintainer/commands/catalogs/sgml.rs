//! update-catalog(8): adds entries to the centralized catalogs of packages, removes them, and lists these catalogs in the super catalog.

use vmbake_shell::{Call, Follow, NodeKind};

use super::tokens::{is_blank, is_word, tokens, unquoted};
use super::{chopped, is_file, lines, read, rename, words, write};

/// Directory of the centralized catalogs.
const DIRECTORY: &str = "/etc/sgml";
const SUPER: &str = "/var/lib/sgml-base/supercatalog";
/// What a new centralized catalog is made from.
const TEMPLATE: &str = "/usr/share/sgml-base/catalog.centralized";
const HEADER: &str = "--\n## This file is created by update-catalog with update-super.\n\
    ## Please see update-catalog(8) for how to modify this file.\n--\n";

pub(super) enum Ended {
    Done,
    /// The super catalog is left to the trigger of sgml-base.
    SetsOff(&'static str),
}

/// What the program is called with.
#[derive(Default)]
struct Options {
    add: bool,
    remove: bool,
    update_super: bool,
    is_super: bool,
    quiet: bool,
}

pub(super) fn update(call: &mut Call<'_>) -> Result<Ended, String> {
    let words = words(call).ok_or("its arguments are not UTF-8")?;
    let (options, operands) = parse(&words).ok_or("its options")?;
    if options.is_super {
        call.stdout
            .extend_from_slice(b"update-catalog: Suppressing action on super catalog. Invoking trigger instead.\n");
        return Ok(Ended::SetsOff(DIRECTORY));
    }
    let mut say = |text: String| {
        if !options.quiet {
            call.stdout.extend(text.into_bytes());
        }
    };
    match operands {
        [catalog, entry] if options.add => {
            say(format!("Adding entry {entry} to catalog {catalog}...\n"));
            store(call, catalog, entry, true)?;
        }
        [catalog, entry] => {
            say(format!("Removing entry {entry} from catalog {catalog}...\n"));
            store(call, catalog, entry, false)?;
        }
        _ => {
            say("Updating the super catalog...\n".to_owned());
            write_super(call, options.quiet)?;
        }
    }
    Ok(Ended::Done)
}

/// Divides the arguments; `None` where the program would explain its usage or only test.
fn parse(words: &[String]) -> Option<(Options, &[String])> {
    let mut options = Options::default();
    let mut left = words;
    while let Some((word, rest)) = left.split_first().filter(|(word, _)| word.starts_with("--")) {
        left = rest;
        match word.as_str() {
            "--" => break,
            "--add" => options.add = true,
            "--remove" => options.remove = true,
            "--update-super" => options.update_super = true,
            "--super" => options.is_super = true,
            "--quiet" => options.quiet = true,
            _ => return None,
        }
    }
    let modes = [options.add, options.remove, options.update_super];
    let wanted = match (options.update_super, options.is_super) {
        (true, _) => 0,
        (false, true) => 1,
        (false, false) => 2,
    };
    (modes.iter().filter(|mode| **mode).count() == 1 && left.len() == wanted).then_some((options, left))
}

/// Writes a centralized catalog without the lines that an entry fits, and with the entry at its end if it is added.
fn store(call: &mut Call<'_>, catalog: &str, entry: &str, adds: bool) -> Result<(), String> {
    let is_there = is_file(call, catalog);
    let mut kept: Vec<Vec<u8>> = match is_there {
        true => {
            let pattern = pattern(entry)?;
            let content = read(call, catalog)?;
            chopped(&content).filter(|line| !pattern.fits(line)).map(<[u8]>::to_vec).collect()
        }
        false => chopped(&read(call, TEMPLATE)?).map(|line| named(line, catalog)).collect(),
    };
    if adds {
        kept.push(format!("CATALOG {entry}").into_bytes());
    }
    if is_there {
        rename(call, catalog, &format!("{catalog}.old"))?;
    }
    write(call, catalog, lines(kept.iter().map(Vec::as_slice)))
}

/// A line of the template, with the name of the catalog in the place of the first `CATALOG`.
fn named(line: &[u8], catalog: &str) -> Vec<u8> {
    const PLACE: &[u8] = b"CATALOG";
    match line.windows(PLACE.len()).position(|window| window == PLACE) {
        Some(at) => [&line[..at], catalog.as_bytes(), &line[at + PLACE.len()..]].concat(),
        None => line.to_vec(),
    }
}

/// An entry, which the program takes for a regular expression.
struct Pattern<'a>(&'a [u8]);

impl Pattern<'_> {
    fn fits(&self, line: &[u8]) -> bool {
        let fits = |(wanted, found): (&u8, &u8)| wanted == found || (*wanted == b'.' && *found != b'\n');
        line.windows(self.0.len()).any(|window| self.0.iter().zip(window).all(fits))
    }
}

/// Entries in which only the dot is special; an empty expression means the last one that the program has used.
fn pattern(entry: &str) -> Result<Pattern<'_>, String> {
    if entry.is_empty() || entry.contains(['\\', '^', '$', '*', '+', '?', '(', ')', '[', ']', '{', '}', '|']) {
        return Err(format!("the entry {entry:?} is a regular expression"));
    }
    Ok(Pattern(entry.as_bytes()))
}

/// Lists the centralized catalogs whose references exist.
fn write_super(call: &mut Call<'_>, quiet: bool) -> Result<(), String> {
    let names = call.files.list(DIRECTORY.as_bytes()).map_err(|error| format!("{DIRECTORY}: {error}"))?;
    let mut content = HEADER.to_owned();
    for name in names {
        let is_catalog = !name.starts_with(b".") && name.get(1..).is_some_and(|rest| rest.ends_with(b".cat"));
        match String::from_utf8(name) {
            Ok(name) if name.contains('\n') => return Err(format!("the name {name:?} in {DIRECTORY}")),
            Ok(name) if is_catalog => {
                let catalog = format!("{DIRECTORY}/{name}");
                match warning(call, &catalog)? {
                    None => content.push_str(&format!("CATALOG {catalog}\n")),
                    Some(text) if !quiet => call.stdout.extend(text.into_bytes()),
                    Some(_) => {}
                }
            }
            Err(name) if is_catalog => return Err(format!("the name {:?} in {DIRECTORY}", name.into_bytes())),
            _ => {}
        }
    }
    let new = format!("{SUPER}.new");
    write(call, &new, content.into_bytes())?;
    if call.files.lookup(SUPER.as_bytes(), Follow::Yes).is_ok() {
        rename(call, SUPER, &format!("{SUPER}.old"))?;
    }
    rename(call, &new, SUPER)
}

/// Why a catalog is left out: it cannot be read, or a catalog that it references does not exist.
fn warning(call: &Call<'_>, catalog: &str) -> Result<Option<String>, String> {
    let content = match call.files.lookup(catalog.as_bytes(), Follow::Yes).map(|node| node.kind) {
        Err(_) => return Ok(Some(format!("Warning: Ignoring unreadable catalog file `{catalog}'.\n"))),
        Ok(NodeKind::File) => read(call, catalog)?,
        // It can be opened, and there is nothing to read.
        Ok(NodeKind::Directory) => return Ok(None),
        Ok(_) => return Err(format!("{catalog} is not a regular file")),
    };
    let mut base = DIRECTORY.as_bytes().to_vec();
    let mut tokens = tokens(&content);
    while let Some(token) = tokens.next() {
        let is_base = is_word(token, b"base");
        if !is_base && !is_word(token, b"catalog") {
            continue;
        }
        let Some(value) = tokens.find(|token| !is_blank(token)).map(unquoted) else { break };
        if is_base {
            base = value.to_vec();
            continue;
        }
        let path = if value.starts_with(b"/") { value.to_vec() } else { [&base[..], b"/", value].concat() };
        if !call.files.lookup(&call.path(&path), Follow::Yes).is_ok_and(|node| node.is_file()) {
            let why = "which references non-existent catalogs. See man update-catalog for details.";
            return Ok(Some(format!("Warning ignoring catalog `{catalog}' {why}\n")));
        }
    }
    Ok(None)
}
