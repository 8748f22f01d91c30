//! How long hand-offs take to reach a worker, as the workers see it.
//!
//! A sample is the time from a hand-off to the start of the work on a worker that had nothing else
//! to do, so nothing queued is in it. Two estimates are kept, for workers that were awake and for
//! those that had to be woken. Whatever else runs on the machine only adds to a sample, so the
//! estimate falls faster than it rises, by 1/8 and 1/32 of the difference, and no sample counts for
//! more than four times the estimate.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU32, Ordering};

const FALL_SHIFT: u32 = 3;
const RISE_SHIFT: u32 = 5;
const OUTLIER_FACTOR: u32 = 4;

/// What a worker was doing before it took a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// Another part; the sample would say how much was queued.
    Busy,
    /// It looked for work.
    Awake,
    /// It slept.
    Asleep,
}

/// The two estimates, in nanoseconds; 0 until there is a sample.
#[derive(Debug, Default)]
pub(crate) struct Latency {
    awake_ns: AtomicU32,
    asleep_ns: AtomicU32,
}

impl Latency {
    /// Takes in a sample. Workers may do so at once; one of their samples is lost then.
    pub(crate) fn learn(&self, before: Before, sample_ns: u64) {
        let estimate = match before {
            Before::Busy => return,
            Before::Awake => &self.awake_ns,
            Before::Asleep => &self.asleep_ns,
        };
        let sample_ns = u32::try_from(sample_ns).unwrap_or(u32::MAX).max(1);
        let old_ns = estimate.load(Ordering::Relaxed);
        estimate.store(follow(old_ns, sample_ns), Ordering::Relaxed);
    }

    pub(crate) fn awake_ns(&self) -> u32 {
        self.awake_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn asleep_ns(&self) -> u32 {
        self.asleep_ns.load(Ordering::Relaxed)
    }
}

fn follow(estimate: u32, sample: u32) -> u32 {
    if estimate == 0 {
        return sample;
    }
    if sample < estimate {
        return estimate - ((estimate - sample) >> FALL_SHIFT);
    }
    let sample = sample.min(estimate.saturating_mul(OUTLIER_FACTOR));
    estimate + ((sample - estimate) >> RISE_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_kept_apart_and_work_after_work_is_no_sample() {
        let latency = Latency::default();
        latency.learn(Before::Busy, 1_000_000);
        assert_eq!((latency.awake_ns(), latency.asleep_ns()), (0, 0));
        latency.learn(Before::Awake, 400);
        latency.learn(Before::Asleep, 30_000);
        assert_eq!((latency.awake_ns(), latency.asleep_ns()), (400, 30_000));
    }

    #[test]
    fn a_busy_machine_moves_an_estimate_less_than_a_quiet_one() {
        let latency = Latency::default();
        latency.learn(Before::Awake, 1_000);
        latency.learn(Before::Awake, u64::MAX);
        assert_eq!(latency.awake_ns(), 1_093);
        (0..100).for_each(|_| latency.learn(Before::Awake, 100));
        assert!(latency.awake_ns() < 110);
    }
}
