//! What a pool's threads and its lanes share: the bounded queue of parts, the counters, and the
//! decisions whom to wake and who may spin.
//!
//! Nothing here blocks or allocates. `queued_bytes` goes up before parts become visible and down
//! when somebody takes one, so it is never too low.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use crossbeam::queue::ArrayQueue;
use crossbeam::utils::CachePadded;

use super::counters::{Counters, bump};
use super::idle::IdleWorkers;
use super::latency::{Before, Latency};
use super::pool::{PoolLoad, PoolStats, WorkerConfig};
use super::presence::{Presence, Seat};
use super::spinner::Spinner;
use super::task::{Part, Parts};
use super::work::Summons;
use crate::clock::Clock;

/// Until a calibration knows better: a wake-up costs about what 64 KiB of AES-XTS cost.
const DEFAULT_WAKE_BYTES: u64 = 64 * 1024;

/// How often a worker looks for its next part before it counts as idle: under a microsecond.
const LOOKS_BEFORE_IDLE: u32 = 12;

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct PoolShared {
    queue: ArrayQueue<Part>,
    /// One queue per worker for work that must stay on its CPU; empty where nobody is pinned.
    own_queues: Box<[ArrayQueue<Part>]>,
    /// The worker pinned to each CPU.
    worker_on_cpu: Box<[Option<usize>]>,
    idle: IdleWorkers,
    counters: Counters,
    traffic: CachePadded<Traffic>,
    /// Threads other than workers that need a core: queues, write threads.
    pub(crate) presence: Presence,
    wake_bytes: AtomicU64,
    stopped: AtomicBool,
    workers: u32,
    cores: u32,
    spin_ns: u64,
    clock: Clock,
}

/// What changes with each hand-off, and is looked at together.
#[derive(Debug, Default)]
struct Traffic {
    queued_bytes: AtomicU64,
    latency: Latency,
}

impl PoolShared {
    /// `cpus` has the CPU that each worker is pinned to.
    pub(crate) fn new(config: &WorkerConfig, cpus: &[Option<usize>], cores: usize) -> Self {
        let capacity = config.queue_parts.get();
        let pinned = cpus.iter().any(Option::is_some);
        let own_queues = if pinned { cpus.len() } else { 0 };
        let known_cpus = cpus.iter().flatten().max().map_or(0, |last| last + 1);
        let mut worker_on_cpu = vec![None; known_cpus];
        for (worker, cpu) in cpus.iter().enumerate() {
            if let Some(cpu) = *cpu {
                worker_on_cpu[cpu].get_or_insert(worker);
            }
        }
        Self {
            queue: ArrayQueue::new(capacity),
            own_queues: (0..own_queues).map(|_| ArrayQueue::new(capacity)).collect(),
            worker_on_cpu: worker_on_cpu.into_boxed_slice(),
            idle: IdleWorkers::new(cpus.len()),
            counters: Counters::new(cpus.len()),
            traffic: CachePadded::default(),
            presence: Presence::new(),
            wake_bytes: AtomicU64::new(DEFAULT_WAKE_BYTES),
            stopped: AtomicBool::new(false),
            workers: cpus.len() as u32,
            cores: u32::try_from(cores).unwrap_or(u32::MAX),
            spin_ns: u64::from(config.spin_ns),
            clock: Clock::monotonic(),
        }
    }

    /// How many more parts the queue takes now.
    pub(crate) fn room(&self) -> usize {
        self.queue.capacity().saturating_sub(self.queue.len())
    }

    /// Whether parts wait that any thread may run.
    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Takes in the parts of one task and wakes workers for them. Should others have filled the queue
    /// since [`PoolShared::room`], the rest is run here.
    pub(crate) fn submit(&self, parts: Parts, summons: Summons) {
        let own_worker = match summons {
            Summons::OwnCpu => self.worker_on_this_cpu(),
            Summons::Each | Summons::Worth => None,
        };
        let queue = own_worker.map_or(&self.queue, |worker| &self.own_queues[worker]);
        let bytes = parts.len_bytes();
        let queued_bytes = bytes
            + self
                .traffic
                .queued_bytes
                .fetch_add(bytes, Ordering::Relaxed);
        let mut count = 0;
        for part in parts {
            count += 1;
            if let Err(part) = queue.push(part) {
                self.taken(&part);
                part.run();
            }
        }
        fence(Ordering::SeqCst);
        match own_worker {
            Some(worker) => self.count_wake_up(self.idle.wake(worker)),
            None if summons == Summons::Each => self.wake(count),
            None => self.wake_for(queued_bytes),
        }
        // Workers that are ending may have looked at the queue for the last time.
        if self.is_stopped() {
            self.run_everything();
        }
    }

    /// Runs one queued part on the calling thread, which is not a worker.
    pub(crate) fn assist(&self) -> bool {
        if self.queue.is_empty() {
            return false;
        }
        let Some(part) = self.queue.pop() else {
            return false;
        };
        self.taken(&part);
        self.counters
            .any
            .parts_assisted
            .fetch_add(1, Ordering::Relaxed);
        part.run();
        true
    }

    /// Wakes as many sleepers as what is queued is worth. The caller has fenced after what it
    /// published.
    pub(crate) fn wake_for_queued(&self) {
        self.wake_for(self.queued_bytes());
    }

    /// One worker is woken where none is awake, more where the queued bytes pay for it, but no more
    /// than there are cores without a runnable thread. Where no core is free, a busy worker or the
    /// next queue that goes to sleep takes care of what is queued.
    fn wake_for(&self, queued_bytes: u64) {
        // In this order, because each look at a counter that others write costs a cache miss.
        let asleep = self.idle.asleep();
        if asleep == 0 {
            return;
        }
        let awake = self.idle.awake();
        let worth = queued_bytes / self.wake_bytes.load(Ordering::Relaxed);
        if u64::from(awake) >= worth.max(1) {
            return;
        }
        let busy = self.workers.saturating_sub(awake + asleep);
        let outside = self.presence.count(self.clock.now_ns());
        let free_cores = u64::from(self.cores.saturating_sub(busy + outside));
        let limit = free_cores.max(u64::from(busy == 0));
        let wanted = worth.max(1).min(self.queue.len() as u64).min(limit);
        self.wake(wanted.saturating_sub(u64::from(awake)) as usize);
    }

    /// Wakes `count` sleepers, or all there are.
    fn wake(&self, count: usize) {
        for _ in 0..count {
            let woken = self.idle.wake_any();
            self.count_wake_up(woken);
            if !woken {
                return;
            }
        }
    }

    /// A thread other than a worker is about to sleep. Its core may be used by one more worker.
    pub(crate) fn outsider_sleeps(&self, seat: &mut Seat) {
        self.presence.asleep(seat);
        fence(Ordering::SeqCst);
        if self.has_queued() {
            self.presence.count_now(self.clock.now_ns());
            self.wake_for_queued();
        }
    }

    /// Whether the calling thread, itself runnable, may spin without taking a core from another.
    pub(crate) fn may_spin(&self, now_ns: u64) -> bool {
        let workers = self.workers.saturating_sub(self.idle.asleep());
        workers + self.presence.count(now_ns) <= self.cores
    }

    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        while self.idle.wake_any() {}
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    pub(crate) fn load(&self, now_ns: u64) -> PoolLoad {
        if self.is_stopped() {
            return PoolLoad::default();
        }
        let (awake, asleep) = (self.idle.awake(), self.idle.asleep());
        let busy = self.workers.saturating_sub(awake + asleep);
        let cores = self.cores.saturating_sub(self.presence.count(now_ns));
        let idle_workers = (awake + asleep).min(cores.saturating_sub(busy));
        PoolLoad {
            workers: self.workers,
            usable_workers: self.workers.min(cores),
            idle_workers,
            awake_workers: awake.min(idle_workers),
            queued_bytes: self.queued_bytes(),
            saturated: false,
            handoff_awake_ns: self.traffic.latency.awake_ns(),
            handoff_asleep_ns: self.traffic.latency.asleep_ns(),
        }
    }

    pub(crate) fn stats(&self) -> PoolStats {
        self.counters.stats()
    }

    /// Whether every worker is parked.
    pub(crate) fn all_asleep(&self) -> bool {
        self.idle.asleep() == self.workers
    }

    pub(crate) fn set_wake_bytes(&self, bytes: u64) {
        self.wake_bytes.store(bytes.max(1), Ordering::Relaxed);
    }

    pub(crate) fn spin_ns(&self) -> u64 {
        self.spin_ns
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    pub(crate) fn workers(&self) -> u32 {
        self.workers
    }

    fn worker_on_this_cpu(&self) -> Option<usize> {
        let worker = self.worker_on_cpu.get(rustix::thread::sched_getcpu());
        let worker = worker.copied().flatten();
        let missed = u64::from(worker.is_none());
        self.counters
            .any
            .same_cpu_missed
            .fetch_add(missed, Ordering::Relaxed);
        worker
    }

    /// Runs whatever is queued, for anybody, after the workers have ended.
    fn run_everything(&self) {
        for queue in self.own_queues.iter().chain([&self.queue]) {
            while let Some(part) = queue.pop() {
                self.taken(&part);
                part.run();
            }
        }
    }

    fn taken(&self, part: &Part) {
        let bytes = u64::from(part.len_bytes());
        self.traffic
            .queued_bytes
            .fetch_sub(bytes, Ordering::Relaxed);
    }

    fn count_wake_up(&self, woken: bool) {
        let woken = u64::from(woken);
        self.counters
            .any
            .wake_ups
            .fetch_add(woken, Ordering::Relaxed);
    }

    fn queued_bytes(&self) -> u64 {
        self.traffic.queued_bytes.load(Ordering::Relaxed)
    }
}

/// The workers' side.
impl PoolShared {
    /// The life of one worker: runs parts until the pool is stopped and nothing is queued.
    pub(crate) fn work(&self, worker: usize) {
        let counters = self.counters.of(worker);
        while let Some((part, before)) = self.next_part(worker) {
            // Counted before its result can be seen.
            bump(&counters.parts_run);
            let wait_ns = part.run();
            self.traffic.latency.learn(before, wait_ns);
        }
    }

    pub(crate) fn register(&self, worker: usize) {
        self.idle.register(worker);
    }

    /// The next part for `worker`, waiting for it; `None` at the end.
    fn next_part(&self, worker: usize) -> Option<(Part, Before)> {
        if let Some(part) = self.take(worker) {
            return Some((part, Before::Busy));
        }
        // A queue that gets a result usually hands off again at once, so a worker looks a little
        // longer before it says that it is idle, which costs both sides a cache miss.
        for _ in 0..LOOKS_BEFORE_IDLE {
            std::hint::spin_loop();
            if self.has_work(worker)
                && let Some(part) = self.take(worker)
            {
                return Some((part, Before::Awake));
            }
        }
        self.idle.enter();
        let found = self.wait_for_part(worker);
        self.idle.leave();
        if found.is_some() {
            self.wake_for_queued();
        }
        found
    }

    fn wait_for_part(&self, worker: usize) -> Option<(Part, Before)> {
        let mut before = Before::Awake;
        loop {
            // Read before the queue: what was queued before the stop is still run.
            let stopped = self.is_stopped();
            let part = self.take(worker);
            if part.is_some() || stopped {
                return part.map(|part| (part, before));
            }
            if let Some(part) = self.spin(worker) {
                return Some((part, Before::Awake));
            }
            let has_work = || self.has_work(worker) || self.is_stopped();
            before = if self.idle.sleep(worker, has_work) {
                Before::Asleep
            } else {
                Before::Awake
            };
        }
    }

    /// Looks for a part for a while, as long as the core would be idle otherwise.
    fn spin(&self, worker: usize) -> Option<Part> {
        if self.spin_ns == 0 || !self.may_spin(self.clock.now_ns()) {
            return None;
        }
        let counters = self.counters.of(worker);
        bump(&counters.spins);
        let mut spinner = Spinner::new(self.clock, self.spin_ns);
        while spinner.goes_on(|now_ns| self.may_spin(now_ns)) && !self.is_stopped() {
            if self.has_work(worker)
                && let Some(part) = self.take(worker)
            {
                bump(&counters.spins_won);
                return Some(part);
            }
        }
        None
    }

    fn has_work(&self, worker: usize) -> bool {
        let own = self.own_queues.get(worker);
        own.is_some_and(|queue| !queue.is_empty()) || !self.queue.is_empty()
    }

    fn take(&self, worker: usize) -> Option<Part> {
        let own = self.own_queues.get(worker).and_then(ArrayQueue::pop);
        let part = own.or_else(|| self.queue.pop())?;
        self.taken(&part);
        Some(part)
    }
}
