//! Overlays: a qcow2 file with the clusters in which one disk differs from another.
//!
//! Clusters are compared by their bytes, so that the same two disks give the same overlay. Known sums and equal stored
//! data only save reading and decompressing.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

use super::files::check_empty;
use super::measure::{each, groups};
use super::merkle::GROUP;
use super::qcow2::{CLUSTER, Qcow2Writer};
use super::{ClusterSums, WriteError, Written, write_to};
use crate::disk::Disk;
use crate::image::{Backing, Format, Image, ImagePair, PairBuffers};
use crate::source::{Extent, Map, ReadAt, Sources};

const CLUSTER_LEN: u64 = CLUSTER as u64;

/// The clusters of 64 KiB in which two disks differ, by number, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed(Vec<u64>);

impl Changed {
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Their ranges in bytes of the disk: runs of clusters, of which the last may extend beyond its end.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        let runs = self.0.chunk_by(|a, b| a.checked_add(1) == Some(*b));
        runs.filter_map(|run| Some(run.first()? * CLUSTER_LEN..(run.last()? + 1) * CLUSTER_LEN))
    }
}

/// The differences between `new` and `old`, which is padded with zeros. `known` are the sums of stored data in both, if
/// they are qcow2.
pub fn differences(
    old: &Image,
    new: &Image,
    known: Option<(&ClusterSums, &ClusterSums)>,
    threads: NonZeroUsize,
) -> io::Result<Changed> {
    let known = |in_old: u64, in_new: u64| {
        known.is_some_and(|(old, new)| old.find(in_old).is_some_and(|sum| new.find(in_new) == Some(sum)))
    };
    let pair = ImagePair { old, new, known: &known };
    let mut starts = [groups(old)?, groups(new)?].concat();
    starts.sort_unstable();
    starts.dedup();
    starts.retain(|start| *start < new.len());
    let look = |start: u64, buffers: &mut PairBuffers| {
        let mut changed = Vec::new();
        for at in (start..new.len().min(start.saturating_add(GROUP as u64))).step_by(CLUSTER) {
            if !pair.is_same(at, buffers)? {
                changed.push(at / CLUSTER_LEN);
            }
        }
        Ok(changed)
    };
    Ok(Changed(each(&starts, threads, look)?.into_iter().flat_map(|(_, changed)| changed).collect()))
}

/// Writes an overlay on `backing` with these clusters of `new` to an empty file, and syncs it; `progress` receives the
/// number of additional bytes of the disk done.
pub fn write_overlay(
    new: Arc<dyn ReadAt>,
    changed: Changed,
    backing: &Backing,
    file: &File,
    threads: NonZeroUsize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Written, WriteError> {
    check_empty(Format::Qcow2, file)?;
    let len = new.len();
    let mut sources = Sources::default();
    let (source, mut map) = (sources.add(new), Map::hole(len));
    for Range { start, end } in changed.ranges() {
        map.push(Extent { at: start, len: end.min(len).saturating_sub(start), source, offset: start });
    }
    let writer = Qcow2Writer::on_top(file, len, backing, changed.0)?;
    write_to(&Disk::new(map, sources), writer, threads, progress)
}
