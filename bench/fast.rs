//! A fast server in place of EBS, EC2 and STS, for measurements, and what loads it. Nothing is checked: no signatures, no digests, no lineage beyond the
//! parent. `standin.py` is faithful, and a hundred times slower.
//!
//! `fast serve [--latency MS] [--rate N] [--keep DIR]` prints `url=http://127.0.0.1:PORT` and serves until it is killed. Each answer waits for MS, and no more
//! than N blocks are taken in a second: others wait. Blocks are kept in DIR, a file for each snapshot, or only counted. `GET /_fast/state` tells each snapshot: blocks that were put, and the seconds from its start to its end.
//!
//! `fast load URL [--connections N] [--blocks N]` puts blocks of 512 KiB from memory and prints `blocks/s=RATE`.

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::fs::File;
use std::io::{Error, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::exit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a block.
const BLOCK: usize = 524_288;
/// Most bytes of what comes before a body.
const HEAD: usize = 64 << 10;
const ACCOUNT: &str = "123456789012";

/// A snapshot. `view` has the blocks of its parent too: the snapshot that wrote each, and its checksum.
struct Disk {
    number: usize,
    id: String,
    token: String,
    gib: u64,
    parent: Option<String>,
    tags: Vec<(String, String)>,
    written: BTreeMap<u64, String>,
    view: BTreeMap<u64, (String, String)>,
    file: Option<Arc<File>>,
    puts: u64,
    started: Instant,
    took: Option<Duration>,
}

/// A machine image: what RegisterImage was told.
struct Image {
    id: String,
    form: HashMap<String, String>,
}

#[derive(Default)]
struct World {
    disks: Vec<Disk>,
    images: Vec<Image>,
}

struct Server {
    latency: Duration,
    /// Between two puts, and when the next one may be.
    gap: Duration,
    next: Mutex<Instant>,
    keep: Option<PathBuf>,
    world: Mutex<World>,
}

/// One request, whose body is in the buffer of its connection.
struct Request<'a> {
    method: &'a str,
    path: &'a str,
    head: &'a str,
    body: &'a [u8],
}

/// Status, more lines of the head, body.
type Answer = (u16, String, Vec<u8>);

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let option = |name: &str| arguments.iter().position(|word| word == name).and_then(|at| arguments.get(at + 1));
    let number = |name: &str, default: u64| option(name).map_or(Ok(default), |text| text.parse().map_err(Error::other));
    let done = match arguments.get(1).map(String::as_str) {
        Some("serve") => match (number("--latency", 0), number("--rate", 0)) {
            (Ok(latency), Ok(rate)) => serve(latency, rate, option("--keep").map(PathBuf::from)),
            _ => Err(Error::other("fast serve [--latency MS] [--rate N] [--keep DIR]")),
        },
        Some("load") => match (arguments.get(2), number("--connections", 64), number("--blocks", 8000)) {
            (Some(url), Ok(connections), Ok(blocks)) => load(url, connections.max(1), blocks),
            _ => Err(Error::other("fast load URL [--connections N] [--blocks N]")),
        },
        _ => Err(Error::other("fast serve|load")),
    };
    if let Err(error) = done {
        eprintln!("fast: {error}");
        exit(1);
    }
}

fn serve(latency: u64, rate: u64, keep: Option<PathBuf>) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("url=http://{}", listener.local_addr()?);
    let gap = Duration::from_secs(1).checked_div(u32::try_from(rate).unwrap_or(0)).unwrap_or_default();
    let (latency, next) = (Duration::from_millis(latency), Mutex::new(Instant::now()));
    let server = Arc::new(Server { latency, gap, next, keep, world: Mutex::default() });
    for connection in listener.incoming() {
        let (connection, server) = (connection?, Arc::clone(&server));
        // Clients close their connections as they like.
        thread::spawn(move || drop(server.connection(connection)));
    }
    Ok(())
}

impl Server {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until another block may be taken.
    fn take_turn(&self) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let at = (*next).max(Instant::now());
        *next = at + self.gap;
        drop(next);
        thread::sleep(at.saturating_duration_since(Instant::now()));
    }

    /// Answers one request after the other.
    fn connection(&self, mut connection: TcpStream) -> Result<()> {
        connection.set_nodelay(true)?;
        let mut buffer = vec![0; HEAD + BLOCK];
        let mut filled = 0;
        loop {
            let Some((head, length)) = read_request(&mut connection, &mut buffer, &mut filled)? else {
                return Ok(());
            };
            let text = std::str::from_utf8(&buffer[..head]).map_err(Error::other)?;
            let mut words = text.split(' ');
            let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let path = target.split('?').next().unwrap_or_default();
            let request = Request { method, path, head: text, body: &buffer[head..head + length] };
            let (status, more, body) = self.answer(&request);
            thread::sleep(self.latency);
            let mut out =
                format!("HTTP/1.1 {status} X\r\nx-amzn-RequestId: 0\r\nContent-Length: {}\r\n{more}\r\n", body.len())
                    .into_bytes();
            out.extend_from_slice(&body);
            connection.write_all(&out)?;
            buffer.copy_within(head + length..filled, 0);
            filled -= head + length;
        }
    }

    fn answer(&self, request: &Request<'_>) -> Answer {
        let parts: Vec<&str> = request.path.split('/').skip(1).collect();
        match (request.method, parts.as_slice()) {
            ("PUT", ["snapshots", id, "blocks", index]) => self.put(request, id, index),
            ("GET", ["snapshots", id, "blocks", index]) => self.get(id, index),
            ("GET", ["snapshots", id, "blocks"]) => self.list(id, false),
            ("GET", ["snapshots", id, "changedblocks"]) => self.list(id, true),
            ("POST", ["snapshots", "completion", id]) => self.complete(id),
            ("POST", ["snapshots"]) => self.start(&String::from_utf8_lossy(request.body)),
            ("GET", ["_fast", "state"]) => self.state(),
            _ => self.query(&form(&String::from_utf8_lossy(request.body))),
        }
    }

    fn start(&self, asked: &str) -> Answer {
        let mut world = self.world();
        let token = member(asked, "ClientToken").unwrap_or_default();
        let known = world.disks.iter().position(|disk| !token.is_empty() && disk.token == token);
        let at = known.unwrap_or(world.disks.len());
        if known.is_none() {
            let parent = member(asked, "ParentSnapshotId");
            let view = world.disks.iter().find(|disk| Some(&disk.id) == parent.as_ref()).map(|disk| disk.view.clone());
            let id = format!("snap-{at:017x}");
            let file = self.keep.as_ref().and_then(|folder| {
                File::options().read(true).write(true).create(true).truncate(true).open(folder.join(&id)).ok()
            });
            let gib = asked.split("\"VolumeSize\":").nth(1).map_or(1, |text| {
                text.trim_start()
                    .chars()
                    .map_while(|digit| digit.to_digit(10))
                    .fold(0, |sum, digit| sum * 10 + u64::from(digit))
            });
            let tags = asked
                .split("\"Key\"")
                .skip(1)
                .filter_map(|text| Some((member(&format!("\"Key\"{text}"), "Key")?, member(text, "Value")?)))
                .collect();
            let file = file.map(Arc::new);
            world.disks.push(Disk {
                number: at,
                id,
                token,
                gib,
                parent,
                tags,
                written: BTreeMap::new(),
                view: view.unwrap_or_default(),
                file,
                puts: 0,
                started: Instant::now(),
                took: None,
            });
        }
        let Disk { id, gib, parent, .. } = &world.disks[at];
        let parent = parent.as_ref().map_or(String::new(), |parent| format!(",\"ParentSnapshotId\":\"{parent}\""));
        json(
            201,
            format!(
                "{{\"SnapshotId\":\"{id}\",\"OwnerId\":\"{ACCOUNT}\",\"Status\":\"pending\",\"StartTime\":1,\"VolumeSize\":{gib},\"BlockSize\":{BLOCK}{parent}}}"
            ),
        )
    }

    fn put(&self, request: &Request<'_>, id: &str, index: &str) -> Answer {
        let (Ok(index), Some(checksum)) = (index.parse::<u64>(), header(request.head, "x-amz-checksum")) else {
            return json(400, "{}".to_owned());
        };
        if request.body.len() != BLOCK {
            return json(400, "{\"Message\":\"length\",\"Reason\":\"INVALID_BLOCK\"}".to_owned());
        }
        self.take_turn();
        let mut world = self.world();
        let file = match world.disks.iter_mut().find(|disk| disk.id == id) {
            Some(disk) => {
                disk.puts += 1;
                disk.written.insert(index, checksum.to_owned());
                disk.view.insert(index, (id.to_owned(), checksum.to_owned()));
                disk.file.clone()
            }
            None if id == "load" => None,
            None => return missing(),
        };
        drop(world);
        if file.is_some_and(|file| file.write_all_at(request.body, index * BLOCK as u64).is_err()) {
            return json(500, "{}".to_owned());
        }
        (201, format!("x-amz-Checksum: {checksum}\r\nx-amz-Checksum-Algorithm: SHA256\r\n"), Vec::new())
    }

    fn get(&self, id: &str, index: &str) -> Answer {
        let world = self.world();
        let found = index.parse().ok().and_then(|index: u64| {
            let (owner, checksum) = world.disks.iter().find(|disk| disk.id == id)?.view.get(&index)?;
            let file = world.disks.iter().find(|disk| disk.id == *owner)?.file.clone()?;
            Some((index, checksum.clone(), file))
        });
        drop(world);
        let Some((index, checksum, file)) = found else {
            return missing();
        };
        let mut block = vec![0; BLOCK];
        if file.read_exact_at(&mut block, index * BLOCK as u64).is_err() {
            return json(500, "{}".to_owned());
        }
        (
            200,
            format!("x-amz-Data-Length: {BLOCK}\r\nx-amz-Checksum: {checksum}\r\nx-amz-Checksum-Algorithm: SHA256\r\n"),
            block,
        )
    }

    fn complete(&self, id: &str) -> Answer {
        match self.world().disks.iter_mut().find(|disk| disk.id == id) {
            Some(disk) => {
                disk.took = Some(disk.started.elapsed());
                json(202, "{\"Status\":\"completed\"}".to_owned())
            }
            None => missing(),
        }
    }

    /// All blocks, or those that differ from the parent.
    fn list(&self, id: &str, changed: bool) -> Answer {
        let world = self.world();
        let Some(disk) = world.disks.iter().find(|disk| disk.id == id) else {
            return missing();
        };
        let (name, token) = if changed { ("ChangedBlocks", "SecondBlockToken") } else { ("Blocks", "BlockToken") };
        let indexes: Vec<&u64> = if changed { disk.written.keys().collect() } else { disk.view.keys().collect() };
        let blocks: Vec<String> =
            indexes.iter().map(|index| format!("{{\"BlockIndex\":{index},\"{token}\":\"AAAA\"}}")).collect();
        json(
            200,
            format!(
                "{{\"{name}\":[{}],\"VolumeSize\":{},\"BlockSize\":{BLOCK},\"ExpiryTime\":4102444800}}",
                blocks.join(","),
                disk.gib
            ),
        )
    }

    fn state(&self) -> Answer {
        let one = |disk: &Disk| {
            let seconds = disk.took.unwrap_or_default().as_secs_f64();
            format!(
                "{{\"id\":\"{}\",\"puts\":{},\"blocks\":{},\"view\":{},\"seconds\":{seconds}}}",
                disk.id,
                disk.puts,
                disk.written.len(),
                disk.view.len()
            )
        };
        json(200, format!("[{}]", self.world().disks.iter().map(one).collect::<Vec<_>>().join(",")))
    }

    /// EC2 and STS.
    fn query(&self, form: &HashMap<String, String>) -> Answer {
        let action = form.get("Action").map_or("", String::as_str);
        let mut world = self.world();
        let inner = match action {
            "GetCallerIdentity" => format!(
                "<GetCallerIdentityResult><Arn>arn:aws:iam::{ACCOUNT}:root</Arn><UserId>X</UserId><Account>{ACCOUNT}</Account></GetCallerIdentityResult>"
            ),
            "DescribeSnapshots" => {
                set("snapshotSet", world.disks.iter().filter(|disk| disk.meets(form)).map(Disk::xml))
            }
            "DescribeImages" => set("imagesSet", world.images.iter().filter(|image| image.meets(form)).map(Image::xml)),
            "RegisterImage" if form.get("DryRun").is_some_and(|dry| dry == "true") => {
                return (412, String::new(), b"<Response><Errors><Error><Code>DryRunOperation</Code><Message>X</Message></Error></Errors></Response>".to_vec());
            }
            "RegisterImage" => {
                let id = format!("ami-{:017x}", world.images.len());
                world.images.push(Image { id: id.clone(), form: form.clone() });
                format!("<imageId>{id}</imageId>")
            }
            "GetEbsEncryptionByDefault" => "<ebsEncryptionByDefault>false</ebsEncryptionByDefault>".to_owned(),
            "GetImageBlockPublicAccessState" => {
                "<imageBlockPublicAccessState>unblocked</imageBlockPublicAccessState>".to_owned()
            }
            _ => "<return>true</return>".to_owned(),
        };
        (
            200,
            "Content-Type: text/xml\r\n".to_owned(),
            format!("<{action}Response><requestId>0</requestId>{inner}</{action}Response>").into_bytes(),
        )
    }
}

impl Disk {
    fn status(&self) -> &'static str {
        if self.took.is_some() { "completed" } else { "pending" }
    }

    fn meets(&self, form: &HashMap<String, String>) -> bool {
        form.get("SnapshotId.1").is_none_or(|id| *id == self.id)
            && filters(form).all(|(name, values)| match name.strip_prefix("tag:") {
                Some(key) => self.tags.iter().any(|(found, value)| found == key && values.contains(value)),
                None => name != "status" || values.iter().any(|value| value == self.status()),
            })
    }

    fn xml(&self) -> String {
        let (id, gib, state, tags) = (
            &self.id,
            self.gib,
            self.status(),
            tag_set(self.tags.iter().map(|(key, value)| (key.as_str(), value.as_str()))),
        );
        format!(
            "<item><snapshotId>{id}</snapshotId><status>{state}</status><volumeSize>{gib}</volumeSize><encrypted>false</encrypted><ownerId>{ACCOUNT}</ownerId><startTime>2026-01-01T00:00:00.{:03}Z</startTime>{tags}</item>",
            self.number % 1000
        )
    }
}

impl Image {
    fn said(&self, name: &str) -> &str {
        self.form.get(name).map_or("", String::as_str)
    }

    fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        let keys = (1..)
            .map(|number| format!("TagSpecification.1.Tag.{number}."))
            .map_while(|prefix| Some((self.form.get(&format!("{prefix}Key"))?.as_str(), prefix)));
        keys.map(|(key, prefix)| (key, self.said(&format!("{prefix}Value"))))
    }

    fn meets(&self, form: &HashMap<String, String>) -> bool {
        form.get("ImageId.1").is_none_or(|id| *id == self.id)
            && filters(form).all(|(name, values)| {
                let has = |found: &str| values.iter().any(|value| value == found);
                match name.strip_prefix("tag:") {
                    Some(key) => self.tags().any(|(found, value)| found == key && has(value)),
                    None => (name != "name" || has(self.said("Name"))) && (name != "image-id" || has(&self.id)),
                }
            })
    }

    fn xml(&self) -> String {
        let mut fields = String::new();
        for (name, key) in [
            ("name", "Name"),
            ("architecture", "Architecture"),
            ("bootMode", "BootMode"),
            ("imdsSupport", "ImdsSupport"),
            ("tpmSupport", "TpmSupport"),
            ("rootDeviceName", "RootDeviceName"),
            ("enaSupport", "EnaSupport"),
        ] {
            if self.form.contains_key(key) {
                fields += &format!("<{name}>{}</{name}>", escaped(self.said(key)));
            }
        }
        let (id, snapshot) = (&self.id, self.said("BlockDeviceMapping.1.Ebs.SnapshotId"));
        let disk = format!(
            "<blockDeviceMapping><item><deviceName>{}</deviceName><ebs><snapshotId>{snapshot}</snapshotId></ebs></item></blockDeviceMapping>",
            self.said("BlockDeviceMapping.1.DeviceName")
        );
        format!(
            "<item><imageId>{id}</imageId><imageState>available</imageState><isPublic>false</isPublic>{fields}{disk}{}</item>",
            tag_set(self.tags())
        )
    }
}

/// Reads until a whole request is in the buffer: the length of its head and of its body. `None`: the client has closed.
fn read_request(
    connection: &mut TcpStream,
    buffer: &mut Vec<u8>,
    filled: &mut usize,
) -> Result<Option<(usize, usize)>> {
    let mut whole = None;
    loop {
        if whole.is_none() {
            if let Some(at) = buffer[..*filled].windows(4).position(|four| four == b"\r\n\r\n") {
                let head = std::str::from_utf8(&buffer[..at]).map_err(Error::other)?;
                let length = header(head, "content-length").map_or(Ok(0), |text| text.parse().map_err(Error::other))?;
                if at + 4 + length > buffer.len() {
                    return Err(Error::other("too long"));
                }
                whole = Some((at + 4, length));
            }
        }
        if let Some((head, length)) = whole {
            if *filled >= head + length {
                return Ok(whole);
            }
        } else if *filled >= HEAD {
            return Err(Error::other("too long"));
        }
        // No further than the head may go, until it is there: bodies are large.
        let end = whole.map_or(HEAD, |(head, length)| head + length);
        match connection.read(&mut buffer[*filled..end])? {
            0 => return Ok(None),
            count => *filled += count,
        }
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(found, _)| found.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

fn form(text: &str) -> HashMap<String, String> {
    text.split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let hex = |byte: Option<u8>| {
            byte.and_then(|byte| char::from(byte).to_digit(16))
                .and_then(|digit| u8::try_from(digit).ok())
                .unwrap_or_default()
        };
        bytes.push(match byte {
            b'%' => hex(rest.next()) * 16 + hex(rest.next()),
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The first string of that name in a JSON document.
fn member(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("\"{name}\""))?;
    let mut value = String::new();
    let mut characters = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?.chars();
    loop {
        match characters.next()? {
            '"' => return Some(value),
            '\\' => value.push(characters.next()?),
            other => value.push(other),
        }
    }
}

/// The filters of a description: a name, and the values that it may have.
fn filters(form: &HashMap<String, String>) -> impl Iterator<Item = (&str, Vec<String>)> {
    (1..).map_while(|number| {
        let name = form.get(&format!("Filter.{number}.Name"))?;
        let values = (1..)
            .map_while(|value| form.get(&format!("Filter.{number}.Value.{value}")))
            .map(|value| value.replace('\\', ""));
        Some((name.as_str(), values.collect()))
    })
}

fn set(name: &str, items: impl Iterator<Item = String>) -> String {
    format!("<{name}>{}</{name}>", items.collect::<String>())
}

fn tag_set<'a>(tags: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    set(
        "tagSet",
        tags.map(|(key, value)| format!("<item><key>{}</key><value>{}</value></item>", escaped(key), escaped(value))),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn json(status: u16, body: String) -> Answer {
    (status, "Content-Type: application/json\r\n".to_owned(), body.into_bytes())
}

fn missing() -> Answer {
    let more = "Content-Type: application/json\r\nx-amzn-ErrorType: ResourceNotFoundException\r\n";
    (404, more.to_owned(), b"{\"Message\":\"none\",\"Reason\":\"SNAPSHOT_NOT_FOUND\"}".to_vec())
}

/// Puts that many blocks over that many connections, as fast as the server takes them.
fn load(url: &str, connections: u64, blocks: u64) -> Result<()> {
    let address = url.strip_prefix("http://").unwrap_or(url).to_owned();
    let (left, started) = (Arc::new(AtomicU64::new(blocks)), Instant::now());
    let threads: Vec<_> = (0..connections)
        .map(|_| {
            let (address, left) = (address.clone(), Arc::clone(&left));
            thread::spawn(move || put_all(&address, &left))
        })
        .collect();
    for thread in threads {
        thread.join().map_err(|_| Error::other("a connection failed"))??;
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("blocks={blocks} seconds={seconds:.3} blocks/s={:.0}", blocks as f64 / seconds);
    Ok(())
}

fn put_all(address: &str, left: &AtomicU64) -> Result<()> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_nodelay(true)?;
    let (block, mut answer, mut filled) = (vec![7; BLOCK], vec![0; HEAD], 0);
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1)).is_ok() {
        let head = format!(
            "PUT /snapshots/load/blocks/0 HTTP/1.1\r\nHost: {address}\r\nContent-Length: {BLOCK}\r\nx-amz-Checksum: AAAA\r\nx-amz-Checksum-Algorithm: SHA256\r\nx-amz-Data-Length: {BLOCK}\r\n\r\n"
        );
        connection.write_all(head.as_bytes())?;
        connection.write_all(&block)?;
        let (head, length) = read_request(&mut connection, &mut answer, &mut filled)?
            .ok_or_else(|| Error::other("the server has closed"))?;
        if !answer.starts_with(b"HTTP/1.1 201 ") {
            return Err(Error::other("a block was refused"));
        }
        answer.copy_within(head + length..filled, 0);
        filled -= head + length;
    }
    Ok(())
}
