//! Each job where it is expected to end soonest, by measured costs.
//!
//! All times in ns, from [`Load::costs`], which follow what is measured while the queue runs:
//! c is the time of a job on one core, s what handing off and taking back costs this thread,
//! h the time from a hand-off to the start on a worker that is awake, H that on one asleep plus what
//! waking it costs this thread. m workers have a core to run on ([`Load::usable_workers`]), a of them
//! are awake (idle or busy), Q is the cipher time of what waits in the pool. This thread helps with
//! what it handed off when it has nothing else to do (`assist`), so it counts as one more worker.
//!
//! c is all that moves to a worker with the job: the cipher, and for a write on a device that any thread
//! may call the device's part as well ([`WriteRoute::Worker`]), which is followed per byte as the cipher's
//! is. There the worker that encrypted data writes it, while it is in its cache. Where a device takes
//! writes from its own queue only, they come back to this thread and c is the cipher alone.
//!
//! **The cost equation.** A job goes where J is least, and stays inline where none is less:
//!
//! ```text
//! J(p) = L(p) + pi X(p)
//! ```
//!
//! L is the predicted time until the job (or the batch) ends, X the CPU time that the choice takes beyond
//! that of `inline`, and pi its price: how many ns of waiting one ns of CPU time is worth. X(inline) = 0. Data
//! that move cost both cores: X = c / 3 for a job handed off whole, c / 4 for one that is split, of which
//! this thread keeps a part, and H for waking a worker. An objective is two weights, pi and omega, by which the
//! other requests in flight count as users of the same workers:
//!
//! | [`Objective`] | pi | omega | so a hand-off pays if | a split pays if (f = 1) | a wake-up is paid for after |
//! | --- | --- | --- | --- | --- | --- |
//! | `balanced` | 1 | 0 | c > 1.5 s | T + s + h < 0.75 c | H |
//! | `latency` | 1/4 | 0 | c > 1.09 s | T + s + h < 0.94 c | H / 4 |
//! | `throughput` | 1/2 | 1 | c > 1.2 s | T + s + h < 0.88 c | H / 2 |
//! | `efficiency` | 4 | 0 | never | never | never |
//!
//! At the price of `efficiency` no gain in time is worth what moving data costs, so it does what `inline` does.
//!
//! With m = 0 everything runs inline: offloading would only take the core of another queue.
//!
//! **Large jobs are split** over the workers and this thread. With a awake and j woken helpers and n
//! parts the job ends after about
//!
//! ```text
//! T = (c + a' h + j' H + n s) / (a' + j' + 1 / u)
//! u = 1 + omega (requests in flight - 1);  a' = a / u;  j' = j / u
//! n = sqrt(c / s), at least a' + j' + 1 / u and at most 8 times that; the least where other jobs follow
//! j = as many sleepers as still begin before the job ends: c / H - a - 1, at most m - a
//! L(split) = f (T + s + h) (h for the way back)
//! ```
//!
//! n balances the cost of a part (s) against the imbalance at the end (a part's time, c / n). A job that is not the
//! last of its batch, or that others of this queue are at the workers before, has no such end: who is done with
//! its part goes on with the next job, or the one that comes in place of an earlier, so it is split no further than
//! there are hands. It does not matter how much is queued already: parts in the pool are taken by whoever is free
//! first, this thread included. With omega = 1 each request counts on its share of the workers only; where that is no whole
//! helper it is not split but a job like others. Nobody helps with a `HIPRI` job, whose submitter polls, so
//! there the 1 / u in the divisor is missing. f is what splits were seen to take, for each size and direction,
//! over what T + s + h says; it is 1 for a job that is not alone in flight.
//!
//! **Small jobs** run inline as long as this thread keeps up. A batch that takes C in all is a backlog,
//! of which y is handed off. With k jobs of mean c' = C / k this thread ends at O + C - y (1 - s / c'), the
//! a awake workers at h + (Q + y) / a, and
//!
//! ```text
//! J(y) = max(both ends) + pi y / 3
//! ```
//!
//! falls up to where both end at the same time if 1 - s / c' > pi / 3, which is the condition of the table,
//! and rises from there. So
//!
//! ```text
//! O + C - y (1 - s / c') = h + (Q + y) / a      =>
//! y = (O + C - h - Q / a) / (1 - s / c' + 1 / a), at most C
//! ```
//!
//! O is what else the batch costs this thread, copying and system calls: measured while the thread is
//! the bottleneck ([`Load::saturated`]), 0 otherwise. So is s here, which the data that comes back
//! from another core can make far larger than its calibrated value; a job with c <= s stays. Nothing is
//! handed off where y is below half a job, or the job is the only request in flight; so requests at
//! depth 1 stay inline.
//!
//! **With all workers asleep** the same holds with H for h. That is rarely worth it for one batch, but
//! a worker that is awake stays awake while work keeps coming. So what a batch would have gained from
//! one awake worker, y (1 - s / c') or c - L(split), is added up, and given back at a rate of 1/16 of the
//! time that passes. When the sum reaches pi H the batch is placed as if one were awake, which wakes it: as
//! one rents until the rent has paid for buying. If a wake-up did not return its cost before the next
//! one is due, the next one must wait for twice as much (up to 64 pi H), else for half.
//!
//! **Where the device takes long**, a hand-off hardly changes when a request ends, and CPU time is all that it
//! costs. So as long as this thread is not the bottleneck (it waited before at least half of its decisions
//! lately, or before this one), a plan that saves less than 1/16 of D + C is dropped; D is the time of a request at
//! the device as this thread sees it, queueing there included ([`Costs::device_ns`]). Where the cipher is the
//! bottleneck the device's queue is short and D small, so this says nothing about it.
//!
//! **Read-ahead** goes to a worker whenever that saves this thread time, since nobody waits for it: L is the
//! time of this thread, c inline and s offloaded, and what a wake-up costs it where one is needed.
//!
//! **`HIPRI`** is inline unless splitting pays.
//!
//! **Jobs too small for any of this** ([`Policy::keeps`]) are kept without a look at the workers, which would cost a
//! part of what they take themselves: c < 1.5 s, or c < (2 s + h) / 0.75 for a job that can only be split, the
//! only one in flight or `HIPRI` (the figures of `balanced`).
//!
//! **Limits** ([`AdaptiveOptions`]) come last. With `max_workers=N` in a larger pool no more than N parts
//! are handed off and not back, for each queue, so that no more workers are busy with them; a job is split
//! into no more. With `max_cpu=PERCENT` the time that is worked on what a queue hands off is bounded: over
//! any stretch of time by this share of the stretch and 10 ms, times the workers of the pool. What would go
//! beyond stays inline.
//!
//! **What it did and why** is counted ([`Explanation`]), with the time that these equations predict for what
//! was chosen, and the time it took.
#![forbid(unsafe_code)]

mod forecast;
mod limits;
mod options;
mod pace;
mod plan;
mod splits;
#[cfg(test)]
mod tests;
mod wakes;

pub use options::{AdaptiveOptions, Objective};

use self::forecast::Forecast;
use self::limits::Limits;
use self::options::Weights;
use self::pace::Pace;
use self::plan::{Plan, Team, are_too_small};
use self::splits::Splits;
use self::wakes::Wakes;
use super::{
    Costs, Explanation, Glance, Job, Load, OffloadRules, Outcome, Placement, Policy, PolicySpec,
    Reason, WriteRoute,
};

/// The share of a request's time that a hand-off must save, where the device's time counts.
const NOTICEABLE: f32 = 1.0 / 16.0;

/// The policy `adaptive`. See the module documentation for its equations.
#[derive(Clone, Copy, Debug)]
pub struct Adaptive {
    options: AdaptiveOptions,
    weights: Weights,
    limits: Option<Limits>,
    pace: Pace,
    wakes: Wakes,
    splits: Splits,
    explanation: Explanation,
}

/// Who could help with a batch, and what stopped it from being shared further.
struct Verdict {
    team: Team,
    kept: Reason,
    /// Whether all workers were asleep.
    wakes: bool,
}

impl Adaptive {
    /// A policy that has seen nothing yet.
    #[must_use]
    pub fn new(options: AdaptiveOptions) -> Self {
        Self {
            options,
            weights: options.objective().weights(),
            limits: Limits::new(&options),
            pace: Pace::default(),
            wakes: Wakes::new(),
            splits: Splits::new(),
            explanation: Explanation::default(),
        }
    }

    fn place_known(&mut self, jobs: &[Job], load: &Load, placements: &mut [Placement]) {
        self.pace.learn(load);
        let room = match &mut self.limits {
            None => u32::MAX,
            Some(limits) => limits.room(load),
        };
        if room == 0 {
            self.keep(jobs, &load.costs, Reason::Limit);
            return;
        }
        let verdict = self.place_within(room, jobs, load, placements);
        self.settle(&verdict, room, jobs, load, placements);
    }

    fn place_within(
        &mut self,
        room: u32,
        jobs: &[Job],
        load: &Load,
        placements: &mut [Placement],
    ) -> Verdict {
        let mut team = Team::new(load, &self.pace, jobs.len(), &self.weights, room);
        if let Some(job) = alone(jobs, load) {
            team = team.slowed(self.splits.factor(job));
        }
        let mut plan = team.plan(jobs, placements);
        self.weigh(&mut plan, jobs, load, placements);
        let verdict = Verdict {
            team,
            kept: plan.kept,
            wakes: team.is_asleep(),
        };
        if !verdict.wakes {
            self.wakes.gained(plan.gain_ns);
            return verdict;
        }
        if placements
            .iter()
            .any(|placement| *placement != Placement::Inline)
        {
            return verdict;
        }
        let team = team.with_one_awake();
        let mut plan = team.plan(jobs, placements);
        self.weigh(&mut plan, jobs, load, placements);
        let price_ns = self.weights.wake_price_ns(verdict.team.wake_ns());
        if !self.wakes.missed(plan.gain_ns, price_ns, load.now_ns) {
            placements.fill(Placement::Inline);
            if plan.gain_ns > 0.0 {
                plan.kept = Reason::Asleep;
            }
        }
        Verdict {
            team,
            kept: plan.kept,
            ..verdict
        }
    }

    /// Takes back a plan that saves too little of the time of a request to be seen, where this thread is not
    /// the bottleneck.
    fn weigh(&self, plan: &mut Plan, jobs: &[Job], load: &Load, placements: &mut [Placement]) {
        if plan.gain_ns <= 0.0 || self.pace.is_bottleneck(load) {
            return;
        }
        let work_ns: f32 = jobs.iter().map(|job| load.costs.work_ns(job)).sum();
        if plan.gain_ns < NOTICEABLE * (load.costs.device_ns + work_ns) {
            placements.fill(Placement::Inline);
            *plan = Plan {
                gain_ns: 0.0,
                kept: Reason::Device,
            };
        }
    }

    /// Takes back what goes beyond the limits, and counts what is done and why.
    fn settle(
        &mut self,
        verdict: &Verdict,
        mut room: u32,
        jobs: &[Job],
        load: &Load,
        placements: &mut [Placement],
    ) {
        let mut forecast = Forecast::of(&load.costs, jobs, placements);
        for (job, placement) in jobs.iter().zip(placements.iter_mut()) {
            let team = &verdict.team;
            let mut reason = team.reason(job, *placement, verdict.kept, verdict.wakes);
            if let Some(limits) = &mut self.limits
                && !limits.admits(job, *placement, load, &mut room)
            {
                *placement = Placement::Inline;
                reason = Reason::Limit;
            }
            let end_ns = forecast.next_ns(job, *placement, team);
            self.explanation.decided(job.len_bytes, reason, end_ns);
        }
        match (alone(jobs, load), &*placements) {
            (Some(job), &[placement]) => {
                let is_sample = matches!(placement, Placement::Split(_)) && !verdict.wakes;
                let predicted_ns = is_sample.then(|| verdict.team.split_ns(job));
                self.splits
                    .placed(job, placement, predicted_ns, load.now_ns);
            }
            _ => self.splits.joined(),
        }
    }

    /// Counts a batch that stays inline for one reason.
    #[inline]
    fn keep(&mut self, jobs: &[Job], costs: &Costs, reason: Reason) {
        self.splits.joined();
        let mut forecast = Forecast::inline(costs);
        for job in jobs {
            let end_ns = forecast.next_inline_ns(job);
            self.explanation.decided(job.len_bytes, reason, end_ns);
        }
    }
}

impl Default for Adaptive {
    fn default() -> Self {
        Self::new(AdaptiveOptions::default())
    }
}

impl Policy for Adaptive {
    fn name(&self) -> String {
        PolicySpec::Adaptive(self.options).to_string()
    }

    fn keeps(&mut self, jobs: &[Job], glance: &Glance) -> bool {
        let keeps = are_too_small(jobs, glance, &self.weights);
        if keeps {
            self.keep(jobs, &glance.costs, Reason::Small);
            self.pace.skipped();
        }
        keeps
    }

    fn place(&mut self, jobs: &[Job], load: &Load, placements: &mut [Placement]) {
        placements.fill(Placement::Inline);
        if load.workers == 0 || load.usable_workers == 0 {
            self.keep(jobs, &load.costs, Reason::NoWorker);
            return;
        }
        let glance = Glance {
            in_flight: load.in_flight,
            costs: load.costs,
        };
        if are_too_small(jobs, &glance, &self.weights) {
            self.keep(jobs, &load.costs, Reason::Small);
        } else if !are_known(&load.costs) {
            self.keep(jobs, &load.costs, Reason::UnknownCosts);
        } else {
            self.place_known(jobs, load, placements);
        }
        self.pace.decided(jobs, placements, load);
    }

    fn observe(&mut self, outcome: &Outcome) {
        self.explanation.ended(outcome);
        self.splits.ended(outcome);
        // Costs are followed by the pipeline and by the workers, and arrive with the next load.
        if let Some(limits) = &mut self.limits {
            limits.done(outcome);
        }
    }

    fn explanation(&self) -> Option<&Explanation> {
        Some(&self.explanation)
    }

    fn offload_rules(&self) -> OffloadRules {
        OffloadRules {
            assist: true,
            writes: WriteRoute::Worker,
            ..OffloadRules::default()
        }
    }
}

/// The job of the only request in flight.
fn alone<'a>(jobs: &'a [Job], load: &Load) -> Option<&'a Job> {
    match jobs {
        [job] if load.in_flight < 2 => Some(job),
        _ => None,
    }
}

/// Whether every cost has been measured; the equations need all of them.
fn are_known(costs: &Costs) -> bool {
    let per_byte = [costs.encrypt_ns_per_byte, costs.decrypt_ns_per_byte];
    let hand_off = [
        costs.handoff_awake_ns,
        costs.handoff_asleep_ns,
        costs.handoff_self_ns,
    ];
    let positive = per_byte
        .into_iter()
        .chain(hand_off)
        .all(|ns| ns > 0.0 && ns.is_finite());
    // These may be nothing.
    let others = [costs.wake_self_ns, costs.write_ns_per_byte];
    positive && others.into_iter().all(|ns| ns >= 0.0 && ns.is_finite())
}
