//! Lists of algorithms in sshd_config(5): those of OpenSSH 10.0 in Debian 13, as `ssh -Q` prints them.

const DOMAIN: &str = "@openssh.com";

const CIPHERS: [&str; 10] = [
    "3des-cbc",
    "aes128-cbc",
    "aes192-cbc",
    "aes256-cbc",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
];

/// Each is also there with `-etm@openssh.com` at its end, in place of its domain.
const MACS: [&str; 8] = [
    "hmac-sha1",
    "hmac-sha1-96",
    "hmac-sha2-256",
    "hmac-sha2-512",
    "hmac-md5",
    "hmac-md5-96",
    "umac-64@openssh.com",
    "umac-128@openssh.com",
];

const EXCHANGES: [&str; 15] = [
    "diffie-hellman-group1-sha1",
    "diffie-hellman-group14-sha1",
    "diffie-hellman-group14-sha256",
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group18-sha512",
    "diffie-hellman-group-exchange-sha1",
    "diffie-hellman-group-exchange-sha256",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "sntrup761x25519-sha512",
    "sntrup761x25519-sha512@openssh.com",
    "mlkem768x25519-sha256",
];

const SIGNATURES: [&str; 10] = [
    "ssh-ed25519",
    "sk-ssh-ed25519@openssh.com",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "webauthn-sk-ecdsa-sha2-nistp256@openssh.com",
    "ssh-rsa",
    "rsa-sha2-256",
    "rsa-sha2-512",
];

const CERTIFICATES: [&str; 9] = [
    "ssh-ed25519-cert-v01@openssh.com",
    "sk-ssh-ed25519-cert-v01@openssh.com",
    "ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "ecdsa-sha2-nistp384-cert-v01@openssh.com",
    "ecdsa-sha2-nistp521-cert-v01@openssh.com",
    "sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "ssh-rsa-cert-v01@openssh.com",
    "rsa-sha2-256-cert-v01@openssh.com",
    "rsa-sha2-512-cert-v01@openssh.com",
];

/// A kind of algorithms.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Cipher,
    Mac,
    Exchange,
    /// Of keys, with patterns.
    Key,
    /// Of keys without certificates, with patterns.
    Signature,
}

/// The first entry of a list that sshd does not know. It stops at an empty one, and takes any names after `-`.
pub(super) fn unknown(kind: Kind, list: &str) -> Option<&str> {
    if list.starts_with('-') {
        return None;
    }
    let list = list.strip_prefix(['+', '^']).unwrap_or(list);
    if list.is_empty() {
        return Some(list);
    }
    list.split(',').take_while(|name| !name.is_empty()).find(|name| !is_known(kind, name))
}

fn is_known(kind: Kind, name: &str) -> bool {
    let matches = |known: &&'static str| is_match(name.as_bytes(), known.as_bytes());
    match kind {
        Kind::Cipher => CIPHERS.contains(&name),
        Kind::Mac => {
            let is_base = |base: &str| MACS.iter().any(|mac| mac.strip_suffix(DOMAIN).unwrap_or(mac) == base);
            MACS.contains(&name)
                || name.strip_suffix(DOMAIN).and_then(|name| name.strip_suffix("-etm")).is_some_and(is_base)
        }
        Kind::Exchange => EXCHANGES.contains(&name),
        Kind::Key => SIGNATURES.iter().chain(&CERTIFICATES).any(matches),
        Kind::Signature => SIGNATURES.iter().any(matches),
    }
}

/// Whether a pattern with `*` and `?` matches a name.
fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), next) => is_match(rest, name) || next.is_some_and(|(_, after)| is_match(pattern, after)),
        (Some((b'?', rest)), Some((_, after))) => is_match(rest, after),
        (Some((first, rest)), Some((next, after))) => first == next && is_match(rest, after),
        _ => false,
    }
}
