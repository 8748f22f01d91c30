//! What a hand-off to a worker costs: the call itself, the way to a worker that is awake and to one
//! that sleeps, the whole round trip with and without a sleep of the queue's thread, one more part,
//! and one decision of each policy.
//!
//! `cargo bench -p crypt-core --bench hand_off`
//!
//! Medians of many single measurements; `p99` shows how far they spread.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::num::{NonZeroU8, NonZeroUsize};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use crypt_core::Result;
use crypt_core::buffer::{Area, SlotBuffer};
use crypt_core::cipher::SectorCipher;
use crypt_core::clock::Clock;
use crypt_core::exec::{
    Done, Lane, Route, Source, Work, WorkerConfig, WorkerPool, Writes, calibrate,
};
use crypt_core::key::Key;
use crypt_core::policy::{
    AdaptiveOptions, Costs, Direction, Job, Load, Objective, Placement, PolicySpec,
};
use crypt_core::request::Flags;
use crypt_core::spec::CipherSpec;
use crypt_core::units::SectorIndex;
use rustix::event::{PollFd, PollFlags, poll};

/// One lane to a pool of one worker, and a buffer that goes back and forth.
struct Bench {
    lane: Lane,
    buffer: Option<SlotBuffer>,
    done: Vec<Done>,
    clock: Clock,
}

#[derive(Clone, Copy)]
enum Wait {
    Spin,
    Sleep,
}

#[derive(Default)]
struct Figures {
    call_ns: Vec<u64>,
    way_ns: Vec<u64>,
    round_trip_ns: Vec<u64>,
}

fn main() -> Result<()> {
    let full = std::env::args().any(|arg| arg == "--bench");
    let (many, few) = if full { (100_000, 2_000) } else { (100, 10) };
    let key = Key::from_bytes(&(0..64).collect::<Vec<u8>>())?;
    let cipher: Arc<dyn SectorCipher> = "cipher_null-ecb"
        .parse::<CipherSpec>()?
        .build(&Key::empty()?, None)?;
    let aes = "aes-xts-plain64".parse::<CipherSpec>()?.build(&key, None)?;
    let pool = WorkerPool::start(&WorkerConfig {
        threads: NonZeroUsize::new(1),
        ..WorkerConfig::default()
    })?;
    let clock = Clock::monotonic();
    let start_ns = clock.now_ns();
    let costs = calibrate(&pool, &aes);
    println!(
        "calibration took {} us and found {costs:?}",
        (clock.now_ns() - start_ns) / 1000
    );
    println!(
        "{:<44}{:>12}{:>12}{:>12}",
        "ns, median / p99", "call", "to worker", "round trip"
    );
    let mut bench = Bench::new(&pool, &cipher)?;
    bench.run("worker awake, queue spins", many, 1, Wait::Spin, None);
    bench.run(
        "worker awake, queue spins, 8 parts",
        many,
        8,
        Wait::Spin,
        None,
    );
    let pause = Some(Duration::from_micros(300));
    bench.run("worker asleep, queue spins", few, 1, Wait::Spin, pause);
    bench.run("worker asleep, queue sleeps", few, 1, Wait::Sleep, pause);
    bench.run(
        "worker awake or asleep, queue sleeps",
        few,
        1,
        Wait::Sleep,
        None,
    );
    bench.assist(many);
    println!("pool: {:?}", pool.stats());
    decisions(if full { 200_000 } else { 20 });
    Ok(())
}

impl Bench {
    fn new(pool: &Arc<WorkerPool>, cipher: &Arc<dyn SectorCipher>) -> Result<Self> {
        Ok(Self {
            lane: Lane::open(pool, Arc::clone(cipher), 4, Writes::Return)?,
            buffer: SlotBuffer::allocate(1, 4096)?.pop(),
            done: Vec::with_capacity(4),
            clock: Clock::monotonic(),
        })
    }

    fn run(&mut self, name: &str, count: usize, parts: u8, wait: Wait, pause: Option<Duration>) {
        let mut figures = Figures::default();
        for _ in 0..count {
            if let Some(pause) = pause {
                std::thread::sleep(pause);
            }
            let start_ns = self.clock.now_ns();
            self.hand_off(parts);
            let handed_ns = self.clock.now_ns();
            let done = self.wait(wait);
            figures.call_ns.push(handed_ns - start_ns);
            figures.way_ns.push(done.wait_ns);
            figures.round_trip_ns.push(self.clock.now_ns() - start_ns);
            self.buffer = done.buffer;
        }
        print!("{name:<44}");
        for column in [figures.call_ns, figures.way_ns, figures.round_trip_ns] {
            print!("{:>12}", spread(column));
        }
        println!();
    }

    /// The queue runs what it hands off itself: what the machinery costs without another core.
    fn assist(&mut self, count: usize) {
        let start_ns = self.clock.now_ns();
        for _ in 0..count {
            self.hand_off(1);
            self.lane.assist();
            self.buffer = self.wait(Wait::Spin).buffer;
        }
        let each_ns = (self.clock.now_ns() - start_ns) / count as u64;
        println!("{:<44}{each_ns:>36}", "hand off, assist, collect (mean)");
    }

    fn hand_off(&mut self, parts: u8) {
        let Some(buffer) = self.buffer.take() else {
            return;
        };
        let work = Work {
            token: 0,
            direction: Direction::Encrypt,
            first: SectorIndex::new(0),
            len_bytes: 4096,
            source: Source::Area(Area::Data),
            target: Area::Data,
            buffer,
            parts: NonZeroU8::new(parts).unwrap_or(NonZeroU8::MIN),
            same_cpu: false,
            wake_each: false,
            route: Route::Return,
        };
        if self.lane.hand_off(work).is_err() {
            println!("a hand-off was refused");
        }
    }

    fn wait(&mut self, wait: Wait) -> Done {
        loop {
            self.lane.collect(&mut self.done);
            if let Some(done) = self.done.pop() {
                return done;
            }
            match wait {
                Wait::Spin => std::hint::spin_loop(),
                Wait::Sleep => {
                    if self.lane.prepare_sleep() {
                        let wake = self.lane.wake_fd();
                        let mut fds = [PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN)];
                        let _ = poll(&mut fds, None);
                        self.lane.end_sleep();
                    }
                }
            }
        }
    }
}

/// What makes every equation count: with the measured costs a small job may be told without them.
const COSTS: Costs = Costs {
    encrypt_ns_per_byte: 0.2,
    decrypt_ns_per_byte: 0.2,
    handoff_awake_ns: 200.0,
    handoff_asleep_ns: 30_000.0,
    handoff_self_ns: 150.0,
    wake_self_ns: 3_000.0,
    device_ns: 0.0,
    write_ns_per_byte: 0.0,
};

/// Nanoseconds per decision of each policy, for batches of 1 and of 32.
fn decisions(count: usize) {
    let clock = Clock::monotonic();
    println!(
        "{:<44}{:>12}{:>12}",
        "ns per decision", "batch 1", "batch 32"
    );
    let objectives = Objective::ALL.into_iter().skip(1);
    let objectives = objectives.map(|objective| AdaptiveOptions::new().with_objective(objective));
    let limited = NonZeroU8::MIN.checked_add(49);
    let limited = limited.and_then(|share| AdaptiveOptions::new().with_max_cpu_percent(share));
    let adaptive = objectives.chain(limited).map(PolicySpec::Adaptive);
    for spec in PolicySpec::ALL.into_iter().chain(adaptive) {
        let mut policy = spec.build();
        print!("{:<44}", spec.to_string());
        for batch in [1, 32] {
            let jobs: Vec<_> = (0..batch)
                .map(|n| job(if n % 4 == 3 { 65_536 } else { 4096 }))
                .collect();
            let mut placements = vec![Placement::Inline; batch];
            let mut load = Load {
                depth: 32,
                in_flight: 32,
                workers: 4,
                usable_workers: 4,
                idle_workers: 4,
                awake_workers: 1,
                costs: COSTS,
                ..Load::default()
            };
            let start_ns = clock.now_ns();
            for _ in 0..count {
                load.now_ns += 20_000;
                placements.fill(Placement::Inline);
                policy.place(black_box(&jobs), black_box(&load), &mut placements);
                black_box(&placements);
            }
            print!(
                "{:>12.1}",
                (clock.now_ns() - start_ns) as f64 / (count * batch) as f64
            );
        }
        println!();
    }
}

fn job(len_bytes: u32) -> Job {
    Job {
        direction: Direction::Decrypt,
        flags: Flags::empty(),
        sector: SectorIndex::new(0),
        len_bytes,
        max_parts: (len_bytes / 4096) as u8,
    }
}

fn spread(mut values: Vec<u64>) -> String {
    values.sort_unstable();
    let at = |share: f64| {
        values
            .get((values.len() as f64 * share) as usize)
            .copied()
            .unwrap_or(0)
    };
    format!("{} / {}", at(0.5), at(0.99))
}
