//! Copies files of the image to the same path in the directory of an initial RAM disk.

use vmbake_shell::{Call, Errno, Follow, Outcome};

/// Copies a file with its mode, owner and time, unless it is there.
pub(super) fn copy(call: &mut Call<'_>, directory: &str, path: &str) -> Result<(), Outcome> {
    let to = format!("{directory}{path}");
    let failed = |error: Errno| Outcome::Unsupported(format!("copying {path}: {error}"));
    let node = call.files.lookup(path.as_bytes(), Follow::No).map_err(failed)?;
    if node.is_symlink() {
        return Err(Outcome::Unsupported(format!("copying {path}, which is a link")));
    }
    if call.files.lookup(to.as_bytes(), Follow::Yes).is_ok() {
        return Ok(());
    }
    parents(call, &to).map_err(failed)?;
    let to = to.as_bytes();
    call.files.copy(path.as_bytes(), to, node.mode, usize::MAX).map_err(failed)?;
    call.files.set_mode(to, node.mode).map_err(failed)?;
    call.files.set_owner(to, node.uid, node.gid, Follow::Yes).map_err(failed)?;
    call.files.set_mtime(to, Some(node.mtime)).map_err(failed)
}

/// Makes the directories above a path.
fn parents(call: &mut Call<'_>, path: &str) -> Result<(), Errno> {
    for (at, _) in path.match_indices('/').skip(1) {
        let directory = &path.as_bytes()[..at];
        if call.files.lookup(directory, Follow::Yes).is_err() {
            call.files.create_dir(directory, 0o755)?;
        }
    }
    Ok(())
}
