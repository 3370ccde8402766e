//! What a refusal says: a status and a document in XML or JSON enter, a code and a message leave.

use serde::Deserialize;

use super::error::ServiceRefusal;
use super::xml::Xml;
use vmbake_store::http::Reply;

/// Characters of a message that are kept: EC2 adds an encoded text of a kilobyte to a denial.
const MAX_MESSAGE: usize = 2000;
/// Characters of a code that are kept.
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

/// Reads a refusal; what it is about is still to be added.
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

/// A code without the name space before it and the address after it.
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
