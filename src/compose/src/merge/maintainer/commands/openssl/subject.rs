//! The hash of a certificate's subject (`X509_NAME_hash_ex` of OpenSSL 3): the first four bytes of the SHA-1 of its canonical form,
//! little-endian.
//!
//! In the canonical form, values are UTF-8 with ASCII letters in lower case, without leading and trailing blanks and with single spaces,
//! and the outer SEQUENCE has no header. X.509 is RFC 5280, DER is X.690; DER is big-endian, and lengths count bytes.

use sha1::{Digest as _, Sha1};

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const T61_STRING: u8 = 0x14;
const IA5_STRING: u8 = 0x16;
const VISIBLE_STRING: u8 = 0x1a;
const UNIVERSAL_STRING: u8 = 0x1c;
const BMP_STRING: u8 = 0x1e;

/// The hash of the subject of a certificate; `None` for what is not one.
pub(super) fn hash(certificate: &[u8]) -> Option<u32> {
    let (tag, certificate, _) = element(certificate)?;
    let (inner, mut fields, _) = element(certificate)?;
    if tag != SEQUENCE || inner != SEQUENCE {
        return None;
    }
    if fields.first() == Some(&VERSION) {
        fields = element(fields)?.2;
    }
    // Serial number, signature, issuer and validity come before it.
    for _ in 0..4 {
        fields = element(fields)?.2;
    }
    let (tag, subject, _) = element(fields)?;
    let canonical = canonical(subject).filter(|_| tag == SEQUENCE)?;
    let digest = Sha1::digest(canonical);
    Some(u32::from_le_bytes(digest.get(..4)?.try_into().ok()?))
}

/// Tag and content of the first element, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (len, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(len)?;
    Some((*tag, content, rest))
}

fn canonical(mut names: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    while !names.is_empty() {
        let (tag, mut set, rest) = element(names)?;
        if tag != SET {
            return None;
        }
        let mut attributes = Vec::new();
        while !set.is_empty() {
            let (tag, attribute, rest) = element(set)?;
            let (_, oid, value) = element(attribute)?;
            let (kind, value, after) = element(value)?;
            if tag != SEQUENCE || !after.is_empty() {
                return None;
            }
            let value = match text(kind, value)? {
                Some(text) => encoded(UTF8_STRING, &folded(&text)),
                None => encoded(kind, value),
            };
            attributes.push(encoded(SEQUENCE, &[encoded(0x06, oid), value].concat()));
            set = rest;
        }
        // DER sorts the elements of a SET OF by their encoding.
        attributes.sort();
        out.extend(encoded(SET, &attributes.concat()));
        names = rest;
    }
    Some(out)
}

/// The UTF-8 of a value, or nothing for a type that is taken as it is. `None` where a value is not one of its type.
#[expect(clippy::option_option, reason = "a value that is not valid differs from one that is not text")]
fn text(kind: u8, value: &[u8]) -> Option<Option<Vec<u8>>> {
    let of_points = |points: Vec<u32>| {
        let chars: Option<String> = points.into_iter().map(char::from_u32).collect();
        chars.map(|text| Some(text.into_bytes()))
    };
    match kind {
        UTF8_STRING => std::str::from_utf8(value).ok().map(|text| Some(text.as_bytes().to_vec())),
        PRINTABLE_STRING | T61_STRING | IA5_STRING | VISIBLE_STRING => {
            of_points(value.iter().map(|byte| u32::from(*byte)).collect())
        }
        BMP_STRING if value.len().is_multiple_of(2) => {
            of_points(value.chunks(2).map(|unit| unit.iter().fold(0, |n, byte| n << 8 | u32::from(*byte))).collect())
        }
        UNIVERSAL_STRING if value.len().is_multiple_of(4) => {
            of_points(value.chunks(4).map(|unit| unit.iter().fold(0, |n, byte| n << 8 | u32::from(*byte))).collect())
        }
        BMP_STRING | UNIVERSAL_STRING => None,
        _ => Some(None),
    }
}

/// Small letters, and one space for each run of blanks but those at the ends (`asn1_string_canon`).
fn folded(text: &[u8]) -> Vec<u8> {
    let is_blank = |byte: &u8| matches!(byte, b'\t'..=b'\r' | b' ');
    let words = text.split(is_blank).filter(|word| !word.is_empty());
    words.map(<[u8]>::to_ascii_lowercase).collect::<Vec<_>>().join(&b' ')
}

fn encoded(tag: u8, content: &[u8]) -> Vec<u8> {
    let len = content.len().to_be_bytes();
    let first = len.iter().position(|byte| *byte != 0).unwrap_or(len.len() - 1);
    let len = &len[first..];
    let mut out = vec![tag];
    if content.len() >= 0x80 {
        out.push(0x80 | u8::try_from(len.len()).unwrap_or_default());
    }
    [out, len.to_vec(), content.to_vec()].concat()
}
