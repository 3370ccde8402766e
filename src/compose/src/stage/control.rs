//! Control files of packages (deb-control(5)), and the stanzas that dpkg writes for them: text in, fields out.

use std::collections::BTreeSet;

use vmbake_common::hint::Hint;

/// Fields of the status file alone, in small letters.
const STATUS_FIELDS: [&str; 5] = ["status", "config-version", "conffiles", "triggers-pending", "triggers-awaited"];

/// What is wrong with a control file, or with a file next to it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlFault {
    #[error("is missing")]
    Missing,
    #[error("is not UTF-8")]
    NotUtf8,
    #[error("starts with a continuation line")]
    Continuation,
    #[error("line {line:?} is not a field")]
    Line { line: String },
    #[error("has no field {name}")]
    NoField { name: &'static str },
    #[error("field {name:?} is duplicated or not allowed here")]
    Field { name: String },
    #[error("invalid package name or version: {name:?} {version:?}")]
    Name { name: String, version: String },
    #[error("{name:?} next to it is not a regular file")]
    NotRegular { name: String },
}

impl Hint for ControlFault {}

/// The fields of a control file, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Control {
    fields: Vec<(String, String)>,
}

impl Control {
    /// Parses one stanza (deb822(5)): continuation lines stay part of the value, with their leading space. As in dpkg, blanks go from the
    /// beginning and the end of a value, but not from the ends of its other lines.
    pub fn parse(text: &str) -> Result<Self, ControlFault> {
        let mut fields: Vec<(String, String)> = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if line.starts_with([' ', '\t']) {
                let (_, value) = fields.last_mut().ok_or(ControlFault::Continuation)?;
                value.push('\n');
                value.push_str(line);
            } else if let Some((name, value)) = line.split_once(':') {
                fields.push((name.to_owned(), value.trim_start().to_owned()));
            } else if !line.trim().is_empty() {
                return Err(ControlFault::Line { line: line.to_owned() });
            }
        }
        for (_, value) in &mut fields {
            value.truncate(value.trim_end().len());
        }
        Ok(Self { fields })
    }

    /// The value of a field, whose name is compared without case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// All fields in order.
    pub fn fields(&self) -> &[(String, String)] {
        &self.fields
    }

    pub(super) fn required(&self, name: &'static str) -> Result<&str, ControlFault> {
        self.get(name).ok_or(ControlFault::NoField { name })
    }

    /// As in dpkg, no field comes twice, and none is of those that only the status file has: there they would say how far the
    /// package is installed.
    pub(super) fn check_names(&self) -> Result<(), ControlFault> {
        let mut seen = BTreeSet::new();
        for (name, _) in &self.fields {
            let lower = name.to_ascii_lowercase();
            let of_status = STATUS_FIELDS.contains(&lower.as_str());
            if of_status || name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) || !seen.insert(lower)
            {
                return Err(ControlFault::Field { name: name.to_owned() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Control;

    #[test]
    fn blanks_go_from_the_ends_of_values_only() {
        let control = Control::parse("Package:  x \nDescription: short \n long \n end \nEmpty: \n").unwrap();
        let values: Vec<_> = control.fields().iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["x", "short \n long \n end", ""]);
    }
}
