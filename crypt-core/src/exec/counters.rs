//! What a pool counts about itself. Each worker has its own counters, so that counting costs no
//! cache miss; they are added up when somebody asks.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam::utils::CachePadded;

use super::pool::PoolStats;

/// The counters of one pool.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) any: CachePadded<SharedCounters>,
    workers: Box<[CachePadded<WorkerCounters>]>,
}

/// Counters that any thread may write.
#[derive(Debug, Default)]
pub(crate) struct SharedCounters {
    pub(crate) wake_ups: AtomicU64,
    pub(crate) parts_assisted: AtomicU64,
    pub(crate) same_cpu_missed: AtomicU64,
}

/// Counters of one worker, written by it alone.
#[derive(Debug, Default)]
pub(crate) struct WorkerCounters {
    pub(crate) parts_run: AtomicU64,
    pub(crate) spins: AtomicU64,
    pub(crate) spins_won: AtomicU64,
}

impl Counters {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            any: CachePadded::default(),
            workers: (0..workers).map(|_| CachePadded::default()).collect(),
        }
    }

    pub(crate) fn of(&self, worker: usize) -> &WorkerCounters {
        &self.workers[worker]
    }

    pub(crate) fn stats(&self) -> PoolStats {
        let sum = |counter: fn(&WorkerCounters) -> &AtomicU64| {
            let workers = self.workers.iter();
            workers
                .map(|worker| counter(worker).load(Ordering::Relaxed))
                .sum()
        };
        PoolStats {
            parts_run: sum(|worker| &worker.parts_run),
            parts_assisted: self.any.parts_assisted.load(Ordering::Relaxed),
            wake_ups: self.any.wake_ups.load(Ordering::Relaxed),
            spins: sum(|worker| &worker.spins),
            spins_won: sum(|worker| &worker.spins_won),
            same_cpu_missed: self.any.same_cpu_missed.load(Ordering::Relaxed),
        }
    }
}

/// Adds one to a counter that only the calling thread writes.
pub(crate) fn bump(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
