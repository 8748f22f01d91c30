//! The models against the figures that they are made from, in virtual time.

#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{ServiceModel, ServiceOp};
use crate::error::ErrorKind;
use crate::request::{Flags, Op};

const SIZE_BYTES: u64 = 1 << 40;

/// What a closed loop of `depth` operations sees.
struct Seen {
    ops_per_s: f64,
    bytes_per_s: f64,
    mean_us: f64,
}

/// Runs `count` operations, each one started when another ends, at random or one after the other.
fn run(name: &str, op: Op, len_bytes: u64, depth: usize, count: u64, random: bool) -> Seen {
    let mut model = ServiceModel::named(name, SIZE_BYTES, 7).unwrap();
    let mut addresses = fastrand::Rng::with_seed(11);
    let mut ends_ns = BinaryHeap::new();
    let (mut now_ns, mut total_ns) = (0, 0);
    for n in 0..count {
        if ends_ns.len() == depth {
            Reverse(now_ns) = ends_ns.pop().unwrap();
        }
        let block = if random {
            addresses.u64(..SIZE_BYTES / len_bytes)
        } else {
            n
        };
        let end_ns = model.admit(now_ns, operation(op, block * len_bytes, len_bytes));
        assert!(end_ns > now_ns);
        total_ns += end_ns - now_ns;
        ends_ns.push(Reverse(end_ns));
    }
    let last_ns = ends_ns.into_iter().map(|Reverse(end_ns)| end_ns).max();
    let seconds = last_ns.unwrap() as f64 / 1e9;
    Seen {
        ops_per_s: count as f64 / seconds,
        bytes_per_s: (count * len_bytes) as f64 / seconds,
        mean_us: total_ns as f64 / count as f64 / 1e3,
    }
}

fn operation(op: Op, offset_bytes: u64, len_bytes: u64) -> ServiceOp {
    ServiceOp {
        op,
        flags: Flags::empty(),
        offset_bytes,
        len_bytes,
    }
}

#[track_caller]
fn near(found: f64, expected: f64, tolerance: f64) {
    let error = (found / expected - 1.0).abs();
    assert!(error <= tolerance, "{found} is not near {expected}");
}

#[test]
fn random_reads_follow_the_data_sheets() {
    let read = |name, depth, count| run(name, Op::Read, 4096, depth, count, true);
    near(read("sata-ssd", 1, 20_000).ops_per_s, 10_000.0, 0.05);
    near(read("sata-ssd", 32, 50_000).ops_per_s, 98_000.0, 0.10);
    near(read("optane", 1, 50_000).mean_us, 8.9, 0.05);
    near(read("optane", 16, 100_000).ops_per_s, 550_000.0, 0.08);
    near(read("nvme", 1, 20_000).mean_us, 85.0, 0.05);
    near(read("nvme", 256, 300_000).ops_per_s, 1_000_000.0, 0.08);
    near(read("hdd", 1, 2_000).ops_per_s, 85.0, 0.10);
    near(read("hdd", 16, 4_000).ops_per_s, 170.0, 0.10);
}

#[test]
fn random_writes_follow_the_data_sheets() {
    let write = |name, depth, count| run(name, Op::Write, 4096, depth, count, true);
    near(write("sata-ssd", 1, 20_000).ops_per_s, 40_000.0, 0.05);
    near(write("sata-ssd", 32, 50_000).ops_per_s, 90_000.0, 0.10);
    near(write("optane", 16, 100_000).ops_per_s, 500_000.0, 0.08);
    near(write("nvme", 1, 1_000).mean_us, 20.0, 0.05);
    near(write("nvme", 32, 500_000).ops_per_s, 130_000.0, 0.08);
}

#[test]
fn large_transfers_reach_the_speed_of_the_link() {
    let speed = |name, op| run(name, op, 1 << 20, 8, 4_000, false).bytes_per_s;
    near(speed("sata-ssd", Op::Read), 540e6, 0.05);
    near(speed("sata-ssd", Op::Write), 520e6, 0.05);
    near(speed("optane", Op::Read), 2_400e6, 0.05);
    near(speed("optane", Op::Write), 2_000e6, 0.05);
    near(speed("nvme", Op::Read), 7_000e6, 0.05);
    near(speed("nvme", Op::Write), 4_300e6, 0.05);
    near(speed("hdd", Op::Read), 255e6, 0.05);
    near(speed("hdd", Op::Write), 255e6, 0.10);
}

#[test]
fn a_write_cache_takes_a_burst_and_then_the_speed_of_the_medium() {
    let mut model = ServiceModel::named("hdd", SIZE_BYTES, 1).unwrap();
    let mut addresses = fastrand::Rng::with_seed(2);
    let mut write = |now_ns| {
        let block = addresses.u64(..SIZE_BYTES / (1 << 20));
        model.admit(now_ns, operation(Op::Write, block << 20, 1 << 20)) - now_ns
    };
    let mut now_ns = 0;
    let first_ns = write(now_ns);
    assert!(first_ns < 3_000_000, "the cache is empty: {first_ns}");
    for _ in 0..400 {
        now_ns += write(now_ns);
    }
    let late_ns = write(now_ns);
    assert!(late_ns > 5_000_000, "the cache is full: {late_ns}");
    now_ns += 10_000_000_000;
    assert!(write(now_ns) < 3_000_000, "the cache has drained");
}

#[test]
fn a_flush_waits_for_a_volatile_cache_only() {
    let flush_ns = |name: &str| {
        let mut model = ServiceModel::named(name, SIZE_BYTES, 1).unwrap();
        let idle_ns = model.admit(0, operation(Op::Flush, 0, 0));
        for n in 0..100 {
            model.admit(1_000_000_000, operation(Op::Write, n << 30, 65_536));
        }
        let busy_ns = model.admit(1_000_000_000, operation(Op::Flush, 0, 0)) - 1_000_000_000;
        (idle_ns, busy_ns)
    };
    for name in ["hdd", "sata-ssd"] {
        let (idle_ns, busy_ns) = flush_ns(name);
        assert!(busy_ns > idle_ns + 5_000_000, "{name}: {idle_ns} {busy_ns}");
    }
    for name in ["optane", "nvme"] {
        let (idle_ns, busy_ns) = flush_ns(name);
        assert!(busy_ns < idle_ns + 5_000_000, "{name}: {idle_ns} {busy_ns}");
    }
}

#[test]
fn a_durable_write_costs_what_the_medium_costs() {
    for (name, volatile) in [("hdd", true), ("sata-ssd", true), ("nvme", false)] {
        let time_ns = |flags| {
            let mut model = ServiceModel::named(name, SIZE_BYTES, 1).unwrap();
            let write = operation(Op::Write, 1 << 39, 4096);
            model.admit(0, ServiceOp { flags, ..write })
        };
        let (plain_ns, durable_ns) = (time_ns(Flags::empty()), time_ns(Flags::FUA));
        assert_eq!(
            durable_ns > 10 * plain_ns,
            volatile,
            "{name}: {plain_ns} {durable_ns}"
        );
    }
}

#[test]
fn a_seed_repeats_and_another_differs() {
    for name in names() {
        let times = |seed| {
            let mut model = ServiceModel::named(name, SIZE_BYTES, seed).unwrap();
            let read = |n: u64| model.admit(n * 1000, operation(Op::Read, n << 24, 4096));
            (0..100).map(read).collect::<Vec<_>>()
        };
        assert_eq!(times(1), times(1), "{name}");
        let is_random = !name.starts_with("null-blk");
        assert_eq!(times(1) != times(2), is_random, "{name}");
    }
}

#[test]
fn no_operation_is_too_absurd() {
    for name in names() {
        for size_bytes in [0, 1, u64::MAX] {
            let mut model = ServiceModel::named(name, size_bytes, 0).unwrap();
            for op in Op::ALL {
                for (offset_bytes, len_bytes) in [(0, 0), (u64::MAX, u64::MAX), (3, 5)] {
                    for now_ns in [0, u64::MAX / 2, 1] {
                        let op = operation(op, offset_bytes, len_bytes);
                        assert!(model.admit(now_ns, op) > now_ns);
                    }
                }
            }
        }
    }
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    for name in [
        "floppy",
        "hdd:4",
        "sata-array",
        "sata-array:0",
        "sata-array:257",
        "sata-array:4:0",
        "sata-array:4:",
        "sata-array:4:5:6",
        "hdd-array:x",
        "null-blk:irq",
        "null-blk:timer:0",
        "null-blk:timer:1s",
        "",
    ] {
        let error = ServiceModel::named(name, 1, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
        for known in ["sata-ssd", "sata-array:N", "null-blk:timer:NS", "1 to 256"] {
            assert!(error.to_string().contains(known), "{name}: {error}");
        }
    }
    assert!(names().all(|name| ServiceModel::named(name, 1, 0).is_ok_and(|it| it.name() == name)));
}

/// Every preset, with some of those that take a number.
fn names() -> impl Iterator<Item = &'static str> {
    let more = [
        "hdd-array:4",
        "sata-array:1",
        "sata-array:24",
        "sata-array:7:70000",
        "null-blk",
        "null-blk:timer:5",
    ];
    ServiceModel::NAMES.into_iter().chain(more)
}

#[test]
fn an_array_is_as_fast_as_its_drives_until_its_controller_is_not() {
    let reads = |name, depth| run(name, Op::Read, 4096, depth, 100_000, true).ops_per_s;
    // At random places some drives have more to do than others.
    near(
        reads("sata-array:4", 128),
        4.0 * reads("sata-ssd", 32),
        0.15,
    );
    near(reads("sata-array:24", 1024), 450_000.0, 0.05);
    near(reads("sata-array:24:70000", 1024), 70_000.0, 0.05);
    let speed = |name| run(name, Op::Read, 1 << 20, 64, 20_000, false).bytes_per_s;
    near(speed("sata-array:4"), 4.0 * 540e6, 0.10);
    near(speed("sata-array:64"), 6_400e6, 0.05);
    near(
        run("hdd-array:4", Op::Read, 1 << 20, 8, 4_000, false).bytes_per_s,
        4.0 * 255e6,
        0.15,
    );
}

#[test]
fn a_flush_reaches_every_drive_of_an_array() {
    let mut model = ServiceModel::named("hdd-array:4", SIZE_BYTES, 1).unwrap();
    // One chunk of the third drive.
    let write_ns = model.admit(0, operation(Op::Write, 2 * (512 << 10), 512 << 10));
    let flush_ns = model.admit(write_ns, operation(Op::Flush, 0, 0));
    assert!(flush_ns > write_ns + 2_000_000, "{write_ns} {flush_ns}");
}

#[test]
fn null_blk_completes_as_its_mode_says_and_has_as_many_tags_as_the_kernel_gives_it() {
    let ends = |name| {
        let mut model = ServiceModel::named(name, SIZE_BYTES, 1).unwrap();
        let end_ns = |n: u64| model.admit(100, operation(Op::Write, n << 20, 1 << 20)) - 100;
        let ends_ns: Vec<u64> = (0..65).map(end_ns).collect();
        (ends_ns[0], ends_ns[63], ends_ns[64])
    };
    assert_eq!(ends("null-blk:none"), (1, 1, 1));
    assert_eq!(ends("null-blk"), ends("null-blk:softirq"));
    assert_eq!(ends("null-blk:timer"), (10_000, 10_000, 20_000));
    assert_eq!(ends("null-blk:timer:250"), (250, 250, 500));
}
