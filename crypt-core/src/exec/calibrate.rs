//! What cipher work and hand-offs cost on this machine, measured when a volume is opened.
//!
//! A few milliseconds, on the calling thread and one worker at a time. Cipher times are the best of
//! several runs; what a hand-off costs this thread is the lower quartile, with and without a worker
//! to wake, since whatever else runs on the machine only adds to it. How long hand-offs take to arrive
//! the workers measure themselves, here and ever after. All by the clock that the data path uses.
#![forbid(unsafe_code)]

use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Duration;

use super::lane::{Lane, Writes};
use super::pool::WorkerPool;
use super::span::{Source, Span, run_span};
use super::work::{Done, Route, Work};
use crate::buffer::{Area, SlotBuffer};
use crate::cipher::SectorCipher;
use crate::clock::Clock;
use crate::error::Result;
use crate::policy::{Costs, Direction};
use crate::units::SectorIndex;

/// Length of a cipher run: above the fixed cost of a call, inside the first cache levels.
const CIPHER_BYTES: u32 = 16 << 10;
/// Most cipher runs per direction, and when to stop earlier.
const CIPHER_RUNS: u32 = 32;
const CIPHER_BUDGET_NS: u64 = 400_000;
const AWAKE_PROBES: usize = 64;
const ASLEEP_PROBES: usize = 9;
/// How long a parked worker is left alone before it is woken, so that its core is asleep too.
const SETTLE: Duration = Duration::from_micros(100);
/// Looks at the mailbox, of some tens of ns each, before the core is offered to others.
const LOOKS_PER_YIELD: u32 = 4096;
/// How long to wait for the workers of a pool that others use too.
const PATIENCE_NS: u64 = 2_000_000;

/// Measures the costs that policies start from, and tells the pool what a wake-up is worth.
///
/// Hand-off costs that can't be measured (no worker, no memory, no eventfd) are infinite, so that
/// nothing is handed off for its speed.
#[must_use]
pub fn calibrate(pool: &Arc<WorkerPool>, cipher: &Arc<dyn SectorCipher>) -> Costs {
    let never = f32::INFINITY;
    let mut costs = Costs {
        handoff_awake_ns: never,
        handoff_asleep_ns: never,
        handoff_self_ns: never,
        wake_self_ns: never,
        ..Costs::default()
    };
    let Some(mut buffer) = SlotBuffer::allocate(1, CIPHER_BYTES as usize)
        .ok()
        .and_then(|mut slots| slots.pop())
    else {
        return costs;
    };
    costs.encrypt_ns_per_byte = cipher_ns_per_byte(&**cipher, Direction::Encrypt, &mut buffer);
    costs.decrypt_ns_per_byte = cipher_ns_per_byte(&**cipher, Direction::Decrypt, &mut buffer);
    if pool.load().workers > 0
        && let Ok(mut prober) = Prober::new(pool, cipher, buffer)
    {
        prober.measure(&mut costs);
        let worth = costs.handoff_asleep_ns / costs.encrypt_ns_per_byte.max(f32::MIN_POSITIVE);
        pool.wake_one_more_per(worth as u64);
    }
    costs
}

/// Best of several runs, as the pipeline makes them: writes out of place, reads in place.
fn cipher_ns_per_byte(
    cipher: &dyn SectorCipher,
    direction: Direction,
    buffer: &mut SlotBuffer,
) -> f32 {
    let clock = Clock::monotonic();
    let span = Span {
        direction,
        first: SectorIndex::new(0),
        area_offset_bytes: 0,
        len_bytes: CIPHER_BYTES,
        source: Source::Area(Area::Data),
        target: match direction {
            Direction::Encrypt => Area::Bounce,
            Direction::Decrypt => Area::Data,
        },
    };
    let (begin_ns, mut best_ns) = (clock.now_ns(), u64::MAX);
    for run in 0..CIPHER_RUNS {
        let start_ns = clock.now_ns();
        let result = run_span(cipher, &span, buffer);
        let end_ns = clock.now_ns();
        if result.is_ok() {
            best_ns = best_ns.min(end_ns.saturating_sub(start_ns));
        }
        if run > 0 && end_ns.saturating_sub(begin_ns) > CIPHER_BUDGET_NS {
            break;
        }
    }
    if best_ns == u64::MAX {
        return f32::INFINITY;
    }
    best_ns as f32 / CIPHER_BYTES as f32
}

/// Hands off the smallest work there is, over and over.
struct Prober {
    lane: Lane,
    buffer: Option<SlotBuffer>,
    len_bytes: u32,
    clock: Clock,
    done: Vec<Done>,
}

/// One hand-off.
struct Probe {
    self_ns: u64,
    woke: bool,
}

impl Prober {
    fn new(
        pool: &Arc<WorkerPool>,
        cipher: &Arc<dyn SectorCipher>,
        buffer: SlotBuffer,
    ) -> Result<Self> {
        Ok(Self {
            lane: Lane::open(pool, Arc::clone(cipher), 1, Writes::Return)?,
            buffer: Some(buffer),
            len_bytes: cipher.sector_size().bytes() as u32,
            clock: Clock::monotonic(),
            done: Vec::with_capacity(1),
        })
    }

    fn measure(&mut self, costs: &mut Costs) {
        let awake: Vec<_> = (0..AWAKE_PROBES).map_while(|_| self.probe()).collect();
        let asleep: Vec<_> = (0..ASLEEP_PROBES)
            .map_while(|_| self.let_everybody_sleep().then(|| self.probe()).flatten())
            .collect();
        let self_ns = |woke: bool| {
            let all = awake.iter().chain(&asleep);
            let mut values: Vec<_> = all
                .filter(|probe| probe.woke == woke)
                .map(|probe| probe.self_ns)
                .collect();
            values.sort_unstable();
            values.get(values.len() / 4).map(|&ns| ns as f32)
        };
        // Workers that never spin are never found awake, and the other way round.
        let either = |first: Option<f32>, second: Option<f32>| first.or(second);
        let known = |ns: u32| (ns > 0).then_some(ns as f32);
        let load = self.lane.load(self.clock.now_ns());
        let (awake_ns, asleep_ns) = (known(load.handoff_awake_ns), known(load.handoff_asleep_ns));
        let never = f32::INFINITY;
        costs.handoff_awake_ns = either(awake_ns, asleep_ns).unwrap_or(never);
        costs.handoff_asleep_ns = either(asleep_ns, awake_ns).unwrap_or(never);
        costs.handoff_self_ns = either(self_ns(false), self_ns(true)).unwrap_or(never);
        let woken_self_ns = either(self_ns(true), self_ns(false)).unwrap_or(never);
        costs.wake_self_ns = (woken_self_ns - costs.handoff_self_ns).max(0.0);
    }

    /// `None` where the pool has no room, or has been shut down.
    fn probe(&mut self) -> Option<Probe> {
        let work = Work {
            token: 0,
            direction: Direction::Encrypt,
            first: SectorIndex::new(0),
            len_bytes: self.len_bytes,
            source: Source::Area(Area::Data),
            target: Area::Data,
            buffer: self.buffer.take()?,
            parts: NonZeroU8::MIN,
            same_cpu: false,
            wake_each: false,
            route: Route::Return,
        };
        let wake_ups = self.lane.pool().stats().wake_ups;
        let start_ns = self.clock.now_ns();
        if let Err(work) = self.lane.hand_off(work) {
            self.buffer = Some(work.buffer);
            return None;
        }
        let self_ns = self.clock.now_ns().saturating_sub(start_ns);
        let done = self.wait();
        self.buffer = done.buffer;
        Some(Probe {
            self_ns,
            woke: self.lane.pool().stats().wake_ups != wake_ups,
        })
    }

    /// Spins like a busy queue. A worker that is on the same core gets no help from it for a while,
    /// and the probe comes out as expensive as such a hand-off is.
    fn wait(&mut self) -> Done {
        let mut looks = 0_u32;
        loop {
            self.lane.collect(&mut self.done);
            if let Some(done) = self.done.pop() {
                return done;
            }
            looks += 1;
            if looks.is_multiple_of(LOOKS_PER_YIELD) {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }

    /// Whether the pool came to rest within our patience.
    fn let_everybody_sleep(&self) -> bool {
        let end_ns = self.clock.now_ns() + self.lane.pool().spin_ns() + PATIENCE_NS;
        while self.clock.now_ns() < end_ns {
            std::thread::sleep(SETTLE);
            if self.lane.pool().shared().all_asleep() {
                return true;
            }
        }
        false
    }
}
