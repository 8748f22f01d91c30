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
//! With m = 0 everything runs inline: offloading would only take the core of another queue. So does a
//! job with c < 1.5 s: what it saves this thread is little, and its data must cross to another core.
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
//! is split where T + s + h < 0.75 c (h for the way back). It does not matter how much is queued
//! already: parts in the pool are taken by whoever is free first, this thread included. Nobody helps
//! with a `HIPRI` job, whose submitter polls, so there the 1 in the divisor is missing.
//!
//! **Small jobs** run inline as long as this thread keeps up. A batch that takes C in all is a
//! backlog; its first jobs are handed off such that this thread and the a awake workers end at the
//! same time. With k jobs of mean c' = C / k, y is the cipher time handed off:
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
//! one awake worker, y (1 - s / c') or c - T, is added up, and given back at a rate of 1/16 of the time
//! that passes. When the sum reaches H the batch is placed as if one were awake, which wakes it: as
//! one rents until the rent has paid for buying. If a wake-up did not return its cost before the next
//! one is due, the next one must wait for twice as much (up to 64 H), else for half.
//!
//! **Read-ahead** goes to a worker whenever that saves this thread time (c >= 1.5 s, or c > s + the
//! cost of a wake-up where one is needed): nobody waits for it.
//!
//! **`HIPRI`** is inline unless splitting pays.
#![forbid(unsafe_code)]

mod pace;
mod plan;
mod wakes;

use self::pace::Pace;
use self::plan::{Team, are_too_small};
use self::wakes::Wakes;
use super::{Costs, Job, Load, OffloadRules, Outcome, Placement, Policy, WriteRoute};

/// The policy `adaptive`. See the module documentation for its equations.
#[derive(Clone, Copy, Debug)]
pub struct Adaptive {
    pace: Pace,
    wakes: Wakes,
}

impl Adaptive {
    /// A policy that has seen nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            pace: Pace::default(),
            wakes: Wakes::new(),
        }
    }

    fn place_known(&mut self, jobs: &[Job], load: &Load, placements: &mut [Placement]) {
        self.pace.learn(load);
        let team = Team::new(load, &self.pace, jobs.len());
        let gain_ns = team.plan(jobs, placements);
        if !team.is_asleep() {
            self.wakes.gained(gain_ns);
            return;
        }
        if placements
            .iter()
            .any(|placement| *placement != Placement::Inline)
        {
            return;
        }
        let gain_ns = team.with_one_awake().plan(jobs, placements);
        if !self.wakes.missed(gain_ns, team.wake_ns(), load.now_ns) {
            placements.fill(Placement::Inline);
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
        if load.workers == 0 || load.usable_workers == 0 {
            return;
        }
        if !are_too_small(jobs, load) && are_known(&load.costs) {
            self.place_known(jobs, load, placements);
        }
        self.pace.decided(jobs, placements, load);
    }

    fn observe(&mut self, _outcome: &Outcome) {
        // Costs are followed by the pipeline and by the workers, and arrive with the next load.
    }

    fn offload_rules(&self) -> OffloadRules {
        OffloadRules {
            assist: true,
            writes: WriteRoute::Worker,
            ..OffloadRules::default()
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Direction;
    use crate::request::Flags;
    use crate::units::SectorIndex;

    const COSTS: Costs = Costs {
        encrypt_ns_per_byte: 0.2,
        decrypt_ns_per_byte: 0.2,
        handoff_awake_ns: 200.0,
        handoff_asleep_ns: 30_000.0,
        handoff_self_ns: 150.0,
        wake_self_ns: 3_000.0,
        write_ns_per_byte: 0.0,
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
    }

    #[test]
    fn lasting_middle_sized_requests_wake_a_worker_to_be_split() {
        let jobs = [job(128 << 10, Flags::empty())];
        let (mut policy, mut asleep) = (Adaptive::new(), load(1, 0));
        asleep.in_flight = 1;
        assert_eq!(parts(place(&mut policy, &jobs, &asleep)[0]), 0);
        let split_after = (0..20).find(|_| {
            asleep.now_ns += 40_000;
            parts(place(&mut policy, &jobs, &asleep)[0]) > 0
        });
        assert!(split_after.is_some());
    }

    #[test]
    fn a_thread_with_much_else_to_do_hands_off_more() {
        let jobs = [job(8192, Flags::empty()); 4];
        let handed_off = |saturated| {
            let (mut policy, mut awake) = (Adaptive::new(), load(1, 1));
            awake.saturated = saturated;
            let mut placed = Vec::new();
            for _ in 0..10 {
                placed = place(&mut policy, &jobs, &awake);
                let handed_off = offloaded(&placed) as u64;
                // 1638 ns of cipher and 13,000 ns of other work per job.
                awake.now_ns += 4 * 13_000 + (4 - handed_off) * 1_638 + handed_off * 200;
            }
            offloaded(&placed)
        };
        assert_eq!(handed_off(false), 2);
        assert_eq!(handed_off(true), 4);
    }

    #[test]
    fn hand_offs_that_cost_the_thread_more_than_the_job_come_to_an_end() {
        let jobs = [job(4096, Flags::empty()); 32];
        let (mut policy, mut awake) = (Adaptive::new(), load(1, 1));
        awake.saturated = true;
        let mut handed_off = 0;
        for _ in 0..1000 {
            let now = offloaded(&place(&mut policy, &jobs, &awake)) as u64;
            // 819 ns of cipher, and as much again to get the data back from the other core.
            awake.now_ns += 32 * 400 + (32 - now) * 819 + now * 1_200;
            handed_off += now;
        }
        assert!((1..=32 * 50).contains(&handed_off), "{handed_off}");
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
    fn the_device_s_part_counts_for_writes_that_workers_can_do() {
        let weighed = Load {
            costs: Costs {
                write_ns_per_byte: 1.0,
                ..COSTS
            },
            ..load(1, 0)
        };
        let read = job(128 << 10, Flags::empty());
        let write = Job {
            direction: Direction::Encrypt,
            ..read
        };
        let is_split = |job, load: &Load| parts(place(&mut Adaptive::new(), &[job], load)[0]) > 0;
        // 26 us of cipher end before a sleeper begins; with 131 us of copying it is in time.
        assert!(!is_split(write, &load(1, 0)));
        assert!(is_split(write, &weighed));
        assert!(!is_split(read, &weighed));
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
            write_ns_per_byte: 0.0,
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
