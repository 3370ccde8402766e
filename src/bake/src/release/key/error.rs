//! Why a key cannot be used.

use vmbake_common::hint::Hint;

/// Why a key cannot be used. No message quotes it.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("it is no PEM: {reason}")]
    Pem { reason: String },
    #[error("it is no private key")]
    Label,
    #[error("it is a public key, and only a private key signs")]
    Public,
    #[error("it is a private key of the form {found:?}, not PKCS#8")]
    Packing { found: String },
    #[error("it is a key for {found}, not for ECDSA with P-256")]
    Algorithm {
        /// What it is for, or its object identifier.
        found: String,
    },
    #[error("it is a damaged private key")]
    Corrupt,
    #[error("it is encrypted in a way that is not supported: {what}")]
    Encryption {
        /// What is not supported, or what its reader says.
        what: String,
    },
    #[error("it is encrypted, and COSIGN_PASSWORD is not set")]
    NoPassword,
    #[error("it cannot be decrypted: the password in COSIGN_PASSWORD is another one, or the key is damaged")]
    Password,
}

impl Hint for KeyError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Pem { .. } | Self::Label | Self::Public => {
                "--key names a private key: NAME.key of `vmbake key generate`, or cosign.key of `cosign generate-key-pair`"
            }
            Self::Packing { .. } => "`openssl pkcs8 -topk8 -nocrypt -in KEY -out NEW` writes it as PKCS#8",
            Self::Algorithm { .. } => "`vmbake key generate` makes a key that signs",
            Self::Corrupt => "compare it with your copy: nothing can be read from a part of a key",
            Self::Encryption { .. } => "cosign 2 and `vmbake key generate` write keys that vmbake reads",
            Self::NoPassword | Self::Password => "set COSIGN_PASSWORD to the password that cosign asked for",
        };
        Some(text.to_owned())
    }
}
