//! Downloads from servers that fail, lie or never end. Each server is a scripted thread.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use vmbake_common::digest::Digest;
use vmbake_store::download::{DownloadError, DownloadRequest, Downloaded, ensure_blob};
use vmbake_store::http::{Client, HttpError, Limits, Mirrors, Request};
use vmbake_store::store::Store;

/// A request as the server saw it.
#[derive(Clone, Debug)]
struct Seen {
    path: String,
    range: Option<usize>,
}

/// A server on loopback; `answer` writes the response to the request of that number.
struct Server {
    url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    fn start(answer: impl Fn(usize, &Seen, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (seen.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (log, answer) = (log.clone(), answer.clone());
                std::thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    let Some(request) = read_request(&stream) else { return };
                    let number = {
                        let mut log = log.lock().unwrap();
                        log.push(request.clone());
                        log.len()
                    };
                    answer(number, &request, &mut stream);
                });
            }
        });
        Self { url, seen }
    }

    fn requests(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn ranges(&self) -> Vec<Option<usize>> {
        self.requests().iter().map(|seen| seen.range).collect()
    }
}

fn read_request(stream: &TcpStream) -> Option<Seen> {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let first = lines.next()?.ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut range = None;
    for line in lines {
        let line = line.ok()?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(start) = line.strip_prefix("range: bytes=") {
            range = start.trim_end_matches('-').parse().ok();
        }
    }
    Some(Seen { path, range })
}

/// Sends a whole answer; the connection ends with it. A client that disconnects early is not an error.
fn send(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) {
    let len = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {len}\r\nconnection: close\r\n{headers}\r\n");
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

/// Announces the whole body from `from` on, but sends only `len` bytes of it.
fn send_cut(stream: &mut TcpStream, body: &[u8], from: usize, len: usize) {
    let (status, range) = match from {
        0 => ("200 OK", String::new()),
        _ => ("206 Partial Content", format!("content-range: bytes {from}-{}/{}\r\n", body.len() - 1, body.len())),
    };
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{range}\r\n", body.len() - from);
    let end = (from + len).min(body.len());
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body[from..end]));
}

fn content() -> Vec<u8> {
    (0..3_000_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).take(3_000_000).collect()
}

fn get(server: &Server, store: &Path, content: &[u8]) -> Result<Downloaded, DownloadError> {
    let size = Some(content.len() as u64);
    let wanted = DownloadRequest { digest: Some(Digest::of(content)), size, ..wanted(server, "file") };
    ensure_blob(&Client::new(Mirrors::default()), &open(store), &wanted, &|_| {})
}

fn wanted(server: &Server, path: &str) -> DownloadRequest {
    DownloadRequest { urls: vec![format!("{}{path}", server.url)], limit: 4 << 20, ..DownloadRequest::default() }
}

fn open(store: &Path) -> Store {
    Store::open(Some(store.to_owned())).unwrap()
}

/// No blob has a name that is not its digest, and no half of one is left in sight.
fn assert_sound(store: &Path, blobs: u64) {
    let (count, corrupt) = open(store).verify(NonZeroUsize::MIN).unwrap();
    assert_eq!((count, corrupt.len()), (blobs, 0));
}

#[test]
fn a_connection_that_is_cut_is_continued() {
    let body = content();
    let whole = body.clone();
    let server = Server::start(move |_, seen, stream| {
        send_cut(stream, &whole, seen.range.unwrap_or(0), 1_000_000);
    });
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(get(&server, dir.path(), &body).unwrap().size, 3_000_000);
    assert_eq!(server.ranges(), [None, Some(1_000_000), Some(2_000_000)]);
    assert_sound(dir.path(), 1);
    get(&server, dir.path(), &body).unwrap();
    assert_eq!(server.requests().len(), 3, "what is in the store is not fetched again");
}

#[test]
fn a_later_run_continues_and_a_changed_file_starts_over() {
    let body = content();
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let digest = Digest::of(&body);
    let mut partial = store.partial(&digest.hex(), digest.hasher()).unwrap();
    partial.write(&body[..1_500_000]).unwrap();
    drop(partial);
    let whole = body.clone();
    let server = Server::start(move |_, seen, stream| {
        send_cut(stream, &whole, seen.range.unwrap_or(0), usize::MAX / 2);
    });
    get(&server, dir.path(), &body).unwrap();
    assert_eq!(server.ranges(), [Some(1_500_000)]);

    // The beginning that is there belongs to another file: the sum is wrong, and all of it is fetched.
    store.discard(&digest).unwrap();
    let mut partial = store.partial(&digest.hex(), digest.hasher()).unwrap();
    partial.write(&[0; 1000]).unwrap();
    drop(partial);
    get(&server, dir.path(), &body).unwrap();
    assert_eq!(server.ranges()[1..], [Some(1000), None]);
    assert_sound(dir.path(), 1);
}

#[test]
fn a_server_without_ranges_starts_over() {
    let body = content();
    let dir = tempfile::tempdir().unwrap();
    for status in ["200 OK", "416 Range Not Satisfiable"] {
        let digest = Digest::of(&body);
        open(dir.path()).discard(&digest).unwrap();
        let mut partial = open(dir.path()).partial(&digest.hex(), digest.hasher()).unwrap();
        partial.reset().unwrap();
        partial.write(&body[..1000]).unwrap();
        drop(partial);
        let whole = body.clone();
        let server = Server::start(move |_, seen, stream| match seen.range {
            Some(_) if status.starts_with("416") => send(stream, status, "", b""),
            _ => send(stream, "200 OK", "", &whole),
        });
        get(&server, dir.path(), &body).unwrap();
        assert_sound(dir.path(), 1);
    }
}

#[test]
fn a_damaged_blob_is_replaced() {
    let body = content();
    let whole = body.clone();
    let server = Server::start(move |_, _, stream| send(stream, "200 OK", "", &whole));
    let dir = tempfile::tempdir().unwrap();
    get(&server, dir.path(), &body).unwrap();
    let path = open(dir.path()).path(&Digest::of(&body));
    let mut damaged = body.clone();
    damaged[1234] ^= 1;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, damaged).unwrap();
    get(&server, dir.path(), &body).unwrap();
    assert_eq!(server.requests().len(), 2);
    assert_eq!(std::fs::read(path).unwrap(), body);
}

#[test]
fn other_content_is_refused_and_not_kept() {
    let body = content();
    let mut other = body.clone();
    other[2_000_000] ^= 1;
    let server = Server::start(move |_, _, stream| send(stream, "200 OK", "", &other));
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(get(&server, dir.path(), &body), Err(DownloadError::Digest { .. })));
    assert_sound(dir.path(), 0);
    let short = body[..1000].to_vec();
    let server = Server::start(move |_, _, stream| send(stream, "200 OK", "", &short));
    let error = get(&server, dir.path(), &body).unwrap_err();
    assert!(matches!(error, DownloadError::Size { expected: 3_000_000, found: 1000, .. }), "{error}");
}

#[test]
fn a_body_without_end_is_cut_off() {
    let server = Server::start(|_, _, stream| {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let chunk = [b"10000\r\n".as_slice(), &[7; 0x10000], b"\r\n"].concat();
        let mut alive = stream.write_all(head.as_bytes()).is_ok();
        while alive {
            alive = stream.write_all(&chunk).is_ok();
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let body = content();
    let error = get(&server, dir.path(), &body).unwrap_err();
    assert!(matches!(error, DownloadError::Http(HttpError::TooLarge { limit: 3_000_000, .. })), "{error}");
    // Its length is unknown, and the limit applies.
    let client = Client::new(Mirrors::default());
    let error = ensure_blob(&client, &open(dir.path()), &wanted(&server, "x"), &|_| {}).unwrap_err();
    assert!(matches!(error, DownloadError::Http(HttpError::TooLarge { .. })), "{error}");
    let server = Server::start(|_, _, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n");
    });
    let error = get(&server, dir.path(), &body).unwrap_err();
    assert!(matches!(error, DownloadError::Http(HttpError::TooLarge { .. })), "{error}");
    assert_sound(dir.path(), 0);
}

#[test]
fn redirects_are_followed_but_not_for_ever() {
    let server = Server::start(|_, seen, stream| match seen.path.as_str() {
        "/file" => send(stream, "302 Found", "location: /a/other\r\n", b""),
        "/a/other" => send(stream, "307 Temporary Redirect", "location: third\r\n", b""),
        "/a/third" => send(stream, "200 OK", "", b"found"),
        _ => send(stream, "302 Found", "location: /loop\r\n", b""),
    });
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(get(&server, dir.path(), b"found").unwrap().size, 5);
    let client = Client::new(Mirrors::default());
    let error = client.get(&format!("{}loop", server.url), 100).unwrap_err();
    assert!(matches!(error, HttpError::Redirects { .. }), "{error}");
    assert_eq!(server.requests().len(), 3 + 6);
}

#[test]
fn what_may_pass_is_tried_again() {
    let server = Server::start(|number, _, stream| match number {
        1 => send(stream, "503 Service Unavailable", "", b""),
        2 => send(stream, "429 Too Many Requests", "retry-after: 0\r\n", b""),
        _ => send(stream, "200 OK", "", b"found"),
    });
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(get(&server, dir.path(), b"found").unwrap().size, 5);
    let broken = Server::start(|_, _, stream| send(stream, "500 Internal Server Error", "retry-after: 0\r\n", b""));
    let error = get(&broken, dir.path(), b"lost").unwrap_err();
    assert!(matches!(error, DownloadError::Http(HttpError::Status { status: 500, .. })), "{error}");
    assert_eq!(broken.requests().len(), 5);
}

#[test]
fn what_left_its_place_is_found_in_the_next() {
    let server = Server::start(|_, seen, stream| match seen.path.as_str() {
        "/new" => send(stream, "404 Not Found", "", b""),
        _ => send(stream, "200 OK", "", b"old"),
    });
    let dir = tempfile::tempdir().unwrap();
    let urls = vec![format!("{}new", server.url), format!("{}snapshot", server.url)];
    let wanted =
        DownloadRequest { urls, digest: Some(Digest::of(b"old")), size: Some(3), ..DownloadRequest::default() };
    ensure_blob(&Client::new(Mirrors::default()), &open(dir.path()), &wanted, &|_| {}).unwrap();
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn two_at_once_fetch_once() {
    let body = content();
    let whole = body.clone();
    let server = Server::start(move |_, _, stream| {
        std::thread::sleep(Duration::from_millis(200));
        send(stream, "200 OK", "", &whole);
    });
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| get(&server, dir.path(), &body).unwrap());
        }
    });
    assert_eq!(server.requests().len(), 1);
    assert_sound(dir.path(), 1);
}

#[test]
fn whoever_waits_for_a_blob_gets_it_while_the_first_still_has_it_open() {
    let body = content();
    let whole = body.clone();
    let server = Server::start(move |_, _, stream| {
        std::thread::sleep(Duration::from_millis(200));
        send(stream, "200 OK", "", &whole);
    });
    let dir = tempfile::tempdir().unwrap();
    let (sender, receiver) = mpsc::channel();
    for _ in 0..2 {
        let (url, body, path, sender) = (server.url.clone(), body.clone(), dir.path().to_owned(), sender.clone());
        std::thread::spawn(move || {
            let urls = vec![format!("{url}file")];
            let (digest, size) = (Some(Digest::of(&body)), Some(body.len() as u64));
            let wanted = DownloadRequest { urls, digest, size, ..DownloadRequest::default() };
            sender
                .send(ensure_blob(&Client::new(Mirrors::default()), &open(&path), &wanted, &|_| {}).unwrap())
                .unwrap();
        });
    }
    let first = receiver.recv_timeout(Duration::from_secs(20)).unwrap();
    let second = receiver.recv_timeout(Duration::from_secs(20)).expect("the second waits for the first to let go");
    assert_eq!((first.digest, server.requests().len()), (second.digest, 1));
    assert_eq!(std::fs::read_dir(dir.path().join("partial")).unwrap().count(), 0, "nothing is left in progress");
}

#[test]
fn starting_over_again_and_again_is_no_progress() {
    let body = content();
    // Without ranges each attempt starts over, and the connection breaks now earlier and now later; or what was kept of
    // the first half is refused.
    for with_416 in [false, true] {
        let whole = body.clone();
        let server = Server::start(move |number, seen, stream| match (number % 2, seen.range) {
            (_, Some(_)) if with_416 => send(stream, "416 Range Not Satisfiable", "", b""),
            (odd, _) => send_cut(stream, &whole, 0, 100_000 * (1 + odd)),
        });
        let dir = tempfile::tempdir().unwrap();
        let (sender, receiver) = mpsc::channel();
        let (url, len, digest) = (server.url.clone(), body.len() as u64, Digest::of(&body));
        let path = dir.path().to_owned();
        std::thread::spawn(move || {
            let urls = vec![format!("{url}file")];
            let wanted = DownloadRequest { urls, digest: Some(digest), size: Some(len), ..DownloadRequest::default() };
            sender
                .send(ensure_blob(&Client::new(Mirrors::default()), &open(&path), &wanted, &|_| {}).is_err())
                .unwrap();
        });
        assert_eq!(receiver.recv_timeout(Duration::from_secs(40)), Ok(true), "it never gives up");
    }
}

#[test]
fn two_halves_of_different_files_are_thrown_away_within_one_run() {
    let body = content();
    let whole = body.clone();
    let server = Server::start(move |number, seen, stream| match number {
        1 => send_cut(stream, &[0; 3_000_000], 0, 1_000_000),
        _ => send_cut(stream, &whole, seen.range.unwrap_or(0), usize::MAX / 2),
    });
    let dir = tempfile::tempdir().unwrap();
    get(&server, dir.path(), &body).unwrap();
    assert_eq!(server.ranges(), [None, Some(1_000_000), None]);
    assert_sound(dir.path(), 1);
}

#[test]
fn progress_is_told_of_every_byte_once() {
    let body = content();
    let whole = body.clone();
    let server = Server::start(move |number, seen, stream| {
        // The second attempt is refused its range and starts over.
        let from = if number == 2 { 0 } else { seen.range.unwrap_or(0) };
        send_cut(stream, &whole, from, 1_500_000);
    });
    let dir = tempfile::tempdir().unwrap();
    let told = std::sync::atomic::AtomicU64::new(0);
    let (digest, size) = (Some(Digest::of(&body)), Some(body.len() as u64));
    let wanted = DownloadRequest { digest, size, ..wanted(&server, "file") };
    let progress = |bytes| _ = told.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
    ensure_blob(&Client::new(Mirrors::default()), &open(dir.path()), &wanted, &progress).unwrap();
    assert_eq!(told.into_inner(), 3_000_000);
}

/// Announces a body and sends a byte of it now and then, until the client hangs up.
fn trickle(stream: &mut TcpStream, len: usize) {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {len}\r\nconnection: close\r\n\r\n");
    let mut alive = stream.write_all(head.as_bytes());
    while alive.is_ok() {
        std::thread::sleep(Duration::from_millis(5));
        alive = stream.write_all(b"x");
    }
}

#[test]
fn a_server_that_sends_a_byte_now_and_then_is_given_up() {
    let server = Server::start(|_, _, stream| trickle(stream, 1_000_000));
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { window: Duration::from_millis(50), least_rate: 1 << 30, ..Limits::default() };
    let client = Client::with_limits(Mirrors::default(), limits);
    let error = ensure_blob(&client, &open(dir.path()), &wanted(&server, "file"), &|_| {}).unwrap_err();
    assert!(matches!(error, DownloadError::Http(HttpError::Slow { bytes: 1.., .. })), "{error}");
    assert_eq!(
        server.requests().len(),
        5,
        "it is asked again as after other failures, but slow bytes do not count as progress"
    );
    let error = client.get(&format!("{}document", server.url), 2_000_000).unwrap_err();
    assert!(matches!(error, HttpError::Slow { .. }), "{error}");
    assert_eq!(server.requests().len(), 10);
}

#[test]
fn all_attempts_together_have_a_deadline() {
    let body = content();
    let whole = body.clone();
    // Each answer brings something, so none of them is a failure.
    let server = Server::start(move |_, seen, stream| send_cut(stream, &whole, seen.range.unwrap_or(0), 1_000));
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { artifact: Duration::from_millis(600), document: Duration::ZERO, ..Limits::default() };
    let client = Client::with_limits(Mirrors::default(), limits);
    let wanted = DownloadRequest { digest: Some(Digest::of(&body)), ..wanted(&server, "file") };
    let error = ensure_blob(&client, &open(dir.path()), &wanted, &|_| {}).unwrap_err();
    assert!(matches!(error, DownloadError::Http(HttpError::Deadline { .. })), "{error}");
    let asked = server.requests().len();
    assert!(asked > 0);
    let error = client.get(&format!("{}document", server.url), 4 << 20).unwrap_err();
    assert!(matches!(error, HttpError::Deadline { .. }), "{error}");
    assert_eq!(server.requests().len(), asked, "no request after the deadline");

    let patient =
        Server::start(move |_, seen, stream| send_cut(stream, &body, seen.range.unwrap_or(0), usize::MAX / 2));
    let wanted = DownloadRequest { urls: vec![format!("{}file", patient.url)], ..wanted };
    ensure_blob(&Client::new(Mirrors::default()), &open(dir.path()), &wanted, &|_| {}).unwrap();
    assert!(patient.ranges()[0] > Some(0), "what had come is kept");
}

#[test]
fn a_trickling_document_has_a_deadline() {
    let server = Server::start(|_, _, stream| trickle(stream, 1_000_000));
    let limits = Limits { document: Duration::from_millis(100), least_rate: 0, ..Limits::default() };
    let error = Client::with_limits(Mirrors::default(), limits).get(&server.url, 2_000_000).unwrap_err();
    assert!(matches!(error, HttpError::Deadline { .. }), "{error}");
    assert_eq!(server.requests().len(), 1, "it is final");
}

#[test]
fn a_request_may_pass_mirrors_by() {
    let mirror = Server::start(|_, _, stream| send(stream, "200 OK", "", b"mirror"));
    let site = Server::start(|_, seen, stream| match seen.path.as_str() {
        "/moved" => send(stream, "302 Found", "location: /file\r\n", b""),
        _ => send(stream, "200 OK", "", b"site"),
    });
    let mut mirrors = Mirrors::default();
    mirrors.insert(format!("{}={}", site.url, mirror.url).parse().unwrap());
    let client = Client::new(mirrors);
    for path in ["file", "moved"] {
        let url = format!("{}{path}", site.url);
        let ask = |request: &Request<'_>| client.send(request, |answer| answer.read(100)).unwrap();
        assert_eq!(ask(&Request::get(&url)), b"mirror", "{path}");
        assert_eq!(ask(&Request::get(&url).without_mirrors()), b"site", "{path}");
    }
}
