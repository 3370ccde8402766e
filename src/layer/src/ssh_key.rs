//! Public keys as lines of authorized_keys (sshd(8)), without options. With a truncated key, for example, logins fail.

use base64ct::{Base64, Encoding};

/// Bits of the shortest RSA key that sshd takes (`SSH_RSA_MINIMUM_MODULUS_SIZE`).
const MIN_RSA: usize = 1024;

/// Bytes of a key of Ed25519.
const ED25519: usize = 32;

/// The fault of a line.
pub(super) fn fault(line: &str) -> Option<String> {
    let mut words = line.split(' ');
    let (kind, data) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_valid =
        crate::validate::line(line).is_none() && Base64::decode_vec(data).is_ok_and(|data| is_key(kind, &data));
    (!is_valid).then(|| "is not a valid public key, such as \"ssh-ed25519 AAAA... name\"".to_owned())
}

/// Whether data are a key of that type (RFC 4253, section 6.6), and nothing else.
fn is_key(kind: &str, data: &[u8]) -> bool {
    let Some(fields) = fields(data) else { return false };
    let is_point = |curve: &[u8], name: &str, point: &[u8], len: usize| {
        curve == name.as_bytes() && point.len() == 2 * len + 1 && point.first() == Some(&4)
    };
    let Some((name, rest)) = fields.split_first().filter(|(name, _)| **name == kind.as_bytes()) else { return false };
    match (str::from_utf8(name).unwrap_or_default(), rest) {
        ("ssh-ed25519", [key]) | ("sk-ssh-ed25519@openssh.com", [key, _]) => key.len() == ED25519,
        ("ssh-rsa", [_, modulus]) => bits(modulus) >= MIN_RSA,
        ("ecdsa-sha2-nistp256", [curve, point]) | ("sk-ecdsa-sha2-nistp256@openssh.com", [curve, point, _]) => {
            is_point(curve, "nistp256", point, 32)
        }
        ("ecdsa-sha2-nistp384", [curve, point]) => is_point(curve, "nistp384", point, 48),
        ("ecdsa-sha2-nistp521", [curve, point]) => is_point(curve, "nistp521", point, 66),
        _ => false,
    }
}

/// The strings of a sequence in which the length of each precedes it (RFC 4251, section 5).
fn fields(mut data: &[u8]) -> Option<Vec<&[u8]>> {
    let mut fields = Vec::new();
    while !data.is_empty() {
        let (len, rest) = data.split_first_chunk::<4>()?;
        let (field, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*len)).ok()?)?;
        fields.push(field);
        data = rest;
    }
    Some(fields)
}

/// The bits of a positive number.
fn bits(number: &[u8]) -> usize {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let first = number.get(zeros).map_or(8, |byte| byte.leading_zeros() as usize);
    ((number.len() - zeros) * 8).saturating_sub(first)
}

#[cfg(test)]
mod tests {
    use super::fault;

    const ED25519: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIGUbvTMsley0Dbzg6VnQ01ne/i3NBkGrNDmNzl5OV/zJ";

    const ECDSA: &str = "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBDWJ7Q/pDmA0mwJ8S2+6ShjLTfJGrVxVZNnXM03VvYuSK8/QIXNdnV9/eu\
         s5T/d2dt2TJx/KL0AXEPHcUakc/jM=";
    const RSA: &str = "AAAAB3NzaC1yc2EAAAADAQABAAAAgQDOBet39SYY2yuthsNgpQZvM3ws9Ez5QJ8TeIqO3woDkld0i05xZSBpWYnRf+pRzdnHsmijhzmYPBW7e/\
         IDidLrfr1OaQeP8oKfKqxxyu0bbAx4A5KinloOpvoz4aWgRHRlOVPaD6vgHMP4usuh1SPsiDuniOeZTI93NsXqRweemQ==";

    /// `ssh-keygen -l` of OpenSSH 10.0. Options, certificates and blanks before a key are refused as well.
    #[test]
    fn keys() {
        for (line, is_valid) in [
            (format!("ssh-ed25519 {ED25519}"), true),
            (format!("ssh-ed25519 {ED25519} a b"), true),
            (format!("ssh-ed25519 {}", &ED25519[..64]), false),
            (format!("ssh-ed25519 {ED25519}AAAA"), false),
            (format!("ssh-ed25519 {ED25519}="), false),
            (format!("ssh-rsa {ED25519}"), false),
            (format!("sk-ssh-ed25519@openssh.com {ED25519}"), false),
            (format!("no-pty ssh-ed25519 {ED25519}"), false),
            (format!("SSH-ED25519 {ED25519}"), false),
            ("ssh-ed25519".to_owned(), false),
            ("ssh-ed25519 AAAA".to_owned(), false),
            ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA==".to_owned(), false),
            ("ssh-dss AAAAB3NzaC1kc3MAAACBAA==".to_owned(), false),
            (format!("ecdsa-sha2-nistp256 {ECDSA}"), true),
            (format!("ecdsa-sha2-nistp521 {ECDSA}"), false),
            (format!("ssh-rsa {RSA} name"), true),
            ("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAEQD/////////////////////".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(fault(&line).is_none(), is_valid, "{line}");
        }
    }
}
