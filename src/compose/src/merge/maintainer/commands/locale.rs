//! locale(1): the current locale.

use vmbake_shell::Call;

use super::{Command, Done, System, status, unsupported};

/// The categories, in the order in which they are printed.
const CATEGORIES: [&str; 12] = [
    "CTYPE",
    "NUMERIC",
    "TIME",
    "COLLATE",
    "MONETARY",
    "MESSAGES",
    "PAPER",
    "NAME",
    "ADDRESS",
    "TELEPHONE",
    "MEASUREMENT",
    "IDENTIFICATION",
];

pub(super) fn find(name: &str) -> Option<Command> {
    (name == "locale").then_some(locale as Command)
}

/// Prints the variables that make the locale; what follows from another variable stands in quotes.
fn locale(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let exported = call.variables.exported();
    let value = |name: &str| exported.get(name.as_bytes()).filter(|value| !value.is_empty()).map(Vec::as_slice);
    match call.args {
        [] => {}
        [word] if word == b"charmap" => {
            let charmap: &[u8] = match value("LC_ALL").or(value("LC_CTYPE")).or(value("LANG")).unwrap_or(b"POSIX") {
                b"POSIX" | b"C" => b"ANSI_X3.4-1968\n",
                name if name.ends_with(b".UTF-8") => b"UTF-8\n",
                _ => return unsupported(call),
            };
            call.stdout.extend_from_slice(charmap);
            return status(0);
        }
        _ => return unsupported(call),
    }
    let shown = |name: &str| value(name).unwrap_or_default();
    call.stdout.extend([b"LANG=", shown("LANG"), b"\nLANGUAGE=", shown("LANGUAGE"), b"\n"].concat());
    for category in CATEGORIES {
        let name = format!("LC_{category}");
        let line = match (value("LC_ALL"), value(&name)) {
            (None, Some(own)) => own.to_vec(),
            (all, _) => [b"\"", all.or(value("LANG")).unwrap_or(b"POSIX"), b"\""].concat(),
        };
        call.stdout.extend([name.as_bytes(), b"=", &line, b"\n"].concat());
    }
    call.stdout.extend([b"LC_ALL=", shown("LC_ALL"), b"\n"].concat());
    status(0)
}
