//! Arguments of `curl`, `wget`, `tar` and `touch`; unsupported ones are named.

use super::text;

/// What `curl` or `wget` is to do.
pub(super) struct Request {
    pub(super) url: String,
    pub(super) output: Option<String>,
    /// Whether the file gets another name if there is one.
    pub(super) is_renamed: bool,
}

/// What files are called that are named by their address.
const NAME: &[u8] = b"+-._~";

impl Request {
    pub(super) fn read(program: &str, args: &[Vec<u8>]) -> Result<Self, String> {
        let (mut url, mut outputs, mut by_name) = (None, Vec::new(), false);
        let mut rest = args.iter().map(|arg| text(arg));
        while let Some(arg) = rest.next() {
            let mut value = |name: &str| rest.next().ok_or_else(|| format!("{name} without a value"));
            match (program, arg.as_str()) {
                ("curl", "--output") | ("wget", "--output-document") => outputs.push(value(&arg)?),
                ("curl", "--remote-name") if !by_name => by_name = true,
                (
                    "curl",
                    "--header" | "--retry" | "--retry-delay" | "--connect-timeout" | "--max-time" | "--cacert"
                    | "--proto",
                )
                | ("wget", "--header" | "--tries" | "--timeout") => drop(value(&arg)?),
                (
                    "curl",
                    "--fail"
                    | "--silent"
                    | "--show-error"
                    | "--location"
                    | "--insecure"
                    | "--verbose"
                    | "--tlsv1.2"
                    | "--retry-connrefused"
                    | "--compressed",
                )
                | ("wget", "--quiet" | "--no-verbose" | "--https-only") => {}
                (_, long) if long.starts_with("--") => return Err(long.to_owned()),
                (_, short) if short.starts_with('-') && short.len() > 1 => {
                    Self::letters(program, &short[1..], &mut rest, &mut outputs, &mut by_name)?;
                }
                _ if url.is_some() => return Err("more than one URL".to_owned()),
                _ => url = Some(arg),
            }
        }
        let url = url.ok_or("no address")?;
        // curl makes several addresses of it.
        if program == "curl" && url.contains(['[', ']', '{', '}']) {
            return Err("a URL with brackets or braces".to_owned());
        }
        let is_renamed = program == "wget" && outputs.is_empty();
        if by_name || is_renamed {
            outputs.push(remote_name(program, &url)?);
        }
        match <[String; 1]>::try_from(outputs) {
            Ok([path]) => Ok(Self { url, output: Some(path).filter(|path| path != "-"), is_renamed }),
            Err(outputs) if outputs.is_empty() => Ok(Self { url, output: None, is_renamed }),
            Err(_) => Err("more than one output file".to_owned()),
        }
    }

    /// Options of one letter, the last of which may have a value.
    fn letters(
        program: &str,
        letters: &str,
        rest: &mut impl Iterator<Item = String>,
        outputs: &mut Vec<String>,
        by_name: &mut bool,
    ) -> Result<(), String> {
        let mut letters = letters.chars();
        while let Some(letter) = letters.next() {
            let mut value = || {
                let glued = letters.as_str().to_owned();
                letters = "".chars();
                if glued.is_empty() { rest.next() } else { Some(glued) }
                    .ok_or_else(|| format!("-{letter} without a value"))
            };
            match (program, letter) {
                ("curl", 'o') | ("wget", 'O') => outputs.push(value()?),
                ("curl", 'O') if !*by_name => *by_name = true,
                ("curl", 'H' | 'm') | ("wget", 't' | 'T') => drop(value()?),
                ("curl", 'f' | 's' | 'S' | 'L' | 'k' | 'v' | '#') | ("wget", 'q' | 'n' | 'v') => {}
                _ => return Err(format!("-{letter}")),
            }
        }
        Ok(())
    }
}

/// The name that an address gives a file: curl leaves out the query, wget does not.
fn remote_name(program: &str, url: &str) -> Result<String, String> {
    let path = if program == "curl" { url.split(['?', '#']).next().unwrap_or_default() } else { url };
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    let name = path.rsplit_once('/').map(|(_, name)| name).unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || NAME.contains(&byte);
    match !name.is_empty() && name.bytes().all(is_plain) {
        true => Ok(name.to_owned()),
        false => Err(format!(
            "a file named after the URL {}, which does not end with a plain name,",
            vmbake_common::escape::line(url)
        )),
    }
}

/// What `tar` is to unpack.
pub(super) struct Extraction {
    pub(super) archive: String,
    pub(super) directory: String,
    pub(super) strip: usize,
    pub(super) members: Vec<String>,
    /// Whether members keep their owners, as they do for root.
    pub(super) keeps_owners: bool,
}

impl Extraction {
    pub(super) fn read(args: &[Vec<u8>]) -> Result<Self, String> {
        let (mut archives, mut directories, mut strip, mut members, mut extracts, mut keeps_owners) =
            (Vec::new(), Vec::new(), 0, Vec::new(), false, true);
        let mut rest = args.iter().map(|arg| text(arg)).enumerate();
        while let Some((at, arg)) = rest.next() {
            let mut value = || rest.next().map(|(_, value)| value).ok_or_else(|| format!("{arg} without a value"));
            match arg.as_str() {
                "--directory" if members.is_empty() => directories.push(value()?),
                "--file" => archives.push(value()?),
                "--extract" | "--gzip" | "--verbose" | "--preserve-permissions" | "--same-permissions" => {
                    extracts |= arg == "--extract";
                }
                "--same-owner" | "--no-same-owner" => keeps_owners = arg == "--same-owner",
                long if long.starts_with("--strip-components=") => {
                    strip = long[19..].parse().map_err(|_| long.to_owned())?;
                }
                long if long.starts_with("--") => return Err(long.to_owned()),
                _ if at == 0 || arg.starts_with('-') => {
                    for letter in arg.trim_start_matches('-').chars() {
                        match letter {
                            'x' => extracts = true,
                            'o' => keeps_owners = false,
                            'z' | 'v' | 'p' => {}
                            'f' => archives.push(value()?),
                            'C' if members.is_empty() => directories.push(value()?),
                            other => return Err(format!("-{other}")),
                        }
                    }
                }
                _ => members.push(arg),
            }
        }
        let directory = directories.pop().unwrap_or_else(|| ".".to_owned());
        match (extracts, archives.pop()) {
            _ if !archives.is_empty() || !directories.is_empty() => {
                Err("more than one archive or directory".to_owned())
            }
            (true, Some(archive)) => Ok(Self { archive, directory, strip, members, keeps_owners }),
            _ => Err("a call other than --extract with --file".to_owned()),
        }
    }
}

/// Whether `touch` sets a time other than the current one.
pub(super) fn sets_time(args: &[Vec<u8>]) -> bool {
    let options = args.iter().take_while(|arg| *arg != b"--").filter_map(|arg| arg.strip_prefix(b"-"));
    let mut options = options.map(|option| (option.strip_prefix(b"-"), option));
    options.any(|(long, letters)| match long {
        // GNU accepts abbreviations of --date and --reference.
        Some(long) => long.starts_with(b"d") || long.starts_with(b"r"),
        None => letters.iter().any(|letter| b"drt".contains(letter)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_touch_are_found_among_its_options() {
        for (args, expected) in [
            ("f", false),
            ("-c f", false),
            ("-a -m f", false),
            ("--no-create -h f", false),
            ("-- -d", false),
            ("-d @1 f", true),
            ("-d@1 f", true),
            ("f -cr g", true),
            ("-t 202601010000 f", true),
            ("--date=@1 f", true),
            ("--da @1 f", true),
            ("--ref g f", true),
        ] {
            let args: Vec<Vec<u8>> = args.split(' ').map(|arg| arg.as_bytes().to_vec()).collect();
            assert_eq!(sets_time(&args), expected, "{args:?}");
        }
    }
}
