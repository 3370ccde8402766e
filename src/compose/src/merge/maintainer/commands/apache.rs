//! a2enmod(8), a2dismod(8), and the same for sites and configurations: links from the enabled to the available files, and state files that
//! record who enabled each.

mod query;

use vmbake_shell::{Call, Errno, Follow};

use super::options::{self, Options, Spec};
use super::{Command, Done, System, status, unsupported};

const CONFIG: &str = "/etc/apache2";
const STATE: &str = "/var/lib/apache2";

const OPTIONS: [Spec; 4] = [
    ("quiet", Some(b'q'), false),
    ("force", Some(b'f'), false),
    ("maintmode", Some(b'm'), false),
    ("purge", Some(b'p'), false),
];

/// What a server does not do without: disabling it is asked about.
const ESSENTIAL: [&str; 16] = [
    "alias",
    "auth_basic",
    "authn_file",
    "authz_host",
    "authz_user",
    "autoindex",
    "deflate",
    "dir",
    "env",
    "filter",
    "logio",
    "mime",
    "negotiation",
    "setenvif",
    "unixd",
    "version",
];

pub(super) fn find(name: &str) -> Option<Command> {
    Some(match name {
        "a2enmod" => |_, call| switch(call, &MODULE, true),
        "a2dismod" => |_, call| switch(call, &MODULE, false),
        "a2ensite" => |_, call| switch(call, &SITE, true),
        "a2dissite" => |_, call| switch(call, &SITE, false),
        "a2enconf" => |_, call| switch(call, &CONF, true),
        "a2disconf" => |_, call| switch(call, &CONF, false),
        "a2query" => |_: &mut System<'_, '_>, call| query::query(call),
        _ => return None,
    })
}

/// What can be enabled.
struct Object {
    name: &'static str,
    /// Its folders, without `-available` and `-enabled`.
    dir: &'static str,
    suffix: &'static str,
}

const MODULE: Object = Object { name: "module", dir: "mods", suffix: ".load" };
const SITE: Object = Object { name: "site", dir: "sites", suffix: ".conf" };
const CONF: Object = Object { name: "conf", dir: "conf", suffix: ".conf" };

/// Why one of the names is not enabled or disabled: the message, or an error of the tree.
enum Fault {
    Message(String),
    Tree(Errno),
    Unknown,
}

impl From<Errno> for Fault {
    fn from(error: Errno) -> Self {
        Self::Tree(error)
    }
}

/// A link of what is enabled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    Missing,
    Right,
    Wrong,
}

struct Switch<'a, 'c> {
    call: &'a mut Call<'c>,
    object: &'static Object,
    options: &'a Options,
    /// Modules whose dependencies are being enabled or disabled, which are not looked at again.
    on_the_way: Vec<String>,
}

fn switch(call: &mut Call<'_>, object: &'static Object, on: bool) -> Done {
    let Some(options) = options::parse(call, &OPTIONS) else { return unsupported(call) };
    if options.operands.is_empty() || options.operands.iter().any(|name| name.contains(['*', '?', '[', '/'])) {
        return unsupported(call);
    }
    let mut failed = false;
    let mut switch = Switch { call, object, options: &options, on_the_way: Vec::new() };
    for name in &options.operands {
        let name = name.strip_suffix(object.suffix).unwrap_or(name);
        let done = if on { switch.enable(name) } else { switch.disable(name) };
        let message = match done {
            Ok(()) => continue,
            Err(Fault::Unknown) => return unsupported(switch.call),
            Err(Fault::Message(message)) => message,
            Err(Fault::Tree(error)) => format!("{name}: {error}"),
        };
        switch.call.stderr.extend(format!("ERROR: {message}\n").bytes());
        failed = true;
    }
    status(u8::from(failed))
}

impl Switch<'_, '_> {
    fn available(&self, name: &str, suffix: &str) -> String {
        format!("{CONFIG}/{}-available/{name}{suffix}", self.object.dir)
    }

    fn enabled(&self, name: &str, suffix: &str) -> String {
        format!("{CONFIG}/{}-enabled/{name}{suffix}", self.object.dir)
    }

    fn exists(&self, path: &str) -> bool {
        self.call.files.lookup(path.as_bytes(), Follow::Yes).is_ok()
    }

    fn say(&mut self, text: &str) {
        self.call.stdout.extend(format!("{text}\n").bytes());
    }

    fn inform(&mut self, text: &str) {
        if !self.options.has("quiet") {
            self.say(text);
        }
    }

    fn enable(&mut self, name: &str) -> Result<(), Fault> {
        let is_module = self.object.name == "module";
        let name = if is_module && name == "cgi" && self.threaded() { "cgid" } else { name };
        if !self.exists(&self.available(name, self.object.suffix)) {
            return Err(Fault::Message(format!("{} {name} does not exist!", capital(self.object.name))));
        }
        let needed = self.header(name, "Depends")?;
        if !is_module {
            for module in needed {
                if !self.exists(&format!("{CONFIG}/mods-enabled/{module}.load")) {
                    return Err(Fault::Message(format!(
                        "Module {module} is not enabled, but {name} depends on it, aborting"
                    )));
                }
            }
        } else if !self.on_the_way.iter().any(|found| found == name) {
            self.on_the_way.push(name.to_owned());
            for module in needed {
                self.inform(&format!("Considering dependency {module} for {name}:"));
                self.enable(&module)?;
            }
            for other in self.header(name, "Conflicts")? {
                self.inform(&format!("Considering conflict {other} for {name}:"));
                if self.link(&other, ".load")? == Link::Right {
                    return Err(Fault::Message(format!(
                        "Module {other} is enabled - cannot proceed due to conflicts. It needs to be disabled first!"
                    )));
                }
            }
        }
        self.connect(name)
    }

    /// Makes the links of what is to be enabled, where they are missing.
    fn connect(&mut self, name: &str) -> Result<(), Fault> {
        let settings = self.object.name == "module" && self.exists(&self.available(name, ".conf"));
        let main = self.link(name, self.object.suffix)?;
        let second = if settings { self.link(name, ".conf")? } else { Link::Right };
        if main == Link::Wrong || second == Link::Wrong {
            return Err(Fault::Message(format!("{} {name} not properly enabled", capital(self.object.name))));
        }
        if name == "cache_disk" && main == Link::Missing {
            // It enables a service, too.
            return Err(Fault::Unknown);
        }
        if second == Link::Missing {
            self.add_link(name, ".conf")?;
        }
        match main {
            Link::Missing => {
                self.say(&format!("Enabling {} {name}.", self.object.name));
                self.add_link(name, self.object.suffix)?;
                self.mark("enabled", name)
            }
            _ => {
                self.inform(&format!("{} {name} already enabled", capital(self.object.name)));
                Ok(())
            }
        }
    }

    fn disable(&mut self, name: &str) -> Result<(), Fault> {
        let (purge, forced) = (self.options.has("purge"), self.options.has("force"));
        let link = self.enabled(name, self.object.suffix);
        let there = self.call.files.lookup(link.as_bytes(), Follow::No).is_ok();
        if purge || name == "cache_disk" || (there && !self.exists(&link)) {
            return Err(Fault::Unknown);
        }
        if !self.exists(&self.available(name, self.object.suffix)) {
            return Err(Fault::Message(format!("{} {name} does not exist!", capital(self.object.name))));
        }
        let is_module = self.object.name == "module";
        if is_module {
            let others = self.depending(name)?;
            if !others.is_empty() && !forced {
                let others = others.join(" ");
                return Err(Fault::Message(format!(
                    "The following modules depend on {name} and need to be disabled first: {others}"
                )));
            }
            self.on_the_way.push(name.to_owned());
            for other in others {
                if !self.on_the_way.contains(&other) {
                    self.disable(&other)?;
                }
            }
        }
        if !there {
            self.inform(&format!("{} {name} already disabled", capital(self.object.name)));
            return Ok(());
        }
        if is_module && !forced && ESSENTIAL.contains(&name) {
            return Err(Fault::Unknown);
        }
        self.remove_link(&link)?;
        let settings = self.enabled(name, ".conf");
        if is_module && self.exists(&settings) {
            self.remove_link(&settings)?;
        }
        self.mark("disabled", name)?;
        self.say(&format!("{} {name} disabled.", capital(self.object.name)));
        Ok(())
    }

    /// The enabled modules that need one.
    fn depending(&self, name: &str) -> Result<Vec<String>, Fault> {
        let mut found = Vec::new();
        for file in self.call.files.list(format!("{CONFIG}/mods-enabled").as_bytes())? {
            let file = String::from_utf8_lossy(&file);
            let Some(module) = file.strip_suffix(".load") else { continue };
            if self.header(module, "Depends")?.iter().any(|needed| needed == name) {
                found.push(module.to_owned());
            }
        }
        Ok(found)
    }

    /// The words of a comment such as `# Depends: mime` among the first lines of a file.
    fn header(&self, name: &str, field: &str) -> Result<Vec<String>, Fault> {
        let path = self.available(name, self.object.suffix);
        let content = self.call.files.read(path.as_bytes(), MAX_FILE)?;
        let text = String::from_utf8_lossy(&content).into_owned();
        let head = text.lines().take_while(|line| line.trim_start().is_empty() || line.trim_start().starts_with('#'));
        let mut values = head.filter_map(|line| line.strip_prefix("# ")?.strip_prefix(field)?.strip_prefix(": "));
        Ok(values.next().unwrap_or_default().split_whitespace().map(str::to_owned).collect())
    }

    /// State of a link; a broken one is removed.
    fn link(&mut self, name: &str, suffix: &str) -> Result<Link, Fault> {
        let (link, target) = (self.enabled(name, suffix), self.available(name, suffix));
        let Ok(own) = self.call.files.lookup(link.as_bytes(), Follow::No) else { return Ok(Link::Missing) };
        let Ok(found) = self.call.files.lookup(link.as_bytes(), Follow::Yes) else {
            self.call.files.remove(link.as_bytes())?;
            return Ok(Link::Missing);
        };
        let wanted = self.call.files.lookup(target.as_bytes(), Follow::Yes);
        let right = own.is_symlink() && wanted.is_ok_and(|wanted| wanted.id == found.id);
        Ok(if right { Link::Right } else { Link::Wrong })
    }

    fn add_link(&mut self, name: &str, suffix: &str) -> Result<(), Fault> {
        let target = format!("../{}-available/{name}{suffix}", self.object.dir);
        let link = self.enabled(name, suffix);
        Ok(self.call.files.symlink(target.as_bytes(), link.as_bytes())?)
    }

    fn remove_link(&mut self, link: &str) -> Result<(), Fault> {
        match self.call.files.lookup(link.as_bytes(), Follow::No)?.is_symlink() {
            true => Ok(self.call.files.remove(link.as_bytes())?),
            false => Err(Fault::Message(format!("{link} is not a symbolic link, not deleting"))),
        }
    }

    /// Notes who enabled or disabled it last: a package or an administrator.
    fn mark(&mut self, what: &str, name: &str) -> Result<(), Fault> {
        let by = if self.options.has("maintmode") { "maint" } else { "admin" };
        let mut folder = String::new();
        for part in format!("{STATE}/{}/{what}_by_{by}", self.object.name).split('/').skip(1) {
            folder = format!("{folder}/{part}");
            if !self.exists(&folder) {
                self.call.files.create_dir(folder.as_bytes(), 0o755)?;
            }
        }
        for (what, by) in query::MARKS {
            let mark = format!("{STATE}/{}/{what}_by_{by}/{name}", self.object.name);
            if self.call.files.lookup(mark.as_bytes(), Follow::No).is_ok_and(|node| node.is_file()) {
                self.call.files.remove(mark.as_bytes())?;
            }
        }
        Ok(self.call.files.write(format!("{folder}/{name}").as_bytes(), Vec::new(), 0o644)?)
    }

    /// Whether the server runs threads, for which there is another module than cgi.
    fn threaded(&self) -> bool {
        ["event", "worker"].iter().any(|mpm| self.exists(&format!("{CONFIG}/mods-enabled/mpm_{mpm}.load")))
    }
}

/// Larger files of a module's configuration are not read.
const MAX_FILE: usize = 1 << 20;

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
