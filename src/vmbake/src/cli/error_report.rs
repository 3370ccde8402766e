//! Prints an error: its message, its causes and a hint.

use std::error::Error;
use std::iter::successors;

use vmbake_common::address;
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_common::progress::{self, Event};

/// Prints an error to stderr: its message, one line per cause, and a hint.
pub fn print(error: &(dyn Hint + 'static)) {
    let lists: Vec<String> = chain(error).filter(|error| error.has_lines()).map(|error| error.to_string()).collect();
    let mut messages = errors(error).map(|error| {
        let text = error.to_string();
        let clean = address::redacted(&text);
        // Errors that list faults have one line per fault; all others are one line.
        if lists.contains(&text) { escape::lines(&clean) } else { escape::line(clean) }
    });
    let message = messages.next().unwrap_or_default();
    progress::emit(&Event::Error { message, causes: messages.collect(), hint: hint(error).map(escape::line) });
}

/// The first hint in the chain of errors.
pub fn hint(error: &(dyn Hint + 'static)) -> Option<String> {
    let mut causes = errors(error);
    if causes.any(|error| error.to_string().contains(address::MESSAGE)) {
        return Some(address::HINT.to_owned());
    }
    chain(error).find_map(Hint::hint)
}

fn errors<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |&error| error.source())
}

fn chain<'a>(error: &'a (dyn Hint + 'static)) -> impl Iterator<Item = &'a (dyn Hint + 'static)> {
    successors(Some(error), |&error| error.inner())
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use vmbake_bake::BakeError;
    use vmbake_common::atomic_file::PublishError;
    use vmbake_compose::merge::{MergeError, Occasion};
    use vmbake_embedded::MissingProgram;
    use vmbake_fetch::FetchError;
    use vmbake_store::http::HttpError;

    use super::*;

    #[test]
    fn an_error_that_is_passed_on_keeps_its_hint() {
        let exists = PublishError::Exists { path: "dist/x.raw".into() };
        let passed: Box<dyn Hint> = Box::new(BakeError::from(exists));
        assert_eq!(hint(&*passed).as_deref(), Some("use --force to replace it"));
        let missing = vmbake_compose::stage::StageError::from(MissingProgram { arch: "arm64".to_owned() });
        let passed: Box<dyn Hint> = Box::new(BakeError::from(missing));
        assert!(hint(&*passed).is_some_and(|hint| hint.contains("make firstboot")));
        let absent = HttpError::Status {
            url: "https://api.github.com/x".into(),
            status: 403,
            retry_after: None,
            challenge: None,
        };
        let passed = FetchError::Download { name: "x".into(), source: absent.into() };
        assert!(hint(&passed).is_some_and(|hint| hint.contains("GITHUB_TOKEN")));
        let [path, artifact] = ["/opt/p", "a"].map(str::to_owned);
        let passed: Box<dyn Hint> =
            Box::new(BakeError::from(MergeError::Interpreter { path, artifact, interpreter: "/bin/ruby".to_owned() }));
        assert!(hint(&*passed).is_some_and(|hint| hint.contains("`members`")));
        let surprise = MergeError::Privilege {
            path: "/usr/bin/x".into(),
            artifact: "a".into(),
            layer: "l".into(),
            privilege: "mode 4755".into(),
        };
        let passed: Box<dyn Hint> = Box::new(BakeError::from(surprise));
        assert!(hint(&*passed).is_some_and(|hint| hint.ends_with("add to layer l: \"setuid\": [\"/usr/bin/x\"]")));
        let script = |occasion| MergeError::Script {
            package: "p".into(),
            script: "postinst",
            sha256: "0".into(),
            occasion,
            makes: Box::default(),
            fault: Box::new(vmbake_compose::merge::ScriptFault::NotPostinst),
        };
        assert!(
            hint(&script(Occasion::Upgrade))
                .is_some_and(|hint| hint.contains("\"sha256\": \"0\", \"upgrade\": true, \"defer\": true}"))
        );
        assert!(
            hint(&script(Occasion::Install)).is_some_and(|hint| hint.contains("\"sha256\": \"0\", \"defer\": true}"))
        );
        let full = std::io::Error::from(ErrorKind::StorageFull);
        assert!(hint(&full).is_some_and(|hint| hint.contains("--out")));
    }
}
