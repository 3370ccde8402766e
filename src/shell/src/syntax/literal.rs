//! Commands in literal strings: operands of `eval`, `trap`, `bash -c` and `sh -c` without expansions are parsed with the script.

use super::reader::Reader;
use super::{Language, Parser, Part, SyntaxError, Word, script};

/// Deepest nesting of such texts that is looked into; deeper ones are parsed when they run.
pub(super) const MAX_TEXTS: u32 = 3;

/// Text without expansions.
pub(super) struct Text {
    source: Vec<u8>,
    language: Language,
}

impl Text {
    /// The commands among the operands of a builtin or program.
    pub(super) fn of(name: &[u8], operands: &[Word]) -> Option<Self> {
        let source = match (name, operands) {
            (b"eval", _) => operands.iter().map(text).collect::<Option<Vec<_>>>()?.join(&b' '),
            (b"trap", [action, _, ..]) => text(action).filter(|action| is_action(action))?,
            (b"bash" | b"sh", [option, commands, ..]) if is_dash_c(option) => text(commands)?,
            _ => return None,
        };
        Some(Self { source, language: if name == b"sh" { Language::Dash } else { Language::Bash } })
    }

    /// Parses the commands; those of bash may have extended patterns or not.
    pub(super) fn check(&self, texts: u32) -> Result<(), SyntaxError> {
        if self.language == Language::Dash {
            let mut reader = Reader::new(&self.source, 1, 0, Language::Dash);
            while Parser::new(&mut reader).line()?.is_some() {}
            return Ok(());
        }
        let plain = script::nested(&self.source, false, texts);
        if plain.is_ok() || script::nested(&self.source, true, texts).is_ok() { Ok(()) } else { plain.map(|_| ()) }
    }
}

/// Whether the first operand of `trap` is what to do.
fn is_action(operand: &[u8]) -> bool {
    !operand.starts_with(b"-") && !operand.iter().all(u8::is_ascii_digit)
}

fn is_dash_c(option: &Word) -> bool {
    let letters = option.literal().and_then(|option| option.strip_prefix(b"-")).unwrap_or_default();
    letters.ends_with(b"c") && letters.iter().all(|letter| b"eux".contains(letter) || *letter == b'c')
}

/// The text of a word that no expansion changes.
fn text(word: &Word) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    for part in &word.parts {
        match part {
            Part::Literal(bytes) if !bytes.iter().any(|byte| b"*?[~{".contains(byte)) => text.extend(bytes),
            Part::Quoted(bytes) => text.extend(bytes),
            Part::DoubleQuoted(inner) => {
                for part in inner {
                    let (Part::Literal(bytes) | Part::Quoted(bytes)) = part else { return None };
                    text.extend(bytes);
                }
            }
            _ => return None,
        }
    }
    Some(text)
}
