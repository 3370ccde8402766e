//! The services that are asked.

/// A service, as its endpoints and signatures call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Service {
    Ebs,
    Ec2,
    Ssm,
    Sts,
}

impl Service {
    /// All that are asked.
    pub(super) const ALL: [Self; 4] = [Self::Ebs, Self::Ec2, Self::Ssm, Self::Sts];

    /// Its name in endpoints, signatures and policies.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ebs => "ebs",
            Self::Ec2 => "ec2",
            Self::Ssm => "ssm",
            Self::Sts => "sts",
        }
    }

    /// An action as IAM calls it.
    pub(super) fn iam(self, action: &str) -> String {
        format!("{}:{action}", self.name())
    }
}
