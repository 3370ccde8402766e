//! The services of AWS.

/// A service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Service {
    Ebs,
    Ec2,
    Ssm,
    Sts,
}

impl Service {
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

    /// The IAM name of an action.
    pub(super) fn iam(self, action: &str) -> String {
        format!("{}:{action}", self.name())
    }
}
