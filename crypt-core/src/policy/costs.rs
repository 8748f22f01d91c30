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
//! The estimate is for the queue's own thread. A worker first fetches the data from another core's
//! cache, so a longer time there counts with w = 1/4096 only; a shorter one counts in full.
//!
//! What the device takes per byte of a write is followed in the same way, where workers write, and so is the
//! time of a request at the device.
//!
//! What a hand-off costs is not learned here: the wait of a handed-off job is mostly what was queued
//! before it. Workers measure that themselves, in the moments when nothing is.
#![forbid(unsafe_code)]

use super::{Costs, Direction, Outcome, Placement};

const CIPHER_WEIGHT: f32 = 1.0 / 16.0;
/// The weight of a worker that took longer than the estimate.
const ELSEWHERE_WEIGHT: f32 = 1.0 / 4096.0;
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
        let estimate = match job.direction {
            Direction::Encrypt => &mut costs.encrypt_ns_per_byte,
            Direction::Decrypt => &mut costs.decrypt_ns_per_byte,
        };
        learn(
            estimate,
            outcome.cipher_ns,
            job.len_bytes,
            outcome.placement,
        );
        let estimate = &mut costs.write_ns_per_byte;
        learn(
            estimate,
            outcome.device_ns,
            job.len_bytes,
            outcome.placement,
        );
    }

    /// Learns from a write that took the queue's thread `device_ns`, and could have been a worker's.
    pub fn observe_write(&mut self, len_bytes: u32, device_ns: u64) {
        let estimate = &mut self.costs.write_ns_per_byte;
        learn(estimate, device_ns, len_bytes, Placement::Inline);
    }

    /// Learns from a request that was at the device for `ns`.
    #[inline]
    pub fn observe_device(&mut self, ns: u64) {
        follow(&mut self.costs.device_ns, ns as f32, CIPHER_WEIGHT);
    }

    /// The costs as known now.
    #[must_use]
    pub fn costs(&self) -> Costs {
        self.costs
    }
}

fn learn(estimate: &mut f32, ns: u64, len_bytes: u32, placement: Placement) {
    if ns == 0 || len_bytes == 0 {
        return;
    }
    let sample = ns as f32 / len_bytes as f32;
    let is_slower_elsewhere = placement != Placement::Inline && sample > *estimate;
    let weight = if is_slower_elsewhere {
        ELSEWHERE_WEIGHT
    } else {
        CIPHER_WEIGHT
    };
    follow(estimate, sample, weight);
}

/// Moves `estimate` towards `sample`; an unknown estimate takes it over.
fn follow(estimate: &mut f32, sample: f32, weight: f32) {
    if *estimate > 0.0 && estimate.is_finite() {
        let sample = sample.clamp(*estimate / OUTLIER_FACTOR, *estimate * OUTLIER_FACTOR);
        *estimate += weight * (sample - *estimate);
    } else {
        *estimate = sample;
    }
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
            device_ns: 0,
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
        write_ns_per_byte: 0.0,
        device_ns: 0.0,
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
    fn a_worker_that_fetches_the_data_first_hardly_changes_the_estimate() {
        let mut tracker = CostTracker::new(START);
        for _ in 0..100 {
            tracker.observe(&outcome(Placement::Inline, 4096, 0));
            (0..4).for_each(|_| tracker.observe(&outcome(Placement::Offload, 8192, 0)));
        }
        assert!(tracker.costs().encrypt_ns_per_byte < 1.25);
        // Where nothing runs inline, a lasting change arrives all the same.
        (0..20_000).for_each(|_| tracker.observe(&outcome(Placement::Offload, 8192, 0)));
        assert!(tracker.costs().encrypt_ns_per_byte > 1.9);
    }

    #[test]
    fn waits_say_nothing_about_the_hand_off() {
        let mut tracker = CostTracker::new(START);
        tracker.observe(&outcome(Placement::Offload, 4096, 500_000));
        assert_eq!(tracker.costs(), START);
    }

    #[test]
    fn the_device_s_part_of_writes_is_followed_wherever_it_is_seen() {
        let mut tracker = CostTracker::new(START);
        tracker.observe_write(4096, 8192);
        assert_eq!(tracker.costs().write_ns_per_byte, 2.0);
        let by_worker = Outcome {
            device_ns: 4096,
            ..outcome(Placement::Offload, 4096, 0)
        };
        (0..200).for_each(|_| tracker.observe(&by_worker));
        assert!((tracker.costs().write_ns_per_byte - 1.0).abs() < 0.01);
        assert_eq!(tracker.costs().encrypt_ns_per_byte, 1.0);
    }

    #[test]
    fn the_device_s_time_is_followed() {
        let mut tracker = CostTracker::new(START);
        (0..200).for_each(|_| tracker.observe_device(80_000));
        assert!((tracker.costs().device_ns - 80_000.0).abs() < 10.0);
        tracker.observe_device(u64::MAX);
        assert!(tracker.costs().device_ns < 100_000.0);
    }

    #[test]
    fn unknown_costs_are_taken_from_the_first_job() {
        let mut tracker = CostTracker::new(Costs::default());
        tracker.observe(&outcome(Placement::Inline, 4096, 0));
        assert_eq!(tracker.costs().encrypt_ns_per_byte, 1.0);
    }
}
