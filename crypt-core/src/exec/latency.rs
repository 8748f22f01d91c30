//! How long hand-offs take to reach a worker, as the workers see it.
//!
//! A sample is the time from a hand-off to the start of the work on a worker that had nothing else
//! to do, so nothing queued is in it. Two estimates are kept, for workers that were awake and for
//! those that had to be woken. Whatever else runs on the machine only adds to a sample, so the
//! estimate falls faster than it rises, by 1/8 and 1/32 of the difference, and no sample counts for
//! more than four times the estimate.
//!
//! A policy that believes hand-offs to be dear makes none, and would believe it forever. So the estimate for
//! workers that are awake, unless it is checked, is taken for half as much every 10 ms, until a policy tries one:
//! a sample that is better than the old estimate then replaces it, one that is not brings it back. That for
//! workers asleep needs none of this, since policies weigh it against what its absence costs them.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const FALL_SHIFT: u32 = 3;
const RISE_SHIFT: u32 = 5;
const OUTLIER_FACTOR: u32 = 4;
/// How long an estimate takes to halve without samples.
const STALE_NS: u64 = 10_000_000;

/// What a worker was doing before it took a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Another part; the sample would say how much was queued.
    Busy,
    /// It looked for work.
    Awake,
    /// It slept.
    Asleep,
}

/// The two estimates, in nanoseconds; 0 until there is a sample.
#[derive(Debug, Default)]
pub struct Latency {
    awake_ns: AtomicU32,
    asleep_ns: AtomicU32,
    /// When the first one had its last sample.
    awake_at_ns: AtomicU64,
}

impl Latency {
    /// Takes in a sample at `now_ns`, which does not go back. Workers may do so at once; one of their samples is
    /// lost then.
    pub fn learn(&self, before: Before, sample_ns: u64, now_ns: u64) {
        let sample_ns = u32::try_from(sample_ns).unwrap_or(u32::MAX).max(1);
        let estimate = match before {
            Before::Busy => return,
            Before::Awake => &self.awake_ns,
            Before::Asleep => &self.asleep_ns,
        };
        let old_ns = estimate.load(Ordering::Relaxed);
        let mut learned_ns = follow(old_ns, sample_ns);
        if before == Before::Awake {
            if self.unchecked_ns(now_ns) >= STALE_NS {
                learned_ns = learned_ns.min(sample_ns);
            }
            self.awake_at_ns.store(now_ns, Ordering::Relaxed);
        }
        estimate.store(learned_ns, Ordering::Relaxed);
    }

    /// What a hand-off to a worker that looks for work takes, in ns, as far as that is believed at `now_ns`.
    #[must_use]
    pub fn awake_ns(&self, now_ns: u64) -> u32 {
        let known_ns = self.awake_ns.load(Ordering::Relaxed);
        let unchecked_ns = self.unchecked_ns(now_ns);
        if unchecked_ns < STALE_NS {
            return known_ns;
        }
        let halvings = u32::try_from(unchecked_ns / STALE_NS).unwrap_or(u32::MAX);
        let believed_ns = known_ns.checked_shr(halvings).unwrap_or(0);
        believed_ns.max(known_ns.min(1))
    }

    /// What one to a worker that sleeps takes, in ns.
    #[must_use]
    pub fn asleep_ns(&self) -> u32 {
        self.asleep_ns.load(Ordering::Relaxed)
    }

    fn unchecked_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.awake_at_ns.load(Ordering::Relaxed))
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
        latency.learn(Before::Busy, 1_000_000, 0);
        assert_eq!((latency.awake_ns(0), latency.asleep_ns()), (0, 0));
        latency.learn(Before::Awake, 400, 0);
        latency.learn(Before::Asleep, 30_000, 0);
        assert_eq!((latency.awake_ns(0), latency.asleep_ns()), (400, 30_000));
    }

    #[test]
    fn a_busy_machine_moves_an_estimate_less_than_a_quiet_one() {
        let latency = Latency::default();
        latency.learn(Before::Awake, 1_000, 0);
        latency.learn(Before::Awake, u64::MAX, 0);
        assert_eq!(latency.awake_ns(0), 1_093);
        (0..100).for_each(|_| latency.learn(Before::Awake, 100, 0));
        assert!(latency.awake_ns(0) < 110);
    }

    #[test]
    fn what_nobody_checks_is_believed_less_and_less() {
        let latency = Latency::default();
        latency.learn(Before::Awake, 1_000_000, 5);
        assert_eq!(latency.awake_ns(5 + STALE_NS - 1), 1_000_000);
        assert_eq!(latency.awake_ns(5 + 3 * STALE_NS), 125_000);
        // A bad sample brings the belief back, a good one replaces it.
        let mut now_ns = 5 + 10 * STALE_NS;
        latency.learn(Before::Awake, 2_000_000, now_ns);
        assert!(latency.awake_ns(now_ns) > 1_000_000);
        now_ns += 10 * STALE_NS;
        latency.learn(Before::Awake, 500, now_ns);
        assert_eq!(latency.awake_ns(now_ns), 500);
        assert_eq!(latency.awake_ns(u64::MAX), 1, "never unknown again");
        assert_eq!(latency.asleep_ns(), 0);
    }
}
