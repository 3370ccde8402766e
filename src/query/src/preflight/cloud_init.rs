//! cloud-init: enabled, and with the Ec2 datasource.

use super::CheckResult;
use super::subject::Subject;

/// The target of its units, which a systemd generator enables.
const TARGET: &str = "/usr/lib/systemd/system/cloud-init.target";
const PROGRAM: &str = "/usr/bin/cloud-init";

/// Installed and not disabled (cloud-init, "Boot stages", Disable cloud-init).
pub(super) fn enabled(subject: &Subject<'_>) -> CheckResult {
    for path in [PROGRAM, TARGET] {
        if !subject.has(path) {
            return Err(format!("{path} is missing"));
        }
    }
    if subject.has("/etc/cloud/cloud-init.disabled") {
        return Err("disabled by /etc/cloud/cloud-init.disabled".to_owned());
    }
    let turned_off = subject.arguments().is_ok_and(|mut words| words.any(|word| word == "cloud-init=disabled"));
    if turned_off {
        Err("disabled by cloud-init=disabled on the kernel command line".to_owned())
    } else {
        Ok(PROGRAM.to_owned())
    }
}

/// `datasource_list`, of which the last file wins, contains Ec2 or is not set.
pub(super) fn datasource(subject: &Subject<'_>) -> CheckResult {
    let found = configuration(subject).into_iter().rev().find_map(|(path, text)| Some((path, list(&text)?)));
    match found {
        None => Ok("datasource_list is not set".to_owned()),
        Some((path, list)) if list.iter().any(|name| name == "Ec2") => Ok(format!("{path} lists Ec2")),
        Some((path, list)) => Err(format!("{path}: expected Ec2, found {}", list.join(", "))),
    }
}

/// Its configuration files, in the order in which they are read.
pub(super) fn configuration(subject: &Subject<'_>) -> Vec<(String, String)> {
    let first = "/etc/cloud/cloud.cfg";
    let first = subject.text(first).map(|text| (first.to_owned(), text));
    first.into_iter().chain(subject.texts("/etc/cloud/cloud.cfg.d", &[".cfg"])).collect()
}

/// The names of `datasource_list`, a YAML flow or block sequence.
fn list(text: &str) -> Option<Vec<String>> {
    let mut lines = text.lines().map(|line| line.split(" #").next().unwrap_or_default().trim_end());
    let rest = lines.find_map(|line| line.strip_prefix("datasource_list:"))?;
    let mut names = rest.trim().to_owned();
    let is_flow = names.starts_with('[');
    for line in lines {
        let line = line.trim_start();
        if is_flow && !names.ends_with(']') {
            names.push_str(line);
        } else if let Some(item) = line.strip_prefix("- ").filter(|_| !is_flow) {
            names.push(',');
            names.push_str(item);
        } else if !line.is_empty() {
            break;
        }
    }
    let is_around = |char: char| char.is_whitespace() || "[]\"'".contains(char);
    let names = names.split(',').map(|name| name.trim_matches(is_around).to_owned());
    Some(names.filter(|name| !name.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::list;

    #[test]
    fn lists_in_all_forms_of_yaml_are_read() {
        let cases: [(&str, Option<&[&str]>); 8] = [
            ("datasource_list: [ NoCloud, Ec2 ]", Some(&["NoCloud", "Ec2"])),
            ("a: b\ndatasource_list: ['Ec2', \"None\"] # all\n", Some(&["Ec2", "None"])),
            ("datasource_list: [Ec2,\n  None]\nb: [c]", Some(&["Ec2", "None"])),
            ("datasource_list:\n- Ec2\n  - None\n\nb:\n- c", Some(&["Ec2", "None"])),
            ("datasource_list: []", Some(&[])),
            ("# datasource_list: [ Ec2 ]", None),
            ("x:\n  datasource_list: [ Ec2 ]", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let expected = expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
            assert_eq!(list(text), expected, "{text:?}");
        }
    }
}
