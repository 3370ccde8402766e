//! GRUB's menu, `/boot/grub/grub.cfg`, after a change of `/etc/default/grub` or `/etc/default/grub.d`: reads the settings of the base and
//! of the finished tree as grub-mkconfig(8) does, and applies the differences to the menu.
//!
//! Supported are the entries that `/etc/grub.d/10_linux` of GRUB 2.12 writes, and the timeout of `00_header`. In a menu that grub-mkconfig
//! did not write, arguments can only be appended. All other differences are refused, since the menu would not reflect them.

use std::collections::BTreeMap;

use vmbake_disk::tree::{Inode, Kind};
use vmbake_shell::{Call, Commands, Host, Outcome, Script, Settings};

use crate::merge::MergeError;
use crate::merge::place::Target;

const MENU: &str = "/boot/grub/grub.cfg";
const MAIN: &str = "/etc/default/grub";
const PARTS: &str = "/etc/default/grub.d";
const LINUX: &str = "GRUB_CMDLINE_LINUX";
const NORMAL: &str = "GRUB_CMDLINE_LINUX_DEFAULT";
const RECOVERY: &str = "GRUB_CMDLINE_LINUX_RECOVERY";
const TIMEOUT: &str = "GRUB_TIMEOUT";
const STYLE: &str = "GRUB_TIMEOUT_STYLE";
const RECORDED: &str = "GRUB_RECORDFAIL_TIMEOUT";

/// Begins the entries of Linux in a menu that grub-mkconfig wrote; others end in the same form.
const BEGIN: &str = "### BEGIN /etc/grub.d/10_linux ###";
const END: &str = "### END /etc/grub.d/10_linux ###";

/// Reads settings as grub-mkconfig does, and reports them.
const READ: &str = "set -ea\nif test -f /etc/default/grub; then . /etc/default/grub; fi\n\
    for x in /etc/default/grub.d/*.cfg; do if [ -e \"${x}\" ]; then . \"${x}\"; fi; done\nvmbake-report\n";
const REPORT: &[u8] = b"vmbake-report";

type Values = BTreeMap<String, String>;

/// The files with the settings, as the base has them.
pub(super) struct Defaults(BTreeMap<String, Inode>);

impl Defaults {
    /// Finds them.
    pub(super) fn find(target: &Target) -> Self {
        let mut files = BTreeMap::new();
        let mut add = |path: String| {
            if let Ok(id) = target.tree.resolve(path.as_bytes()) {
                files.insert(path, target.tree.inode(id).clone());
            }
        };
        add(MAIN.to_owned());
        let parts = target.tree.resolve(PARTS.as_bytes()).ok();
        if let Some(Kind::Directory(entries)) = parts.map(|id| &target.tree.inode(id).kind) {
            let names = entries.keys().filter_map(|name| std::str::from_utf8(name).ok());
            names.filter(|name| name.ends_with(".cfg")).for_each(|name| add(format!("{PARTS}/{name}")));
        }
        Self(files)
    }

    /// Whether the tree has other ones.
    pub(super) fn differs(&self, target: &Target) -> bool {
        Self::find(target).0.keys().ne(self.0.keys())
    }

    /// Changes the menu where the settings differ.
    pub(super) fn update(&self, target: &mut Target, layer: &str) -> Result<(), MergeError> {
        let refused = |path: &str, what: String| MergeError::Unread {
            path: path.to_owned(),
            layer: layer.to_owned(),
            what,
            hint: "use the key `kernel_arguments` to append arguments; for other settings of the menu, use a base that has them",
        };
        let new = match read(target) {
            Ok(new) => new,
            Err(what) => return Err(refused(&culprit(target), what)),
        };
        let old = self.of_base(target).map_err(|what| refused(MAIN, what))?;
        if new == old {
            return Ok(());
        }
        let Ok(menu) = target.text(MENU) else {
            let what = "its settings configure the boot menu, but the root file system has no /boot/grub/grub.cfg";
            return Err(refused(MAIN, what.to_owned()));
        };
        let changed = Change { old: &old, new: &new }.apply(&menu).map_err(|what| refused(MENU, what))?;
        target.set_text(MENU, &changed)
    }

    /// The settings of the base. The tree stays as it is.
    fn of_base(&self, target: &mut Target) -> Result<Values, String> {
        target.tree.begin();
        let values = self.put(target).and_then(|()| read(target));
        target.tree.rollback();
        values
    }

    fn put(&self, target: &mut Target) -> Result<(), String> {
        let failed = |error: vmbake_disk::tree::TreeError| error.to_string();
        let now: Vec<String> = Self::find(target).0.into_keys().collect();
        for path in now {
            target.tree.remove(path.as_bytes()).map_err(failed)?;
        }
        for (path, inode) in &self.0 {
            target.tree.place(path.as_bytes(), inode.clone()).map_err(failed)?;
        }
        Ok(())
    }
}

/// Takes what the settings are.
#[derive(Default)]
struct Report(Values);

impl Commands for Report {
    fn run(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
        if call.name != REPORT {
            return None;
        }
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let all = call.variables.exported().into_iter().map(|(name, value)| (text(name), text(value)));
        self.0 = all.filter(|(name, _)| name.starts_with("GRUB_")).collect();
        Some(Outcome::Status(0))
    }
}

/// Reads the settings of a tree, or tells why grub-mkconfig would not.
fn read(target: &mut Target) -> Result<Values, String> {
    run(target, READ)
}

fn run(target: &mut Target, source: &str) -> Result<Values, String> {
    let mut report = Report::default();
    let script = Script { name: "grub-mkconfig", source: source.as_bytes(), args: &[] };
    let mut files = target.files();
    let mut host = Host { files: &mut files, commands: &mut report };
    match vmbake_shell::run(&script, &mut host, &Settings::default()) {
        Ok(finished) if finished.status == 0 => Ok(report.0),
        Ok(finished) => {
            let stderr = vmbake_common::escape::line(String::from_utf8_lossy(&finished.stderr).trim());
            Err(format!("grub-mkconfig cannot read the settings: status {}: {stderr}", finished.status))
        }
        Err(error) => Err(format!("the settings cannot be read: {error}")),
    }
}

/// The first of the files with settings at which reading stops.
fn culprit(target: &mut Target) -> String {
    let files: Vec<String> = Defaults::find(target).0.into_keys().collect();
    let reads = |count: &usize| {
        let lines: String = files.iter().take(*count).map(|path| format!(". '{path}'\n")).collect();
        run(target, &format!("set -ea\n{lines}vmbake-report\n")).is_ok()
    };
    let good = (1..=files.len()).take_while(reads).count();
    files.get(good).map_or_else(|| MAIN.to_owned(), Clone::clone)
}

/// Settings before and after.
struct Change<'a> {
    old: &'a Values,
    new: &'a Values,
}

fn value<'a>(values: &'a Values, name: &str) -> &'a str {
    values.get(name).map_or("", String::as_str)
}

impl Change<'_> {
    /// The menu with the new settings, or what cannot be done.
    fn apply(&self, menu: &str) -> Result<String, String> {
        let names = self.old.keys().chain(self.new.keys());
        let differs = |name: &&String| value(self.old, name) != value(self.new, name);
        let known = [LINUX, NORMAL, RECOVERY, TIMEOUT, STYLE, RECORDED];
        // Nothing else is there to be found in an image.
        let idle = |name: &str| name == "GRUB_DISABLE_OS_PROBER" && value(self.new, name) == "true";
        let mut other = names.filter(differs).filter(|name| !known.contains(&name.as_str()) && !idle(name));
        if let Some(name) = other.next() {
            return Err(format!("a bake cannot apply changes of {name}"));
        }
        let mut menu = menu.to_owned();
        let (old, new) = (timeout(self.old), timeout(self.new));
        if old != new {
            if menu.matches(&old).count() != 1 {
                return Err(format!("its timeout differs from that in the base's {MAIN}"));
            }
            menu = menu.replace(&old, &new);
        }
        if [LINUX, NORMAL, RECOVERY].iter().all(|name| value(self.old, name) == value(self.new, name)) {
            return Ok(menu);
        }
        match menu.contains(BEGIN) {
            true => self.entries(&menu),
            false => self.appended(&menu),
        }
    }

    /// A menu of grub-mkconfig with other arguments.
    fn entries(&self, menu: &str) -> Result<String, String> {
        let mut inside = false;
        let lines = menu.split_inclusive('\n').map(|line| {
            inside = (inside || line.trim_end() == BEGIN) && line.trim_end() != END;
            let is_linux = inside && line.split_whitespace().next() == Some("linux");
            if !is_linux {
                return Ok(line.to_owned());
            }
            let (before, args) = line.trim_end_matches('\n').split_once(" ro ").unwrap_or((line.trim_end(), ""));
            let of = |values: &Values| candidates(values);
            let (old, new) = (of(self.old), of(self.new));
            let found = old.iter().zip(&new).find(|(old, _)| old.as_str() == args);
            match found {
                Some((_, new)) => Ok(format!("{before} ro {new}\n")),
                None => {
                    Err(format!("{:?} differs from the output of grub-mkconfig for the base's {MAIN}", line.trim()))
                }
            }
        });
        lines.collect()
    }

    /// Another menu with more arguments for each kernel.
    fn appended(&self, menu: &str) -> Result<String, String> {
        let more = [LINUX, NORMAL].map(|name| value(self.new, name).strip_prefix(value(self.old, name)));
        let same = value(self.old, RECOVERY) == value(self.new, RECOVERY);
        let ([Some(more), Some(last)], true) = (more, same) else {
            return Err("it was not written by grub-mkconfig, so arguments can only be appended".to_owned());
        };
        let more: Vec<&str> = more.split_whitespace().chain(last.split_whitespace()).collect();
        let (mut found, mut out) = (false, String::new());
        for line in menu.split_inclusive('\n') {
            let text = line.trim_end_matches('\n');
            let is_linux = matches!(line.split_whitespace().next(), Some("linux" | "linux16" | "linuxefi"));
            found |= is_linux;
            out.push_str(text);
            if is_linux {
                out.push_str(&format!(" {}", more.join(" ")));
            }
            out.push_str(line.get(text.len()..).unwrap_or_default());
        }
        if found { Ok(out) } else { Err("it contains no kernel entry".to_owned()) }
    }
}

/// What can stand behind `ro` in an entry of Linux: in a normal one, and in one for recovery. Which of those is right is known from the menu.
fn candidates(values: &Values) -> Vec<String> {
    let (linux, normal) = (value(values, LINUX), value(values, NORMAL));
    let recoveries = match value(values, RECOVERY) {
        "" => ["single", "recovery"].map(str::to_owned),
        set => [set, set].map(str::to_owned),
    };
    let mut all = vec![format!("{linux} {normal}")];
    for recovery in recoveries {
        all.extend([format!("{recovery} {linux}"), format!("{recovery} dis_ucode_ldr {linux}")]);
    }
    all
}

/// The timeout of the menu, as `make_timeout` of `/etc/grub.d/00_header` writes it.
fn timeout(values: &Values) -> String {
    let (timeout, style) = (value(values, TIMEOUT), value(values, STYLE));
    let style = if style.is_empty() { "menu" } else { style };
    let recorded = match value(values, RECORDED) {
        "" => "30",
        recorded => recorded,
    };
    let fallback = match style {
        "menu" => format!(
            "  # Fallback normal timeout code in case the timeout_style feature is\n  # unavailable.\n  else\n    set timeout={timeout}\n"
        ),
        _ => format!(
            "  # Fallback hidden-timeout code in case the timeout_style feature is\n  # unavailable.\n  elif sleep --interruptible {timeout} ; \
             then\n    set timeout=0\n"
        ),
    };
    format!(
        "if [ \"${{recordfail}}\" = 1 ] ; then\n  set timeout={recorded}\nelse\n  if [ x$feature_timeout_style = xy ] ; then\n    \
         set timeout_style={style}\n    set timeout={timeout}\n{fallback}  fi\nfi\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(of: &[(&str, &str)]) -> Values {
        of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_menu_that_people_wrote_takes_more_arguments() {
        let menu = "menuentry 'a' {\n\tlinux /vmlinuz root=/dev/x ro quiet\n\tinitrd /i\n}\n";
        let old = values(&[(LINUX, "console=tty0"), (NORMAL, "")]);
        let new = values(&[(LINUX, "console=tty0 a=1 b"), (NORMAL, "")]);
        let changed = Change { old: &old, new: &new }.apply(menu).unwrap();
        assert_eq!(changed, menu.replace("ro quiet", "ro quiet a=1 b"));
        for (name, value, expected) in [
            (LINUX, "other", "can only be appended"),
            (TIMEOUT, "5", "its timeout differs"),
            ("GRUB_DEFAULT", "1", "changes of GRUB_DEFAULT"),
        ] {
            let new = values(&[(LINUX, "console=tty0"), (name, value)]);
            let error = Change { old: &old, new: &new }.apply(menu).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
