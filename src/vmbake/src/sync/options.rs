//! SSH options after `--`: words in; connection settings out, unless they keep ssh from running the script, or connect to another machine than
//! the given one.
//!
//! ssh uses the first of several equal options. The user's options come first, so that one that contradicts the address would win.

use std::ffi::OsString;

use super::SyncError;

/// Options without a value, except those that keep ssh from running a script, such as `-N` and `-V`.
const FLAGS: &str = "1246AaCgKkMqTtvXxYy";

/// Options with a value.
const VALUED: &str = "BbcDEeFIiJLlmopPRSw";

/// Keywords that also keep ssh from running a script, unless they have one of the values after them.
const IDLE: [(&str, &[&str]); 4] = [
    ("sessiontype", &["default"]),
    ("stdinnull", &["no"]),
    ("forkafterauthentication", &["no"]),
    ("remotecommand", &["none"]),
];

/// Refuses words that are not options, since ssh would use them as host and command, options that keep ssh from running a script, and options
/// that contradict the address, whose parts are given with keywords of ssh_config(5) in lower case.
pub(super) fn check(words: &[OsString], shown: &str, address: &[(&str, String)]) -> Result<(), SyncError> {
    for Setting { keyword, value, option } in settings(words)? {
        let is_idle =
            IDLE.iter().any(|(name, harmless)| *name == keyword && !harmless.contains(&value.to_lowercase().as_str()));
        if is_idle {
            return Err(SyncError::Option { word: option.into() });
        }
        let expected = address.iter().find(|(name, _)| *name == keyword);
        if let Some((_, expected)) = expected.filter(|(_, expected)| !is_same(&keyword, expected, &value)) {
            return Err(SyncError::Contradiction {
                target: shown.to_owned(),
                expected: expected.clone(),
                keyword,
                option,
            });
        }
    }
    Ok(())
}

/// An option that has a keyword.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    /// In lower case.
    keyword: String,
    value: String,
    /// As it was given.
    option: String,
}

fn settings(words: &[OsString]) -> Result<Vec<Setting>, SyncError> {
    let (mut settings, mut words) = (Vec::new(), words.iter());
    while let Some(word) = words.next() {
        let refused = || SyncError::Option { word: word.clone() };
        let text = word.to_str().ok_or_else(refused)?;
        let mut letters = text.strip_prefix('-').filter(|letters| !letters.is_empty()).ok_or_else(refused)?.chars();
        while let Some(letter) = letters.next() {
            if FLAGS.contains(letter) {
                continue;
            }
            if !VALUED.contains(letter) {
                return Err(refused());
            }
            // The value is the rest of the word, or the next word.
            let (value, option) = match letters.as_str() {
                "" => {
                    let next = words.next().and_then(|value| value.to_str()).ok_or_else(refused)?;
                    (next, format!("{text} {next}"))
                }
                rest => (rest, text.to_owned()),
            };
            let Some((keyword, value)) = assigned(letter, value) else {
                return Err(SyncError::Option { word: option.into() });
            };
            settings.push(Setting { keyword, value, option });
            break;
        }
    }
    Ok(settings)
}

/// Blanks between keyword and value, as in ssh.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// Keyword and value of an option; the keyword is empty if irrelevant. Nothing if the keyword of `-o` is not a plain word before a blank or
/// `=`: ssh also accepts quoted keywords, and skips characters before them.
fn assigned(letter: char, value: &str) -> Option<(String, String)> {
    let keyword = match letter {
        'l' => "user",
        'p' => "port",
        'J' => "proxyjump",
        'S' => "controlpath",
        'o' => {
            let text = value.trim_start_matches(BLANKS);
            let (keyword, value) = text.split_once(|c: char| c == '=' || BLANKS.contains(&c))?;
            if keyword.is_empty() || !keyword.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                return None;
            }
            let value = value.trim_start_matches(BLANKS);
            // Keyword and value are separated by blanks and at most one `=`.
            let value =
                if text[keyword.len()..].starts_with('=') { value } else { value.strip_prefix('=').unwrap_or(value) };
            return Some((keyword.to_lowercase(), unquoted(value.trim_matches(BLANKS)).to_owned()));
        }
        _ => "",
    };
    Some((keyword.to_owned(), value.to_owned()))
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

fn is_same(keyword: &str, expected: &str, value: &str) -> bool {
    match keyword {
        "port" => value.parse::<u16>().is_ok_and(|port| port.to_string() == expected),
        "hostname" => value.eq_ignore_ascii_case(expected),
        _ => value == expected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(words: &str, address: &[(&str, String)]) -> Option<String> {
        let words: Vec<OsString> = words.split('|').filter(|word| !word.is_empty()).map(Into::into).collect();
        match check(&words, "web", address) {
            Ok(()) => None,
            Err(SyncError::Option { word }) => Some(word.into_string().unwrap()),
            Err(SyncError::Contradiction { option, .. }) => Some(format!("contradiction: {option}")),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn options_are_those_with_which_ssh_runs_a_script() {
        for (words, refused) in [
            ("-i|KEY|-vv|-4o|Name=value|-oName=value|-p|22|-J|a|-Fb|-tt", None),
            ("-i|-x", None),
            ("-o|SessionType=default|-o|RemoteCommand=none|-oStdinNull no", None),
            ("uptime", Some("uptime")),
            ("-v|web", Some("web")),
            ("-i|KEY|web|id", Some("web")),
            ("--|web", Some("--")),
            ("-", Some("-")),
            ("-v|-i", Some("-i")),
            ("-N", Some("-N")),
            ("-vN", Some("-vN")),
            ("-W|a:1", Some("-W")),
            ("-é", Some("-é")),
            ("-o|sessiontype none", Some("-o sessiontype none")),
            ("-oStdinNull=yes", Some("-oStdinNull=yes")),
            ("-o|RemoteCommand=id", Some("-o RemoteCommand=id")),
            ("-o|ForkAfterAuthentication=yes", Some("-o ForkAfterAuthentication=yes")),
            // Keywords that ssh reads, but that are not plain words.
            ("-o|Ho\"stName\" evil", Some("-o Ho\"stName\" evil")),
            ("-o|\"HostName\" evil", Some("-o \"HostName\" evil")),
            ("-o|=HostName evil", Some("-o =HostName evil")),
            ("-o= HostName=evil", Some("-o= HostName=evil")),
            ("-o|\"\" HostName=evil", Some("-o \"\" HostName=evil")),
            ("-o|\u{b}HostName=evil", Some("-o \u{b}HostName=evil")),
            ("-o|HostName\u{c}=evil", Some("-o HostName\u{c}=evil")),
            ("-o|HostName\"evil\"", Some("-o HostName\"evil\"")),
            ("-o|HostName", Some("-o HostName")),
            ("-o|#HostName=evil", Some("-o #HostName=evil")),
        ] {
            assert_eq!(refusal(words, &[]).as_deref(), refused, "{words}");
        }
    }

    #[test]
    fn no_option_contradicts_the_address() {
        let address = [("user", "root".to_owned()), ("hostname", "web".to_owned()), ("port", "22".to_owned())];
        for words in [
            "-l|root|-p|22|-o|User=root|-o|HostName=WEB|-oport 22",
            "-J|jump|-F|file|-o|ProxyCommand=nc|-S|path|-o|HostKeyAlias=a",
            "-p|022",
        ] {
            assert_eq!(refusal(words, &address), None, "{words}");
        }
        // Each verified with ssh -G.
        for option in [
            "-l other",
            "-lother",
            "-vlother",
            "-vl other",
            "-o User=other",
            "-oUser other",
            "-o user = other",
            "-o User=\"other\"",
            "-o   User\t=\tother",
            "-o User==root",
            "-p 23",
            "-p23",
            "-o Port=23",
            "-oPort 23",
            "-o HostName=other",
            "-p x",
        ] {
            let words = option.replacen("o ", "o|", 1).replacen("l ", "l|", 1).replacen("p ", "p|", 1);
            assert_eq!(refusal(&words, &address), Some(format!("contradiction: {option}")), "{words}");
        }
        let image = [("proxyjump", "none".to_owned()), ("controlpath", "none".to_owned())];
        assert_eq!(refusal("-J|jump", &image), Some("contradiction: -J jump".to_owned()));
        assert_eq!(refusal("-S|none|-o|ProxyJump=none", &image), None);
        // Options can set what the address does not.
        assert_eq!(refusal("-l|other|-p|23", &[("hostname", "web".to_owned())]), None);
    }
}
