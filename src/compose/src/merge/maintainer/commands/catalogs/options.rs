//! Options of update-xmlcatalog(8), and the messages about those that it refuses.

use vmbake_shell::Call;

use super::is_file;
use super::xml::DIRECTORY;

#[derive(Default)]
pub(super) struct Options {
    pub(super) add: bool,
    pub(super) del: bool,
    pub(super) root: bool,
    pub(super) verbose: bool,
    pub(super) file: Option<String>,
    pub(super) id: Option<String>,
    pub(super) local: Option<String>,
    pub(super) package: Option<String>,
    /// `public`, `system` or `uri`.
    pub(super) kind: Option<String>,
}

impl Options {
    /// Divides the words of a call. `None` for what no package uses: help, operands, and short forms of names.
    pub(super) fn parse(words: &[String]) -> Option<Self> {
        let mut options = Self::default();
        // Entries are sorted in any case.
        let mut is_sorted = true;
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            let name = word.strip_prefix("--")?;
            let (name, value) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
            let flag = match name {
                "add" => &mut options.add,
                "del" => &mut options.del,
                "root" => &mut options.root,
                "verbose" => &mut options.verbose,
                "sort" => &mut is_sorted,
                _ => {
                    let value =
                        value.map_or_else(|| words.next(), |value| Some(value).filter(|value| !value.is_empty()));
                    *options.value(name)? = Some(value?.to_owned());
                    continue;
                }
            };
            if value.is_some() {
                return None;
            }
            *flag = true;
        }
        Some(options)
    }

    fn value(&mut self, name: &str) -> Option<&mut Option<String>> {
        Some(match name {
            "file" => &mut self.file,
            "id" => &mut self.id,
            "local" => &mut self.local,
            "package" => &mut self.package,
            "type" => &mut self.kind,
            _ => return None,
        })
    }

    /// What the program says of options that it refuses.
    pub(super) fn refusal(&self, call: &Call<'_>) -> Option<String> {
        let refused = match (self.add, self.del) {
            (false, false) => Some("either 'add' or 'del' must be given".to_owned()),
            (true, true) => Some("only one of 'add' and 'del' can be given".to_owned()),
            (true, false) => self.refused_to_add(call),
            (false, true) => self.refused_to_del(call),
        };
        refused.or_else(|| match &self.kind {
            None => Some("type not given".to_owned()),
            Some(kind) if !["public", "system", "uri"].contains(&kind.as_str()) => Some("wrong type".to_owned()),
            Some(_) => self.id.is_none().then(|| "id not given".to_owned()),
        })
    }

    fn refused_to_add(&self, call: &Call<'_>) -> Option<String> {
        if self.root {
            let Some(package) = &self.package else { return Some("package catalog not given".to_owned()) };
            return missing(call, "package catalog", &format!("{DIRECTORY}/{package}.xml")).or_else(|| {
                let given = self.local.is_some() || self.file.is_some();
                given.then(|| "local catalog and file not for adding to root catalog file".to_owned())
            });
        }
        if self.package.is_some() {
            let Some(local) = &self.local else { return Some("local catalog not given".to_owned()) };
            return missing(call, "local catalog", local)
                .or_else(|| self.file.as_ref().map(|_| "file not for adding to package catalog file".to_owned()));
        }
        match (&self.local, &self.file) {
            (Some(_), Some(file)) => missing(call, "file", file),
            (Some(_), None) => Some("file not given".to_owned()),
            (None, _) => Some("catalog not given".to_owned()),
        }
    }

    fn refused_to_del(&self, call: &Call<'_>) -> Option<String> {
        let (package, local, file) = (self.package.is_some(), self.local.is_some(), self.file.is_some());
        let (found, others) = match (self.root, &self.package, &self.local) {
            (true, ..) => (
                missing(call, "root catalog", &format!("{DIRECTORY}/catalog")),
                (package || local || file)
                    .then_some("package catalog, local catalog or file not for deleting from root catalog file"),
            ),
            (false, Some(package), _) => (
                missing(call, "package catalog", &format!("{DIRECTORY}/{package}.xml")),
                (local || file).then_some("local catalog or file not for deleting from package catalog file"),
            ),
            (false, None, Some(local)) => {
                (missing(call, "local catalog", local), file.then_some("file not for deleting from local catalog file"))
            }
            (false, None, None) => (Some("catalog not given".to_owned()), None),
        };
        found.or_else(|| others.map(str::to_owned))
    }
}

fn missing(call: &Call<'_>, what: &str, path: &str) -> Option<String> {
    (!is_file(call, path)).then(|| format!("{what} {path} not found"))
}
