//! A scripted server that records requests.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    /// With the query.
    pub path: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// An answer.
pub struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

pub fn reply(status: u16, body: impl Into<Vec<u8>>) -> Reply {
    Reply { status, headers: Vec::new(), body: body.into() }
}

impl Reply {
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

pub struct StandIn {
    /// Host and port.
    pub address: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl StandIn {
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn lines(&self) -> Vec<String> {
        self.seen().iter().map(Seen::line).collect()
    }
}

/// Answers each request by `answer`, which is told how many came before it and its own address.
pub fn serve(answer: impl Fn(usize, &Seen, &str) -> Reply + Send + Sync + 'static) -> StandIn {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (log, own, answer) = (seen.clone(), address.clone(), Arc::new(answer));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (log, own, answer) = (log.clone(), own.clone(), answer.clone());
            std::thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while let Some(request) = receive(&mut reader) {
                    let before = {
                        let mut log = log.lock().unwrap();
                        log.push(request.clone());
                        log.len() - 1
                    };
                    let Reply { status, headers, body } = answer(before, &request, &own);
                    let mut head = format!("HTTP/1.1 {status} x\r\n");
                    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
                    if request.method != "HEAD" {
                        head.push_str(&format!("content-length: {}\r\n", body.len()));
                    }
                    head.push_str("\r\n");
                    let body = if request.method == "HEAD" { &[][..] } else { &body };
                    // A client that disconnects early is not an error.
                    if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).is_err() {
                        return;
                    }
                }
            });
        }
    });
    StandIn { address, seen }
}

fn receive(reader: &mut impl BufRead) -> Option<Seen> {
    let mut lines = reader.by_ref().lines().map_while(Result::ok);
    let first = lines.next()?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let headers: Vec<(String, String)> = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned())))
        .collect();
    let mut request = Seen { method, path, headers, body: Vec::new() };
    let len = request.header("content-length").map_or(0, |len| len.parse().unwrap());
    request.body.resize(len, 0);
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}
