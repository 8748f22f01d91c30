//! The limits of the policy: most workers at a time, and the largest share of the pool's time.
//!
//! Both count what this queue has handed off and not got back. For the workers, parts: no more are out than
//! the limit, so no more workers are busy with them. For the time, an allowance that fills at the rate of the
//! share, up to what it gives in [`BURST_NS`]; a job is handed off where the allowance covers its predicted
//! time and that of all that is out, and what it then took is taken off. So what was predicted wrongly is
//! paid back, and over any time t at most (t + 10 ms) share x workers are used, and the prediction's error.
//! Parts that the queue's own thread takes back count as the workers' too: nobody knows in advance.
//!
//! A pool that refuses work tells the policy of a job inline; what is out is forgotten when nothing is at the
//! workers any more.
#![forbid(unsafe_code)]

use super::options::AdaptiveOptions;
use crate::policy::{Job, Load, Outcome, Placement};

/// How long the allowance fills, if not used.
const BURST_NS: f64 = 10e6;

/// The limits, and what of them is in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    max_workers: u32,
    /// Share of the time of all workers, up to 1.
    max_share: Option<f64>,
    /// Parts handed off and not back.
    parts_out: u32,
    /// Bytes handed off and not back.
    bytes_out: u64,
    /// Time of the workers that may be used now; below 0 what must be paid back.
    allowance_ns: f64,
    filled_ns: u64,
}

impl Limits {
    /// The limits in `options`; `None` where there are none.
    pub(super) fn new(options: &AdaptiveOptions) -> Option<Self> {
        let share = options.max_cpu_percent();
        if options.max_workers().is_none() && share.is_none() {
            return None;
        }
        Some(Self {
            max_workers: options.max_workers().map_or(u32::MAX, |n| n.get().into()),
            max_share: share.map(|percent| f64::from(percent.get()) / 100.0),
            parts_out: 0,
            bytes_out: 0,
            allowance_ns: 0.0,
            filled_ns: 0,
        })
    }

    /// Takes in the time since the last batch. How many parts may be handed off now.
    pub(super) fn room(&mut self, load: &Load) -> u32 {
        if load.at_workers == 0 {
            (self.parts_out, self.bytes_out) = (0, 0);
        }
        if let Some(share) = self.max_share {
            let rate = share * f64::from(load.workers);
            let passed_ns = load.now_ns.saturating_sub(self.filled_ns) as f64;
            self.allowance_ns = (self.allowance_ns + rate * passed_ns).min(rate * BURST_NS);
            self.filled_ns = load.now_ns;
        }
        if load.workers <= self.max_workers {
            return u32::MAX;
        }
        self.max_workers.saturating_sub(self.parts_out)
    }

    /// Whether a job may go where it was placed; if so it counts as handed off. `room` is what is left of what
    /// [`Limits::room`] said.
    pub(super) fn admits(
        &mut self,
        job: &Job,
        placement: Placement,
        load: &Load,
        room: &mut u32,
    ) -> bool {
        let parts = parts(placement);
        if parts == 0 {
            return true;
        }
        if parts > *room || !self.covers(job, load) {
            return false;
        }
        *room -= parts;
        self.parts_out += parts;
        self.bytes_out += u64::from(job.len_bytes);
        true
    }

    /// Takes in a job that is over.
    pub(super) fn done(&mut self, outcome: &Outcome) {
        let parts = parts(outcome.placement);
        if parts == 0 {
            return;
        }
        self.parts_out = self.parts_out.saturating_sub(parts);
        self.bytes_out = self.bytes_out.saturating_sub(outcome.job.len_bytes.into());
        if self.max_share.is_some() {
            self.allowance_ns -= (outcome.cipher_ns + outcome.device_ns) as f64;
        }
    }

    fn covers(&self, job: &Job, load: &Load) -> bool {
        let ns_per_byte = f64::from(load.costs.work_ns_per_byte());
        let bytes = self.bytes_out + u64::from(job.len_bytes);
        self.max_share.is_none() || bytes as f64 * ns_per_byte <= self.allowance_ns
    }
}

fn parts(placement: Placement) -> u32 {
    match placement {
        Placement::Inline => 0,
        Placement::Offload => 1,
        Placement::Split(parts) => parts.get().into(),
    }
}
