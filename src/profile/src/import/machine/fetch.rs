//! Downloads of scripts: nothing is downloaded; a token represents the content, and is followed into files, through checksums and out of
//! archives.

use vmbake_shell::{Call, Follow, Outcome};

use super::arguments::{Extraction, Request};
use super::{Machine, text};
use crate::import::base::is_vacant;
use crate::import::report::StatementClass;
use crate::import::runtime::{RuntimeValue, TOKEN, is_marked};
use vmbake_common::address;

/// Ends the token of a fetched file in a value of a shell.
const VALUE: &str = "~\u{e003}";
/// Most that is read of one file.
const LARGEST: usize = 1 << 20;
/// Where OSM keeps what machines fetch from their cluster.
const SECRETS: &str = "/api/v1/namespaces/cloud-init-settings/secrets/";

/// Something that a script fetches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) struct Fetched {
    pub(in crate::import) what: What,
    /// The checksum file that a script compared it with, by its address.
    pub(in crate::import) checksums: Option<String>,
    /// The SHA-256 that a script compared it with.
    pub(in crate::import) sha256: Option<String>,
    /// Where a script put it at first.
    path: Option<Vec<u8>>,
}

/// What it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) enum What {
    /// The file at an address.
    Url(String),
    /// What provisions the machine.
    Provisioning,
    /// What the kubelet begins with.
    Kubeconfig,
}

/// An archive that a script unpacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) struct Unpacked {
    /// Which of the fetched files.
    pub(in crate::import) fetched: usize,
    /// The directory.
    pub(in crate::import) path: String,
    pub(in crate::import) strip: usize,
    pub(in crate::import) members: Vec<String>,
    /// Files and links that were there before, which tar would replace.
    pub(in crate::import) absent: Vec<String>,
    /// Whether members keep the owners that the archive has for them.
    pub(in crate::import) keeps_owners: bool,
}

/// Whether something that is fetched has a part in a text.
pub(in crate::import) fn has_token(text: &[u8]) -> bool {
    text.windows(TOKEN.0.len()).any(|window| window == TOKEN.0.as_bytes())
}

/// Which fetched file a text is, byte for byte or as a value of a shell.
fn value_of(text: &[u8]) -> Option<usize> {
    let text = str::from_utf8(text).ok()?;
    token_of(text.replace(VALUE, TOKEN.1).as_bytes())
}

/// A text as the value of a command substitution. It lacks NUL bytes and trailing newlines, so that a file with it is not a copy of the fetched file.
pub(super) fn value(text: Vec<u8>) -> Vec<u8> {
    match String::from_utf8(text) {
        Ok(text) => text.replace(VALUE, TOKEN.1).replace(TOKEN.1, VALUE).into_bytes(),
        Err(error) => error.into_bytes(),
    }
}

/// Which fetched file a text is, byte for byte.
pub(in crate::import) fn token_of(text: &[u8]) -> Option<usize> {
    str::from_utf8(text).ok()?.strip_prefix(TOKEN.0)?.strip_suffix(TOKEN.1)?.parse().ok()
}

fn token(number: usize) -> String {
    format!("{}{number}{}", TOKEN.0, TOKEN.1)
}

impl Machine<'_> {
    /// `curl` and `wget`.
    pub(super) fn fetch(&mut self, program: &str, call: &mut Call<'_>) -> Outcome {
        let request = match Request::read(program, call.args) {
            Ok(request) => request,
            Err(what) => return Outcome::Unsupported(what),
        };
        let what = match self.source(&request.url) {
            Ok(what) => what,
            Err(what) => return Outcome::Unsupported(what),
        };
        let (class, reason) = match what {
            What::Url(_) => (StatementClass::Baked, "in the image unless a later command removes it"),
            What::Provisioning => (StatementClass::Dropped, "the image already contains its result"),
            What::Kubeconfig => (StatementClass::UserData, "BOOTSTRAP_KUBECONFIG"),
        };
        let is_there = |path: &String| call.files.lookup(&call.path(path.as_bytes()), Follow::No).is_ok();
        if let Some(path) = request.output.as_ref().filter(|path| request.is_renamed && is_there(path)) {
            return Outcome::Unsupported(format!("wget without -O for the existing file {path}, which wget keeps,"));
        }
        let number = self.effects.fetched.len();
        let path = request.output.map(|path| call.path(path.as_bytes()));
        self.effects.fetched.push(Fetched { what, checksums: None, sha256: None, path: path.clone() });
        match path {
            None => call.stdout.extend_from_slice(token(number).as_bytes()),
            Some(path) => {
                let mode = 0o666 & !call.umask;
                if let Err(error) = call.files.write(&path, token(number).into_bytes(), mode) {
                    call.stderr.extend_from_slice(format!("{}: {error}\n", text(&path)).as_bytes());
                    return Outcome::Status(23);
                }
            }
        }
        self.note(class, reason)
    }

    /// What is at an address.
    fn source(&self, url: &str) -> Result<What, String> {
        let server = RuntimeValue::of("SERVER_URL").map(RuntimeValue::mark).unwrap_or_default();
        if let Some(path) = url.strip_prefix(&server) {
            let secret = path.strip_prefix(SECRETS).ok_or("this URL of the API server")?;
            return match self.secrets.iter().position(|known| known == secret) {
                Some(0) => Ok(What::Provisioning),
                Some(_) => Ok(What::Kubeconfig),
                None => Err(format!("the secret {secret}")),
            };
        }
        if address::has_userinfo(url) {
            return Err(address::MESSAGE.to_owned());
        }
        match url.strip_prefix("https://") {
            Some(rest) if !rest.is_empty() && !is_marked(url.as_bytes()) && !has_token(url.as_bytes()) => {
                Ok(What::Url(url.to_owned()))
            }
            _ => Err("a URL without https, or one that only machines know".to_owned()),
        }
    }

    /// `jq` that takes a value out of a secret.
    pub(super) fn jq(&mut self, call: &mut Call<'_>) -> Outcome {
        let input = (call.stdin)();
        let filter = call.args.iter().filter(|arg| !matches!(&arg[..], b"-r" | b"--raw-output")).collect::<Vec<_>>();
        let [filter] = filter[..] else { return Outcome::Unsupported("more than one filter".to_owned()) };
        let filter = text(filter);
        let wanted = match value_of(input.trim_ascii_end())
            .and_then(|at| self.effects.fetched.get(at))
            .map(|fetched| &fetched.what)
        {
            Some(What::Provisioning) => r#".data["cloud-config"]"#,
            Some(What::Kubeconfig) => r#".data["kubeconfig"]"#,
            _ => return Outcome::Unsupported("input other than a secret of OSM".to_owned()),
        };
        if filter != wanted && filter != wanted.replace("[\"", ".").replace("\"]", "") {
            return Outcome::Unsupported(format!("the filter {filter}"));
        }
        call.stdout.extend_from_slice(&input);
        Outcome::Status(0)
    }

    /// `base64 -d` of such a value.
    pub(super) fn base64(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
        if !matches!(call.args, [option] if option == b"-d" || option == b"--decode") {
            return Some(Outcome::Unsupported("base64 without -d".to_owned()));
        }
        let input = (call.stdin)();
        let number = value_of(input.trim_ascii_end());
        let fetched = number.and_then(|at| self.effects.fetched.get(at));
        match fetched.map(|fetched| &fetched.what) {
            Some(What::Provisioning) => call.stdout.extend_from_slice(token(number.unwrap_or_default()).as_bytes()),
            Some(What::Kubeconfig) => {
                let mark = RuntimeValue::of("BOOTSTRAP_KUBECONFIG").map(RuntimeValue::mark).unwrap_or_default();
                call.stdout.extend_from_slice(mark.as_bytes());
            }
            _ => return Some(Outcome::Unsupported("input other than a secret of OSM".to_owned())),
        }
        Some(Outcome::Status(0))
    }

    /// `sha256sum -c`: each line compares one file.
    pub(super) fn check_sums(&mut self, program: &str, call: &mut Call<'_>) -> Option<Outcome> {
        let is_option = |arg: &&Vec<u8>| arg.starts_with(b"-") && arg.len() > 1;
        let options: Vec<String> = call.args.iter().filter(is_option).map(|arg| text(arg)).collect();
        if !options.iter().any(|option| option == "-c" || option == "--check") {
            return None;
        }
        let known = ["-c", "--check", "--strict", "--quiet", "--status", "--ignore-missing"];
        if let Some(other) = options.iter().find(|option| !known.contains(&option.as_str())) {
            return Some(Outcome::Unsupported(other.clone()));
        }
        let operands: Vec<&Vec<u8>> = call.args.iter().filter(|arg| !is_option(arg)).collect();
        let list = match operands[..] {
            [] => (call.stdin)(),
            [name] if name == b"-" => (call.stdin)(),
            [path] => match call.files.read(&call.path(path), LARGEST) {
                Ok(list) => list,
                Err(error) => return Some(Outcome::Unsupported(format!("the list {}: {error}", text(path)))),
            },
            _ => return Some(Outcome::Unsupported("more than one list".to_owned())),
        };
        for line in text(&list).lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Err(what) = self.compared(program, call, line) {
                return Some(Outcome::Unsupported(what));
            }
        }
        self.effects.lists.insert(list);
        Some(self.note(StatementClass::Baked, "the bake verifies it"))
    }

    fn compared(&mut self, program: &str, call: &Call<'_>, line: &str) -> Result<(), String> {
        let (sum, name) = line
            .split_once(|char: char| char.is_ascii_whitespace())
            .map_or((line, ""), |(sum, rest)| (sum, rest.trim_start().trim_start_matches('*')));
        let is_file = |at: &usize| matches!(self.effects.fetched.get(*at).map(|one| &one.what), Some(What::Url(_)));
        let url = |at: usize| match self.effects.fetched.get(at).map(|one| &one.what) {
            Some(What::Url(url)) => url.clone(),
            _ => String::new(),
        };
        if let Some(list) = value_of(sum.as_bytes()).filter(is_file) {
            let list = url(list);
            let file = match name {
                "" => self.check_listed(call, &list),
                name => call.files.read(&call.path(name.as_bytes()), LARGEST).ok().and_then(|text| token_of(&text)),
            };
            let file = file.ok_or_else(|| format!("the checksum list {list}, whose file was not downloaded,"))?;
            if let Some(fetched) = self.effects.fetched.get_mut(file) {
                fetched.checksums = Some(list);
            }
            return Ok(());
        }
        let is_sha256 = sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
        let file = call.files.read(&call.path(name.as_bytes()), LARGEST).ok().and_then(|text| token_of(&text));
        match file.and_then(|at| self.effects.fetched.get_mut(at)) {
            Some(fetched) if is_sha256 && program == "sha256sum" => {
                fetched.sha256 = Some(sum.to_ascii_lowercase());
                Ok(())
            }
            _ => Err(format!("the checksum line {}", vmbake_common::escape::line(line))),
        }
    }

    /// The fetched file in the working directory that a list without names is about.
    fn check_listed(&self, call: &Call<'_>, list: &str) -> Option<usize> {
        let is_here = |path: &Vec<u8>| path.rsplitn(2, |byte| *byte == b'/').nth(1) == Some(call.cwd);
        let about = |fetched: &Fetched| match &fetched.what {
            What::Url(url) => list.strip_prefix(url.as_str()).is_some_and(|ending| ending.starts_with('.')),
            _ => false,
        };
        let mut numbers = (0..self.effects.fetched.len()).filter(|at| {
            let Some(fetched) = self.effects.fetched.get(*at).filter(|fetched| about(fetched)) else { return false };
            let path = fetched.path.as_ref().filter(|path| is_here(path));
            path.is_some_and(|path| call.files.read(path, LARGEST).is_ok_and(|text| token_of(&text) == Some(*at)))
        });
        numbers.next()
    }

    /// `tar` that unpacks a fetched archive.
    pub(super) fn tar(&mut self, call: &mut Call<'_>) -> Outcome {
        let extraction = match Extraction::read(call.args) {
            Ok(extraction) => extraction,
            Err(what) => return Outcome::Unsupported(what),
        };
        let content = call.files.read(&call.path(extraction.archive.as_bytes()), LARGEST);
        let Some(fetched) = content.ok().and_then(|text| token_of(&text)) else {
            return Outcome::Unsupported("an archive that was not downloaded".to_owned());
        };
        let path = match plain_directory(call, &extraction.directory) {
            Ok(path) => path,
            Err(what) => return Outcome::Unsupported(what),
        };
        if call.umask != 0o022 {
            let umask = call.umask;
            return Outcome::Unsupported(format!("tar with the umask {umask:03o} instead of 022"));
        }
        let absent = call.files.unpack_into(path.as_bytes()).iter().map(|path| text(path)).collect();
        let Extraction { strip, members, keeps_owners, .. } = extraction;
        self.effects.unpacked.push(Unpacked { fetched, path, strip, members, absent, keeps_owners });
        self.note(StatementClass::Baked, "the bake unpacks it")
    }

    /// `chown -R` to root of an unpacked archive: the bake sets the owner of its members, and everything else there belongs to root.
    pub(super) fn chown(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
        let [option, owner, operands @ ..] = call.args else { return None };
        let is_root = matches!(&owner[..], b"root" | b"root:" | b"root:root" | b"0" | b"0:" | b"0:0");
        if option != b"-R" || !is_root || operands.is_empty() {
            return None;
        }
        // A directory that `mkdir -p` made may be one of the base that has entries.
        let is_known = |path: &str| is_vacant(format!("{path}/-").as_bytes());
        let directory = |operand: &Vec<u8>| {
            let path = plain_directory(call, &text(operand)).ok().filter(|path| is_known(path))?;
            self.effects.unpacked.iter().any(|unpacked| unpacked.path == path).then_some(path)
        };
        let paths: Option<Vec<String>> = operands.iter().map(directory).collect();
        let paths = paths?;
        let is_below = |unpacked: &Unpacked| {
            let mut rests = paths.iter().filter_map(|path| unpacked.path.strip_prefix(path.as_str()));
            rests.any(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let all = self.effects.unpacked.iter_mut().filter(|unpacked| unpacked.keeps_owners && is_below(unpacked));
        for unpacked in all {
            if matches!(&owner[..], b"root" | b"0") {
                return Some(Outcome::Unsupported(
                    "changing only the user, while members of the archive keep their groups,".to_owned(),
                ));
            }
            unpacked.keeps_owners = false;
        }
        Some(self.note(StatementClass::Baked, "the bake sets the owner root"))
    }
}

/// A directory of the tree by a path that no link is on.
fn plain_directory(call: &Call<'_>, operand: &str) -> Result<String, String> {
    let path = text(&call.path(operand.as_bytes()));
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    let mut plain = String::new();
    for name in names {
        plain = format!("{plain}/{name}");
        let is_dir = call.files.lookup(plain.as_bytes(), Follow::No).is_ok_and(|node| node.is_dir());
        if name == ".." || !is_dir {
            return Err(format!(
                "a path that contains symbolic links or is not a directory: {}",
                vmbake_common::escape::line(operand)
            ));
        }
    }
    Ok(plain)
}
