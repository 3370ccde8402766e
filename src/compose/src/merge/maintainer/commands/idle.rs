//! Commands that do nothing on a system that is not running, and commands that must run on the machine.

use vmbake_shell::{Call, Outcome};

use super::{Command, Done, System, initramfs, status};

pub(super) fn find(name: &str, call: &Call<'_>) -> Option<Command> {
    Some(match name {
        "ldconfig" => ldconfig,
        "ischroot" => ischroot,
        // The index of manual pages is made by man-db.timer.
        "mandb" => nothing,
        "setpriv" | "runuser" if runs_mandb(call) => nothing,
        "gpg" | "hostname" | "make-ssl-cert" | "update-grub" | "uuidgen" | "mcookie" => machine,
        _ => return None,
    })
}

/// `setpriv --reuid man … -- mandb …` and `runuser -u man -- mandb …`.
fn runs_mandb(call: &Call<'_>) -> bool {
    let mut words = call.args.iter().skip_while(|word| *word != b"--").skip(1);
    words.next().is_some_and(|program| matches!(&program[..], b"mandb" | b"/usr/bin/mandb"))
}

fn nothing(_system: &mut System<'_, '_>, _call: &mut Call<'_>) -> Done {
    status(0)
}

/// As in a chroot, in which dpkg installs packages into an image.
fn ischroot(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let is_default = |word: &Vec<u8>| matches!(&word[..], b"-f" | b"-t" | b"--default-false" | b"--default-true");
    if call.args.iter().all(is_default) { status(0) } else { machine(system, call) }
}

/// Its cache is written for the finished tree.
fn ldconfig(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if let [option, directory] = call.args
        && option == b"-r"
        && directory != b"/"
    {
        return initramfs::ldconfig(system, call);
    }
    system.database.is_linked = true;
    status(0)
}

/// What it makes is random, or depends on the machine.
pub(super) fn machine(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    Ok(Outcome::Deferred(format!("{} has to run on the machine", String::from_utf8_lossy(call.base_name()))))
}
