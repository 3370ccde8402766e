//! Snapshots of the messages in the source of each crate: errors, hints, progress events, comments of written files. A changed message shows up in the
//! diff of one file, `snapshots/*messages@CRATE.snap`, and no message escapes the review. Help is not among them: `docs/cli.md` has it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The string literals of `stream` that are sentences, in their order, without those of tests and of doc comments.
fn messages(stream: TokenStream, found: &mut Vec<String>) {
    let mut tokens = stream.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(sign) if sign.as_char() == '#' => {
                tokens.next_if(|token| matches!(token, TokenTree::Punct(sign) if sign.as_char() == '!'));
                let attribute = match tokens.peek() {
                    Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => group.stream(),
                    _ => continue,
                };
                tokens.next();
                let text = attribute.to_string();
                if text.starts_with("error") {
                    messages(attribute, found);
                } else if text == "cfg (test)" || text == "test" {
                    for skipped in tokens.by_ref() {
                        match skipped {
                            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
                            TokenTree::Punct(sign) if sign.as_char() == ';' => break,
                            _ => {}
                        }
                    }
                }
            }
            TokenTree::Group(group) => messages(group.stream(), found),
            TokenTree::Literal(literal) => found.extend(sentence(&literal.to_string())),
            TokenTree::Punct(_) | TokenTree::Ident(_) => {}
        }
    }
}

/// The text of a string literal with at least two words, its escapes as in the source.
fn sentence(literal: &str) -> Option<String> {
    let (start, end) = (literal.find('"')?, literal.rfind('"')?);
    if !matches!(&literal[..start], "" | "r" | "r#") || start == end {
        return None;
    }
    let mut text = String::new();
    for part in literal[start + 1..end].split("\\\n") {
        text.push_str(if text.is_empty() { part } else { part.trim_start() });
    }
    let words = text.split_whitespace().filter(|word| word.chars().filter(|letter| letter.is_alphabetic()).count() > 1);
    (words.count() > 1).then_some(text)
}

/// The source files below `directory` that are not only for tests.
fn sources(directory: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap();
        if stem == "tests" {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.insert(path);
        }
    }
}

#[test]
fn unchanged() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for entry in fs::read_dir(crates).unwrap() {
        let directory = entry.unwrap().path();
        let source = directory.join("src");
        if !source.is_dir() {
            continue;
        }
        let mut files = BTreeSet::new();
        sources(&source, &mut files);
        let mut text = String::new();
        for file in files {
            let mut found = Vec::new();
            let stream: TokenStream = fs::read_to_string(&file).unwrap().parse().unwrap();
            messages(stream, &mut found);
            if !found.is_empty() {
                text += &format!("{}\n", file.strip_prefix(&source).unwrap().display());
                text.extend(found.iter().map(|message| format!("    {}\n", message.replace('\n', "\n    "))));
            }
        }
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_suffix(directory.file_name().unwrap().to_str().unwrap());
        settings.bind(|| insta::assert_snapshot!("messages", text));
    }
}
