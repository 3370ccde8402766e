//! Errors of signing keys.

use vmbake_common::hint::Hint;

/// Why a key cannot be used. Messages never quote it.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("invalid PEM: {reason}")]
    Pem { reason: String },
    #[error("not a private key")]
    Label,
    #[error("a public key cannot sign: a private key is required")]
    Public,
    #[error("unsupported private key format {found:?}, expected PKCS#8")]
    Packing { found: String },
    #[error("unsupported key type {found}, expected ECDSA P-256")]
    Algorithm {
        /// Its name or object identifier.
        found: String,
    },
    #[error("corrupt private key")]
    Corrupt,
    #[error("unsupported encryption: {what}")]
    Encryption {
        /// The unsupported feature, or the message of the parser.
        what: String,
    },
    #[error("the key is encrypted, but COSIGN_PASSWORD is not set")]
    NoPassword,
    #[error("cannot decrypt the key: wrong password in COSIGN_PASSWORD, or corrupt key")]
    Password,
}

impl Hint for KeyError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Pem { .. } | Self::Label | Self::Public => {
                "use --key with a private key: NAME.key of `vmbake key generate`, or cosign.key of `cosign generate-key-pair`"
            }
            Self::Packing { .. } => "`openssl pkcs8 -topk8 -nocrypt -in KEY -out NEW` converts it to PKCS#8",
            Self::Algorithm { .. } => "`vmbake key generate` creates a signing key",
            Self::Corrupt => "restore it from your backup: an incomplete key is unusable",
            Self::Encryption { .. } => "use a key of cosign 2 or `vmbake key generate`",
            Self::NoPassword | Self::Password => "set COSIGN_PASSWORD to the password of the key",
        };
        Some(text.to_owned())
    }
}
