//! Where the cipher runs changes nothing else: under every policy, any way of splitting and any
//! depth, the device holds the same bytes and every request has the same result.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::VecDeque;
use std::num::{NonZeroU8, NonZeroUsize};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use crypt_core::cipher::SectorCipher;
use crypt_core::device::Device;
use crypt_core::device::faulty::{FaultPlan, FaultyDevice};
use crypt_core::device::memory::MemoryDevice;
use crypt_core::exec::{WorkerConfig, WorkerPool};
use crypt_core::key::Key;
use crypt_core::policy::{
    Job, Load, OffloadRules, Outcome, Placement, Policy, PolicySpec, WriteRoute,
};
use crypt_core::request::{Flags, Op, Request};
use crypt_core::spec::CipherSpec;
use crypt_core::units::{ByteLength, SectorIndex, SectorSize};
use crypt_core::{Errno, Queue, QueueOptions, Ticket, Volume};

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 96;
const MAX_BLOCKS: u64 = 16;

/// Places jobs by a fixed sequence, so that every mixture comes up.
#[derive(Clone, Debug)]
struct Scripted {
    script: Vec<Placement>,
    next: usize,
    rules: OffloadRules,
}

impl Policy for Scripted {
    fn name(&self) -> String {
        "scripted".into()
    }
    fn place(&mut self, _: &[Job], _: &Load, placements: &mut [Placement]) {
        for placement in placements {
            *placement = self.script[self.next % self.script.len()];
            self.next += 1;
        }
    }
    fn observe(&mut self, _: &Outcome) {}
    fn offload_rules(&self) -> OffloadRules {
        self.rules
    }
}

/// Places the first jobs as it says, all others inline. Workers write.
#[derive(Debug)]
struct Opening(VecDeque<Placement>);

impl Policy for Opening {
    fn name(&self) -> String {
        "opening".into()
    }
    fn place(&mut self, _: &[Job], _: &Load, placements: &mut [Placement]) {
        for placement in placements {
            *placement = self.0.pop_front().unwrap_or(Placement::Inline);
        }
    }
    fn observe(&mut self, _: &Outcome) {}
    fn offload_rules(&self) -> OffloadRules {
        OffloadRules {
            writes: WriteRoute::Worker,
            wake_each: true,
            ..OffloadRules::default()
        }
    }
}

/// One step of a workload: an operation on some blocks, filled with a byte.
#[derive(Clone, Copy, Debug)]
struct Step {
    op: Op,
    flags: Flags,
    block: u64,
    blocks: u64,
    fill: u8,
}

fn workers() -> Arc<WorkerPool> {
    static POOL: OnceLock<Arc<WorkerPool>> = OnceLock::new();
    Arc::clone(POOL.get_or_init(|| {
        let threads = NonZeroUsize::new(3);
        WorkerPool::start(&WorkerConfig {
            threads,
            ..WorkerConfig::default()
        })
        .unwrap()
    }))
}

fn cipher() -> Arc<dyn SectorCipher> {
    let spec: CipherSpec = "aes-xts-plain64".parse().unwrap();
    let key = Key::from_bytes(&(0..64).collect::<Vec<u8>>()).unwrap();
    spec.with_sector_size(SectorSize::B512)
        .build(&key, None)
        .unwrap()
}

/// Runs the workload; what the device holds afterwards, and each request's result.
///
/// Requests that overlap one in flight wait for it, as a block device's user has to do.
fn run(
    policy: impl Fn() -> Box<dyn Policy> + Send + Sync + 'static,
    depth: u32,
    faults: &FaultPlan,
    steps: &[Step],
) -> (Vec<u8>, Vec<Result<u64, Errno>>) {
    let memory: Arc<dyn Device> = Arc::new(MemoryDevice::new(BLOCK * BLOCKS).unwrap());
    let device = Arc::new(FaultyDevice::new(Arc::clone(&memory), faults.clone()));
    let volume = Volume::builder(device)
        .cipher(cipher())
        .workers(workers())
        .policy_factory(policy)
        .build()
        .unwrap();
    let max_request_bytes = (MAX_BLOCKS * BLOCK) as u32;
    let mut queue = volume
        .queue(&QueueOptions {
            depth,
            max_request_bytes,
            polled: false,
        })
        .unwrap();
    let mut results = vec![Err(Errno::EIO); steps.len()];
    let mut in_flight: Vec<Option<usize>> = vec![None; depth as usize];
    for (n, step) in steps.iter().enumerate() {
        let overlaps = |other: &Option<usize>| {
            other.is_some_and(|other| {
                let other = &steps[other];
                step.block < other.block + other.blocks && other.block < step.block + step.blocks
            })
        };
        while in_flight.iter().any(overlaps) || in_flight.iter().all(Option::is_some) {
            collect(&mut queue, &mut in_flight, &mut results);
        }
        let ticket = queue.claim().unwrap();
        queue.data_mut(&ticket).fill(step.fill);
        in_flight[ticket.index()] = Some(n);
        let (sector, len) = (step.block * BLOCK / 512, step.blocks * BLOCK);
        let request = Request::new(step.op, SectorIndex::new(sector), ByteLength::new(len));
        queue.submit(ticket, request.with_flags(step.flags));
    }
    while in_flight.iter().any(Option::is_some) {
        collect(&mut queue, &mut in_flight, &mut results);
    }
    let raw = Volume::builder(memory).build().unwrap();
    let mut bytes = vec![0; (BLOCK * BLOCKS) as usize];
    raw.io().unwrap().read_at(&mut bytes, 0).unwrap();
    (bytes, results)
}

fn collect(queue: &mut Queue, in_flight: &mut [Option<usize>], results: &mut [Result<u64, Errno>]) {
    let mut done = Vec::with_capacity(in_flight.len());
    queue.wait(&mut done, None).unwrap();
    for completion in done {
        let n = in_flight[completion.ticket.index()].take().unwrap();
        results[n] = completion.result;
        queue.release(completion.ticket);
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let op = prop_oneof![
        3 => Just(Op::Write),
        2 => Just(Op::Read),
        1 => Just(Op::WriteZeroes),
        1 => Just(Op::Flush),
    ];
    let flags = prop_oneof![
        Just(Flags::empty()),
        Just(Flags::HIPRI),
        Just(Flags::READAHEAD),
        Just(Flags::FUA),
    ];
    let step = (op, flags, 0..BLOCKS - 40, 1..=MAX_BLOCKS, any::<u8>());
    prop::collection::vec(step, 1..40).prop_map(|steps| {
        let make = |(op, flags, block, blocks, fill)| {
            // Zeroing may be longer than a slot.
            let blocks = if op == Op::WriteZeroes {
                blocks * 2
            } else {
                blocks
            };
            Step {
                op,
                flags,
                block,
                blocks,
                fill,
            }
        };
        steps.into_iter().map(make).collect()
    })
}

fn placements() -> impl Strategy<Value = Vec<Placement>> {
    let placement = prop_oneof![
        Just(Placement::Inline),
        Just(Placement::Offload),
        (2..=40_u8).prop_map(|n| Placement::Split(NonZeroU8::new(n).unwrap())),
    ];
    prop::collection::vec(placement, 1..8)
}

fn write_routes() -> impl Strategy<Value = WriteRoute> {
    prop_oneof![
        Just(WriteRoute::Queue),
        Just(WriteRoute::Worker),
        Just(WriteRoute::WriteThread),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn bytes_and_results_do_not_depend_on_placement(
        steps in steps(),
        script in placements(),
        writes in write_routes(),
        same_cpu: bool,
        wake_each: bool,
        assist: bool,
        depth in prop_oneof![Just(1_u32), Just(3), Just(16)],
        seed: u64,
    ) {
        // Recoverable faults only: which request an error hits depends on the order of arrival.
        let faults = FaultPlan {
            seed,
            short_rate: 0.2,
            eagain_rate: 0.2,
            reorder: true,
            ..FaultPlan::default()
        };
        let none = FaultPlan::default();
        let expected = run(|| PolicySpec::Inline.build(), 1, &none, &steps);
        prop_assert!(expected.1.iter().all(Result::is_ok));

        let rules = OffloadRules { writes, same_cpu, wake_each, assist, ..OffloadRules::default() };
        let scripted = Scripted { script, next: 0, rules };
        let actual = run(move || Box::new(scripted.clone()), depth, &faults, &steps);
        prop_assert!(actual == expected, "scripted, depth {}", depth);

        let policies = [
            "inline",
            "workqueue",
            "workqueue:submit_from_crypt_cpus",
            "workqueue:submit_from_crypt_cpus,same_cpu_crypt",
            "workqueue:no_read_workqueue",
            "workqueue:no_write_workqueue",
            "adaptive",
            "adaptive:latency",
            "adaptive:throughput",
            "adaptive:efficiency",
            "adaptive:latency,max_workers=1,max_cpu=30",
        ];
        for policy in policies {
            let spec: PolicySpec = policy.parse().unwrap();
            let actual = run(move || spec.build(), depth, &faults, &steps);
            prop_assert!(actual == expected, "{}, depth {}", policy, depth);
        }
    }
}

/// What a worker did comes back although others end at once and follow each other without a pause.
#[test]
fn requests_that_end_at_once_do_not_starve_one_that_a_worker_has() {
    // Whether the first result and the others meet in one round depends on when the worker is done.
    for _ in 0..20 {
        starve_one();
    }
}

fn starve_one() {
    use Placement::{Inline, Offload};
    let volume = Volume::builder(Arc::new(MemoryDevice::new(BLOCK * BLOCKS).unwrap()))
        .cipher(cipher())
        .workers(workers())
        .policy_factory(|| Box::new(Opening([Offload, Inline, Inline, Offload].into())))
        .build()
        .unwrap();
    let options = QueueOptions {
        depth: 4,
        max_request_bytes: BLOCK as u32,
        polled: false,
    };
    let mut queue = volume.queue(&options).unwrap();
    let submit = |queue: &mut Queue, ticket: Ticket| {
        let sector = SectorIndex::new(ticket.index() as u64 * BLOCK / 512);
        let request = Request::new(Op::Write, sector, ByteLength::new(BLOCK));
        queue.submit(ticket, request);
    };
    let [first, second, third, slow] = [(); 4].map(|()| queue.claim().unwrap());
    let slow_slot = slow.index();
    let mut done = Vec::new();
    submit(&mut queue, first);
    queue.poll(&mut done);
    // Now the worker is done: its result and two requests that end at once meet in one round.
    std::thread::sleep(Duration::from_millis(5));
    submit(&mut queue, second);
    submit(&mut queue, third);
    queue.wait(&mut done, None).unwrap();
    submit(&mut queue, slow);
    let begun = Instant::now();
    while done
        .iter()
        .all(|completion| completion.ticket.index() != slow_slot)
    {
        assert!(
            begun.elapsed().as_secs() < 20,
            "the worker's was never collected"
        );
        for completion in done.drain(..) {
            completion.result.unwrap();
            submit(&mut queue, completion.ticket);
        }
        queue.wait(&mut done, None).unwrap();
    }
    queue.drain(&mut done).unwrap();
}
