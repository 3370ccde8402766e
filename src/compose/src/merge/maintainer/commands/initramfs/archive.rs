//! cpio(1), and the programs that compress its archives.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use vmbake_disk::cpio::author;
use vmbake_disk::source::ReadAt;
use vmbake_shell::{Call, Outcome};

use super::super::programs::{is_present, not_found};
use super::super::{Done, System, words};
use super::{done, outside};

/// Longest archive, in bytes.
const MAX_ARCHIVE: usize = 1 << 30;

/// `cpio --quiet --reproducible -o -H newc [-D DIRECTORY]` writes the files whose names are the lines of the input.
pub(super) fn cpio(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if !is_present(call) {
        return not_found(call);
    }
    let ended = run_cpio(system, call);
    done(ended)
}

fn run_cpio(system: &System<'_, '_>, call: &mut Call<'_>) -> Result<u8, Outcome> {
    if system.initrd.is_none() {
        return outside(call);
    }
    let Some(directory) = directory(call) else {
        let args = words(call).unwrap_or_default().join(" ");
        return Err(Outcome::Unsupported(format!("cpio {args}")));
    };
    let input = (call.stdin)();
    let target = system.target();
    let names = input.split(|byte| *byte == b'\n').filter(|name| !name.is_empty());
    let member = |name| {
        let found = target.tree.find(&[&directory[..], b"/", name].concat()).ok().flatten();
        let missing = || Outcome::Unsupported(format!("a missing file {}", vmbake_common::escape::name(name)));
        found.map(|id| (name, id)).ok_or_else(missing)
    };
    let members = names.map(member).collect::<Result<Vec<_>, _>>()?;
    let archive = author(&target.tree, &members).map_err(|error| Outcome::Unsupported(error.to_string()))?;
    let start = call.stdout.len();
    let len = usize::try_from(archive.len()).map_err(|_| Outcome::Unsupported("so large an archive".to_owned()))?;
    call.stdout.resize(start + len, 0);
    let read = archive.read_exact_at(&mut call.stdout[start..], 0);
    read.map(|()| 0).map_err(|error| Outcome::Unsupported(format!("an archive: {error}")))
}

/// The directory to which the names are relative; `None` for other options than those above.
fn directory(call: &Call<'_>) -> Option<Vec<u8>> {
    let (mut directory, mut wanted) = (call.cwd.to_vec(), [false; 3]);
    let mut args = call.args.iter().map(Vec::as_slice);
    while let Some(arg) = args.next() {
        match arg {
            b"--quiet" => {}
            b"--reproducible" => wanted[0] = true,
            b"-o" | b"--create" => wanted[1] = true,
            b"-H" => wanted[2] = args.next()? == b"newc",
            b"-D" => directory = call.path(args.next()?),
            _ => return None,
        }
    }
    wanted.iter().all(|found| *found).then_some(directory)
}

/// `zstd -q -LEVEL -c [FILE]`: the input as one frame.
pub(super) fn zstd(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    compress(system, call, 1..=19, 3, zstd::bulk::compress)
}

/// `gzip -n [-LEVEL] -c [FILE]`: without time and name.
pub(super) fn gzip(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    compress(system, call, 1..=9, 6, |input, level| {
        let level = Compression::new(u32::try_from(level).unwrap_or_default());
        let mut encoder = GzEncoder::new(Vec::new(), level);
        encoder.write_all(input)?;
        encoder.finish()
    })
}

fn compress(
    system: &System<'_, '_>,
    call: &mut Call<'_>,
    levels: std::ops::RangeInclusive<i32>,
    default: i32,
    run: impl Fn(&[u8], i32) -> std::io::Result<Vec<u8>>,
) -> Done {
    if !is_present(call) {
        return not_found(call);
    }
    if system.initrd.is_none() {
        return done(outside(call));
    }
    let words = words(call).unwrap_or_default();
    let (options, operands): (Vec<&str>, Vec<&str>) =
        words.iter().map(String::as_str).partition(|word| word.starts_with('-'));
    let (options, numbers): (Vec<&str>, Vec<&str>) =
        options.into_iter().partition(|word| matches!(*word, "-q" | "-n" | "-c"));
    let level = match numbers[..] {
        [] => Some(default),
        [number] => number.strip_prefix('-').and_then(|number| number.parse().ok()).filter(|it| levels.contains(it)),
        _ => None,
    };
    let Some(level) = level.filter(|_| options.contains(&"-c")) else {
        return Ok(Outcome::Unsupported(format!("{:?}", words.join(" "))));
    };
    let input = match operands[..] {
        [] => Ok((call.stdin)()),
        [file] => call.files.read(&call.path(file.as_bytes()), MAX_ARCHIVE),
        _ => return Ok(Outcome::Unsupported(format!("{:?}", words.join(" ")))),
    };
    match input.map_err(|error| error.to_string()).and_then(|it| run(&it, level).map_err(|error| error.to_string())) {
        Ok(output) => {
            call.stdout.extend(output);
            Ok(Outcome::Status(0))
        }
        Err(error) => Ok(Outcome::Unsupported(format!("an archive: {error}"))),
    }
}
