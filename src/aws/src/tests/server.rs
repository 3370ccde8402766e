//! A server on loopback. A connection serves many requests, and a script answers each.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A request as the server saw it.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub method: String,
    pub path: String,
    /// Lines of the head, whose names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// A parameter of a form, whose value has nothing that is escaped.
    pub fn parameter(&self, name: &str) -> Option<String> {
        let body = String::from_utf8(self.body.clone()).unwrap();
        body.split('&').find_map(|pair| Some(pair.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
    }
}

/// What the server does with a request.
#[derive(Clone, Debug)]
pub enum CannedAnswer {
    /// A whole answer, and the connection stays.
    Whole { status: u16, headers: String, body: Vec<u8> },
    /// The start of an answer whose end never comes.
    Cut { body: Vec<u8>, announced: usize },
    /// The connection is closed silently.
    Closed,
    /// Nothing is said until the other side hangs up.
    Silent,
}

impl CannedAnswer {
    pub fn ok(body: &str) -> Self {
        Self::status(200, "", body)
    }

    pub fn status(status: u16, headers: &str, body: &str) -> Self {
        Self::Whole { status, headers: headers.to_owned(), body: body.as_bytes().to_vec() }
    }

    /// A refusal of a service with JSON.
    pub fn refusal(status: u16, code: &str) -> Self {
        Self::status(status, &format!("x-amzn-ErrorType: {code}:http://internal/\r\n"), r#"{"Message":"said"}"#)
    }

    /// A refusal of EC2.
    pub fn ec2(status: u16, code: &str) -> Self {
        let error = format!("<Error><Code>{code}</Code><Message>said</Message></Error>");
        Self::status(status, "", &format!("<Response><Errors>{error}</Errors><RequestID>r</RequestID></Response>"))
    }
}

/// Answers by a script, which gets the number of the request, from 1 on.
pub struct Server {
    pub url: String,
    pub connections: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub fn start(script: impl Fn(usize, &Seen) -> CannedAnswer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (seen, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let (log, count, script) = (seen.clone(), connections.clone(), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                count.fetch_add(1, Ordering::SeqCst);
                let (log, script, stream) = (log.clone(), script.clone(), stream.unwrap());
                std::thread::spawn(move || serve(&stream, &log, &*script));
            }
        });
        Self { url, connections, seen }
    }

    /// A server that always gives the same answer.
    pub fn always(answer: CannedAnswer) -> Self {
        Self::start(move |_, _| answer.clone())
    }

    /// A server that gives these answers one after the other, and the last one from then on.
    pub fn series(answers: Vec<CannedAnswer>) -> Self {
        Self::start(move |number, _| answers.get(number - 1).or(answers.last()).unwrap().clone())
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

/// A client that disconnects early is not a failure of the server.
fn serve(stream: &TcpStream, log: &Mutex<Vec<Seen>>, script: &dyn Fn(usize, &Seen) -> CannedAnswer) {
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    while let Some(seen) = request(&mut reader) {
        let number = {
            let mut log = log.lock().unwrap();
            log.push(seen.clone());
            log.len()
        };
        let result = match script(number, &seen) {
            CannedAnswer::Whole { status, headers, body } => {
                let head = format!("HTTP/1.1 {status} said\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
                writer.write_all(&[head.as_bytes(), &body].concat())
            }
            CannedAnswer::Cut { body, announced } => {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {announced}\r\n\r\n");
                let _ = writer.write_all(&[head.as_bytes(), &body].concat());
                return;
            }
            CannedAnswer::Closed => return,
            CannedAnswer::Silent => {
                let _ = reader.read(&mut [0]);
                return;
            }
        };
        if result.is_err() {
            return;
        }
    }
}

fn request(reader: &mut impl BufRead) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|len| *len > 0)?;
    let mut words = line.split(' ');
    let mut seen = Seen { method: words.next()?.to_owned(), path: words.next()?.to_owned(), ..Seen::default() };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        seen.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let len = seen.header("content-length").map_or(0, |len| len.parse().unwrap());
    seen.body = vec![0; len];
    reader.read_exact(&mut seen.body).ok()?;
    Some(seen)
}
