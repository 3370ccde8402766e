//! Calls to a server on loopback that answers by a script: requests, retries, and handling of responses.

mod blocks;
mod chain;
mod repeated;
mod server;
mod xml;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_credential_types::provider::future::ProvideCredentials as Provided;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};

use super::client::{Aws, Shared};
use super::endpoint::Endpoints;
use super::identity::Identity;
use super::retry::Policy;
use super::transport::Transport;
use server::Server;
use vmbake_store::http::{ApiLimits, Client, Mirrors, Retry};

/// Part of the secret key that must not appear in errors.
const SECRET: &str = "wJalrXUtnFEMI";

/// Retries whose pauses are short, and whose time is enough for a busy machine.
const POLICY: Policy = Policy {
    retry: Retry { attempts: 4, first_pause: Duration::from_millis(1), max_pause: Duration::from_millis(32) },
    throttled: 6,
    total: Duration::from_secs(120),
};

/// A client of a server, with credentials that never expire.
fn client(server: &Server) -> Aws {
    client_of(server, SharedCredentialsProvider::new(credentials(0, None)), ApiLimits::default())
}

fn client_of(server: &Server, provider: SharedCredentialsProvider, limits: ApiLimits) -> Aws {
    let http = Client::new(Mirrors::default());
    let endpoints = Endpoints::default().overridden(Some(&server.url), false).unwrap();
    let transport = Transport::new(&http, limits, POLICY);
    Aws::new(Arc::new(Shared { transport, identity: Identity::new(provider), endpoints }), "eu-central-1")
}

fn credentials(number: u32, expiry: Option<SystemTime>) -> Credentials {
    let secret = format!("{SECRET}/K7MDENG+bPxRfiCYEXAMPLEKEY");
    Credentials::new(format!("AKIDEXAMPLE{number}"), secret, None, expiry, "tests")
}

/// Gives other credentials each time that it is asked, up to a number.
#[derive(Debug)]
struct Series {
    last: u32,
    asked: std::sync::atomic::AtomicU32,
    expiry: Option<SystemTime>,
}

impl Series {
    fn new(last: u32, expiry: Option<SystemTime>) -> Self {
        Self { last, asked: 0.into(), expiry }
    }
}

impl ProvideCredentials for Series {
    fn provide_credentials<'a>(&'a self) -> Provided<'a>
    where
        Self: 'a,
    {
        let number = self.asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Provided::ready(Ok(credentials(number.min(self.last), self.expiry)))
    }
}
