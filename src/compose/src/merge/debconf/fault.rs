//! Errors of debconf.

use super::templates::TemplateFault;
use vmbake_common::hint::Hint;

/// Why a script's talk with debconf ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DebconfFault {
    #[error("debconf would fail: {what}")]
    Fails { what: String },
    #[error("templates: {0}")]
    Templates(#[from] TemplateFault),
    #[error("more than {limit} {what} of debconf")]
    Limit {
        /// Of what there is too much.
        what: &'static str,
        limit: u64,
    },
    #[error("{question} sets a password, which images must not contain")]
    Password { question: String },
}

impl Hint for DebconfFault {
    vmbake_common::causes!(Templates);
}

/// What a layer says of a question and what its package does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PresetFault {
    #[error("not a question of the layer's packages")]
    Unknown {
        /// Questions of the layer's packages with names like it.
        near: Vec<String>,
        known: Vec<String>,
    },
    #[error("{value:?} is not a valid choice")]
    Choice { value: String, choices: Vec<String> },
    #[error("asks for a password, which every copy of the image would contain")]
    Password,
    #[error("has the type {kind}, which takes no answer")]
    NoAnswer { kind: String },
    #[error("the templates of {package} cannot be read")]
    Templates { package: String, source: TemplateFault },
    #[error("cannot be set")]
    Database { source: DebconfFault },
}

impl Hint for PresetFault {
    vmbake_common::causes!(; Templates, Database);
}
