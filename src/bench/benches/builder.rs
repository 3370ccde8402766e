//! Parts of vmbake: verification of a blob, staging of a tar archive.

use std::fs::File;
use std::hint::black_box;
use std::io::{Seek, SeekFrom, Write};

use criterion::{Criterion, Throughput};
use flate2::Compression;
use flate2::write::GzEncoder;
use vmbake_compose::stage::{ArchiveLimits, archive};
use vmbake_common::digest::Digest;
use vmbake_bench::{Failed, file, program_bytes};

const CONTENT: usize = 64 << 20;
const MEMBER: usize = 1 << 20;

fn main() -> Result<(), Failed> {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("artifact of 64 MiB");
    group.sample_size(10).throughput(Throughput::Bytes(CONTENT as u64));
    let content = program_bytes(CONTENT)?;

    let mut blob = file()?;
    blob.write_all(&content)?;
    let pinned = Digest::of(&content);
    group.bench_function("verify, SHA-256", |b| {
        b.iter(|| {
            blob.seek(SeekFrom::Start(0)).ok()?;
            pinned.of_stream(black_box(&mut blob)).ok().filter(|(found, _)| *found == pinned)
        });
    });

    let (plain, packed) = archives(&content)?;
    for (name, archive) in [("stage, tar", &plain), ("stage, tar.gz", &packed)] {
        assert_eq!(archive::open(archive, &ArchiveLimits::ARTIFACT)?.1.len(), CONTENT / MEMBER);
        group.bench_function(name, |b| {
            b.iter(|| archive::open(black_box(archive), &ArchiveLimits::ARTIFACT).map(|(_, entries)| entries.len()).ok());
        });
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}

/// The same members as a plain and as a gzipped archive.
fn archives(content: &[u8]) -> Result<(File, File), Failed> {
    let mut builder = tar::Builder::new(Vec::new());
    for (number, member) in content.chunks(MEMBER).enumerate() {
        let mut header = tar::Header::new_ustar();
        header.set_size(member.len() as u64);
        header.set_mode(0o755);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        builder.append_data(&mut header, format!("bin/{number}"), member)?;
    }
    let bytes = builder.into_inner()?;
    let (mut plain, packed) = (file()?, file()?);
    plain.write_all(&bytes)?;
    let mut encoder = GzEncoder::new(packed, Compression::default());
    encoder.write_all(&bytes)?;
    Ok((plain, encoder.finish()?))
}
