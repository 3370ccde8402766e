//! What debconf does not do.

use super::templates::TemplateFault;
use vmbake_common::hint::Hint;

/// Why a script's talk with debconf ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DebconfFault {
    #[error("debconf would fail: {what}")]
    Fails { what: String },
    #[error("templates: {0}")]
    Templates(#[from] TemplateFault),
    #[error("debconf is asked for more than {limit} {what}")]
    Limit {
        /// Of what there is too much.
        what: &'static str,
        limit: u64,
    },
    #[error("{question} gets a password, which no image may have")]
    Password { question: String },
}

impl Hint for DebconfFault {
    vmbake_common::causes!(Templates);
}

/// What a layer says of a question and what its package does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PresetFault {
    #[error("no package that the layer installs asks it")]
    Unknown {
        /// Questions of the layer's packages with names like it.
        near: Vec<String>,
        known: Vec<String>,
    },
    #[error("{value:?} is not one of its choices")]
    Choice { value: String, choices: Vec<String> },
    #[error("it asks for a password, which would be in every copy of the image")]
    Password,
    #[error("it is of the type {kind}, which has no answer")]
    NoAnswer { kind: String },
    #[error("the templates of {package} cannot be read")]
    Templates { package: String, source: TemplateFault },
    #[error("it cannot be set")]
    Database { source: DebconfFault },
}

impl Hint for PresetFault {
    vmbake_common::causes!(; Templates, Database);
}
