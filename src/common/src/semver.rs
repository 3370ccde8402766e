//! The order of pre-releases in Semantic Versioning 2.0.0.

use std::cmp::Ordering;

/// Compares pre-releases (section 11); an empty one is that of a release, which is later than its pre-releases. Numbers
/// precede words.
pub fn prerelease_order(left: &str, right: &str) -> Ordering {
    match (left.is_empty(), right.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let one = |left: &str, right: &str| match (left.parse::<u64>(), right.parse::<u64>()) {
        (Ok(left), Ok(right)) => left.cmp(&right),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => left.cmp(right),
    };
    let (mut lefts, mut rights) = (left.split('.'), right.split('.'));
    loop {
        match (lefts.next(), rights.next()) {
            (Some(left), Some(right)) => match one(left, right) {
                Ordering::Equal => {}
                order => return order,
            },
            (left, right) => return left.is_some().cmp(&right.is_some()),
        }
    }
}
