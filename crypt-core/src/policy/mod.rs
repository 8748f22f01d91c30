//! Where the cipher runs: the question each policy answers for a batch of jobs at a time.
//!
//! A policy decides placement only. Bytes on the device and results are the same under every
//! policy. It is asked when writes are submitted and when reads complete. There is one instance per
//! queue, so nothing here is shared or locked; given the same inputs it gives the same answers.

#![forbid(unsafe_code)]

mod adaptive;
mod costs;
mod explain;
mod inline;
mod spec;
mod workqueue;

use std::fmt;
use std::num::NonZeroU8;

pub use adaptive::{Adaptive, AdaptiveOptions, Objective};
pub use costs::CostTracker;
pub use explain::{Decisions, Explanation, PlacementKind, Prediction, Reason};
pub use inline::Inline;
pub use spec::PolicySpec;
pub use workqueue::{Workqueue, WorkqueueFlags};

use crate::request::Flags;
use crate::units::SectorIndex;

/// Which way a job goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Plaintext to ciphertext, on the way to the device.
    Encrypt,
    /// Ciphertext to plaintext, on the way back.
    Decrypt,
}

/// One piece of cipher work to place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Encrypt (a write at submission) or decrypt (a read at completion).
    pub direction: Direction,
    /// Flags of the request it belongs to.
    pub flags: Flags,
    /// First sector of the request.
    pub sector: SectorIndex,
    /// Length of the work.
    pub len_bytes: u32,
    /// Most parts it may be split into: its number of crypto sectors, capped.
    pub max_parts: u8,
}

/// What the queue knows at the time of asking.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Time of the decision.
    pub now_ns: u64,
    /// Slots of the queue, the most requests it can have in flight.
    pub depth: u32,
    /// Requests in flight on this queue, these jobs included.
    pub in_flight: u32,
    /// Requests of this queue that are at the device now.
    pub at_device: u32,
    /// Requests of this queue whose cipher work is on a worker now.
    pub at_workers: u32,
    /// Workers in the pool; 0 where the volume has none, and then everything runs inline.
    pub workers: u32,
    /// Workers that have a core to run on: those of the pool, or fewer where the threads of queues
    /// need the cores.
    pub usable_workers: u32,
    /// Those of the usable workers that had nothing to do when last looked at.
    pub idle_workers: u32,
    /// Those of the idle workers that are awake and start at once; the others must be woken.
    pub awake_workers: u32,
    /// Bytes of cipher work waiting in the pool, of all queues.
    pub queued_bytes: u64,
    /// Whether the queue's thread has not once waited, nor helped the workers, since the last
    /// decision: it is the bottleneck then.
    pub saturated: bool,
    /// Measured costs.
    pub costs: Costs,
}

/// What the queue knows without a look at the workers, for [`Policy::keeps`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Glance {
    /// Requests in flight on this queue, the jobs in question included.
    pub in_flight: u32,
    /// Measured costs.
    pub costs: Costs,
}

/// Costs as measured at start and since, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// Cipher time of one byte on one core, encrypting.
    pub encrypt_ns_per_byte: f32,
    /// Cipher time of one byte on one core, decrypting.
    pub decrypt_ns_per_byte: f32,
    /// From hand-off to the start of the work on a worker that is awake.
    pub handoff_awake_ns: f32,
    /// From hand-off to the start of the work on a worker that sleeps.
    pub handoff_asleep_ns: f32,
    /// What handing off to a worker that is awake, and taking the result back, costs the thread
    /// that does it.
    pub handoff_self_ns: f32,
    /// What waking a sleeping worker costs that thread on top.
    pub wake_self_ns: f32,
    /// Device time of one byte that is written, where the worker that encrypted it can do that
    /// ([`WriteRoute::Worker`]); 0 where none can, and before the first write.
    pub write_ns_per_byte: f32,
    /// Time of a request at the device, as the queue's thread saw it; 0 before the first, and where the device
    /// takes no time but that of the thread that calls it.
    pub device_ns: f32,
}

impl Costs {
    /// Cipher time of a whole job on one core.
    #[must_use]
    pub fn cipher_ns(&self, job: &Job) -> f32 {
        let ns_per_byte = match job.direction {
            Direction::Encrypt => self.encrypt_ns_per_byte,
            Direction::Decrypt => self.decrypt_ns_per_byte,
        };
        ns_per_byte * job.len_bytes as f32
    }

    /// Time on one core of all that moves to a worker with a job: its cipher, and the device's part in a
    /// write where workers write.
    #[must_use]
    pub fn work_ns(&self, job: &Job) -> f32 {
        let device_ns = match job.direction {
            Direction::Encrypt => self.write_ns_per_byte * job.len_bytes as f32,
            Direction::Decrypt => 0.0,
        };
        self.cipher_ns(job) + device_ns
    }

    /// Time on one core of one byte of the dearer direction, as [`Costs::work_ns`].
    #[must_use]
    pub fn work_ns_per_byte(&self) -> f32 {
        let write_ns_per_byte = self.encrypt_ns_per_byte + self.write_ns_per_byte;
        write_ns_per_byte.max(self.decrypt_ns_per_byte)
    }
}

/// Where one job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// On the queue's own thread, now.
    Inline,
    /// On one worker.
    Offload,
    /// On several workers, in this many parts.
    Split(NonZeroU8),
}

/// What became of one placed job, for [`Policy::observe`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The job.
    pub job: Job,
    /// Where it ran.
    pub placement: Placement,
    /// Cipher time, summed over its parts.
    pub cipher_ns: u64,
    /// Device time, summed over the parts that workers wrote; 0 where they wrote none.
    pub device_ns: u64,
    /// From the decision to the start of the work (its first part); 0 inline.
    pub wait_ns: u64,
    /// From the decision to the moment the queue's thread saw it done.
    pub total_ns: u64,
}

/// Decides where cipher work runs. See the module documentation for its contract.
pub trait Policy: Send + fmt::Debug {
    /// Name for results, with flags: `workqueue:no_read_workqueue`.
    fn name(&self) -> String;

    /// Whether a batch stays inline however busy the workers are. Asked first, since looking at them costs
    /// more than small jobs are worth; where the answer is yes the batch counts as placed, else
    /// [`Policy::place`] follows. Now and then it is left out. `glance` has what the queue knows by itself, with
    /// hand-off costs as they were when the workers were last looked at.
    fn keeps(&mut self, jobs: &[Job], glance: &Glance) -> bool {
        let _ = (jobs, glance);
        false
    }

    /// Places a batch. `placements` has one entry per job, preset to [`Placement::Inline`].
    fn place(&mut self, jobs: &[Job], load: &Load, placements: &mut [Placement]);

    /// Learns from a finished job. Where there are no workers it is neither asked nor told.
    fn observe(&mut self, outcome: &Outcome);

    /// Why it placed what it placed since it was built, and how well it predicted; `None` for a policy that
    /// keeps no account of that.
    fn explanation(&self) -> Option<&Explanation> {
        None
    }

    /// How the queue treats work that this policy hands off.
    fn offload_rules(&self) -> OffloadRules;
}

/// How a write gets to the device after a worker has encrypted it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteRoute {
    /// It comes back to the queue's thread, and is submitted like any other.
    #[default]
    Queue,
    /// The worker writes it, where the device lets any thread do that
    /// ([`Device::immediate`](crate::device::Device::immediate)); else as [`WriteRoute::Queue`] (dm-crypt's
    /// `submit_from_crypt_cpus`).
    Worker,
    /// It goes to the volume's write thread, which sorts writes by sector (dm-crypt without that
    /// flag).
    WriteThread,
}

/// Rules for handed-off work, fixed for the life of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffloadRules {
    /// How encrypted writes get to the device.
    pub writes: WriteRoute,
    /// Work stays on the CPU that handed it off (dm-crypt's `same_cpu_crypt`).
    pub same_cpu: bool,
    /// A worker is woken for every part that is handed off, as an unbound workqueue of the kernel does
    /// (`kernel/workqueue.c`); else only as many as what is queued is worth.
    pub wake_each: bool,
    /// Workers run at raised priority (dm-crypt's `high_priority`).
    pub high_priority: bool,
    /// The queue's thread runs parts of handed-off work itself rather than sleep.
    pub assist: bool,
}
