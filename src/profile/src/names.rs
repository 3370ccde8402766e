//! Names that may be used in templates, addresses and documents without escaping.

/// Longest name of an object of Kubernetes, in bytes.
const MAX_OBJECT_NAME: usize = 253;

/// Whether it is letters, digits, `-` and `_`, and begins with a letter.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|char: char| char.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Whether it is a DNS subdomain, as Kubernetes has them for the names of objects (RFC 1123).
pub(super) fn is_object_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let ends = label.bytes().next().zip(label.bytes().last());
        ends.is_some_and(|(first, last)| is_inner(first) && is_inner(last))
            && label.bytes().all(|byte| is_inner(byte) || byte == b'-')
    };
    text.len() <= MAX_OBJECT_NAME && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_objects_are_those_of_kubernetes() {
        for good in ["a", "kube-system", "osp-ubuntu", "a.b-c.9"] {
            assert!(is_object_name(good), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a_b", "a..b", "a/b", "a b", ".a", &"a".repeat(254)] {
            assert!(!is_object_name(bad), "{bad}");
        }
    }
}
