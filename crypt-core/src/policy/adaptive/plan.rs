//! The equations of the policy: who can help, when a job is split, and how a backlog is shared.
//!
//! Pure functions of jobs and load; what is remembered between batches is not here.
#![forbid(unsafe_code)]

use std::num::NonZeroU8;

use super::options::Weights;
use super::pace::Pace;
use crate::policy::{Costs, Glance, Job, Load, Placement, Reason};
use crate::request::Flags;

/// Most parts per thread that works on a job.
const PARTS_PER_HELPER: f32 = 8.0;

/// Who can help, and at what cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Team {
    costs: Costs,
    /// a: workers with a core that are not asleep.
    awake: f32,
    /// Usable workers that sleep.
    asleep: f32,
    /// H
    wake_ns: f32,
    /// Q
    queued_ns: f32,
    /// O
    other_ns: f32,
    /// s, of a whole job.
    handoff_ns: f32,
    /// How many times its hand-off a job must cost to be handed off at all.
    worth_handing_off: f32,
    /// A split must be expected to end in less than this share of the job's own time.
    worth_splitting: f32,
    /// 1 / u
    part_of_team: f32,
    /// Whether work of this queue is at the workers that ends before that of a new batch.
    follows: bool,
    /// Most parts that may be handed off.
    most_parts: f32,
    /// f
    split_factor: f32,
    /// Whether the costs of sharing nothing are being looked at.
    probing: bool,
    /// Whether nothing but the batch is in flight, and it is one job.
    alone: bool,
}

impl Team {
    /// `room` is the number of parts that may be handed off, and so of workers that can help.
    pub(super) fn new(load: &Load, pace: &Pace, jobs: usize, weights: &Weights, room: u32) -> Self {
        let costs = load.costs;
        let busy = load.usable_workers.saturating_sub(load.idle_workers);
        let usable = load.usable_workers.min(room);
        let awake = (busy + load.awake_workers).min(usable);
        let ns_per_byte = costs.work_ns_per_byte();
        Self {
            costs,
            awake: awake as f32,
            asleep: (usable - awake) as f32,
            wake_ns: costs.handoff_asleep_ns + costs.wake_self_ns,
            queued_ns: load.queued_bytes as f32 * ns_per_byte,
            other_ns: pace.other_ns(jobs, load),
            handoff_ns: pace.handoff_ns(load),
            worth_handing_off: weights.worth_handing_off(),
            worth_splitting: weights.worth_splitting(),
            part_of_team: weights.part_of_team(load.in_flight),
            follows: load.at_workers > 0,
            most_parts: room as f32,
            split_factor: 1.0,
            probing: pace.is_probing(load),
            alone: load.in_flight < 2,
        }
    }

    /// The same team, were one of the sleepers awake.
    pub(super) fn with_one_awake(mut self) -> Self {
        self.awake += 1.0;
        self.asleep -= 1.0;
        self
    }

    /// The same team, where a split takes `factor` times what the equation says.
    pub(super) fn slowed(mut self, factor: f32) -> Self {
        self.split_factor = factor;
        self
    }

    pub(super) fn is_asleep(&self) -> bool {
        self.awake == 0.0
    }

    pub(super) fn wake_ns(&self) -> f32 {
        self.wake_ns
    }

    /// Places a batch.
    pub(super) fn plan(&self, jobs: &[Job], placements: &mut [Placement]) -> Plan {
        let mut backlog = Backlog::default();
        let (mut gain_ns, mut left) = (0.0, jobs.len());
        for (job, placement) in jobs.iter().zip(placements.iter_mut()) {
            let work_ns = self.costs.work_ns(job);
            left -= 1;
            let gained_ns;
            (*placement, gained_ns) = self.place_alone(job, work_ns, left == 0);
            gain_ns += gained_ns;
            if self.is_movable(job, *placement) {
                backlog.add(work_ns);
            }
        }
        let (mut hand_off_ns, gained_ns) = match self.share(&backlog) {
            Ok(share) => share,
            Err(kept) => return Plan { gain_ns, kept },
        };
        let mut kept = Reason::Tie;
        for (job, placement) in jobs.iter().zip(placements) {
            let work_ns = self.costs.work_ns(job);
            if hand_off_ns >= work_ns / 2.0 && self.is_movable(job, *placement) {
                *placement = Placement::Offload;
                hand_off_ns -= work_ns;
                kept = Reason::OwnShare;
            }
        }
        Plan {
            gain_ns: gain_ns + gained_ns,
            kept,
        }
    }

    /// Where a job belongs whatever else is in its batch, and what that gains.
    fn place_alone(&self, job: &Job, work_ns: f32, is_last: bool) -> (Placement, f32) {
        let self_ns = self.costs.handoff_self_ns;
        if work_ns < self.worth_handing_off * self_ns {
            return (Placement::Inline, 0.0);
        }
        if job.flags.contains(Flags::READAHEAD) {
            let wake_ns = if self.is_asleep() {
                self.costs.wake_self_ns
            } else {
                0.0
            };
            let gain_ns = work_ns - self_ns - wake_ns;
            return if gain_ns > 0.0 {
                (Placement::Offload, gain_ns)
            } else {
                (Placement::Inline, 0.0)
            };
        }
        match self.split(job, work_ns, is_last) {
            Some((parts, split_ns)) if split_ns < self.worth_splitting * work_ns => {
                (split(parts), work_ns - split_ns)
            }
            _ => (Placement::Inline, 0.0),
        }
    }

    /// n and L(split); `None` where there is nobody to split it with.
    fn split(&self, job: &Job, work_ns: f32, is_last: bool) -> Option<(f32, f32)> {
        let self_ns = self.costs.handoff_self_ns;
        let own_hands = if job.flags.contains(Flags::HIPRI) {
            0.0
        } else {
            1.0
        };
        let may_wake = work_ns / self.wake_ns - self.awake - 1.0;
        let woken = may_wake.floor().clamp(0.0, self.asleep) * self.part_of_team;
        let awake = self.awake * self.part_of_team;
        let helpers = awake + woken + own_hands * self.part_of_team;
        if helpers < 2.0 {
            return None;
        }
        let parts = if is_last && !self.follows {
            (work_ns / self_ns).sqrt()
        } else {
            // Whoever is done first goes on with the next job.
            helpers
        };
        let parts = parts.clamp(helpers, PARTS_PER_HELPER * helpers);
        let parts = parts.min(f32::from(job.max_parts)).min(self.most_parts);
        let starts_ns = awake * self.costs.handoff_awake_ns + woken * self.wake_ns;
        let shared_ns = (work_ns + starts_ns + parts * self_ns) / helpers.min(parts);
        let split_ns = self.split_factor * (shared_ns + self_ns + self.costs.handoff_awake_ns);
        (parts >= 2.0).then_some((parts, split_ns))
    }

    /// L(split), for a job that was split.
    pub(super) fn split_ns(&self, job: &Job) -> f32 {
        let work_ns = self.costs.work_ns(job);
        self.split(job, work_ns, true)
            .map_or(work_ns, |(_, split_ns)| split_ns)
    }

    /// Until what waits in the pool is begun, by the workers that are awake and this thread.
    pub(super) fn queue_ns(&self) -> f32 {
        self.queued_ns / (self.awake + 1.0)
    }

    /// Until a worker that is handed work after `ahead_ns` of other work has done it.
    pub(super) fn offload_ns(&self, job: &Job, ahead_ns: f32) -> f32 {
        let (workers, start_ns) = self.first_helpers();
        let work_ns = self.costs.work_ns(job);
        let together_ns = (self.queued_ns + ahead_ns + work_ns) / workers;
        start_ns + work_ns.max(together_ns)
    }

    /// Why a job of a batch is where it is. `kept` is why the batch was shared no further, `wakes` whether all
    /// workers were asleep.
    pub(super) fn reason(
        &self,
        job: &Job,
        placement: Placement,
        kept: Reason,
        wakes: bool,
    ) -> Reason {
        match placement {
            Placement::Split(_) if wakes => Reason::WakingWorkers,
            Placement::Split(_) => Reason::AwakeWorkers,
            Placement::Offload if job.flags.contains(Flags::READAHEAD) => Reason::ReadAhead,
            Placement::Offload if wakes => Reason::Waking,
            Placement::Offload if self.other_ns > 0.0 => Reason::Bottleneck,
            Placement::Offload => Reason::Backlog,
            Placement::Inline if !self.is_worth_it(job) => Reason::Small,
            Placement::Inline if job.flags.contains(Flags::HIPRI) => Reason::Hipri,
            Placement::Inline if !self.is_movable(job, placement) => Reason::Dear,
            Placement::Inline => kept,
        }
    }

    /// Whether a job left inline may be handed off as part of a backlog.
    fn is_movable(&self, job: &Job, placement: Placement) -> bool {
        placement == Placement::Inline
            && !job.flags.contains(Flags::HIPRI)
            && self.is_worth_it(job)
            && self.costs.work_ns(job) > self.handoff_ns
    }

    fn is_worth_it(&self, job: &Job) -> bool {
        self.costs.work_ns(job) >= self.worth_handing_off * self.costs.handoff_self_ns
    }

    /// Those who take what is handed off, and when they start.
    fn first_helpers(&self) -> (f32, f32) {
        if self.is_asleep() {
            (1.0, self.wake_ns)
        } else {
            (self.awake, self.costs.handoff_awake_ns)
        }
    }

    /// y, the time of `backlog` to hand off, and what that saves this thread; or why there is none.
    fn share(&self, backlog: &Backlog) -> Result<(f32, f32), Reason> {
        if self.alone {
            return Err(Reason::Alone);
        }
        if self.probing {
            return Err(Reason::Exploring);
        }
        if backlog.jobs < 1.0 || (backlog.jobs < 2.0 && self.other_ns == 0.0) {
            return Err(Reason::Single);
        }
        let (workers, start_ns) = self.first_helpers();
        // 1 - s / c', the part of a job's time that handing it off saves this thread.
        let saving = 1.0 - self.handoff_ns * backlog.jobs / backlog.work_ns;
        let own_ns = self.other_ns + backlog.work_ns;
        let ahead_ns = own_ns - start_ns - self.queued_ns / workers;
        if ahead_ns.is_nan() || ahead_ns <= 0.0 {
            return Err(Reason::Behind);
        }
        let hand_off_ns = (ahead_ns / (saving + 1.0 / workers)).min(backlog.work_ns);
        Ok((hand_off_ns, hand_off_ns * saving))
    }
}

/// What became of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// The time that is gained over everything inline.
    pub(super) gain_ns: f32,
    /// Why what could move stays.
    pub(super) kept: Reason,
}

/// Whether no job is worth its hand-off: the usual case of small requests and a fast cipher, told
/// apart without evaluating any equation.
pub(super) fn are_too_small(jobs: &[Job], glance: &Glance, weights: &Weights) -> bool {
    let (costs, alone) = (&glance.costs, glance.in_flight < 2);
    let (mut longest, mut only_splits) = (0, true);
    for job in jobs {
        longest = longest.max(job.len_bytes);
        let is_polled = job.flags.contains(Flags::HIPRI);
        only_splits &= (alone || is_polled) && !job.flags.contains(Flags::READAHEAD);
    }
    let worth_ns = if only_splits {
        // No split ends before T = s, that of one part per helper.
        (2.0 * costs.handoff_self_ns + costs.handoff_awake_ns) / weights.worth_splitting()
    } else {
        weights.worth_handing_off() * costs.handoff_self_ns
    };
    longest as f32 * costs.work_ns_per_byte() < worth_ns
}

/// The small jobs of one batch.
#[derive(Clone, Copy, Debug, Default)]
struct Backlog {
    /// C
    work_ns: f32,
    /// k
    jobs: f32,
}

impl Backlog {
    fn add(&mut self, work_ns: f32) {
        self.work_ns += work_ns;
        self.jobs += 1.0;
    }
}

fn split(parts: f32) -> Placement {
    // The cast saturates, and is at least 2 here.
    NonZeroU8::new(parts as u8).map_or(Placement::Offload, Placement::Split)
}
