//! openssl(1) for update-ca-certificates(8): `rehash` links each certificate of a directory under the hash of its subject, where OpenSSL
//! looks it up. Any other command generates keys, which only the machine may have.

mod pem;
mod subject;

use std::collections::BTreeMap;

use sha1::{Digest as _, Sha1};
use vmbake_shell::{Call, Follow, NodeKind, Outcome};

use super::{Command, Done, System, idle, programs, status, unsupported};
use pem::Found;

/// Extensions of files that are looked into (`extensions` in `apps/rehash.c`).
const EXTENSIONS: [&str; 4] = ["pem", "crt", "cer", "crl"];

/// Largest file that is read, in bytes: the bundle of all certificates has 250,000.
const MAX_FILE: usize = 16 << 20;

pub(super) fn find(name: &str) -> Option<Command> {
    (name == "openssl").then_some(openssl as Command)
}

fn openssl(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let words: Vec<&[u8]> = call.args.iter().map(Vec::as_slice).collect();
    match words[..] {
        [b"rehash", b"-v", dir] | [b"rehash", dir] if !dir.starts_with(b"-") => {
            if !programs::is_present(call) {
                call.stderr.extend_from_slice(b"openssl: not found\n");
                return status(127);
            }
            let dir = call.path(dir);
            rehash(call, &dir)
        }
        _ => idle::machine(system, call),
    }
}

/// What a link is to be named after: the hash of a subject.
type Hash = u32;

/// A certificate, or what a link that is there leads to.
struct Entry {
    target: Vec<u8>,
    /// The smallest number of the links that lead to it.
    number: Option<usize>,
    fingerprint: Option<[u8; 20]>,
}

/// All entries of one hash, in the order of their names.
#[derive(Default)]
struct Bucket {
    entries: Vec<Entry>,
}

impl Bucket {
    /// Takes a link that is there.
    fn link(&mut self, target: Vec<u8>, number: usize) {
        match self.entries.iter_mut().find(|entry| entry.target == target) {
            Some(entry) => entry.number = Some(entry.number.map_or(number, |old| old.min(number))),
            None => self.entries.push(Entry { target, number: Some(number), fingerprint: None }),
        }
    }

    /// Takes a certificate; false for one that another file has, too.
    fn certificate(&mut self, name: Vec<u8>, fingerprint: [u8; 20]) -> bool {
        if self.entries.iter().any(|entry| entry.fingerprint == Some(fingerprint)) {
            return false;
        }
        match self.entries.iter_mut().find(|entry| entry.target == name) {
            Some(entry) => entry.fingerprint = Some(fingerprint),
            None => self.entries.push(Entry { target: name, number: None, fingerprint: Some(fingerprint) }),
        }
        true
    }

    /// The numbers of links that go, and those that are made, with what they lead to.
    fn changes(&self) -> (Vec<usize>, Vec<(usize, &[u8])>) {
        let needed = self.entries.iter().filter(|entry| entry.fingerprint.is_some()).count();
        let stays = |entry: &&Entry| entry.number.is_some_and(|number| number < needed);
        let mut taken: Vec<usize> = self.entries.iter().filter(stays).filter_map(|entry| entry.number).collect();
        let (mut gone, mut made) = (Vec::new(), Vec::new());
        for entry in self.entries.iter().filter(|entry| !stays(entry)) {
            match (entry.fingerprint, entry.number) {
                (Some(_), _) => {
                    let number = (0..).find(|number| !taken.contains(number)).unwrap_or(needed);
                    taken.push(number);
                    made.push((number, entry.target.as_slice()));
                }
                (None, Some(number)) => gone.push(number),
                (None, None) => {}
            }
        }
        (gone, made)
    }
}

/// Makes the links of a directory as `openssl rehash` of OpenSSL 3 does, with the files in the order of their names.
fn rehash(call: &mut Call<'_>, dir: &[u8]) -> Done {
    let path = |name: &[u8]| [dir, b"/", name].concat();
    let Ok(mut names) = call.files.list(dir) else { return unsupported(call) };
    names.sort();
    let mut buckets: BTreeMap<Hash, Bucket> = BTreeMap::new();
    for name in names {
        let kind = call.files.lookup(&path(&name), Follow::No).map(|node| node.kind);
        if kind == Ok(NodeKind::Symlink)
            && let (Some((hash, number)), Ok(target)) = (of_link(&name), call.files.read_link(&path(&name)))
        {
            buckets.entry(hash).or_default().link(target, number);
            continue;
        }
        let shown = String::from_utf8_lossy(&name).into_owned();
        let mut warn = |what: &str| call.stderr.extend(format!("rehash: warning: {what} {shown}\n").into_bytes());
        if !has_extension(&shown) {
            continue;
        }
        let Ok(content) = call.files.read(&path(&name), MAX_FILE) else {
            call.stderr.extend(format!("rehash: error: skipping {shown}, cannot open file\n").into_bytes());
            return status(1);
        };
        match pem::find(&content) {
            Found::Nothing => {}
            Found::Several => warn("not exactly one certificate or CRL, skipping"),
            Found::Certificate(der) => {
                let Some(hash) = subject::hash(&der) else {
                    return Ok(Outcome::Unsupported(format!("a certificate such as {shown}")));
                };
                if !buckets.entry(hash).or_default().certificate(name, Sha1::digest(&der).into()) {
                    warn("skipping duplicate certificate in");
                }
            }
            Found::Other(label) => return Ok(Outcome::Unsupported(format!("{label} in {shown}"))),
        }
    }
    for (hash, bucket) in buckets {
        let link = |number: usize| path(format!("{hash:08x}.{number}").as_bytes());
        let (gone, made) = bucket.changes();
        for number in gone {
            let _removed = call.files.remove(&link(number));
        }
        for (number, target) in made {
            let _replaced = call.files.remove(&link(number));
            if call.files.symlink(target, &link(number)).is_err() {
                return status(1);
            }
        }
    }
    status(0)
}

fn has_extension(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, end)| EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(end)))
}

/// The hash and the number of a link to a certificate, such as `5ad8a5d6.0`. Links to revocation lists (`.r0`) are others.
fn of_link(name: &[u8]) -> Option<(Hash, usize)> {
    let name = std::str::from_utf8(name).ok()?;
    let (hash, number) = name.split_once('.')?;
    let is_hash = hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if !is_hash || !is_number {
        return None;
    }
    Some((u32::from_str_radix(hash, 16).ok()?, number.parse().ok()?))
}
