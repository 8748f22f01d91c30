//! How the queue's thread spends its time when it is the bottleneck: what a job costs it apart from
//! the cipher, and what handing one off really costs it.
//!
//! While the thread never waits, the time between two decisions is the cipher work that was placed
//! inline plus everything else it does for the requests. With nothing handed off, that is copying,
//! system calls, the caller's own work: b per job. With k of n jobs handed off it is n b + k s, where s
//! has all that a hand-off leads to on this thread, such as fetching data that another core has
//! changed, and which no calibration sees. So no backlog is shared in two decisions of every
//! [`PROBE_PERIOD`], the second of which gives b (the first still collects what was handed off), and
//! the others give s: the mean of what they took beyond n b, over the mean of k. (A mean of quotients would
//! be far too high where few of many different jobs are handed off, since no quotient counts below 0.) While
//! nothing is handed off, s returns to its calibrated value, by 1/1024 of the difference per decision: it is
//! tried again. Decisions with a split job are no sample, since the thread's part in it is not known.
//!
//! Estimates follow with weight 1/8, and a sample counts for at most four times what was expected. A
//! thread that waits has time to spare, and then none of this matters.
#![forbid(unsafe_code)]

use crate::policy::{Costs, Job, Load, Placement};

const WEIGHT: f32 = 1.0 / 8.0;
const OUTLIER_FACTOR: f32 = 4.0;
/// Decisions of a thread that is the bottleneck, of which two are all inline.
const PROBE_PERIOD: u32 = 256;
const FORGET: f32 = 1.0 / 1024.0;
const PRESSURE_WEIGHT: f32 = 1.0 / 16.0;
/// The share of decisions from which on the thread is the bottleneck.
const BOTTLENECK: f32 = 0.5;

/// The estimates, and the last decision, from which the next sample counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// b
    other_ns: f32,
    /// Mean of what decisions with a hand-off took beyond n b.
    beyond_ns: f32,
    /// Mean of k in those; 0 until there was one.
    handed_off: f32,
    last: Decision,
    /// Share of the decisions before which the thread did not wait, lately.
    pressure: f32,
    /// Decisions since something was handed off.
    inline_decisions: u32,
    /// Decisions of a thread that was the bottleneck, modulo [`PROBE_PERIOD`].
    decisions: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Decision {
    now_ns: u64,
    jobs: f32,
    handed_off: f32,
    /// Whether the thread's own share of the cipher work is unknown.
    split: bool,
    /// Cipher time placed inline.
    inline_ns: f32,
}

impl Pace {
    /// Takes in the time since the last decision.
    pub(super) fn learn(&mut self, load: &Load) {
        let last = self.last;
        let now = f32::from(u8::from(load.saturated));
        self.pressure += PRESSURE_WEIGHT * (now - self.pressure);
        if !load.saturated || last.jobs == 0.0 {
            return;
        }
        self.decisions = (self.decisions + 1) % PROBE_PERIOD;
        if last.split {
            return;
        }
        let passed_ns = load.now_ns.saturating_sub(last.now_ns) as f32;
        let other_ns = (passed_ns - last.inline_ns).max(0.0);
        let calibrated_ns = load.costs.handoff_self_ns;
        if last.handed_off > 0.0 {
            if self.other_ns > 0.0 {
                self.learn_handoff(other_ns, &last, calibrated_ns);
            }
            return;
        }
        let forgotten_ns = calibrated_ns * self.handed_off;
        self.beyond_ns += FORGET * (forgotten_ns - self.beyond_ns);
        if self.inline_decisions > 1 {
            follow(&mut self.other_ns, other_ns / last.jobs);
        }
    }

    fn learn_handoff(&mut self, other_ns: f32, last: &Decision, calibrated_ns: f32) {
        let usual_ns = last.jobs * self.other_ns;
        if self.handed_off <= 0.0 {
            (self.handed_off, self.beyond_ns) = (last.handed_off, calibrated_ns * last.handed_off);
        }
        let expected_ns = usual_ns + last.handed_off * self.seen_ns().max(calibrated_ns);
        let beyond_ns = other_ns.min(OUTLIER_FACTOR * expected_ns) - usual_ns;
        self.beyond_ns += WEIGHT * (beyond_ns - self.beyond_ns);
        self.handed_off += WEIGHT * (last.handed_off - self.handed_off);
    }

    /// s; 0 until there is a sample.
    fn seen_ns(&self) -> f32 {
        if self.handed_off > 0.0 {
            self.beyond_ns / self.handed_off
        } else {
            0.0
        }
    }

    /// Whether no backlog should be shared now, so that b can be seen.
    pub(super) fn is_probing(&self, load: &Load) -> bool {
        load.saturated && self.decisions < 2
    }

    /// The time that a batch of `jobs` costs the thread apart from the cipher; 0 where the thread is
    /// not the bottleneck.
    pub(super) fn other_ns(&self, jobs: usize, load: &Load) -> f32 {
        if load.saturated {
            self.other_ns * jobs as f32
        } else {
            0.0
        }
    }

    /// What handing off a job costs the thread: as calibrated, or as seen where that is more.
    pub(super) fn handoff_ns(&self, load: &Load) -> f32 {
        let calibrated_ns = load.costs.handoff_self_ns;
        if load.saturated {
            calibrated_ns.max(self.seen_ns())
        } else {
            calibrated_ns
        }
    }

    /// Takes in a batch that was decided without the time.
    pub(super) fn skipped(&mut self) {
        self.last.jobs = 0.0;
    }

    /// Whether the thread has hardly waited lately.
    pub(super) fn is_bottleneck(&self, load: &Load) -> bool {
        load.saturated && self.pressure >= BOTTLENECK
    }

    /// Remembers the decision.
    pub(super) fn decided(&mut self, jobs: &[Job], placements: &[Placement], load: &Load) {
        let count =
            |wanted: fn(&Placement) -> bool| placements.iter().filter(|p| wanted(p)).count();
        self.last = Decision {
            now_ns: load.now_ns,
            jobs: jobs.len() as f32,
            handed_off: count(|placement| *placement == Placement::Offload) as f32,
            split: count(|placement| matches!(placement, Placement::Split(_))) > 0,
            inline_ns: inline_ns(jobs, placements, &load.costs),
        };
        self.inline_decisions = if self.last.handed_off == 0.0 && !self.last.split {
            self.inline_decisions.saturating_add(1)
        } else {
            0
        };
    }
}

fn inline_ns(jobs: &[Job], placements: &[Placement], costs: &Costs) -> f32 {
    let placed = jobs.iter().zip(placements);
    let inline = placed.filter(|(_, placement)| **placement == Placement::Inline);
    inline.map(|(job, _)| costs.work_ns(job)).sum()
}

/// Moves `estimate` towards `sample_ns`; an unknown estimate takes it over.
fn follow(estimate: &mut f32, sample_ns: f32) {
    if *estimate > 0.0 {
        let sample_ns = sample_ns.min(OUTLIER_FACTOR * *estimate);
        *estimate += WEIGHT * (sample_ns - *estimate);
    } else {
        *estimate = sample_ns;
    }
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
    /// 1024 ns per job on top of which come `OTHER_NS`, and `HANDOFF_NS` for one handed off.
    const OTHER_NS: u64 = 2_000;
    const HANDOFF_NS: u64 = 700;

    fn load(now_ns: u64, saturated: bool) -> Load {
        Load {
            now_ns,
            saturated,
            costs: Costs {
                encrypt_ns_per_byte: 0.25,
                handoff_self_ns: 100.0,
                ..Costs::default()
            },
            ..Load::default()
        }
    }

    /// A thread that is the bottleneck hands off one of two jobs unless asked not to.
    fn run(pace: &mut Pace, decisions: u32, saturated: bool) -> u32 {
        let (mut now_ns, mut probes) = (pace.last.now_ns, 0);
        for _ in 0..decisions {
            let load = load(now_ns, saturated);
            pace.learn(&load);
            let probe = pace.is_probing(&load);
            let second = if probe {
                Placement::Inline
            } else {
                Placement::Offload
            };
            pace.decided(&[JOB, JOB], &[Placement::Inline, second], &load);
            now_ns += 2 * OTHER_NS + 1024 + if probe { 1024 } else { HANDOFF_NS };
            probes += u32::from(probe);
        }
        probes
    }

    #[test]
    fn other_work_and_the_cost_of_a_hand_off_are_told_apart() {
        let mut pace = Pace::default();
        run(&mut pace, 100, true);
        let load = load(0, true);
        assert_eq!(pace.other_ns(2, &load), 2.0 * OTHER_NS as f32);
        assert!((pace.handoff_ns(&load) - HANDOFF_NS as f32).abs() < 1.0);
    }

    #[test]
    fn probes_are_rare() {
        let mut pace = Pace::default();
        run(&mut pace, 100, true);
        let probes = run(&mut pace, 10 * PROBE_PERIOD, true);
        assert!((18..=40).contains(&probes), "{probes}");
    }

    #[test]
    fn a_thread_that_waits_has_no_other_work_and_teaches_nothing() {
        let mut pace = Pace::default();
        run(&mut pace, 100, false);
        assert_eq!((pace.other_ns, pace.seen_ns()), (0.0, 0.0));
        run(&mut pace, 100, true);
        assert_eq!(pace.other_ns(1, &load(0, false)), 0.0);
        assert_eq!(pace.handoff_ns(&load(0, false)), 100.0);
    }

    #[test]
    fn a_costly_hand_off_is_tried_again_one_day() {
        let mut pace = Pace::default();
        run(&mut pace, 100, true);
        let mut now_ns = pace.last.now_ns;
        for _ in 0..20_000 {
            let load = load(now_ns, true);
            pace.learn(&load);
            pace.decided(&[JOB], &[Placement::Inline], &load);
            now_ns += OTHER_NS + 1024;
        }
        assert!(pace.handoff_ns(&load(0, true)) < 110.0);
    }

    #[test]
    fn jobs_that_differ_do_not_make_a_hand_off_dear() {
        let mut pace = Pace::default();
        run(&mut pace, 100, true);
        let mut now_ns = pace.last.now_ns;
        let mut placements = [Placement::Inline; 16];
        placements[0] = Placement::Offload;
        // Half of the batches are of jobs that cost half as much beside the cipher, half of others.
        for n in 0..2_000 {
            let load = load(now_ns, true);
            pace.learn(&load);
            pace.decided(&[JOB; 16], &placements, &load);
            let other_ns = if n % 2 == 0 {
                OTHER_NS / 2
            } else {
                OTHER_NS * 3 / 2
            };
            now_ns += 16 * other_ns + 15 * 1024 + HANDOFF_NS;
        }
        let seen_ns = pace.seen_ns();
        assert!(seen_ns < 2_500.0, "{seen_ns}");
    }
}
