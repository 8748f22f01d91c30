//! What a pool's threads and its lanes share: the bounded queue of parts, the counters, and the
//! decisions whom to wake and who may spin.
//!
//! Nothing here blocks or allocates. `queued_bytes` goes up before parts become visible and down
//! when somebody takes one, so it is never too low.
#![forbid(unsafe_code)]

mod duty;

use crossbeam::utils::CachePadded;

use super::counters::Counters;
use super::idle::IdleWorkers;
use super::latency::Latency;
use super::pool::{PoolLoad, PoolStats, WorkerConfig};
use super::presence::{Presence, Seat};
use super::sync::{ArrayQueue, AtomicBool, AtomicU64, Ordering, fence};
use super::task::{Part, Parts};
use super::work::Summons;
use crate::clock::Clock;

/// Until a calibration knows better: a wake-up costs about what 64 KiB of AES-XTS cost.
const DEFAULT_WAKE_BYTES: u64 = 64 * 1024;

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
            handoff_awake_ns: self.traffic.latency.awake_ns(now_ns),
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
