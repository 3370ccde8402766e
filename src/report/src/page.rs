//! Renders the report as HTML; text of the image enters it only here.
//!
//! All text except the path data passes through [`escape::line`], so that no control character can change the direction of text or hide
//! it; then the template escapes it for HTML, in elements and attributes. Style and script are built-in files, which a
//! Content-Security-Policy allows by digest: no other script runs, and no requests are sent.

use base64ct::{Base64, Encoding};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::ReportError;
use super::table::Section;
use vmbake_common::escape;

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

#[derive(Debug, Serialize)]
pub(super) struct Page {
    /// Name of the image.
    pub(super) name: String,
    /// File name.
    pub(super) file: String,
    /// Missing information and errors.
    pub(super) notes: Vec<String>,
    pub(super) sections: Vec<Section>,
}

/// Renders the document. `data` has the paths as JSON without `<`.
pub(super) fn render(page: &Page, data: Option<&str>) -> Result<String, ReportError> {
    let mut page = serde_json::to_value(page)?;
    escape_all(&mut page);
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let blocks = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?;
    environment.set_syntax(blocks);
    environment.add_template("page", TEMPLATE)?;
    let (style_digest, script_digest) = (integrity(STYLE), integrity(SCRIPT));
    let (style, script) = (STYLE, SCRIPT);
    let found = context! { page => Serde(page), data, style, script, style_digest, script_digest };
    Ok(environment.get_template("page")?.render(found)?)
}

/// The hash source of a text: `sha256-…`, CSP level 3, section 2.3.1.
fn integrity(text: &str) -> String {
    format!("sha256-{}", Base64::encode_string(&Sha256::digest(text.as_bytes())))
}

fn escape_all(value: &mut Value) {
    match value {
        Value::String(text) => *text = escape::line(&*text),
        Value::Array(list) => list.iter_mut().for_each(escape_all),
        Value::Object(fields) => fields.values_mut().for_each(escape_all),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Fact, Table};

    #[test]
    fn text_cannot_become_markup() {
        let hostile = "</script><script>alert(1)</script>\" ' onload=x & {{ page }} \n \u{202e}gpj\u{0} <!--";
        let table = Table::new(hostile, &["head"], vec![vec![hostile.to_owned()]]);
        let section = Section {
            id: "x",
            title: "X",
            text: hostile.to_owned(),
            facts: vec![Fact::new(hostile, hostile)],
            tables: vec![table],
            ..Section::default()
        };
        let text = || hostile.to_owned();
        let page = Page { name: text(), file: text(), notes: vec![text()], sections: vec![section] };
        let found = render(&page, Some("{}")).unwrap();
        let own =
            render(&Page { name: String::new(), file: String::new(), notes: vec![], sections: vec![] }, Some("{}"));
        let own = own.unwrap();
        for mark in ["<script", "</script", "<!--", "onload="] {
            let count = |page: &str| page.matches(mark).count();
            let expected = if mark == "onload=" { 10 } else { count(&own) };
            assert_eq!(count(&found), expected, "{mark}");
        }
        let escaped = "&lt;&#x2f;script&gt;&lt;script&gt;alert(1)&lt;&#x2f;script&gt;&quot; &#x27; onload=x &amp; {{ page }} \\x0a \
                       \\xe2\\x80\\xaegpj\\x00 &lt;!--";
        assert_eq!(found.matches(escaped).count(), 10, "{found}");
    }

    #[test]
    fn the_policy_names_what_is_embedded() {
        let page = Page { name: String::new(), file: String::new(), notes: vec![], sections: vec![] };
        let found = render(&page, None).unwrap();
        assert!(
            found.contains(&format!("'{}'", integrity(STYLE))) && found.contains(&format!("'{}'", integrity(SCRIPT)))
        );
        for (open, text) in [("<style>", STYLE), ("<script>", SCRIPT)] {
            let close = open.replace('<', "</");
            assert!(found.contains(&format!("{open}{text}{close}")), "{open} holds the file and nothing else");
            assert!(!text.contains("</"), "{open}");
        }
    }
}
