//! Debian's commands in maintainer scripts, by name. Each has the same effect on the tree as the real one on a system that is not running,
//! or reports that it is not supported. Commands that only control a running system do nothing; commands that need the machine defer the
//! script.

mod options;
mod accounts;
mod alternatives;
mod apache;
mod byte_code;
mod capabilities;
mod catalogs;
mod debconf;
mod divert;
mod dpkg;
mod glib;
mod host_keys;
mod idle;
mod initramfs;
mod kernel;
mod locale;
mod openssl;
mod pam;
mod perl;
mod programs;
mod query;
mod realpath;
mod run_parts;
mod services;
mod statoverride;
mod systemd;
mod tmpfiles;
mod trigger;
mod unknown;
mod update_locale;
#[cfg(test)]
mod call;

use vmbake_shell::{Call, Commands, Outcome};

pub(super) use accounts::created as created_account;
pub(super) use debconf::HAS_FRONTEND;
pub(super) use initramfs::Building;
pub(in crate::merge) use systemd::has_catalog;

use super::Occasion;
use super::foreign::{check_command, check_sourced};
use super::system::{Command, Done, System};

/// Ends of the directories below `/usr/lib` in which other programs stand that are known here.
const OTHER_DIRECTORIES: [&[u8]; 4] = [b"/dracut", b"/gdk-pixbuf-2.0", b"/glib-2.0", b"/klibc/bin"];

/// Where the programs of a system are.
const DIRECTORIES: [&[u8]; 4] = [b"/bin", b"/usr/bin", b"/sbin", b"/usr/sbin"];

impl Commands for System<'_, '_> {
    fn run(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
        if let Err(error) = check_command(self, self.is_function(call.name), call) {
            return Some(self.end(Err(error)));
        }
        let command = if self.initrd.is_some() { find_in_initrd(call)? } else { find(call)? };
        let is_lost = self.script.occasion() == Occasion::Removal && accounts::is_optional(call);
        let done = if is_lost && !programs::is_present(call) { programs::not_found(call) } else { command(self, call) };
        Some(self.end(done))
    }

    fn is_function(&self, name: &[u8]) -> bool {
        self.conversation.is_some() && debconf::is_function(name)
    }

    fn source(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
        if let Err(error) = check_sourced(self, call) {
            return Some(self.end(Err(error)));
        }
        let command = find_sourced(call)?;
        let done = command(self, call);
        Some(self.end(done))
    }

    fn first_process(&self) -> Option<&'static str> {
        let target = self.target();
        let [init, systemd] =
            ["/sbin/init", "/usr/lib/systemd/systemd"].map(|path| target.tree.resolve(path.as_bytes()));
        (init.ok()? == systemd.ok()?).then_some("systemd")
    }

    fn machine(&self) -> Option<&'static str> {
        match self.database.arch.as_str() {
            "amd64" => Some("x86_64"),
            "arm64" => Some("aarch64"),
            _ => None,
        }
    }
}

/// The command that a script calls, by its name or its path.
fn find(call: &Call<'_>) -> Option<Command> {
    let name = call.base_name();
    let dir = call.name.strip_suffix(name)?.strip_suffix(b"/");
    if !call.is_system() && !dir.is_some_and(|dir| OTHER_DIRECTORIES.iter().any(|end| dir.ends_with(end))) {
        return None;
    }
    let name = std::str::from_utf8(name).ok()?;
    initramfs::find(name, call)
        .or_else(|| accounts::find(name))
        .or_else(|| alternatives::find(name))
        .or_else(|| apache::find(name))
        .or_else(|| byte_code::find(name))
        .or_else(|| capabilities::find(name))
        .or_else(|| catalogs::find(name, call))
        .or_else(|| debconf::find(name))
        .or_else(|| divert::find(name))
        .or_else(|| dpkg::find(name))
        .or_else(|| glib::find(name))
        .or_else(|| host_keys::find(name))
        .or_else(|| programs::find(name))
        .or_else(|| query::find(name))
        .or_else(|| realpath::find(name))
        .or_else(|| services::find(name))
        .or_else(|| statoverride::find(name))
        .or_else(|| tmpfiles::find(name))
        .or_else(|| trigger::find(name))
        .or_else(|| openssl::find(name))
        .or_else(|| run_parts::find(name))
        .or_else(|| idle::find(name, call))
        .or_else(|| kernel::find(name, call))
        .or_else(|| locale::find(name))
        .or_else(|| pam::find(name, call))
        .or_else(|| perl::find(name, call))
        .or_else(|| update_locale::find(name, call))
        .or_else(|| unknown::find(name, call))
}

/// The same while an initial RAM disk is made. Commands that are skipped on a system that is not running are refused: a hook could depend on
/// their effect.
fn find_in_initrd(call: &Call<'_>) -> Option<Command> {
    let name = std::str::from_utf8(call.base_name()).ok()?;
    let found = find(call)?;
    let is_known = initramfs::find(name, call).or_else(|| kernel::find(name, call)).is_some();
    let is_same = matches!(name, "dpkg" | "dpkg-query" | "ischroot" | "ldconfig" | "realpath");
    Some(if is_known || is_same { found } else { initramfs::refuse })
}

/// What sourcing a file means that is not simply read.
fn find_sourced(call: &Call<'_>) -> Option<Command> {
    debconf::find_sourced(call.name)
}

/// The arguments as text; arguments that are not UTF-8 do not name anything known here.
fn words(call: &Call<'_>) -> Option<Vec<String>> {
    call.args.iter().map(|word| String::from_utf8(word.clone()).ok()).collect()
}

/// Says that a command is not known with its arguments.
fn unsupported(call: &Call<'_>) -> Done {
    let args: Vec<_> = call.args.iter().map(|word| String::from_utf8_lossy(word)).collect();
    Ok(Outcome::Unsupported(format!("{:?}", args.join(" "))))
}

/// A program of dpkg says what is wrong, and ends.
fn fails(call: &mut Call<'_>, program: &str, message: &str) -> Done {
    call.stderr.extend(format!("{program}: error: {message}\n").bytes());
    status(2)
}

/// The command ended with that status.
fn status(status: u8) -> Done {
    Ok(Outcome::Status(status))
}
