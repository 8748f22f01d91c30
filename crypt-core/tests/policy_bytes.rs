//! A policy decides where the cipher runs and nothing else: under every policy the same requests
//! leave the same bytes on the device and read the same plaintext back.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a set-up that fails is a failed test")]

use std::num::NonZeroUsize;
use std::sync::Arc;

use crypt_core::device::memory::MemoryDevice;
use crypt_core::exec::{WorkerConfig, WorkerPool};
use crypt_core::key::Key;
use crypt_core::policy::{PolicySpec, WorkqueueFlags};
use crypt_core::request::{Flags, Op, Request};
use crypt_core::spec::CipherSpec;
use crypt_core::units::{ByteLength, SectorIndex};
use crypt_core::{Queue, QueueOptions, Volume};
use proptest::prelude::*;

const SIZE: u64 = 512 << 10;
const SLOT: u32 = 128 << 10;

/// Every policy, and every set of those flags that change the way of a request.
fn registry() -> Vec<PolicySpec> {
    let sets = 0..=WorkqueueFlags::all().bits();
    let flagged = sets
        .map(WorkqueueFlags::from_bits_retain)
        .filter(|flags| !flags.contains(WorkqueueFlags::HIGH_PRIORITY))
        .map(PolicySpec::Workqueue);
    PolicySpec::ALL.into_iter().chain(flagged).collect()
}

fn pools() -> Vec<Arc<WorkerPool>> {
    let start = |rules| {
        let config = WorkerConfig {
            threads: NonZeroUsize::new(2),
            ..WorkerConfig::for_rules(&rules)
        };
        WorkerPool::start(&config).unwrap()
    };
    let same_cpu = PolicySpec::Workqueue(WorkqueueFlags::SAME_CPU_CRYPT);
    vec![start(PolicySpec::Adaptive.rules()), start(same_cpu.rules())]
}

/// One write of a disjoint range, and the flags it is submitted with.
#[derive(Clone, Copy, Debug)]
struct Range {
    sector: u64,
    len: u64,
    flags: Flags,
}

/// Ranges that cover a prefix of the device, in scrambled order.
fn any_ranges() -> impl Strategy<Value = Vec<Range>> {
    let len = prop::sample::select(vec![512_u64, 1024, 4096, 12_288, 65_536, u64::from(SLOT)]);
    prop::collection::vec((len, 0_u8..16), 1..40).prop_flat_map(|pieces| {
        let mut start = 0;
        let ranges: Vec<_> = pieces
            .into_iter()
            .map(|(len, flags)| {
                let range = Range {
                    sector: start / 512,
                    len,
                    flags: Flags::from_bits_truncate(flags),
                };
                start += len;
                range
            })
            .filter(|range| range.sector * 512 + range.len <= SIZE)
            .collect();
        Just(ranges).prop_shuffle()
    })
}

/// Submits one request per range at full depth; `each` sees the data after its completion.
fn run(queue: &mut Queue, op: Op, ranges: &[Range], mut each: impl FnMut(&Range, &[u8])) {
    let (mut done, mut left) = (Vec::new(), ranges.iter());
    let mut of_slot = vec![0_u64; queue.depth() as usize];
    loop {
        while let Some(ticket) = queue.claim() {
            let Some(range) = left.next() else {
                queue.release(ticket);
                break;
            };
            of_slot[ticket.index()] = range.sector;
            if op == Op::Write {
                let data = queue.data_mut(&ticket).iter_mut().enumerate();
                data.for_each(|(n, byte)| *byte = plain(range.sector, n));
            }
            let (sector, len) = (SectorIndex::new(range.sector), ByteLength::new(range.len));
            queue.submit(
                ticket,
                Request::new(op, sector, len).with_flags(range.flags),
            );
        }
        if queue.wait(&mut done, None).unwrap() == 0 {
            return;
        }
        for completion in done.drain(..) {
            let sector = of_slot[completion.ticket.index()];
            let range = ranges.iter().find(|range| range.sector == sector).unwrap();
            assert_eq!(completion.result, Ok(range.len));
            each(range, &queue.data(&completion.ticket)[..range.len as usize]);
            queue.release(completion.ticket);
        }
    }
}

fn plain(sector: u64, n: usize) -> u8 {
    (sector as usize + n / 512).wrapping_mul(7).wrapping_add(n) as u8
}

/// The device's bytes after all writes under this policy, after checking that they read back.
fn device_bytes(spec: PolicySpec, pool: &Arc<WorkerPool>, ranges: &[Range], depth: u32) -> Vec<u8> {
    let device = Arc::new(MemoryDevice::new(SIZE).unwrap());
    let key = Key::from_bytes(&(0..64).collect::<Vec<u8>>()).unwrap();
    let cipher = "aes-xts-plain64"
        .parse::<CipherSpec>()
        .unwrap()
        .build(&key, None)
        .unwrap();
    let volume = Volume::builder(device.clone())
        .cipher(cipher)
        .policy(spec)
        .workers(Arc::clone(pool))
        .build()
        .unwrap();
    let options = QueueOptions {
        depth,
        max_request_bytes: SLOT,
        polled: false,
    };
    let mut queue = volume.queue(&options).unwrap();
    run(&mut queue, Op::Write, ranges, |range, data| {
        let kept = data
            .iter()
            .enumerate()
            .all(|(n, &byte)| byte == plain(range.sector, n));
        assert!(kept, "{spec} changed the caller's plaintext");
    });
    run(&mut queue, Op::Read, ranges, |range, data| {
        let right = data
            .iter()
            .enumerate()
            .all(|(n, &byte)| byte == plain(range.sector, n));
        assert!(
            right,
            "{spec} reads something else at sector {}",
            range.sector
        );
    });
    let mut bytes = vec![0; SIZE as usize];
    let raw = Volume::builder(device).build().unwrap();
    raw.io().unwrap().read_at(&mut bytes, 0).unwrap();
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn every_policy_leaves_the_same_bytes(ranges in any_ranges(), depth in 1_u32..20) {
        let pools = pools();
        let expected = device_bytes(PolicySpec::Inline, &pools[0], &ranges, depth);
        for spec in registry() {
            for pool in &pools {
                let bytes = device_bytes(spec, pool, &ranges, depth);
                prop_assert!(bytes == expected, "{}", spec);
            }
        }
    }
}
