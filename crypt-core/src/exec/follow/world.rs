//! A queue, its workers and its device in virtual time: what happens to requests under a policy.
#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::exec::latency::{Before, Latency};
use crate::exec::pool::PoolLoad;
use crate::policy::{
    CostTracker, Costs, Direction, Job, Load, Outcome, Placement, Policy, PolicySpec,
};
use crate::request::Flags;
use crate::units::SectorIndex;

pub(super) const SPIN_NS: u64 = 50_000;
/// What a request costs the thread beside its cipher.
const REQUEST_NS: u64 = 300;
/// When a world begins: all workers sleep.
pub(super) const START_NS: u64 = 2 * SPIN_NS;
/// How long the policy has for a change, and how long is measured then.
pub(super) const SETTLE_NS: u64 = 100_000_000;
pub(super) const MEASURED_NS: u64 = 100_000_000;

/// How long things take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Truth {
    pub(super) cipher_ns_per_byte: f64,
    pub(super) handoff_awake_ns: u64,
    pub(super) handoff_asleep_ns: u64,
    pub(super) handoff_self_ns: u64,
    pub(super) device_ns: u64,
}

pub(super) const USUAL: Truth = Truth {
    cipher_ns_per_byte: 0.2,
    handoff_awake_ns: 200,
    handoff_asleep_ns: 30_000,
    handoff_self_ns: 150,
    device_ns: 10_000,
};

#[derive(Clone, Copy, Debug)]
pub(super) struct Workload {
    pub(super) depth: u32,
    pub(super) len_bytes: u32,
    pub(super) workers: usize,
}

pub(super) struct World {
    pub(super) truth: Truth,
    pub(super) workload: Workload,
    pub(super) policy: Box<dyn Policy>,
    pub(super) costs: CostTracker,
    pub(super) latency: Latency,
    /// Whether costs are followed; else the policy knows what it was started with.
    pub(super) learns: bool,
    pub(super) now_ns: u64,
    /// When each worker has done what it was given.
    pub(super) free_at_ns: Vec<u64>,
    /// When each request at the device completes.
    pub(super) device: BinaryHeap<Reverse<u64>>,
    /// When each request at the workers is done, and the index of its outcome.
    pub(super) at_workers: BinaryHeap<Reverse<(u64, usize)>>,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) rested: bool,
    pub(super) done: u64,
}

impl Truth {
    fn costs(&self) -> Costs {
        Costs {
            encrypt_ns_per_byte: self.cipher_ns_per_byte as f32,
            decrypt_ns_per_byte: self.cipher_ns_per_byte as f32,
            handoff_awake_ns: self.handoff_awake_ns as f32,
            handoff_asleep_ns: self.handoff_asleep_ns as f32,
            handoff_self_ns: self.handoff_self_ns as f32,
            wake_self_ns: 0.0,
            write_ns_per_byte: 0.0,
            device_ns: self.device_ns as f32,
        }
    }

    fn cipher_ns(&self, len_bytes: u32) -> u64 {
        (self.cipher_ns_per_byte * f64::from(len_bytes)) as u64
    }
}

impl World {
    pub(super) fn new(truth: Truth, workload: Workload, learns: bool) -> Self {
        let spec: PolicySpec = "adaptive".parse().unwrap();
        Self {
            truth,
            workload,
            policy: spec.build(),
            costs: CostTracker::new(truth.costs()),
            latency: Latency::default(),
            learns,
            now_ns: START_NS,
            free_at_ns: vec![0; workload.workers],
            device: (0..workload.depth).map(|_| Reverse(START_NS)).collect(),
            at_workers: BinaryHeap::new(),
            outcomes: Vec::new(),
            rested: true,
            done: 0,
        }
    }

    /// A fresh policy that knows the costs.
    pub(super) fn know(&mut self) {
        let fresh = Self::new(self.truth, self.workload, true);
        (self.policy, self.costs) = (fresh.policy, fresh.costs);
        (self.latency, self.learns) = (fresh.latency, true);
    }

    /// Requests that complete within [`MEASURED_NS`], after [`SETTLE_NS`].
    pub(super) fn throughput(&mut self) -> u64 {
        self.run_for(SETTLE_NS);
        let before = self.done;
        self.run_for(MEASURED_NS);
        self.done - before
    }

    pub(super) fn run_for(&mut self, ns: u64) {
        let end_ns = self.now_ns + ns;
        while self.now_ns < end_ns {
            self.turn();
        }
    }

    /// What the queue's thread does at the next event.
    fn turn(&mut self) {
        let device = self.device.peek().map(|Reverse(time_ns)| *time_ns);
        let workers = self.at_workers.peek().map(|Reverse((time_ns, _))| *time_ns);
        let next_ns = device.into_iter().chain(workers).min().unwrap();
        if next_ns > self.now_ns {
            (self.now_ns, self.rested) = (next_ns, true);
        }
        while let Some(Reverse((time_ns, index))) = self.at_workers.peek().copied()
            && time_ns <= self.now_ns
        {
            self.at_workers.pop();
            let outcome = self.outcomes[index];
            self.complete(&outcome);
        }
        if self.at_workers.is_empty() {
            self.outcomes.clear();
        }
        let mut count = 0;
        while self
            .device
            .peek()
            .is_some_and(|Reverse(time_ns)| *time_ns <= self.now_ns)
        {
            self.device.pop();
            count += 1;
        }
        if count > 0 {
            self.place(count);
        }
    }

    fn place(&mut self, count: usize) {
        let job = Job {
            direction: Direction::Decrypt,
            flags: Flags::empty(),
            sector: SectorIndex::new(0),
            len_bytes: self.workload.len_bytes,
            max_parts: (self.workload.len_bytes / 4096).clamp(1, 255) as u8,
        };
        let (jobs, load) = (vec![job; count], self.load(count));
        let mut placements = vec![Placement::Inline; count];
        self.policy.place(&jobs, &load, &mut placements);
        self.rested = false;
        // What is handed off goes first, so that workers begin.
        placements.sort_by_key(|placement| *placement == Placement::Inline);
        for placement in placements {
            self.now_ns += REQUEST_NS;
            match placement {
                Placement::Inline => self.run_inline(job),
                Placement::Offload => self.hand_off(job, placement, 1),
                Placement::Split(parts) => self.hand_off(job, placement, parts.get().into()),
            }
        }
    }

    fn run_inline(&mut self, job: Job) {
        let cipher_ns = self.truth.cipher_ns(job.len_bytes);
        self.now_ns += cipher_ns;
        self.complete(&Outcome {
            job,
            placement: Placement::Inline,
            cipher_ns,
            device_ns: 0,
            wait_ns: 0,
            total_ns: cipher_ns,
        });
    }

    /// Gives the parts to whoever can begin first, this thread included where there are several.
    fn hand_off(&mut self, job: Job, placement: Placement, parts: u64) {
        let decided_ns = self.now_ns;
        let part_ns = self.truth.cipher_ns(job.len_bytes) / parts;
        self.now_ns += parts * self.truth.handoff_self_ns;
        let (mut started_ns, mut end_ns) = (u64::MAX, 0);
        for _ in 0..parts {
            let (start_ns, worker) = self.first_worker();
            let begin_ns = if parts > 1 && self.now_ns <= start_ns {
                let begin_ns = self.now_ns;
                (self.now_ns, self.rested) = (begin_ns + part_ns, true);
                begin_ns
            } else {
                self.free_at_ns[worker] = start_ns + part_ns;
                start_ns
            };
            started_ns = started_ns.min(begin_ns);
            end_ns = end_ns.max(begin_ns + part_ns);
        }
        self.outcomes.push(Outcome {
            job,
            placement,
            cipher_ns: part_ns * parts,
            device_ns: 0,
            wait_ns: started_ns - decided_ns,
            total_ns: end_ns - decided_ns,
        });
        self.at_workers
            .push(Reverse((end_ns, self.outcomes.len() - 1)));
    }

    /// The worker that can begin first, and when; it tells how long that took, as workers do.
    fn first_worker(&self) -> (u64, usize) {
        let truth = &self.truth;
        let starts = self.free_at_ns.iter().map(|&free_ns| {
            if free_ns > self.now_ns {
                (free_ns, Before::Busy)
            } else if free_ns + SPIN_NS >= self.now_ns {
                (self.now_ns + truth.handoff_awake_ns, Before::Awake)
            } else {
                (self.now_ns + truth.handoff_asleep_ns, Before::Asleep)
            }
        });
        let ((start_ns, before), worker) = starts.zip(0..).min_by_key(|((at, _), _)| *at).unwrap();
        self.latency.learn(before, start_ns - self.now_ns, start_ns);
        (start_ns, worker)
    }

    fn complete(&mut self, outcome: &Outcome) {
        self.policy.observe(outcome);
        if self.learns {
            self.costs.observe(outcome);
        }
        self.done += 1;
        self.device
            .push(Reverse(self.now_ns + self.truth.device_ns));
    }

    fn load(&self, count: usize) -> Load {
        let count_of = |wanted: fn(u64, u64) -> bool| {
            let free = self.free_at_ns.iter();
            free.filter(|&&free_ns| wanted(free_ns, self.now_ns))
                .count() as u32
        };
        let idle_workers = count_of(|free_ns, now_ns| free_ns <= now_ns);
        let awake_workers =
            count_of(|free_ns, now_ns| free_ns <= now_ns && free_ns + SPIN_NS >= now_ns);
        let backlog_ns: u64 = self
            .free_at_ns
            .iter()
            .map(|free_ns| free_ns.saturating_sub(self.now_ns))
            .sum();
        let workers = self.workload.workers as u32;
        let pool = PoolLoad {
            handoff_awake_ns: self.latency.awake_ns(self.now_ns),
            handoff_asleep_ns: self.latency.asleep_ns(),
            ..PoolLoad::default()
        };
        let known = self.costs.costs();
        Load {
            now_ns: self.now_ns,
            depth: self.workload.depth,
            in_flight: self.workload.depth,
            at_device: self.device.len() as u32,
            at_workers: self.workload.depth - self.device.len() as u32 - count as u32,
            workers,
            usable_workers: workers,
            idle_workers,
            awake_workers,
            queued_bytes: (backlog_ns as f64 / self.truth.cipher_ns_per_byte) as u64,
            saturated: !self.rested,
            costs: if self.learns {
                pool.refine(known)
            } else {
                known
            },
        }
    }
}
