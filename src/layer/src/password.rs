//! Encrypted passwords (crypt(5)), by the rules of libxcrypt: a hash that it does not accept matches no password, and no program says so.

/// Digits of numbers and data, by their values.
const DIGITS: &[u8] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Longest salt of yescrypt, in digits: 64 bytes.
const MAX_SALT: usize = 86;

/// Numbers of rounds of SHA-2 that libxcrypt takes.
const ROUNDS: std::ops::RangeInclusive<u32> = 1_000..=999_999_999;

/// What is wrong with an encrypted password: neither `*` or `!`, which disable it, nor a valid hash of yescrypt or SHA-2.
pub(super) fn fault(text: &str) -> Option<String> {
    let plain = |text: &str| text.bytes().all(|byte| DIGITS.contains(&byte));
    let parts: Vec<&str> = text.split('$').collect();
    let sha2 = |salt: &str, hash: &str, len: usize| {
        (1..=16).contains(&salt.len()) && plain(salt) && hash.len() == len && plain(hash)
    };
    let valid = match parts.as_slice() {
        ["*" | "!"] => true,
        ["", "y", parameters, salt, hash] => {
            are_parameters(parameters) && is_salt(salt) && hash.len() == 43 && plain(hash)
        }
        ["", "6", salt, hash] => sha2(salt, hash, 86),
        ["", "5", salt, hash] => sha2(salt, hash, 43),
        ["", "6", count, salt, hash] => are_rounds(count) && sha2(salt, hash, 86),
        ["", "5", count, salt, hash] => are_rounds(count) && sha2(salt, hash, 43),
        _ => false,
    };
    // The text may be a password.
    let message = "is not a password hash that starts with $y$, $6$ or $5$; create one with `mkpasswd`";
    (!valid).then(|| message.to_owned())
}

/// A number without sign and leading zeros.
fn are_rounds(text: &str) -> bool {
    let count = text.strip_prefix("rounds=").filter(|count| !count.starts_with(['0', '+']));
    count.is_some_and(|count| count.parse::<u32>().is_ok_and(|count| ROUNDS.contains(&count)))
}

/// The flavor of yescrypt, and costs as `mkpasswd` sets them.
fn are_parameters(text: &str) -> bool {
    matches!(text.as_bytes(), [b'j', b'7'..=b'9' | b'A'..=b'F', b'5' | b'T'])
}

/// Bytes in groups of three. The last digit has no bits of another byte.
fn is_salt(text: &str) -> bool {
    let value = |byte: u8| DIGITS.iter().position(|digit| *digit == byte);
    let values: Option<Vec<usize>> = text.bytes().map(value).collect();
    let Some(values) = values.filter(|values| values.len() <= MAX_SALT) else { return false };
    let last = values.last().copied().unwrap_or_default();
    match values.len() % 4 {
        0 => true,
        1 => false,
        2 => last < 4,
        _ => last < 16,
    }
}

#[cfg(test)]
mod tests {
    use super::fault;

    /// libxcrypt 4.4.38.
    #[test]
    fn hashes() {
        let (long, short) = ("a".repeat(86), "a".repeat(43));
        for (setting, is_valid) in [
            ("$6$salt", true),
            ("$6$0123456789abcdef", true),
            ("$6$0123456789abcdefg", false),
            ("$6$", false),
            ("$6$sal:t", false),
            ("$6$rounds=1000$salt", true),
            ("$6$rounds=999999999$salt", true),
            ("$6$rounds=999$salt", false),
            ("$6$rounds=1000000000$salt", false),
            ("$6$rounds=05000$salt", false),
            ("$6$rounds=+5000$salt", false),
            ("$6$rounds=x$salt", false),
            ("$5$salt", true),
            ("$5$rounds=01000$salt", false),
            ("$y$j9T$AbCdEfGh", true),
            ("$y$j9T$", true),
            ("$y$j75$a1", true),
            ("$y$j75$a2", false),
            ("$y$j75$abD", true),
            ("$y$j75$abE", false),
            ("$y$j9T$a", false),
            ("$y$j9T$k2XAnEHBqQ1Ct2aMXFKNa/", true),
            ("$y$j9T$AbCdEfGhIjKlMnOpQrStUv", false),
            ("$y$zzz$AbCdEfGh", false),
            ("$y$j9$AbCdEfGh", false),
            ("$y$j9T.$AbCdEfGh", false),
            ("$1$salt", false),
        ] {
            let hash = if setting.starts_with("$6") { &long } else { &short };
            assert_eq!(fault(&format!("{setting}${hash}")).is_none(), is_valid, "{setting}");
        }
        for (text, is_valid) in
            [("*", true), ("!", true), ("!!", false), ("", false), ("secret", false), ("$6$salt$short", false)]
        {
            assert_eq!(fault(text).is_none(), is_valid, "{text}");
        }
    }
}
