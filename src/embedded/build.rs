//! Embeds what `vmbake` ships inside its own file: the layers, the trust anchors, and the first-boot programs where they have been built.

use std::error::Error;
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Architecture as Debian names it, and `e_machine` of its ELF files.
const ARCHES: [(&str, u8); 2] = [("amd64", 62), ("arm64", 183)];

fn main() -> Result<(), Box<dyn Error>> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut code = String::new();
    code.push_str("/// The files below `layers/`, by path relative to it, sorted.\n");
    embed_folder("LAYERS", &workspace.join("layers"), &mut code)?;
    code.push_str("/// Those of them that are executable.\n");
    embed_executables(&workspace.join("layers"), &mut code)?;
    code.push_str("/// The files of `trust/`, by name, sorted.\n");
    embed_folder("TRUST", &workspace.join("trust"), &mut code)?;
    println!("cargo::rerun-if-env-changed=VMBAKE_FIRSTBOOT_DIR");
    let programs = std::env::var_os("VMBAKE_FIRSTBOOT_DIR").map(PathBuf::from);
    embed_programs(&programs.unwrap_or_else(|| workspace.join("target/firstboot")), &mut code)?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    Ok(std::fs::write(out.join("embedded.rs"), code)?)
}

fn embed_folder(name: &str, root: &Path, code: &mut String) -> Result<(), Box<dyn Error>> {
    let root = root.canonicalize()?;
    writeln!(code, "pub static {name}: &[(&str, &[u8])] = &[")?;
    for file in files(&root)? {
        println!("cargo::rerun-if-changed={}", file.display());
        writeln!(code, "    ({:?}, include_bytes!({file:?})),", file.strip_prefix(&root)?)?;
    }
    code.push_str("];\n");
    Ok(())
}

fn embed_executables(root: &Path, code: &mut String) -> Result<(), Box<dyn Error>> {
    let root = root.canonicalize()?;
    code.push_str("pub static EXECUTABLES: &[&str] = &[\n");
    for file in files(&root)? {
        if std::fs::metadata(&file)?.permissions().mode() & 0o100 != 0 {
            writeln!(code, "    {:?},", file.strip_prefix(&root)?)?;
        }
    }
    code.push_str("];\n");
    Ok(())
}

/// The files below a folder, sorted.
fn files(root: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    let mut todo = vec![root.to_owned()];
    while let Some(dir) = todo.pop() {
        println!("cargo::rerun-if-changed={}", dir.display());
        for entry in std::fs::read_dir(&dir)? {
            let path = entry?.path();
            if path.is_dir() { todo.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Ok(files)
}

fn embed_programs(root: &Path, code: &mut String) -> Result<(), Box<dyn Error>> {
    code.push_str("/// Architecture, SHA-256 and content of each first-boot program that was there at build time.\n");
    code.push_str("pub static PROGRAMS: &[(&str, &str, &[u8])] = &[\n");
    for (arch, machine) in ARCHES {
        let dir = root.join(arch);
        // A path that does not exist would make cargo run this program on every build, so the directory is watched.
        std::fs::create_dir_all(&dir)?;
        let dir = dir.canonicalize()?;
        println!("cargo::rerun-if-changed={}", dir.display());
        let path = dir.join("firstboot");
        let Ok(bytes) = std::fs::read(&path) else { continue };
        if !is_static_elf(&bytes, machine) {
            return Err(format!("{} is not a static ELF program for {arch}", path.display()).into());
        }
        let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(code, "    ({arch:?}, {digest:?}, include_bytes!({path:?})),")?;
    }
    code.push_str("];\n");
    Ok(())
}

/// Whether this is a 64-bit little-endian ELF file of that machine without an interpreter (ELF gABI 4, `PT_INTERP`).
fn is_static_elf(bytes: &[u8], machine: u8) -> bool {
    const PT_INTERP: [u8; 4] = [3, 0, 0, 0];
    if bytes.len() < 64 || bytes[..6] != *b"\x7fELF\x02\x01" || bytes[18..20] != [machine, 0] {
        return false;
    }
    let number = |at: usize, len: usize| bytes[at..at + len].iter().rev().fold(0usize, |n, b| n << 8 | usize::from(*b));
    let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    (0..count).all(|i| bytes.get(table + i * size..).is_some_and(|header| !header.starts_with(&PT_INTERP)))
}
