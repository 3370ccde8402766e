//! Parts of vmbake-disk: author of a tree, read of a tree, compression to qcow2, decoding of qcow2.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput};
use vmbake_bench::{Failed, VOLUME, file, options, program_bytes, tree};
use vmbake_disk::disk::Disk;
use vmbake_disk::ext4;
use vmbake_disk::image::{Format, Image};
use vmbake_disk::source::{Map, ReadAt, Sources};
use vmbake_disk::tree::Origin;
use vmbake_disk::write::{Output, write};

const FILES: usize = 20_000;
const CONTENT: usize = 64 << 20;

fn main() -> Result<(), Failed> {
    let mut criterion = Criterion::default().configure_from_args();
    trees(&mut criterion)?;
    images(&mut criterion)?;
    criterion.final_summary();
    Ok(())
}

fn trees(criterion: &mut Criterion) -> Result<(), Failed> {
    let mut group = criterion.benchmark_group("ext4, 20,000 files");
    group.sample_size(20).throughput(Throughput::Elements(FILES as u64));
    let (tree, options) = (tree(FILES)?, options());
    let volume = ext4::author(&tree, &options)?;
    group.bench_function("author", |b| {
        b.iter(|| ext4::author(black_box(&tree), &options).map(|volume| volume.len()).ok())
    });
    let disk = Disk::new(volume.map().clone(), volume.sources().clone());
    let written = file()?;
    write(&disk, &[Output::new(Format::Raw, &written)], NonZeroUsize::MIN, &|_| ())?;
    let source: Arc<dyn ReadAt> = Arc::new(vmbake_disk::source::FileSource::new(written)?);
    assert_eq!(source.len(), VOLUME);
    assert!(ext4::read(source.clone(), Origin::default())?.1.walk().count() > FILES);
    group.bench_function("read", |b| {
        b.iter(|| ext4::read(black_box(source.clone()), Origin::default()).map(|(_, tree)| tree.walk().count()).ok());
    });
    group.finish();
    Ok(())
}

fn images(criterion: &mut Criterion) -> Result<(), Failed> {
    let mut group = criterion.benchmark_group("qcow2, 64 MiB of programs");
    group.sample_size(10).throughput(Throughput::Bytes(CONTENT as u64));
    let mut sources = Sources::default();
    let source = sources.add(Arc::new(program_bytes(CONTENT)?));
    let disk = Disk::new(Map::whole(source, 0, CONTENT as u64), sources);
    let every = std::thread::available_parallelism()?;
    for (name, threads) in [("compress, 1 thread", NonZeroUsize::MIN), ("compress, all threads", every)] {
        group.bench_function(name, |b| {
            b.iter_batched(
                file,
                |file| {
                    file.map(|file| {
                        write(&disk, &[Output::new(Format::Qcow2, &file)], threads, &|_| ()).is_ok()
                    })
                },
                BatchSize::PerIteration,
            );
        });
    }
    let path = tempfile::NamedTempFile::new_in("/dev/shm")?;
    write(&disk, &[Output::new(Format::Qcow2, path.as_file())], every, &|_| ())?;
    group.bench_function("decode", |b| {
        let mut content = vec![0; 1 << 20];
        b.iter(|| {
            let image = Image::open(path.path()).ok()?;
            (0..image.len())
                .step_by(content.len())
                .try_for_each(|at| image.read_exact_at(black_box(&mut content), at))
                .ok()
        });
    });
    group.finish();
    Ok(())
}
