//! Lines, sections, settings and words of unit files (systemd.syntax(7)).

/// Blanks between words and around lines.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// Lines are shorter (`LONG_LINE_MAX` of systemd), in bytes.
const MAX_LINE: usize = 1024 * 1024;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// A line, counted from 1, and what is wrong with it.
type Fault = (usize, String);

/// The line, key and value of each assignment.
type Assignments = Vec<(usize, String, String)>;

/// A line that is neither empty nor a comment.
#[derive(Debug)]
pub enum Statement {
    /// `[NAME]`.
    Header(String),
    Assignment(String, String),
    Other(String),
}

/// The statements of a file, each with its line. The fault is one for which systemd does not read the file.
pub fn statements(bytes: &[u8]) -> Result<Vec<(usize, Statement)>, Fault> {
    let mut found = Vec::new();
    for (number, line) in logical_lines(bytes)? {
        let is_valid = |text: &&str| !text.chars().any(is_noncharacter);
        let text = str::from_utf8(&line).ok().filter(is_valid);
        let text = text.ok_or_else(|| (number, "is not UTF-8".to_owned()))?.trim_matches(BLANKS);
        let statement = match (text.strip_prefix('['), text.split_once('=')) {
            _ if text.is_empty() => continue,
            (Some(header), _) => {
                let name = header.strip_suffix(']');
                let name = name.ok_or_else(|| (number, format!("{text:?} is not a section header")))?;
                Statement::Header(name.to_owned())
            }
            (None, None | Some(("", _))) => Statement::Other(text.to_owned()),
            (None, Some((key, value))) => {
                Statement::Assignment(key.trim_matches(BLANKS).to_owned(), value.trim_start_matches(BLANKS).to_owned())
            }
        };
        found.push((number, statement));
    }
    Ok(found)
}

/// The assignments of all `[Install]` sections, and lines among them that systemd ignores.
pub(super) fn assignments(bytes: &[u8]) -> Result<(Assignments, Vec<Fault>), Fault> {
    let (mut found, mut ignored, mut is_inside) = (Vec::new(), Vec::new(), false);
    for (number, statement) in statements(bytes)? {
        match statement {
            Statement::Header(name) => is_inside = name == "Install",
            Statement::Assignment(key, value) if is_inside => found.push((number, key, value)),
            Statement::Other(text) if is_inside => ignored.push((number, format!("{text:?} is not an assignment"))),
            _ => {}
        }
    }
    Ok((found, ignored))
}

/// Whether a character is one that Unicode never assigns, which systemd does not take.
fn is_noncharacter(c: char) -> bool {
    let code = u32::from(c);
    (0xfdd0..=0xfdef).contains(&code) || code & 0xfffe == 0xfffe
}

/// Lines without comments, joined where a backslash ends one, each with the number of its first line.
fn logical_lines(bytes: &[u8]) -> Result<Vec<(usize, Vec<u8>)>, Fault> {
    let (mut found, mut open, mut has_bom) = (Vec::new(), None::<(usize, Vec<u8>)>, false);
    for (index, line) in lines(bytes).into_iter().enumerate() {
        let too_long = || (index + 1, format!("is longer than {MAX_LINE} bytes"));
        if line.len() >= MAX_LINE {
            return Err(too_long());
        }
        let first = line.iter().find(|byte| !BLANKS.contains(&char::from(**byte)));
        if first.is_some_and(|first| b"#;".contains(first)) {
            continue;
        }
        let plain = line.strip_prefix(BOM).filter(|_| !has_bom);
        has_bom |= plain.is_some();
        let (number, mut joined) = open.take().unwrap_or((index + 1, Vec::new()));
        joined.extend_from_slice(plain.unwrap_or(line));
        if joined.len() > MAX_LINE {
            return Err(too_long());
        }
        let backslashes = joined.iter().rev().take_while(|byte| **byte == b'\\').count();
        match joined.last_mut().filter(|_| backslashes % 2 == 1) {
            Some(last) => {
                *last = b' ';
                open = Some((number, joined));
            }
            None => found.push((number, joined)),
        }
    }
    found.extend(open);
    Ok(found)
}

/// Lines as systemd counts them: a newline, a carriage return and a NUL each end one, and different ones in a row are one end.
fn lines(mut rest: &[u8]) -> Vec<&[u8]> {
    let is_end = |byte: u8| matches!(byte, b'\n' | b'\r' | 0);
    let mut found = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| is_end(*byte)).unwrap_or(rest.len());
        let (line, ends) = rest.split_at(end);
        let len = (0..ends.len()).take_while(|at| is_end(ends[*at]) && !ends[..*at].contains(&ends[*at])).count();
        found.push(line);
        rest = &ends[len..];
    }
    found
}

/// Words, which may be quoted; a backslash is an ordinary character. `None` if a quote does not end.
pub(super) fn quoted_words(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, _) if BLANKS.contains(&c) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// Words in which a backslash stands for the character behind it, and quotes are ordinary characters. One at the end of the text is
/// kept, so that the word is not a name.
pub(super) fn plain_words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut chars) = (Vec::new(), None::<String>, text.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => word.get_or_insert_default().push(chars.next().unwrap_or('\\')),
            _ if BLANKS.contains(&c) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
