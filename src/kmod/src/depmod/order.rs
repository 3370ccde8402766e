//! The order of modules: that of `modules.order`, then that of a hash table of kmod.

use std::collections::{BTreeMap, HashMap};

use super::Settings;
use super::search::Found;
use crate::error::{KmodError, unsupported};
use crate::files::{Files, read};
use crate::name::PATH_MAX;
use crate::release::Release;

/// Buckets of kmod's hash table of modules.
const BUCKETS: u32 = 512;

pub fn order(
    files: &impl Files,
    found: BTreeMap<String, Found>,
    settings: &Settings<'_>,
    warnings: &mut Vec<String>,
) -> Result<Vec<Found>, KmodError> {
    let mut found: Vec<Found> = found.into_values().collect();
    found.sort_by_cached_key(|found| (bucket(found.name.as_bytes(), BUCKETS), found.name.clone()));
    let directory = settings.directory;
    let path = format!("{directory}/modules.order");
    let Some(content) = read(files, &path)? else {
        warnings.push(format!("WARNING: could not open modules.order at {directory}: No such file or directory"));
        return Ok(found);
    };
    if content.last().is_some_and(|last| *last != b'\n') {
        let number = content.split(|byte| *byte == b'\n').count();
        warnings.push(format!("ERROR: {path}:{number} corrupted line misses '\\n'"));
        return Ok(found);
    }
    let mut positions: HashMap<&[u8], usize> = HashMap::new();
    for (number, line) in content.split(|byte| *byte == b'\n').enumerate() {
        if line.len() + 2 > PATH_MAX || line.contains(&0) {
            return Err(unsupported(
                &path,
                format!("line {} with NUL or of more than {} bytes", number + 1, PATH_MAX - 2),
            ));
        }
        match settings.release {
            Release::Kmod30 => positions.insert(line, number),
            Release::Kmod34 => Some(*positions.entry(line).or_insert(number)),
        };
    }
    let position = |found: &Found| positions.get(format!("{}.ko", found.stem).as_bytes()).copied();
    found.sort_by_cached_key(|found| position(found).unwrap_or(usize::MAX));
    Ok(found)
}

/// The bucket of a key in hash tables of kmod, which uses SuperFastHash of Paul Hsieh; within a bucket, keys are sorted.
pub fn bucket(key: &[u8], buckets: u32) -> u32 {
    let half = |bytes: &[u8]| u32::from(bytes[0]) | u32::from(bytes[1]) << 8;
    // Keys are shorter than PATH_MAX.
    let mut hash = u32::try_from(key.len()).unwrap_or_default();
    let mut words = key.chunks_exact(4);
    for word in &mut words {
        hash = hash.wrapping_add(half(&word[..2]));
        let mixed = half(&word[2..]) << 11 ^ hash;
        hash = hash << 16 ^ mixed;
        hash = hash.wrapping_add(hash >> 11);
    }
    match words.remainder() {
        [a, b, c] => {
            hash = hash.wrapping_add(half(&[*a, *b]));
            hash ^= hash << 16;
            hash ^= u32::from(*c) << 18;
            hash = hash.wrapping_add(hash >> 11);
        }
        [a, b] => {
            hash = hash.wrapping_add(half(&[*a, *b]));
            hash ^= hash << 11;
            hash = hash.wrapping_add(hash >> 17);
        }
        [a] => {
            hash = hash.wrapping_add(u32::from(*a));
            hash ^= hash << 10;
            hash = hash.wrapping_add(hash >> 1);
        }
        _ => {}
    }
    for (left, right) in [(3, 5), (4, 17), (25, 6)] {
        hash ^= hash << left;
        hash = hash.wrapping_add(hash >> right);
    }
    hash & (buckets - 1)
}
