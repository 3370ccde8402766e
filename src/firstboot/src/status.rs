//! Formats the result of the last run as one line.

use serde_json::Value;

/// The line that `configure` prints to the console and `status` to a terminal. A missing fact is `-`.
pub fn line(record: &Value) -> String {
    let fact = |pointer| plain(record.pointer(pointer).and_then(Value::as_str).unwrap_or("-"));
    match record["state"].as_str() {
        Some("failed") => {
            let reason = record["error"].as_str().unwrap_or("-");
            let reason: String = reason.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            format!("vmbake-firstboot: failed: {reason}")
        }
        Some("unfinished") => "vmbake-firstboot: unfinished".to_owned(),
        _ => format!(
            "vmbake-firstboot: configured {} {} host={} dev={} ipv4={}",
            fact("/image/id"),
            fact("/image/version"),
            fact("/hostname"),
            fact("/network/device"),
            fact("/network/ipv4"),
        ),
    }
}

/// Escapes line breaks and control characters.
fn plain(value: &str) -> String {
    value.chars().map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn absent_facts_are_dashes_and_control_characters_are_replaced() {
        assert_eq!(line(&json!({})), "vmbake-firstboot: configured - - host=- dev=- ipv4=-");
        assert!(line(&json!({ "hostname": "a\u{1b}[2J\nb c" })).contains(" host=a?[2J?b?c "));
        let failed = json!({ "state": "failed", "error": "no\u{1b} é" });
        assert_eq!(line(&failed), "vmbake-firstboot: failed: no? é");
    }
}
