//! The arguments of `curl`, `wget` and `tar`, as far as scripts of profiles use them; others are named.

use super::text;

/// What `curl` or `wget` is to do.
pub(super) struct Request {
    pub(super) url: String,
    pub(super) output: Option<String>,
}

impl Request {
    pub(super) fn read(program: &str, args: &[Vec<u8>]) -> Result<Self, String> {
        let (mut url, mut output, mut by_name) = (None, None, false);
        let mut rest = args.iter().map(|arg| text(arg));
        while let Some(arg) = rest.next() {
            let mut value = |name: &str| rest.next().ok_or_else(|| format!("{name} without a value"));
            match (program, arg.as_str()) {
                ("curl", "--output") | ("wget", "--output-document") => output = Some(value(&arg)?),
                ("curl", "--remote-name") => by_name = true,
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
                    Self::letters(program, &short[1..], &mut rest, &mut output, &mut by_name)?;
                }
                _ if url.is_some() => return Err("more than one address".to_owned()),
                _ => url = Some(arg),
            }
        }
        let url = url.ok_or("no address")?;
        if by_name || (program == "wget" && output.is_none()) {
            output = url.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned);
        }
        Ok(Self { url, output: output.filter(|path| path != "-") })
    }

    /// Options of one letter, the last of which may have a value.
    fn letters(
        program: &str,
        letters: &str,
        rest: &mut impl Iterator<Item = String>,
        output: &mut Option<String>,
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
                ("curl", 'o') | ("wget", 'O') => *output = Some(value()?),
                ("curl", 'O') => *by_name = true,
                ("curl", 'H' | 'm') | ("wget", 't' | 'T') => drop(value()?),
                ("curl", 'f' | 's' | 'S' | 'L' | 'k' | 'v' | '#') | ("wget", 'q' | 'n' | 'v') => {}
                _ => return Err(format!("-{letter}")),
            }
        }
        Ok(())
    }
}

/// What `tar` is to unpack.
pub(super) struct Extraction {
    pub(super) archive: String,
    pub(super) directory: String,
    pub(super) strip: usize,
    pub(super) members: Vec<String>,
}

impl Extraction {
    pub(super) fn read(args: &[Vec<u8>]) -> Result<Self, String> {
        let (mut archive, mut directory, mut strip, mut members, mut extracts) =
            (None, ".".to_owned(), 0, Vec::new(), false);
        let mut rest = args.iter().map(|arg| text(arg)).enumerate();
        while let Some((at, arg)) = rest.next() {
            let mut value = || rest.next().map(|(_, value)| value).ok_or_else(|| format!("{arg} without a value"));
            match arg.as_str() {
                "--directory" => directory = value()?,
                "--file" => archive = Some(value()?),
                "--extract" | "--gzip" | "--no-same-owner" | "--verbose" => extracts |= arg == "--extract",
                long if long.starts_with("--strip-components=") => {
                    strip = long[19..].parse().map_err(|_| long.to_owned())?;
                }
                long if long.starts_with("--") => return Err(long.to_owned()),
                _ if at == 0 || arg.starts_with('-') => {
                    for letter in arg.trim_start_matches('-').chars() {
                        match letter {
                            'x' => extracts = true,
                            'z' | 'v' | 'p' => {}
                            'f' => archive = Some(value()?),
                            'C' => directory = value()?,
                            other => return Err(format!("-{other}")),
                        }
                    }
                }
                _ => members.push(arg),
            }
        }
        match (extracts, archive) {
            (true, Some(archive)) => Ok(Self { archive, directory, strip, members }),
            _ => Err("anything but unpacking an archive".to_owned()),
        }
    }
}
