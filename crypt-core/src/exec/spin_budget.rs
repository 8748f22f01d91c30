//! How long an idle worker looks for work before it sleeps: the whole budget, or not at all where that has
//! been in vain for a while.
//!
//! Looking pays where work comes before a wake-up would be over, and only costs where it always comes
//! later. A worker that looked in vain now and then goes on, since a wake-up costs more than that; after
//! several gaps in a row that were too long it stops, and the first gap that was not brings the looking back.
//! KVM polls for a halted CPU by a rule of this kind (`halt_poll_ns`, `virt/kvm/kvm_main.c`). Whether it looked or
//! slept, a worker knows when its work was handed off, so it learns the gaps in its sleep too.
#![forbid(unsafe_code)]

/// Gaps in a row that are too long before a worker stops looking.
const PATIENCE: u8 = 8;

/// The budget of one worker. A pure machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinBudget {
    most_ns: u64,
    /// Gaps in a row that were longer.
    too_long: u8,
}

impl SpinBudget {
    /// A budget of `most_ns` that has learned nothing yet.
    #[must_use]
    pub const fn new(most_ns: u64) -> Self {
        Self {
            most_ns,
            too_long: 0,
        }
    }

    /// How long to look now, in nanoseconds; 0 for not at all.
    #[must_use]
    pub const fn ns(&self) -> u64 {
        match self.too_long < PATIENCE {
            true => self.most_ns,
            false => 0,
        }
    }

    /// Takes in after what time without work some was handed off.
    pub const fn learn(&mut self, gap_ns: u64) {
        self.too_long = match gap_ns > self.most_ns {
            true => self.too_long.saturating_add(1),
            false => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(gaps_ns: &[u64]) -> u64 {
        let mut budget = SpinBudget::new(50_000);
        gaps_ns.iter().for_each(|&gap_ns| budget.learn(gap_ns));
        budget.ns()
    }

    #[test]
    fn gaps_that_are_always_too_long_end_the_looking() {
        assert_eq!(after(&[]), 50_000);
        assert_eq!(after(&[200_000; 7]), 50_000);
        assert_eq!(after(&[200_000; 8]), 0);
        assert_eq!(after(&[200_000; 1000]), 0);
        assert_eq!(after(&[50_000; 1000]), 50_000);
    }

    #[test]
    fn one_short_gap_brings_it_back() {
        assert_eq!(after(&[&[200_000; 1000][..], &[49_000]].concat()), 50_000);
        let mixed: Vec<u64> = (0..1000).map(|n| 60_000 * u64::from(n % 4 > 0)).collect();
        assert_eq!(after(&mixed), 50_000);
    }
}
