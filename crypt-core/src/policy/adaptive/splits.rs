//! How much longer split jobs take than the equation says: f, by direction and size.
//!
//! What one equation leaves out (caches that fill, a core that is shared with something else) differs by
//! machine and size, so it is measured: a job that was split over workers that were awake, and that was alone in
//! flight, took f times what T + s + h predicted for it. With others in flight a job's time says how many
//! there were, and is no sample.
//!
//! f follows by 1/8 of the difference, a sample counts up to twice f, and f is never below 1. Where f keeps jobs
//! inline there are no samples, so it returns to 1 with time, by a factor of e in 50 ms: a split is tried again
//! soon enough to follow a change, and too rarely for the slowest hundredth.
#![forbid(unsafe_code)]

use crate::policy::explain::{CLASSES, class_of};
use crate::policy::{Job, Outcome, Placement};

const WEIGHT: f32 = 1.0 / 8.0;
const OUTLIER_FACTOR: f32 = 2.0;
const FORGET_NS: f32 = 50e6;

/// The factors, and the sample that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Splits {
    /// f, by direction and size class.
    factors: [[f32; CLASSES]; 2],
    /// T + s + h of the job that is alone in flight and split; 0 where none is.
    predicted_ns: f32,
    /// When a job that was alone was last placed.
    last_ns: u64,
}

impl Splits {
    pub(super) const fn new() -> Self {
        Self {
            factors: [[1.0; CLASSES]; 2],
            predicted_ns: 0.0,
            last_ns: 0,
        }
    }

    /// f for a job that is alone in flight.
    pub(super) fn factor(&self, job: &Job) -> f32 {
        self.factors[job.direction as usize][class_of(job.len_bytes)]
    }

    /// A job that is alone in flight was placed at `now_ns`; `predicted_ns` is f (T + s + h) where it was split over
    /// workers that are awake.
    pub(super) fn placed(
        &mut self,
        job: &Job,
        placement: Placement,
        predicted_ns: Option<f32>,
        now_ns: u64,
    ) {
        let passed_ns = now_ns.saturating_sub(self.last_ns) as f32;
        self.last_ns = now_ns;
        let factor = &mut self.factors[job.direction as usize][class_of(job.len_bytes)];
        if placement == Placement::Inline {
            *factor += (passed_ns / FORGET_NS).min(1.0) * (1.0 - *factor);
        }
        self.predicted_ns = predicted_ns.map_or(0.0, |ns| ns / *factor);
    }

    /// Others are in flight, so that the time of the job that was alone says nothing.
    pub(super) fn joined(&mut self) {
        self.predicted_ns = 0.0;
    }

    /// Takes in a job that is over.
    pub(super) fn ended(&mut self, outcome: &Outcome) {
        if self.predicted_ns <= 0.0 || !matches!(outcome.placement, Placement::Split(_)) {
            return;
        }
        let job = &outcome.job;
        let factor = &mut self.factors[job.direction as usize][class_of(job.len_bytes)];
        let sample = outcome.total_ns as f32 / self.predicted_ns;
        let sample = sample.min(OUTLIER_FACTOR * *factor);
        *factor = (*factor + WEIGHT * (sample - *factor)).max(1.0);
        self.predicted_ns = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Direction;
    use crate::request::Flags;
    use crate::units::SectorIndex;
    use std::num::NonZeroU8;

    const JOB: Job = Job {
        direction: Direction::Encrypt,
        flags: Flags::empty(),
        sector: SectorIndex::new(0),
        len_bytes: 65_536,
        max_parts: 16,
    };
    const SPLIT: Placement = Placement::Split(NonZeroU8::MAX);

    fn end(splits: &mut Splits, total_ns: u64) {
        splits.ended(&Outcome {
            job: JOB,
            placement: SPLIT,
            cipher_ns: 0,
            device_ns: 0,
            wait_ns: 0,
            total_ns,
        });
    }

    fn run(splits: &mut Splits, jobs: u32, total_ns: u64) {
        for _ in 0..jobs {
            let predicted_ns = 8_000.0 * splits.factor(&JOB);
            splits.placed(&JOB, SPLIT, Some(predicted_ns), 0);
            end(splits, total_ns);
        }
    }

    #[test]
    fn what_splits_take_is_followed_for_their_size_and_direction_only() {
        let mut splits = Splits::new();
        run(&mut splits, 100, 12_000);
        assert!((splits.factor(&JOB) - 1.5).abs() < 0.01);
        let (read, small) = (Direction::Decrypt, 4096);
        for other in [
            Job {
                direction: read,
                ..JOB
            },
            Job {
                len_bytes: small,
                ..JOB
            },
        ] {
            assert_eq!(splits.factor(&other), 1.0);
        }
        run(&mut splits, 100, 4_000);
        assert_eq!(splits.factor(&JOB), 1.0);
    }

    #[test]
    fn one_preempted_worker_does_not_end_splitting() {
        let mut splits = Splits::new();
        run(&mut splits, 1, 50_000_000);
        assert!(splits.factor(&JOB) < 1.2);
    }

    #[test]
    fn a_job_that_others_join_is_no_sample() {
        let mut splits = Splits::new();
        splits.placed(&JOB, SPLIT, Some(8_000.0), 0);
        splits.joined();
        end(&mut splits, 1_000_000);
        assert_eq!(splits.factor(&JOB), 1.0);
    }

    #[test]
    fn a_factor_is_forgotten_within_a_tenth_of_a_second_without_splits() {
        let mut splits = Splits::new();
        run(&mut splits, 100, 12_000);
        let mut stay = |from_ms: u64, to_ms: u64| {
            for now_us in (from_ms * 1000..to_ms * 1000).step_by(10) {
                splits.placed(&JOB, Placement::Inline, None, now_us * 1000);
            }
            splits.factor(&JOB)
        };
        assert!(stay(0, 5) > 1.4);
        assert!(stay(5, 100) < 1.1);
    }
}
