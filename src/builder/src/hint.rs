//! What to do about an error: the `hint:` line below it.

use std::error::Error;
use std::io::ErrorKind;

use vmbake_disk::ext4::AuthorError;

use crate::bake::BakeError;
use crate::embedded::MissingProgram;
use crate::fetch::FetchError;
use crate::merge::MergeError;
use crate::publish::PublishError;
use crate::verify::VerifyError;

/// The first advice that any error of the chain has.
pub fn hint(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = error.downcast_ref::<BakeError>().and_then(BakeError::inner).or(Some(error));
    while let Some(error) = next {
        if let Some(hint) = of_one(error) {
            return Some(hint);
        }
        next = error.source();
    }
    None
}

fn of_one(error: &(dyn Error + 'static)) -> Option<String> {
    of_input(error).or_else(|| of_image(error)).or_else(|| of_io(error))
}

fn of_input(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(FetchError::Missing { .. }) = error.downcast_ref() {
        return Some("`make manifest` downloads the artifacts of kind node; --store names another store".to_owned());
    }
    if let Some(VerifyError::Digest { path, .. } | VerifyError::Size { path, .. }) = error.downcast_ref() {
        return Some(format!("remove {} and fetch it again, or correct the manifest", path.display()));
    }
    if let Some(MissingProgram { .. }) = error.downcast_ref() {
        return Some("run `make firstboot` and build vmbake again".to_owned());
    }
    match error.downcast_ref::<MergeError>() {
        Some(MergeError::Script { package, script, sha256, .. }) => Some(format!(
            "read the script; if its effect can be said as data, add to `scripts` of the layer that installs {package}: \
             {{\"package\": \"{package}\", \"script\": \"{script}\", \"sha256\": \"{sha256}\"}}"
        )),
        Some(MergeError::Depends { package, .. }) => {
            Some(format!("add the missing package to the manifest and to the layer that installs {package}"))
        }
        _ => None,
    }
}

fn of_image(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(AuthorError::TooSmall { .. }) = error.downcast_ref() {
        return Some("--size makes the disk larger".to_owned());
    }
    if let Some(PublishError::Exists { .. }) = error.downcast_ref() {
        return Some("--force replaces it".to_owned());
    }
    None
}

fn of_io(error: &(dyn Error + 'static)) -> Option<String> {
    match error.downcast_ref::<std::io::Error>()?.kind() {
        ErrorKind::StorageFull => Some("the file system is full: --out names another directory".to_owned()),
        ErrorKind::PermissionDenied => Some("vmbake needs no root, but it must read its inputs".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_is_passed_on_keeps_its_hint() {
        let exists = PublishError::Exists { path: "dist/x.raw".into() };
        let passed: Box<dyn Error> = Box::new(BakeError::from(exists));
        assert_eq!(hint(&*passed).as_deref(), Some("--force replaces it"));
        let missing = crate::stage::StageError::from(MissingProgram { arch: "arm64".to_owned() });
        let passed: Box<dyn Error> = Box::new(BakeError::from(missing));
        assert!(hint(&*passed).is_some_and(|hint| hint.contains("make firstboot")));
        let full = std::io::Error::from(ErrorKind::StorageFull);
        assert!(hint(&full).is_some_and(|hint| hint.contains("--out")));
    }
}
