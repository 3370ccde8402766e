//! update-alternatives(1).

use std::collections::BTreeMap;

use vmbake_shell::Call;

use super::{Command, Done, System, status, unsupported, words};
use crate::compose::merge::alternatives;
use crate::layer::Alternative;

pub(super) fn find(name: &str) -> Option<Command> {
    (name == "update-alternatives").then_some(update_alternatives as Command)
}

fn update_alternatives(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(words) = words(call) else { return unsupported(call) };
    let words: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| *word != "--quiet" && *word != "--force").collect();
    let ["--install", link, name, path, priority, slaves @ ..] = words.as_slice() else { return unsupported(call) };
    let Ok(priority) = priority.parse() else { return unsupported(call) };
    let mut all = BTreeMap::new();
    for slave in slaves.chunks(4) {
        let ["--slave", link, name, path] = slave else { return unsupported(call) };
        all.insert((*name).to_owned(), ((*link).to_owned(), (*path).to_owned()));
    }
    let [link, name, path] = [link, name, path].map(|word| (*word).to_owned());
    alternatives::install(&mut system.target(), &[Alternative { link, name, path, priority, slaves: all }])?;
    status(0)
}
