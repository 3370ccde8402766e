//! Files of tests: `FILE path` in a line, and the lines of the file behind `|`, with names for bytes that a text does not show.

pub(super) fn files_of(text: &str) -> impl Iterator<Item = (&str, String)> {
    text.split("FILE ").skip(1).map(|text| {
        let (path, text) = text.split_once('\n').unwrap();
        let lines: String = text.lines().map(|line| format!("{}\n", line.strip_prefix('|').unwrap())).collect();
        (path, lines.replace("{CR}", "\r").replace("{NUL}", "\0").replace("{TAB}", "\t"))
    })
}
