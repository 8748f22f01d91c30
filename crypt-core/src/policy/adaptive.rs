//! Each job where it is expected to end soonest, by measured costs.
//!
//! All times in ns, from [`Load::costs`], which follow what is measured while the queue runs:
//! c is the cipher time of a job on one core, s what handing off and taking back costs this thread,
//! h the time from a hand-off to the start on a worker that is awake, H that on one asleep plus what
//! waking it costs this thread. m workers have a core to run on ([`Load::usable_workers`]), a of them
//! are awake (idle or busy), Q is the cipher time of what waits in the pool. This thread helps with
//! what it handed off when it has nothing else to do (`assist`), so it counts as one more worker.
//!
//! With m = 0 everything runs inline: offloading would only take the core of another queue.
//!
//! **Large jobs are split** over the workers and this thread. With a awake and j woken helpers and n
//! parts the job ends after about
//!
//! ```text
//! T = (c + a h + j H + n s) / (a + j + 1)
//! n = sqrt(c / s), at least a + j + 1 and at most 8 per helper
//! j = as many sleepers as still begin before the job ends: c / H - a - 1, at most m - a
//! ```
//!
//! n balances the cost of a part (s) against the imbalance at the end (a part's time, c / n). The job
//! is split where T + s + h < 0.75 c (h for the way back). It does not matter how much is queued already: parts in the pool are
//! taken by whoever is free first, this thread included. Nobody helps with a `HIPRI` job, whose
//! submitter polls, so there the 1 in the divisor is missing.
//!
//! **Small jobs** run inline as long as this thread keeps up. A batch that takes C in all is a
//! backlog; its first jobs are handed off such that this thread and the a awake workers end at the
//! same time. With k jobs of mean c' = C / k, y is the cipher time handed off:
//!
//! ```text
//! C - y (1 - s / c') = h + (Q + y) / a      =>
//! y = (C - h - Q / a) / (1 - s / c' + 1 / a)
//! ```
//!
//! Nothing is handed off where y <= 0 or s >= c'. A single job is a batch whose y is below half a
//! job, so requests at depth 1 stay inline.
//!
//! **With all workers asleep** the same holds for one worker, with H for h. That is rarely worth it
//! for one batch, but a worker that is awake stays awake while work keeps coming. So what a batch
//! would have gained from an awake worker, y (1 - s / c'), is added up, and given back at a rate of
//! 1/16 of the time that passes. When the sum reaches H one job is handed off to wake a worker, as
//! one rents until the rent has paid for buying. If a wake-up did not return its cost before the
//! next one is due, the next one must wait for twice as much (up to 64 H), else for half.
//!
//! **Read-ahead** goes to a worker whenever that saves this thread time (c > s, or c > s + the cost
//! of a wake-up where one is needed): nobody waits for it.
//!
//! **`HIPRI`** is inline unless splitting pays.
#![forbid(unsafe_code)]

use super::{Costs, Job, Load, OffloadRules, Outcome, Placement, Policy};
use crate::request::Flags;

/// A split must be expected to end in less than this share of the job's own time.
const WORTH_SPLITTING: f32 = 0.75;
/// Most parts per thread that works on a job.
const PARTS_PER_HELPER: f32 = 8.0;
/// How fast the gains missed by sleeping workers are given back, per ns that passes.
const MISSED_LEAK: f32 = 1.0 / 16.0;
/// Most times the cost of a wake-up that must have been missed before one is paid.
const MAX_RELUCTANCE: f32 = 64.0;

/// The policy `adaptive`. See the module documentation for its equations.
#[derive(Clone, Copy, Debug)]
pub struct Adaptive {
    wakes: Wakes,
}

impl Adaptive {
    /// A policy that has seen nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            wakes: Wakes::new(),
        }
    }
}

impl Adaptive {
    fn place_known(&mut self, jobs: &[Job], load: &Load, placements: &mut [Placement]) {
        let team = Team::new(load);
        let mut backlog = Backlog::default();
        for (job, placement) in jobs.iter().zip(placements.iter_mut()) {
            *placement = team.place_alone(job);
            if is_movable(job, *placement) {
                backlog.add(load.costs.cipher_ns(job));
            }
        }
        let mut hand_off_ns = self.wakes.decide(&team, &backlog, load.now_ns);
        if hand_off_ns <= 0.0 {
            return;
        }
        for (job, placement) in jobs.iter().zip(placements) {
            let cipher_ns = load.costs.cipher_ns(job);
            if hand_off_ns >= cipher_ns / 2.0 && is_movable(job, *placement) {
                *placement = Placement::Offload;
                hand_off_ns -= cipher_ns;
            }
        }
    }
}

impl Default for Adaptive {
    fn default() -> Self {
        Self::new()
    }
}

impl Policy for Adaptive {
    fn name(&self) -> String {
        "adaptive".to_owned()
    }

    fn place(&mut self, jobs: &[Job], load: &Load, placements: &mut [Placement]) {
        placements.fill(Placement::Inline);
        if load.workers == 0 || load.usable_workers == 0 || are_not_worth_a_look(jobs, &load.costs)
        {
            return;
        }
        if are_known(&load.costs) {
            self.place_known(jobs, load, placements);
        }
    }

    fn observe(&mut self, _outcome: &Outcome) {
        // Costs are followed by the pipeline and by the workers, and arrive with the next load.
    }

    fn offload_rules(&self) -> OffloadRules {
        OffloadRules {
            assist: true,
            ..OffloadRules::default()
        }
    }
}

/// Whether each job takes this thread less time than its hand-off would: the usual case of small
/// requests and a fast cipher, told apart without evaluating any equation.
fn are_not_worth_a_look(jobs: &[Job], costs: &Costs) -> bool {
    let longest = jobs.iter().map(|job| job.len_bytes).max().unwrap_or(0);
    let ns_per_byte = costs.encrypt_ns_per_byte.max(costs.decrypt_ns_per_byte);
    longest as f32 * ns_per_byte < costs.handoff_self_ns
}

/// Whether a job left inline may be handed off as part of a backlog.
fn is_movable(job: &Job, placement: Placement) -> bool {
    placement == Placement::Inline && !job.flags.contains(Flags::HIPRI)
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
    positive && costs.wake_self_ns >= 0.0 && costs.wake_self_ns.is_finite()
}

/// Who can help, and at what cost.
#[derive(Clone, Copy, Debug)]
struct Team {
    costs: Costs,
    /// a: workers with a core that are not asleep.
    awake: f32,
    /// Usable workers that sleep.
    asleep: f32,
    /// H
    wake_ns: f32,
    /// Q
    queued_ns: f32,
}

impl Team {
    fn new(load: &Load) -> Self {
        let costs = load.costs;
        let busy = load.usable_workers.saturating_sub(load.idle_workers);
        let awake = (busy + load.awake_workers).min(load.usable_workers);
        let ns_per_byte = costs.encrypt_ns_per_byte.max(costs.decrypt_ns_per_byte);
        Self {
            costs,
            awake: awake as f32,
            asleep: (load.usable_workers - awake) as f32,
            wake_ns: costs.handoff_asleep_ns + costs.wake_self_ns,
            queued_ns: load.queued_bytes as f32 * ns_per_byte,
        }
    }

    /// Where a job belongs whatever else is in its batch.
    fn place_alone(&self, job: &Job) -> Placement {
        let cipher_ns = self.costs.cipher_ns(job);
        let self_ns = self.costs.handoff_self_ns;
        if job.flags.contains(Flags::READAHEAD) {
            let wake_ns = if self.awake > 0.0 {
                0.0
            } else {
                self.costs.wake_self_ns
            };
            if cipher_ns > self_ns + wake_ns {
                return Placement::Offload;
            }
            return Placement::Inline;
        }
        let own_hands = if job.flags.contains(Flags::HIPRI) {
            0.0
        } else {
            1.0
        };
        let may_wake = cipher_ns / self.wake_ns - self.awake - 1.0;
        let woken = may_wake.floor().clamp(0.0, self.asleep);
        let helpers = self.awake + woken + own_hands;
        if cipher_ns < 2.0 * self_ns || helpers < 2.0 {
            return Placement::Inline;
        }
        let parts = (cipher_ns / self_ns).sqrt();
        let parts = parts
            .clamp(helpers, PARTS_PER_HELPER * helpers)
            .min(f32::from(job.max_parts));
        let starts_ns = self.awake * self.costs.handoff_awake_ns + woken * self.wake_ns;
        let split_ns = (cipher_ns + starts_ns + parts * self_ns) / helpers.min(parts);
        if parts >= 2.0
            && split_ns + self_ns + self.costs.handoff_awake_ns < WORTH_SPLITTING * cipher_ns
        {
            split(parts)
        } else {
            Placement::Inline
        }
    }
}

fn split(parts: f32) -> Placement {
    // The cast saturates, and is at least 2 here.
    std::num::NonZeroU8::new(parts as u8).map_or(Placement::Offload, Placement::Split)
}

/// The small jobs of one batch.
#[derive(Clone, Copy, Debug, Default)]
struct Backlog {
    /// C
    cipher_ns: f32,
    /// k
    jobs: f32,
}

impl Backlog {
    fn add(&mut self, cipher_ns: f32) {
        self.cipher_ns += cipher_ns;
        self.jobs += 1.0;
    }

    /// y, the time to hand off to `workers` that start after `start_ns`, and the time that saves.
    fn share(&self, team: &Team, workers: f32, start_ns: f32) -> (f32, f32) {
        // 1 - s / c', the part of a job's time that handing it off saves this thread.
        let saving = 1.0 - team.costs.handoff_self_ns * self.jobs / self.cipher_ns;
        let ahead_ns = self.cipher_ns - start_ns - team.queued_ns / workers;
        if self.jobs < 2.0 || !(saving > 0.0 && ahead_ns > 0.0) {
            return (0.0, 0.0);
        }
        let hand_off_ns = ahead_ns / (saving + 1.0 / workers);
        (hand_off_ns, hand_off_ns * saving)
    }
}

/// Whether waking a worker for small jobs pays.
#[derive(Clone, Copy, Debug)]
struct Wakes {
    /// What awake workers would have gained since the last wake-up, less what has leaked.
    missed_ns: f32,
    /// What awake workers have gained since the last wake-up.
    gained_ns: f32,
    /// How many times its cost a wake-up must be worth.
    reluctance: f32,
    last_ns: u64,
}

impl Wakes {
    const fn new() -> Self {
        Self {
            missed_ns: 0.0,
            // No wake-up has failed to pay yet.
            gained_ns: f32::INFINITY,
            reluctance: 1.0,
            last_ns: 0,
        }
    }

    /// The cipher time of `backlog` to hand off.
    fn decide(&mut self, team: &Team, backlog: &Backlog, now_ns: u64) -> f32 {
        let passed_ns = now_ns.saturating_sub(self.last_ns) as f32;
        self.last_ns = now_ns;
        self.missed_ns = (self.missed_ns - passed_ns * MISSED_LEAK).max(0.0);
        if backlog.jobs < 2.0 {
            return 0.0;
        }
        let awake_ns = team.costs.handoff_awake_ns;
        if team.awake > 0.0 {
            let (hand_off_ns, gain_ns) = backlog.share(team, team.awake, awake_ns);
            self.gained_ns += gain_ns;
            return hand_off_ns;
        }
        let (hand_off_ns, _) = backlog.share(team, 1.0, team.wake_ns);
        if hand_off_ns > 0.0 {
            return hand_off_ns;
        }
        let (_, gain_ns) = backlog.share(team, 1.0, awake_ns);
        self.missed_ns += gain_ns;
        if self.missed_ns < self.reluctance * team.wake_ns {
            return 0.0;
        }
        self.pay(team.wake_ns);
        backlog.cipher_ns / backlog.jobs
    }

    /// Accounts for one wake-up that is being paid.
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
    use crate::policy::Direction;
    use crate::units::SectorIndex;

    const COSTS: Costs = Costs {
        encrypt_ns_per_byte: 0.2,
        decrypt_ns_per_byte: 0.2,
        handoff_awake_ns: 200.0,
        handoff_asleep_ns: 30_000.0,
        handoff_self_ns: 150.0,
        wake_self_ns: 3_000.0,
    };

    fn job(len_bytes: u32, flags: Flags) -> Job {
        Job {
            direction: Direction::Decrypt,
            flags,
            sector: SectorIndex::new(0),
            len_bytes,
            max_parts: (len_bytes / 4096).clamp(1, 255) as u8,
        }
    }

    /// One queue and its workers, each with a core.
    fn load(usable: u32, awake: u32) -> Load {
        Load {
            depth: 32,
            in_flight: 32,
            workers: usable,
            usable_workers: usable,
            idle_workers: usable,
            awake_workers: awake,
            costs: COSTS,
            ..Load::default()
        }
    }

    fn place(policy: &mut Adaptive, jobs: &[Job], load: &Load) -> Vec<Placement> {
        let mut placements = vec![Placement::Inline; jobs.len()];
        policy.place(jobs, load, &mut placements);
        placements
    }

    fn offloaded(placements: &[Placement]) -> usize {
        placements
            .iter()
            .filter(|&&p| p == Placement::Offload)
            .count()
    }

    fn parts(placement: Placement) -> u8 {
        match placement {
            Placement::Split(parts) => parts.get(),
            Placement::Inline | Placement::Offload => 0,
        }
    }

    #[test]
    fn one_small_request_stays_inline_whoever_is_awake() {
        for awake in 0..=4 {
            for len in [512, 4096] {
                let placed = place(
                    &mut Adaptive::new(),
                    &[job(len, Flags::empty())],
                    &load(4, awake),
                );
                assert_eq!(placed, [Placement::Inline], "{len} {awake}");
            }
        }
    }

    #[test]
    fn a_large_request_is_split_over_awake_and_sleeping_workers() {
        let large = [job(1 << 20, Flags::empty())];
        let asleep = parts(place(&mut Adaptive::new(), &large, &load(1, 0))[0]);
        assert!((4..=16).contains(&asleep), "{asleep}");
        let awake = parts(place(&mut Adaptive::new(), &large, &load(8, 8))[0]);
        assert!(awake >= 9, "{awake}");
        assert!(
            parts(
                place(
                    &mut Adaptive::new(),
                    &[job(1 << 20, Flags::HIPRI)],
                    &load(8, 8)
                )[0]
            ) >= 8
        );
    }

    #[test]
    fn a_request_that_ends_before_a_sleeper_begins_is_not_split() {
        let placed = place(
            &mut Adaptive::new(),
            &[job(128 << 10, Flags::empty())],
            &load(4, 0),
        );
        assert_eq!(placed, [Placement::Inline]);
        let placed = place(
            &mut Adaptive::new(),
            &[job(128 << 10, Flags::empty())],
            &load(4, 2),
        );
        assert!(parts(placed[0]) >= 3, "{placed:?}");
    }

    #[test]
    fn without_a_core_for_workers_everything_is_inline() {
        let mut load = load(4, 0);
        (load.usable_workers, load.idle_workers) = (0, 0);
        let jobs = [job(1 << 20, Flags::empty()), job(4096, Flags::READAHEAD)];
        assert_eq!(
            place(&mut Adaptive::new(), &jobs, &load),
            [Placement::Inline; 2]
        );
    }

    #[test]
    fn an_awake_worker_takes_its_share_of_a_backlog() {
        let jobs = [job(4096, Flags::empty()); 32];
        let handed_off = offloaded(&place(&mut Adaptive::new(), &jobs, &load(1, 1)));
        assert!((13..=18).contains(&handed_off), "{handed_off}");
        let mut behind = load(1, 1);
        behind.queued_bytes = 32 * 4096;
        assert_eq!(offloaded(&place(&mut Adaptive::new(), &jobs, &behind)), 0);
        let four = offloaded(&place(&mut Adaptive::new(), &jobs, &load(4, 4)));
        assert!((28..=31).contains(&four), "{four}");
    }

    #[test]
    fn jobs_cheaper_than_a_hand_off_are_never_handed_off() {
        let jobs = [job(512, Flags::empty()); 32];
        assert_eq!(
            offloaded(&place(&mut Adaptive::new(), &jobs, &load(4, 4))),
            0
        );
    }

    #[test]
    fn a_lasting_backlog_wakes_a_worker_and_a_single_one_does_not() {
        let jobs = [job(4096, Flags::empty()); 32];
        let mut policy = Adaptive::new();
        let mut asleep = load(1, 0);
        assert_eq!(offloaded(&place(&mut policy, &jobs, &asleep)), 0);
        let mut woken_after = 0;
        while offloaded(&place(&mut policy, &jobs, &asleep)) == 0 {
            asleep.now_ns += 30_000;
            woken_after += 1;
            assert!(woken_after < 20);
        }
        // The same backlog once in a while is not worth it.
        let mut policy = Adaptive::new();
        for _ in 0..1000 {
            asleep.now_ns += 1_000_000;
            assert_eq!(offloaded(&place(&mut policy, &jobs, &asleep)), 0);
        }
    }

    #[test]
    fn wake_ups_that_never_pay_become_rare() {
        let jobs = [job(4096, Flags::empty()); 32];
        let mut policy = Adaptive::new();
        let mut never_awake = load(1, 0);
        let mut wakes = |batches: usize| {
            (0..batches)
                .filter(|_| {
                    never_awake.now_ns += 30_000;
                    offloaded(&place(&mut policy, &jobs, &never_awake)) > 0
                })
                .count()
        };
        let (early, _, late) = (wakes(100), wakes(2000), wakes(1000));
        assert!(
            early >= 3 && late <= 2 * early,
            "{early} in 100, {late} in 1000"
        );
    }

    #[test]
    fn read_ahead_leaves_the_queue_thread_where_that_saves_it_time() {
        let ahead =
            |len, load: &Load| place(&mut Adaptive::new(), &[job(len, Flags::READAHEAD)], load)[0];
        assert_eq!(ahead(4096, &load(2, 1)), Placement::Offload);
        assert_eq!(ahead(4096, &load(2, 0)), Placement::Inline);
        assert_eq!(ahead(128 << 10, &load(2, 0)), Placement::Offload);
        assert_eq!(ahead(512, &load(2, 2)), Placement::Inline);
    }

    #[test]
    fn costs_that_are_unknown_keep_everything_inline() {
        let never = f32::INFINITY;
        let unmeasured = Costs {
            encrypt_ns_per_byte: 0.2,
            decrypt_ns_per_byte: 0.2,
            handoff_awake_ns: never,
            handoff_asleep_ns: never,
            handoff_self_ns: never,
            wake_self_ns: never,
        };
        for costs in [Costs::default(), unmeasured] {
            let load = Load {
                costs,
                ..load(4, 2)
            };
            let jobs = [job(1 << 20, Flags::empty()); 4];
            assert_eq!(
                place(&mut Adaptive::new(), &jobs, &load),
                [Placement::Inline; 4]
            );
        }
    }
}
