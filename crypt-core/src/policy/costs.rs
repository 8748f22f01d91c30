//! Costs that follow what is measured while a queue runs.
//!
//! Cipher time per byte is an exponentially weighted mean per direction: with weight w = 1/16 and a
//! finished job that took t ns for b bytes,
//!
//! ```text
//! c := c + w (clamp(t / b, c/4, 4c) - c)
//! ```
//!
//! The clamp keeps a job whose thread was preempted from counting for hundreds of others; a lasting
//! change still arrives within some tens of jobs.
//!
//! The wait of a handed-off job is the hand-off plus whatever was queued before it, so only the low
//! end of the distribution says something about the hand-off: the estimate falls with weight 1/8 and
//! rises with weight 1/256. A wait counts for the sleeping worker where it is above the geometric
//! mean of the two estimates, for the awake one otherwise.
#![forbid(unsafe_code)]

use super::{Costs, Direction, Outcome, Placement};

const CIPHER_WEIGHT: f32 = 1.0 / 16.0;
const FALL_WEIGHT: f32 = 1.0 / 8.0;
const RISE_WEIGHT: f32 = 1.0 / 256.0;
/// How far one job may be from the estimate and count in full.
const OUTLIER_FACTOR: f32 = 4.0;

/// Keeps [`Costs`] up to date from [`Outcome`]s. Deterministic; no allocation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostTracker {
    costs: Costs,
}

impl CostTracker {
    /// Starts from costs measured at start. A cost of 0 is unknown, and taken from the first job.
    #[must_use]
    pub fn new(costs: Costs) -> Self {
        Self { costs }
    }

    /// Learns from a finished job.
    pub fn observe(&mut self, outcome: &Outcome) {
        let (job, costs) = (&outcome.job, &mut self.costs);
        if outcome.cipher_ns > 0 && job.len_bytes > 0 {
            let sample = outcome.cipher_ns as f32 / job.len_bytes as f32;
            let estimate = match job.direction {
                Direction::Encrypt => &mut costs.encrypt_ns_per_byte,
                Direction::Decrypt => &mut costs.decrypt_ns_per_byte,
            };
            follow(estimate, sample, CIPHER_WEIGHT, CIPHER_WEIGHT);
        }
        if outcome.placement != Placement::Inline && outcome.wait_ns > 0 {
            let wait = outcome.wait_ns as f32;
            let asleep = wait * wait > costs.handoff_awake_ns * costs.handoff_asleep_ns;
            let estimate = if asleep {
                &mut costs.handoff_asleep_ns
            } else {
                &mut costs.handoff_awake_ns
            };
            follow(estimate, wait, FALL_WEIGHT, RISE_WEIGHT);
        }
    }

    /// The costs as known now.
    #[must_use]
    pub fn costs(&self) -> Costs {
        self.costs
    }
}

/// Moves `estimate` towards `sample`; an unknown estimate takes it over.
fn follow(estimate: &mut f32, sample: f32, fall_weight: f32, rise_weight: f32) {
    if *estimate <= 0.0 || !estimate.is_finite() {
        *estimate = sample;
        return;
    }
    let sample = sample.clamp(*estimate / OUTLIER_FACTOR, *estimate * OUTLIER_FACTOR);
    let weight = if sample < *estimate {
        fall_weight
    } else {
        rise_weight
    };
    *estimate += weight * (sample - *estimate);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Job;
    use crate::request::Flags;
    use crate::units::SectorIndex;

    fn outcome(placement: Placement, cipher_ns: u64, wait_ns: u64) -> Outcome {
        Outcome {
            job: Job {
                direction: Direction::Encrypt,
                flags: Flags::empty(),
                sector: SectorIndex::new(0),
                len_bytes: 4096,
                max_parts: 8,
            },
            placement,
            cipher_ns,
            wait_ns,
            total_ns: cipher_ns + wait_ns,
        }
    }

    const START: Costs = Costs {
        encrypt_ns_per_byte: 1.0,
        decrypt_ns_per_byte: 1.0,
        handoff_awake_ns: 100.0,
        handoff_asleep_ns: 30_000.0,
        handoff_self_ns: 80.0,
        wake_self_ns: 3_000.0,
    };

    #[test]
    fn cipher_cost_follows_a_lasting_change_in_its_direction_only() {
        let mut tracker = CostTracker::new(START);
        (0..200).for_each(|_| tracker.observe(&outcome(Placement::Inline, 8192, 0)));
        assert!((tracker.costs().encrypt_ns_per_byte - 2.0).abs() < 0.01);
        assert_eq!(tracker.costs().decrypt_ns_per_byte, 1.0);
        assert_eq!(tracker.costs().handoff_awake_ns, 100.0);
    }

    #[test]
    fn one_preempted_job_moves_the_estimate_by_a_fifth_at_most() {
        let mut tracker = CostTracker::new(START);
        tracker.observe(&outcome(Placement::Inline, 50_000_000, 0));
        assert!(tracker.costs().encrypt_ns_per_byte < 1.2);
    }

    #[test]
    fn waits_are_told_apart_and_queueing_hardly_counts() {
        let mut tracker = CostTracker::new(START);
        (0..20).for_each(|_| tracker.observe(&outcome(Placement::Offload, 4096, 50)));
        (0..20).for_each(|_| tracker.observe(&outcome(Placement::Offload, 4096, 20_000)));
        (0..20).for_each(|_| tracker.observe(&outcome(Placement::Offload, 4096, 500_000)));
        let costs = tracker.costs();
        assert!((50.0..65.0).contains(&costs.handoff_awake_ns), "{costs:?}");
        assert!(
            (20_000.0..32_000.0).contains(&costs.handoff_asleep_ns),
            "{costs:?}"
        );
    }

    #[test]
    fn unknown_costs_are_taken_from_the_first_job() {
        let mut tracker = CostTracker::new(Costs::default());
        tracker.observe(&outcome(Placement::Inline, 4096, 0));
        assert_eq!(tracker.costs().encrypt_ns_per_byte, 1.0);
    }
}
