//! update-xmlcatalog(8): adds entries to XML catalogs, and removes them. The entries of each catalog are kept in a file below [`STATE`],
//! from which the whole catalog is written.
//!
//! Without `--sort`, the order of the program's entries is that of a Perl hash, which differs in each run. Here they are sorted then, too.

use std::collections::BTreeMap;

use vmbake_shell::{Call, Follow};

use super::options::Options;
use super::{chopped, is_file, lines, read, rename, words, write};

/// Directory of the catalog of all packages and of those of each.
pub(super) const DIRECTORY: &str = "/etc/xml";
const STATE: &str = "/var/lib/xml-core";
const HEADER: &str = "/usr/share/xml-core/catalog.header";
const FOOTER: &str = "/usr/share/xml-core/catalog.footer";
const PROGRAM: &str = "update-xmlcatalog";

/// Entries of a catalog: element with the attribute that it is found by, and the attribute with what it leads to.
type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// The catalog that changes, and the entry.
struct Change {
    catalog: String,
    state: String,
    key: String,
    value: String,
}

impl Change {
    fn of(options: &Options) -> Result<Self, String> {
        let (kind, id) = (options.kind.as_deref().unwrap_or_default(), options.id.as_deref().unwrap_or_default());
        let package = options.package.as_deref().unwrap_or_default();
        if options.package.is_some() && (["", ".", ".."].contains(&package) || package.contains('/')) {
            return Err(format!("the package {package:?}"));
        }
        let (element, attribute) = match kind {
            "public" => ("delegatePublic", "publicId"),
            "system" => ("delegateSystem", "systemId"),
            _ => ("delegateURI", "uri"),
        };
        let delegated = format!("{element} {attribute}StartString=\"{id}\"");
        let local = options.local.as_deref().unwrap_or_default();
        Ok(if options.root {
            Self {
                catalog: format!("{DIRECTORY}/catalog"),
                state: format!("{STATE}/catalog"),
                key: delegated,
                value: format!("catalog=\"file:///etc/xml/{package}.xml\""),
            }
        } else if options.package.is_some() {
            Self {
                catalog: format!("{DIRECTORY}/{package}.xml"),
                state: format!("{STATE}/{package}"),
                key: delegated,
                value: format!("catalog=\"file://{local}\""),
            }
        } else {
            let attribute = if kind == "uri" { "name" } else { attribute };
            Self {
                catalog: local.to_owned(),
                state: format!("{STATE}/{}", local.replace('/', "_")),
                key: format!("{kind} {attribute}=\"{id}\""),
                value: format!("uri=\"{}\"", options.file.as_deref().unwrap_or_default()),
            }
        })
    }
}

/// Gives the program's exit status, or why it runs on the machine.
pub(super) fn update(call: &mut Call<'_>) -> Result<u8, String> {
    let words = words(call).ok_or("its arguments are not UTF-8")?;
    let options = Options::parse(&words).ok_or("its options")?;
    if let Some(message) = options.refusal(call) {
        call.stderr.extend(format!("{PROGRAM}: error: {message}\n").into_bytes());
        return Ok(1);
    }
    let change = Change::of(&options)?;
    let mut say = Vec::new();
    let done = store(call, &options, &change, &mut say);
    if options.verbose {
        call.stdout.extend(say.iter().flat_map(|text| format!("{PROGRAM}: {text}\n").into_bytes()));
    }
    done
}

/// Changes the entries of a catalog, and writes it.
fn store(call: &mut Call<'_>, options: &Options, change: &Change, say: &mut Vec<String>) -> Result<u8, String> {
    let Change { catalog, state, key, .. } = change;
    let mut entries = Entries::new();
    if is_file(call, state) {
        say.push(format!("reading catalog data {state}"));
        entries = parse(&read(call, state)?);
    } else if options.del {
        let is_absent = call.files.lookup(state.as_bytes(), Follow::No).is_err();
        if !is_absent || call.are_errors_captured {
            return Err(format!("{state} is not a regular file"));
        }
        say.push(format!("reading catalog data {state}"));
        let what = format!("{PROGRAM}: cannot open catalog data {state} for reading: No such file or directory\n");
        call.stderr.extend(what.into_bytes());
        return Ok(2);
    }
    let changed = if options.add {
        add(call, options, change, &mut entries, say)
    } else {
        remove(call, key, state, &mut entries, say)
    };
    if !changed {
        return Ok(1);
    }
    if is_file(call, catalog) {
        let backup = format!("{catalog}.old");
        if is_file(call, &backup) {
            say.push(format!("removing backup {backup}"));
        }
        say.push(format!("moving catalog {catalog} to backup {backup}"));
        rename(call, catalog, &backup)?;
    }
    let saved: Vec<Vec<u8>> =
        entries.iter().map(|(key, value)| [b"<", &key[..], b"><", value, b">"].concat()).collect();
    replace(call, ("catalog data", state), lines(saved.iter().map(Vec::as_slice)), entries.is_empty(), say)?;
    let shown: Vec<Vec<u8>> =
        entries.iter().map(|(key, value)| [b"<", &key[..], b" ", value, b"/>"].concat()).collect();
    let (header, footer) = (read(call, HEADER)?, read(call, FOOTER)?);
    let all = chopped(&header).chain(shown.iter().map(Vec::as_slice)).chain(chopped(&footer));
    replace(call, ("catalog", catalog), lines(all), entries.is_empty(), say)?;
    Ok(0)
}

/// The entries that the program has saved, each in a line: `<KEY><VALUE>`.
fn parse(content: &[u8]) -> Entries {
    let entries = chopped(content).map(|line| {
        let mut fields =
            line.split(|byte| *byte == b'>').map(|field| field.strip_prefix(b"<").unwrap_or(field).to_vec());
        (fields.next().unwrap_or_default(), fields.next().unwrap_or_default())
    });
    entries.collect()
}

/// Whether an entry is added, or was there before.
fn add(call: &mut Call<'_>, options: &Options, change: &Change, entries: &mut Entries, say: &mut Vec<String>) -> bool {
    let Change { state, key, value, .. } = change;
    match entries.get(key.as_bytes()) {
        None => {
            say.push(format!("adding entity to catalog data {state} with the same value"));
            entries.insert(key.clone().into_bytes(), value.clone().into_bytes());
            true
        }
        Some(old) if old == value.as_bytes() => {
            if options.verbose {
                call.stderr.extend(format!("{PROGRAM}: notice: entity already registered\n").into_bytes());
            }
            true
        }
        Some(old) => {
            let text =
                format!("{PROGRAM}: error: entity already registered with a different value\n Entity   : [{key}]\n");
            let parts = [text.as_bytes(), b" Old value: [", old, b"]\n New value: [", value.as_bytes(), b"]\n"];
            call.stderr.extend(parts.concat());
            false
        }
    }
}

/// Removes an entry; returns whether it existed.
fn remove(call: &mut Call<'_>, key: &str, state: &str, entries: &mut Entries, say: &mut Vec<String>) -> bool {
    let found = entries.remove(key.as_bytes()).is_some();
    match found {
        true => say.push(format!("removing entity from catalog data {state}")),
        false => call.stderr.extend(format!("{PROGRAM}: error: entity not registered\n").into_bytes()),
    }
    found
}

/// Writes a file, which goes if it is that of a catalog without entries.
fn replace(
    call: &mut Call<'_>,
    (what, path): (&str, &str),
    content: Vec<u8>,
    is_empty: bool,
    say: &mut Vec<String>,
) -> Result<(), String> {
    say.push(format!("writing {what} {path}"));
    write(call, path, content)?;
    if is_empty {
        say.push(format!("removing {what} {path}"));
        let at = call.path(path.as_bytes());
        call.files.remove(&at).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}
