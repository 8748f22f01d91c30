//! Whether it pays to wake a worker that would then stay awake.
//!
//! An account of what batches would have gained from an awake worker, in the way that one rents
//! until the rent has paid for buying. See the equations of the policy.
#![forbid(unsafe_code)]

/// How fast missed gains are given back, per ns that passes.
const LEAK: f32 = 1.0 / 16.0;
/// Most times the cost of a wake-up that must have been missed before one is paid.
const MAX_RELUCTANCE: f32 = 64.0;

/// The account.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wakes {
    /// What awake workers would have gained since the last wake-up, less what has leaked.
    missed_ns: f32,
    /// What awake workers have gained since the last wake-up.
    gained_ns: f32,
    /// How many times its cost a wake-up must be worth.
    reluctance: f32,
    last_ns: u64,
}

impl Wakes {
    pub(super) const fn new() -> Self {
        Self {
            missed_ns: 0.0,
            // No wake-up has failed to pay yet.
            gained_ns: f32::INFINITY,
            reluctance: 1.0,
            last_ns: 0,
        }
    }

    /// Enters what a batch gains from a worker that is awake.
    pub(super) fn gained(&mut self, gain_ns: f32) {
        self.gained_ns += gain_ns;
    }

    /// Enters what a batch would gain, at `now_ns`, were a worker awake. Whether to wake one now, at
    /// a price of `wake_ns`.
    pub(super) fn missed(&mut self, gain_ns: f32, wake_ns: f32, now_ns: u64) -> bool {
        let passed_ns = now_ns.saturating_sub(self.last_ns) as f32;
        self.last_ns = now_ns;
        self.missed_ns = (self.missed_ns - passed_ns * LEAK).max(0.0) + gain_ns;
        let pays = gain_ns > 0.0 && self.missed_ns >= self.reluctance * wake_ns;
        if pays {
            self.pay(wake_ns);
        }
        pays
    }

    fn pay(&mut self, wake_ns: f32) {
        let factor = if self.gained_ns < wake_ns { 2.0 } else { 0.5 };
        self.reluctance = (self.reluctance * factor).clamp(1.0, MAX_RELUCTANCE);
        self.missed_ns = 0.0;
        self.gained_ns = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAKE_NS: f32 = 33_000.0;

    /// How many of `batches`, one every `period_ns`, wake a worker that never stays awake.
    fn wake_ups(wakes: &mut Wakes, batches: u64, period_ns: u64, gain_ns: f32) -> usize {
        let now_ns = |n| wakes.last_ns + n * period_ns;
        let times: Vec<_> = (1..=batches).map(now_ns).collect();
        times
            .into_iter()
            .filter(|&now_ns| wakes.missed(gain_ns, WAKE_NS, now_ns))
            .count()
    }

    #[test]
    fn a_lasting_backlog_pays_for_a_wake_up_and_a_rare_one_does_not() {
        assert!(wake_ups(&mut Wakes::new(), 20, 30_000, 12_000.0) >= 1);
        assert_eq!(wake_ups(&mut Wakes::new(), 1000, 1_000_000, 12_000.0), 0);
    }

    #[test]
    fn wake_ups_that_do_not_pay_become_rare_and_ones_that_do_become_usual_again() {
        let mut wakes = Wakes::new();
        let early = wake_ups(&mut wakes, 100, 30_000, 12_000.0);
        wake_ups(&mut wakes, 2000, 30_000, 12_000.0);
        let late = wake_ups(&mut wakes, 100, 30_000, 12_000.0);
        assert!(early >= 3 && late <= 1, "{early} {late}");
        for _ in 0..2000 {
            wakes.gained(WAKE_NS);
            wake_ups(&mut wakes, 1, 30_000, 12_000.0);
        }
        let mut usual = 0;
        for _ in 0..100 {
            wakes.gained(WAKE_NS);
            usual += wake_ups(&mut wakes, 1, 30_000, 12_000.0);
        }
        assert!(usual >= 10, "{usual}");
    }
}
