//! When the jobs of a batch are predicted to end: what the equations make of the placements that were chosen.
//!
//! The queue's thread does its own jobs in order, each hand-off costs it s, and it sees what the workers have
//! done when its own are done. Jobs that are split follow each other and what waits in the pool already.
#![forbid(unsafe_code)]

use super::plan::Team;
use crate::policy::{Costs, Job, Placement};

/// A batch, as far as it has been looked through.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forecast {
    costs: Costs,
    /// The thread's own work so far.
    own_ns: f32,
    /// Work handed off whole so far.
    handed_ns: f32,
    /// Time of the jobs split so far.
    split_ns: f32,
    /// When the thread's own work of the batch ends.
    end_ns: f32,
}

impl Forecast {
    /// A batch of which nothing is handed off.
    pub(super) fn inline(costs: &Costs) -> Self {
        Self {
            costs: *costs,
            own_ns: 0.0,
            handed_ns: 0.0,
            split_ns: 0.0,
            end_ns: 0.0,
        }
    }

    /// A batch that is placed so.
    pub(super) fn of(costs: &Costs, jobs: &[Job], placements: &[Placement]) -> Self {
        let own_ns = |(job, placement): (&Job, &Placement)| match placement {
            Placement::Inline => costs.work_ns(job),
            Placement::Offload | Placement::Split(_) => costs.handoff_self_ns,
        };
        Self {
            end_ns: jobs.iter().zip(placements).map(own_ns).sum(),
            ..Self::inline(costs)
        }
    }

    /// When the next job ends, inline.
    #[inline]
    pub(super) fn next_inline_ns(&mut self, job: &Job) -> f32 {
        // The device comes after the end of the job.
        let ended_ns = self.own_ns + self.costs.cipher_ns(job);
        self.own_ns += self.costs.work_ns(job);
        ended_ns
    }

    /// When the next job ends.
    pub(super) fn next_ns(&mut self, job: &Job, placement: Placement, team: &Team) -> f32 {
        match placement {
            Placement::Inline => return self.next_inline_ns(job),
            Placement::Offload => {
                self.own_ns += self.costs.handoff_self_ns;
                let done_ns = self.own_ns + team.offload_ns(job, self.handed_ns);
                self.handed_ns += self.costs.work_ns(job);
                done_ns
            }
            Placement::Split(_) => {
                self.own_ns += self.costs.handoff_self_ns;
                self.split_ns += team.split_ns(job);
                self.own_ns + team.queue_ns() + self.split_ns
            }
        }
        .max(self.end_ns)
    }
}
