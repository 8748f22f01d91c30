//! Which workers are idle, which of those sleep, and how to wake one.
//!
//! A worker is busy, awake (idle, looking at the queue) or asleep (parked, its bit set). Whoever
//! clears the bit of a sleeper owes it an unpark, and counts it as awake from then on.
//!
//! No wake-up is lost: a worker sets its bit, fences, and looks for work once more before it parks;
//! a producer publishes work, fences, and looks at the counts. One of the two sees the other.
#![forbid(unsafe_code)]

use std::sync::OnceLock;

use crossbeam::utils::CachePadded;

use super::sync::{AtomicU32, AtomicU64, Ordering, Thread, current, fence, park};

/// Idle workers of one pool. Never allocates after [`IdleWorkers::new`].
#[derive(Debug)]
pub(crate) struct IdleWorkers {
    awake: CachePadded<AtomicU32>,
    /// One bit per worker, set while it sleeps.
    asleep: Box<[CachePadded<AtomicU64>]>,
    threads: Box<[OnceLock<Thread>]>,
}

impl IdleWorkers {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            awake: CachePadded::new(AtomicU32::new(0)),
            asleep: (0..workers.div_ceil(64))
                .map(|_| CachePadded::default())
                .collect(),
            threads: (0..workers).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Makes the calling thread known as `worker`.
    pub(crate) fn register(&self, worker: usize) {
        let _ = self.threads[worker].set(current());
    }

    /// A busy worker has become idle.
    pub(crate) fn enter(&self) {
        self.awake.fetch_add(1, Ordering::Relaxed);
    }

    /// An idle worker has found work. Look whether the queue needs another worker afterwards.
    pub(crate) fn leave(&self) {
        self.awake.fetch_sub(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Sleeps as `worker`, which is idle and awake, until woken or `has_work`. It is awake after.
    /// Whether it slept.
    pub(crate) fn sleep(&self, worker: usize, has_work: impl FnOnce() -> bool) -> bool {
        self.awake.fetch_sub(1, Ordering::Relaxed);
        let (word, bit) = self.bit(worker);
        word.fetch_or(bit, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if has_work() {
            self.rouse(worker);
            return false;
        }
        while word.load(Ordering::Acquire) & bit != 0 {
            park();
        }
        true
    }

    /// Wakes some sleeper; `false` where none is left. The lowest number is asked first, so that
    /// light load keeps using the same worker.
    pub(crate) fn wake_any(&self) -> bool {
        for (n, word) in self.asleep.iter().enumerate() {
            loop {
                let sleepers = word.load(Ordering::Relaxed);
                if sleepers == 0 {
                    break;
                }
                if self.wake(n * 64 + sleepers.trailing_zeros() as usize) {
                    return true;
                }
            }
        }
        false
    }

    /// Wakes `worker` where it sleeps.
    pub(crate) fn wake(&self, worker: usize) -> bool {
        let woken = self.rouse(worker);
        if woken && let Some(thread) = self.threads[worker].get() {
            thread.unpark();
        }
        woken
    }

    pub(crate) fn awake(&self) -> u32 {
        self.awake.load(Ordering::Relaxed)
    }

    pub(crate) fn asleep(&self) -> u32 {
        let ones = |word: &CachePadded<AtomicU64>| word.load(Ordering::Relaxed).count_ones();
        self.asleep.iter().map(ones).sum()
    }

    /// Clears the sleeper's bit and counts it as awake; `false` where somebody else has.
    fn rouse(&self, worker: usize) -> bool {
        let (word, bit) = self.bit(worker);
        let slept = word.fetch_and(!bit, Ordering::AcqRel) & bit != 0;
        if slept {
            self.awake.fetch_add(1, Ordering::Relaxed);
        }
        slept
    }

    fn bit(&self, worker: usize) -> (&AtomicU64, u64) {
        (&self.asleep[worker / 64], 1 << (worker % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_is_woken_once_and_counted_once() {
        let idle = IdleWorkers::new(70);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                idle.register(69);
                idle.enter();
                assert!(idle.sleep(69, || false));
            });
            while idle.asleep() == 0 {
                std::thread::yield_now();
            }
            assert_eq!(idle.awake(), 0);
            assert!(idle.wake_any());
            assert!(!idle.wake_any());
            sleeper.join().unwrap();
        });
        assert_eq!((idle.awake(), idle.asleep()), (1, 0));
    }

    #[test]
    fn work_found_at_the_last_look_prevents_the_sleep() {
        let idle = IdleWorkers::new(1);
        idle.enter();
        assert!(!idle.sleep(0, || true));
        assert_eq!((idle.awake(), idle.asleep()), (1, 0));
    }
}
