//! Templates: any text is a template or an error, and rendering gives a text or an error, also with the text as a value.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use vmbake_firstboot::template::{Condition, Fault, Machine, Scope, Text, Writing};

struct Nowhere;

impl Machine for Nowhere {
    fn exists(&self, path: &str) -> Result<bool, Fault> {
        Ok(path.len() % 2 == 0)
    }

    fn addresses(&self, host: &str) -> Result<Vec<String>, Fault> {
        Ok(vec![host.to_owned()])
    }

    fn cloud(&self, path: &str) -> Result<String, Fault> {
        Ok(path.to_owned())
    }
}

fuzz_target!(|text: &str| {
    let variables = BTreeMap::from([("A".to_owned(), text.to_owned()), ("B".to_owned(), "1,2".to_owned())]);
    let scope = Scope { variables: &variables, machine: &Nowhere };
    if let Ok(template) = Text::parse(text) {
        template.names();
        for writing in [Writing::Raw, Writing::Lines, Writing::Json] {
            template.render(&scope, writing).ok();
        }
    }
    if let Ok(condition) = Condition::parse(text) {
        condition.holds(&scope).ok();
    }
    // A value is never parsed as a template, and survives a JSON round trip.
    let quoted = Text::parse("{{ A }}").unwrap().render(&scope, Writing::Json).unwrap();
    assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), text);
});
