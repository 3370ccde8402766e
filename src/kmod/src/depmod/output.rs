//! The files of depmod.

use std::fmt::Write;

use super::graph::Graph;
use super::order::bucket;
use super::{Kmod, Settings, Symbols};
use crate::error::{Fault, KmodError, shown, unsupported};
use crate::files::{Files, read};
use crate::index::Trie;
use crate::name::{self, PATH_MAX};
use crate::release::Release;

/// Buckets of kmod's hash table of symbols.
const BUCKETS: u32 = 2048;

type Written = Vec<(&'static str, Vec<u8>)>;

pub fn write(
    files: &impl Files,
    settings: &Settings<'_>,
    modules: &[Kmod],
    symbols: &Symbols<'_>,
    graph: &Graph,
    warnings: &mut Vec<String>,
) -> Result<Written, KmodError> {
    let mut output = Output { settings, warnings, written: Vec::new() };
    output.dependencies(modules, graph)?;
    output.aliases(modules)?;
    let softdeps = listed(modules, "softdep", "# Soft dependencies extracted from modules themselves.\n");
    output.written.push(("modules.softdep", softdeps));
    if settings.release >= Release::Kmod34 {
        let weakdeps = listed(modules, "weakdep", "# Weak dependencies extracted from modules themselves.\n");
        output.written.push(("modules.weakdep", weakdeps));
    }
    output.symbols(modules, symbols)?;
    output.builtin(files)?;
    output.builtin_aliases(files)?;
    output.device_names(modules)?;
    Ok(output.written)
}

struct Output<'a> {
    settings: &'a Settings<'a>,
    warnings: &'a mut Vec<String>,
    written: Written,
}

impl Output<'_> {
    fn dependencies(&mut self, modules: &[Kmod], graph: &Graph) -> Result<(), KmodError> {
        let (mut text, mut trie) = (String::new(), Trie::default());
        for (number, module) in modules.iter().enumerate() {
            let mut line = format!("{}:", module.shown);
            for used in graph.dependencies(number) {
                line.push(' ');
                line.push_str(&modules[used].shown);
            }
            trie.insert(module.name.as_bytes(), line.as_bytes(), priority(number));
            text.push_str(&line);
            text.push('\n');
        }
        self.written.push(("modules.dep", text.into_bytes()));
        self.index("modules.dep.bin", &trie)
    }

    fn aliases(&mut self, modules: &[Kmod]) -> Result<(), KmodError> {
        let mut text = b"# Aliases extracted from modules themselves.\n".to_vec();
        let mut trie = Trie::default();
        for (number, module) in modules.iter().enumerate() {
            for alias in module.content.values("alias") {
                text.extend_from_slice(&[b"alias ", alias, b" ", module.name.as_bytes(), b"\n"].concat());
                self.insert_alias(&mut trie, &module.path, alias, module.name.as_bytes(), priority(number))?;
            }
        }
        self.written.push(("modules.alias", text));
        self.index("modules.alias.bin", &trie)
    }

    /// Adds an alias that is in the file `path`.
    fn insert_alias(
        &mut self,
        trie: &mut Trie,
        path: &str,
        alias: &[u8],
        module: &[u8],
        priority: u32,
    ) -> Result<(), KmodError> {
        match name::alias(alias) {
            Some(key) => trie.insert(checked(&key, path)?, checked(module, path)?, priority),
            None => self.warnings.push(format!("WARNING: Unmatched bracket in {}", shown(alias))),
        }
        Ok(())
    }

    fn symbols(&mut self, modules: &[Kmod], symbols: &Symbols<'_>) -> Result<(), KmodError> {
        let mut sorted: Vec<(&[u8], usize)> = symbols.0.iter().map(|(name, owner)| (*name, *owner)).collect();
        sorted.sort_by_cached_key(|(name, _)| (bucket(name, BUCKETS), *name));
        let mut text = b"# Aliases for symbols, used by symbol_request().\n".to_vec();
        let mut trie = Trie::default();
        for (name, owner) in sorted {
            let module = &modules[owner];
            let key = [b"symbol:", checked(name, &module.path)?].concat();
            text.extend_from_slice(&[b"alias ", &key[..], b" ", module.name.as_bytes(), b"\n"].concat());
            trie.insert(&key, module.name.as_bytes(), priority(owner));
        }
        self.written.push(("modules.symbols", text));
        self.index("modules.symbols.bin", &trie)
    }

    /// Built-in modules. Without their list, depmod writes an empty file.
    fn builtin(&mut self, files: &impl Files) -> Result<(), KmodError> {
        const NAME: &str = "modules.builtin.bin";
        let Some((path, content)) = self.input(files, "modules.builtin")? else {
            self.written.push((NAME, Vec::new()));
            return Ok(());
        };
        let mut trie = Trie::default();
        for line in content.split_inclusive(|byte| *byte == b'\n') {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            if !line[0].is_ascii_alphabetic() {
                self.warnings.push(format!("ERROR: Invalid modules.builtin line: {}", shown(text)));
                continue;
            }
            let text = checked(text, &path)?;
            let file_name = text.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            let module = file_name.strip_suffix(b".ko").filter(|stem| !stem.is_empty() && !stem.contains(&b'.'));
            let module = module.ok_or_else(|| unsupported(&path, format!("line {}", shown(text))))?;
            let module: Vec<u8> = module.iter().map(|byte| if *byte == b'-' { b'_' } else { *byte }).collect();
            trie.insert(&module, b"", 0);
        }
        self.index(NAME, &trie)
    }

    fn builtin_aliases(&mut self, files: &impl Files) -> Result<(), KmodError> {
        const NAME: &str = "modules.builtin.alias.bin";
        let Some((path, content)) = self.input(files, "modules.builtin.modinfo")? else {
            self.written.push((NAME, Vec::new()));
            return Ok(());
        };
        let mut trie = Trie::default();
        let mut offset = 0;
        for line in content.split_inclusive(|byte| *byte == 0) {
            let record = line.strip_suffix(b"\0");
            let field = record.and_then(|record| {
                let dot = record.iter().position(|byte| *byte == b'.').filter(|dot| *dot > 0)?;
                let equals = dot + record[dot..].iter().position(|byte| *byte == b'=')?;
                Some((&record[..dot], &record[dot + 1..equals], &record[equals + 1..]))
            });
            let Some((module, key, value)) = field else {
                let expected = "module.key=value and NUL";
                return Err(Fault::new(offset, "field", expected, shown(line)).at(&path));
            };
            offset += line.len() as u64;
            if key == b"alias" && !value.is_empty() {
                self.insert_alias(&mut trie, &path, value, module, 0)?;
            }
        }
        self.index(NAME, &trie)
    }

    /// Path and content of a file of the kernel.
    fn input(&mut self, files: &impl Files, name: &str) -> Result<Option<(String, Vec<u8>)>, KmodError> {
        let directory = self.settings.directory;
        let path = format!("{directory}/{name}");
        let content = read(files, &path)?;
        if content.is_none() {
            let text = format!("WARNING: could not open {name} at {directory}: No such file or directory");
            self.warnings.push(text);
        }
        Ok(content.map(|content| (path, content)))
    }

    fn device_names(&mut self, modules: &[Kmod]) -> Result<(), KmodError> {
        let mut text = Vec::new();
        for module in modules {
            let (mut name, mut device) = (None, None);
            for alias in module.content.values("alias") {
                match alias.strip_prefix(b"devname:") {
                    Some(found) => name = Some(found),
                    None => device = numbers(alias, &module.path)?.or(device),
                }
                if name.is_some() && device.is_some() {
                    break;
                }
            }
            match (name, device) {
                (Some(name), Some(device)) => {
                    if text.is_empty() {
                        text.extend_from_slice(b"# Device nodes to trigger on-demand module loading.\n");
                    }
                    text.extend_from_slice(
                        &[module.name.as_bytes(), b" ", name, b" ", device.as_bytes(), b"\n"].concat(),
                    );
                }
                (Some(name), None) => self.warnings.push(format!(
                    "ERROR: Module '{}' has devname ({}) but lacks major and minor information. Ignoring.",
                    module.name,
                    shown(name)
                )),
                (None, _) => {}
            }
        }
        self.written.push(("modules.devname", text));
        Ok(())
    }

    fn index(&mut self, name: &'static str, trie: &Trie) -> Result<(), KmodError> {
        let file = trie.write(self.settings.release);
        let file = file.ok_or_else(|| unsupported(self.settings.directory, format!("{name} of more than 256 MiB")))?;
        self.written.push((name, file));
        Ok(())
    }
}

/// The lines of all fields `key`.
fn listed(modules: &[Kmod], key: &str, header: &str) -> Vec<u8> {
    let mut text = header.as_bytes().to_vec();
    for module in modules {
        for value in module.content.values(key) {
            text.extend_from_slice(&[key.as_bytes(), b" ", module.name.as_bytes(), b" ", value, b"\n"].concat());
        }
    }
    text
}

/// The device of an alias such as `char-major-10-200`, as `c10:200`.
fn numbers(alias: &[u8], path: &str) -> Result<Option<String>, KmodError> {
    let kind = |prefix: &str, letter| alias.strip_prefix(prefix.as_bytes()).map(|rest| (letter, rest));
    let Some((letter, rest)) = kind("char-major-", 'c').or_else(|| kind("block-major-", 'b')) else { return Ok(None) };
    let mut device = String::from(letter);
    let mut rest = rest;
    for separator in ["", ":"] {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&rest[..digits]).ok().and_then(|number| number.parse::<u32>().ok());
        let Some(number) = number else {
            // As depmod reads numbers, they may have a sign, or follow white space.
            let is_odd =
                digits > 0 || rest.first().is_some_and(|byte| b"+-".contains(byte) || byte.is_ascii_whitespace());
            return if is_odd { Err(unsupported(path, format!("alias {}", shown(alias)))) } else { Ok(None) };
        };
        write!(device, "{separator}{number}").unwrap_or_default();
        rest = &rest[digits..];
        if separator.is_empty() {
            let Some(after) = rest.strip_prefix(b"-") else { return Ok(None) };
            rest = after;
        }
    }
    Ok(Some(device))
}

/// Checks a key or name of an index: kmod would truncate a long one, and misplace one that is not ASCII.
fn checked<'a>(key: &'a [u8], path: &str) -> Result<&'a [u8], KmodError> {
    if key.is_ascii() && key.len() + 1 < PATH_MAX {
        return Ok(key);
    }
    Err(unsupported(path, format!("a name that is not ASCII, or too long: {}", shown(key))))
}

/// The priority of a module in an index.
fn priority(number: usize) -> u32 {
    // The graph has fewer than 65,536 modules.
    u32::try_from(number).unwrap_or(u32::MAX)
}
