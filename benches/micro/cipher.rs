//! AES-256-XTS of every backend beside the limit of its AES rounds and beside `xts-mode`, OpenSSL and
//! AWS-LC, with criterion's statistics: `cargo bench` in `benches/peers`.

#![forbid(unsafe_code)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use crypt_core::buffer::{Area, SlotBuffer};
use crypt_core::cipher::Backend;
use crypt_core::units::SectorSize;
use crypt_peers::subject::{self, Direction};

fn xts(criterion: &mut Criterion) {
    for sector_size in [SectorSize::B512, SectorSize::B4096] {
        for request in [4 << 10, 64 << 10, 1 << 20] {
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                compare(criterion, sector_size, request, direction);
            }
        }
    }
}

/// Every backend's limit and cipher, and each peer once.
fn compare(
    criterion: &mut Criterion,
    sector_size: SectorSize,
    request: usize,
    direction: Direction,
) {
    let name = format!("xts/{sector_size}/{request}/{}", direction.name());
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Bytes(request as u64));
    let mut slots = SlotBuffer::allocate(1, request).expect("memory for one request");
    let buf = &mut slots[0].area_mut(Area::Data)[..request];
    for (index, backend) in Backend::available().enumerate() {
        let subjects = subject::all(backend, sector_size).expect("an available backend");
        let of_backend = if index == 0 { subjects.len() } else { 2 };
        for mut subject in subjects.into_iter().take(of_backend) {
            let backend = match subject.name() {
                "limit" | "crypt-core" => backend.name(),
                _ => "own",
            };
            let id = BenchmarkId::new(subject.name(), backend);
            group.bench_function(id, |bencher| {
                bencher.iter(|| subject.run(direction, 64, buf));
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = cipher;
    config = Criterion::default().sample_size(20);
    targets = xts
}
criterion_main!(cipher);
