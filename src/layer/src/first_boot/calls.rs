//! Programs of the plan that units call: the files of a layer in, the names after `firstboot exec` out.

use crate::Layer;

/// A line of a unit that calls `firstboot exec NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call<'a> {
    /// The unit's file, by its path in the image.
    pub(super) file: &'a str,
    /// The line, counted from 1.
    pub(super) line: usize,
    pub(super) name: &'a str,
}

/// The calls in units of a layer and in what it adds to other units.
pub(super) fn calls(layer: &Layer) -> impl Iterator<Item = Call<'_>> {
    let units = layer.files.iter().filter(|(path, _)| path.contains("/systemd/system/"));
    let texts = units.filter_map(|(path, file)| Some((path.as_str(), std::str::from_utf8(&file.content).ok()?)));
    texts.flat_map(|(file, text)| {
        let lines = text.lines().enumerate();
        lines.filter_map(move |(index, line)| Some(Call { file, line: index + 1, name: called(line)? }))
    })
}

/// The name that a line calls (`Exec…=`, systemd.service(5)). Lines that go on in the next one have the name in the first.
fn called(line: &str) -> Option<&str> {
    let (key, command) = line.trim_start().split_once('=')?;
    let mut words = command.split_whitespace();
    // Prefixes such as `-` and `+` stand before the path.
    let program = words.next().filter(|_| key.starts_with("Exec"))?.rsplit('/').next()?;
    (program == "firstboot" && words.next() == Some("exec")).then(|| words.next()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_call() {
        for (line, expected) in [
            ("ExecStart=/opt/podplane/bin/firstboot exec zot", Some("zot")),
            ("ExecStart = -/opt/podplane/bin/firstboot  exec zot --root /x", Some("zot")),
            ("ExecStartPre=+/opt/podplane/bin/firstboot exec a.b", Some("a.b")),
            ("#ExecStart=/opt/podplane/bin/firstboot exec zot", None),
            ("ExecStart=/opt/podplane/bin/firstboot configure", None),
            ("ExecStart=/usr/bin/zot exec zot", None),
            ("Environment=X=/opt/podplane/bin/firstboot exec zot", None),
            ("ExecStart=", None),
        ] {
            assert_eq!(called(line), expected, "{line}");
        }
    }
}
