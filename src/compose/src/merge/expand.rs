//! Replaces placeholders in a layer's files: `@{kind}`, `@{version}`, `@{os}`, `@{codename}`, `@{arch}`,
//! `@{image:NAME}`.
//!
//! Any other text between `@{` and `}` is an error, so that a misspelled placeholder does not reach an image.

use super::{MergeError, WordFault};
use vmbake_manifest::Content;

/// Codenames of operating systems, which suites of archives are named after.
const CODENAMES: [(&str, &str); 2] = [("debian-12", "bookworm"), ("debian-13", "trixie")];

/// `text` with every word replaced; `path` is for messages.
pub(super) fn expand(path: &str, text: &str, manifest: &Content) -> Result<String, MergeError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("@{") {
        let failed = |fault: WordFault| MergeError::content(path, fault);
        let (word, after) = after.split_once('}').ok_or_else(|| failed(WordFault::Open))?;
        out.push_str(before);
        out.push_str(value(word, manifest).map_err(failed)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn value<'a>(word: &str, manifest: &'a Content) -> Result<&'a str, WordFault> {
    match word.split_once(':') {
        Some(("image", name)) => image(name, manifest),
        None if word == "kind" => Ok(&manifest.kind),
        None if word == "version" => Ok(&manifest.version),
        None if word == "os" => Ok(&manifest.os.name),
        None if word == "codename" => codename(&manifest.os.name),
        None if word == "arch" => Ok(&manifest.os.arch),
        _ => Err(WordFault::Unknown { word: word.to_owned() }),
    }
}

fn codename(os: &str) -> Result<&'static str, WordFault> {
    let found = CODENAMES.iter().find(|(name, _)| *name == os);
    found.map(|(_, codename)| *codename).ok_or_else(|| WordFault::Codename { os: os.to_owned() })
}

/// The only image of that name, with its tag.
fn image<'a>(name: &str, manifest: &'a Content) -> Result<&'a str, WordFault> {
    let named = |reference: &&str| reference.strip_prefix(name).is_some_and(|tag| tag.starts_with(':'));
    let found: Vec<&str> = manifest.images.iter().map(|image| image.image.as_str()).filter(named).collect();
    match found.as_slice() {
        [reference] => Ok(reference),
        _ => Err(WordFault::Image { name: name.to_owned(), found: found.len() }),
    }
}

/// Debian's name of the architecture in paths: its multiarch tuple.
pub(super) fn multiarch<'a>(path: &str, arch: &'a str) -> Result<&'a str, MergeError> {
    match arch {
        "amd64" => Ok("x86_64-linux-gnu"),
        "arm64" => Ok("aarch64-linux-gnu"),
        _ => Err(MergeError::content(path, WordFault::Arch { arch: arch.to_owned() })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::ContentFault;

    #[test]
    fn words_are_replaced_and_unknown_ones_refused() {
        let text = r#"{"version": "1", "kind": "k", "os": {"name": "o", "arch": "a"}, "images": [{"image": "r/pause:3", "size": 1,
            "platform": "linux/a", "digest": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "index": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}]}"#;
        let manifest: Content = serde_json::from_str(text).unwrap();
        let expanded = expand("/x", "a @{kind}-@{version} @{image:r/pause} @ {b} ${c}", &manifest).unwrap();
        assert_eq!(expanded, "a k-1 r/pause:3 @ {b} ${c}");
        let image = |name: &str| WordFault::Image { name: name.to_owned(), found: 0 };
        for (text, expected) in [
            ("@{kin}", WordFault::Unknown { word: "kin".to_owned() }),
            ("@{image:r/pau}", image("r/pau")),
            ("@{kind", WordFault::Open),
            ("@{codename}", WordFault::Codename { os: "o".to_owned() }),
            ("@{image:}", image("")),
        ] {
            let error = expand("/x", text, &manifest).unwrap_err();
            let MergeError::Content { path, fault: ContentFault::Word(found) } = error else { panic!("{error}") };
            assert_eq!((path.as_str(), found), ("/x", expected), "{text}");
        }
    }
}
