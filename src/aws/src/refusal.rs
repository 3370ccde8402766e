//! Parses error responses: status, and code and message from XML or JSON.

use serde::Deserialize;

use super::error::ServiceRefusal;
use super::xml::Xml;
use vmbake_store::http::Reply;

/// Maximum length of a message: EC2 adds a kilobyte of encoded text to a denial.
const MAX_MESSAGE: usize = 2000;
/// Maximum length of a code.
const MAX_CODE: usize = 100;

#[derive(Default, Deserialize)]
struct Json {
    #[serde(rename = "__type")]
    kind: Option<String>,
    code: Option<String>,
    #[serde(alias = "Message")]
    message: Option<String>,
    #[serde(alias = "Reason")]
    reason: Option<String>,
}

/// Parses an error response; the caller adds action and resource.
pub(super) fn parse(reply: &Reply) -> ServiceRefusal {
    let text = String::from_utf8_lossy(&reply.body);
    let (code, message, reason) = match text.trim_start().starts_with('<') {
        true => xml(&text),
        false => json(reply.header("x-amzn-errortype"), &text),
    };
    ServiceRefusal {
        status: reply.status,
        code: code.map_or_else(|| format!("status {}", reply.status), |code| cut(&code, MAX_CODE)),
        message: cut(&message.unwrap_or_default(), MAX_MESSAGE),
        reason: reason.map(|reason| cut(&reason, MAX_CODE)),
        ..ServiceRefusal::default()
    }
}

fn json(header: Option<&str>, text: &str) -> (Option<String>, Option<String>, Option<String>) {
    let json: Json = serde_json::from_str(text).unwrap_or_default();
    let code = header.map(str::to_owned).or(json.kind).or(json.code);
    (code.map(|code| bare(&code).to_owned()), json.message, json.reason)
}

/// A code without its namespace and URL.
fn bare(code: &str) -> &str {
    let code = code.split(':').next().unwrap_or_default();
    code.rsplit('#').next().unwrap_or_default()
}

/// EC2 has `Response/Errors/Error`, STS `ErrorResponse/Error`.
fn xml(text: &str) -> (Option<String>, Option<String>, Option<String>) {
    let xml = Xml::new(String::new(), text.to_owned());
    let read = xml.read(|root| {
        let error = root.child("Errors").and_then(|errors| errors.child("Error")).or_else(|_| root.child("Error"))?;
        Ok((error.some_text("Code"), error.some_text("Message")))
    });
    let (code, message) = read.unwrap_or_default();
    (code, message, None)
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
