//! Backups of `cp`, `mv`, `ln` and `install`: the old file is renamed.

use super::complain;
use super::options::Options;
use super::paths::last_name;
use crate::eval::Run;
use crate::files::{Errno, Follow};
use crate::shell::Shell;

/// How backups are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    Off,
    Simple,
    /// Numbered if there are numbered ones already.
    Existing,
    Numbered,
}

/// Whether backups are made, and their suffix.
#[derive(Debug, Clone)]
pub(super) struct Backups {
    pub(super) control: Control,
    suffix: Vec<u8>,
}

/// What `-b`, `--backup` (`B`) and `-S` say; `None` where that is invalid, which was written.
pub(super) fn backups(shell: &mut Shell<'_>, program: &str, options: &Options) -> Run<Option<Backups>> {
    let suffix = options.value(b'S').unwrap_or(b"~").to_vec();
    if !options.has(b'b') && !options.has(b'B') && !options.has(b'S') {
        return Ok(Some(Backups { control: Control::Off, suffix }));
    }
    if shell.state.get(b"VERSION_CONTROL").is_some() || shell.state.get(b"SIMPLE_BACKUP_SUFFIX").is_some() {
        return shell.unsupported(b"backups by variables");
    }
    let control = match options.value(b'B').unwrap_or_default() {
        b"" | b"existing" | b"nil" => Control::Existing,
        b"simple" | b"never" => Control::Simple,
        b"numbered" | b"t" => Control::Numbered,
        b"none" | b"off" => Control::Off,
        other => {
            complain(shell, program, &[b"invalid argument '", other, b"' for 'backup type'"].concat())?;
            return Ok(None);
        }
    };
    if suffix.is_empty() || suffix.contains(&b'/') {
        return shell.unsupported(b"the suffix of backups");
    }
    Ok(Some(Backups { control, suffix }))
}

impl Backups {
    pub(super) fn are_made(&self) -> bool {
        self.control != Control::Off
    }

    /// The name of the backup of a file.
    fn name(&self, shell: &Shell<'_>, place: &[u8]) -> Vec<u8> {
        let place = place.strip_suffix(b"/").unwrap_or(place);
        let prefix = [last_name(place), b".~"].concat();
        let dir = if place.contains(&b'/') { &place[..place.len() - last_name(place).len()] } else { b"." };
        let names = shell.files.list(&shell.path(dir)).unwrap_or_default();
        let numbers = names.iter().filter_map(|name| {
            let digits = name.strip_prefix(&prefix[..])?.strip_suffix(b"~")?;
            crate::accounts::number(digits).filter(|number| *number > 0 && !digits.starts_with(b"0"))
        });
        let last = numbers.max();
        match (self.control, last) {
            (Control::Numbered, _) | (Control::Existing, Some(_)) => {
                let next = u64::from(last.unwrap_or(0)) + 1;
                [place, format!(".~{next}~").as_bytes()].concat()
            }
            _ => [place, &self.suffix].concat(),
        }
    }

    /// Whether the backup of a file would take the name of the source.
    pub(super) fn destroys(&self, shell: &Shell<'_>, place: &[u8], source: &[u8], id: u64) -> bool {
        let simple = [place, &self.suffix].concat();
        self.control != Control::Numbered
            && last_name(&simple) == last_name(source)
            && shell.stat(&simple, Follow::Yes).is_ok_and(|node| node.id == id)
    }

    /// Renames a file to its backup. Gives the new name.
    pub(super) fn make(&self, shell: &mut Shell<'_>, place: &[u8]) -> Run<Result<Vec<u8>, Errno>> {
        let name = self.name(shell, place);
        let (from, to) = (shell.path(place), shell.path(&name));
        shell.note(&to, b"");
        Ok(shell.rename(&from, &to)?.map(|()| name))
    }
}
