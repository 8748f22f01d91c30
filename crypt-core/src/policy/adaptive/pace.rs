//! What else the queue's thread has to do, per job, when it is the bottleneck.
//!
//! While the thread never waits, the time between two decisions is the cipher work that was placed
//! inline plus everything else it does for the requests: copying, system calls, the caller's own
//! work. The estimate follows with weight 1/8, a sample counts for at most four times the estimate.
//! A thread that waits has time to spare, and then the rest of its work does not matter.
#![forbid(unsafe_code)]

use crate::policy::{Costs, Job, Load, Placement};

const WEIGHT: f32 = 1.0 / 8.0;
const OUTLIER_FACTOR: f32 = 4.0;

/// The estimate, and the last decision, from which the next sample counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    other_ns_per_job: f32,
    last_ns: u64,
    inline_ns: f32,
}

impl Pace {
    /// The time that a batch of `jobs` costs the thread apart from the cipher; 0 where the thread is
    /// not the bottleneck.
    pub(super) fn other_ns(&mut self, jobs: usize, load: &Load) -> f32 {
        if !load.saturated || self.last_ns == 0 || jobs == 0 {
            return 0.0;
        }
        let passed_ns = load.now_ns.saturating_sub(self.last_ns) as f32;
        let sample = (passed_ns - self.inline_ns).max(0.0) / jobs as f32;
        if self.other_ns_per_job > 0.0 {
            let sample = sample.min(OUTLIER_FACTOR * self.other_ns_per_job);
            self.other_ns_per_job += WEIGHT * (sample - self.other_ns_per_job);
        } else {
            self.other_ns_per_job = sample;
        }
        self.other_ns_per_job * jobs as f32
    }

    /// Remembers the decision.
    pub(super) fn decided(&mut self, jobs: &[Job], placements: &[Placement], load: &Load) {
        self.last_ns = load.now_ns;
        self.inline_ns = inline_ns(jobs, placements, &load.costs);
    }
}

fn inline_ns(jobs: &[Job], placements: &[Placement], costs: &Costs) -> f32 {
    let placed = jobs.iter().zip(placements);
    let inline = placed.filter(|(_, placement)| **placement == Placement::Inline);
    inline.map(|(job, _)| costs.cipher_ns(job)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Direction;
    use crate::request::Flags;
    use crate::units::SectorIndex;

    const JOB: Job = Job {
        direction: Direction::Encrypt,
        flags: Flags::empty(),
        sector: SectorIndex::new(0),
        len_bytes: 4096,
        max_parts: 1,
    };

    fn load(now_ns: u64, saturated: bool) -> Load {
        Load {
            now_ns,
            saturated,
            costs: Costs {
                encrypt_ns_per_byte: 0.25,
                ..Costs::default()
            },
            ..Load::default()
        }
    }

    #[test]
    fn what_is_not_cipher_work_is_other_work() {
        let mut pace = Pace::default();
        assert_eq!(pace.other_ns(2, &load(1_000, true)), 0.0, "no decision yet");
        pace.decided(
            &[JOB, JOB],
            &[Placement::Inline, Placement::Offload],
            &load(1_000, true),
        );
        // 1024 ns of the 5024 were the inline job.
        assert_eq!(pace.other_ns(2, &load(6_024, true)), 4_000.0);
    }

    #[test]
    fn a_thread_that_waits_has_no_other_work() {
        let mut pace = Pace::default();
        pace.decided(&[JOB], &[Placement::Inline], &load(1_000, true));
        assert_eq!(pace.other_ns(1, &load(1_000_000, false)), 0.0);
        assert_eq!(pace.other_ns_per_job, 0.0, "nor is it learned from");
    }
}
