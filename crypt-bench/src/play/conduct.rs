//! How a thread behaves beyond its requests: when it waits, what it bears, when it has enough.

#![forbid(unsafe_code)]

use crypt_core::error::Errno;
use crypt_core::request::{Flags, Op};

use super::gate::{Batches, Target};
use super::steady::SteadyRule;

/// How a thread behaves. By default as a thread of fio without any option about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conduct {
    /// When requests are submitted and completions taken.
    pub batches: Batches,
    /// A latency to keep by adapting the depth.
    pub target: Option<Target>,
    /// Longest latency of a read and of a write, in nanoseconds; a longer one ends the thread.
    pub max_latency_ns: [Option<u64>; 2],
    /// Failures that don't end it.
    pub tolerance: Tolerance,
    /// A steady state that ends it, together with the other threads of the same number.
    pub steady: Option<(usize, SteadyRule)>,
    /// Every write is durable before it completes.
    pub durable_writes: bool,
    /// Flushes write all metadata too, as fsync does; otherwise what reading back needs, as fdatasync.
    pub full_flush: bool,
    /// Threads, by their place among all, whose ends it waits for before it starts.
    pub after: Vec<usize>,
}

/// Failures that a thread goes on after: fio's non-fatal ones, EIO and EILSEQ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tolerance {
    /// Of reads.
    pub reads: bool,
    /// Of writes and flushes.
    pub writes: bool,
}

impl Tolerance {
    /// Whether a thread goes on after this failure.
    pub(super) fn bears(self, op: Op, errno: Errno) -> bool {
        let direction = match op {
            Op::Read => self.reads,
            _ => self.writes,
        };
        direction && [Errno::EIO, Errno::EILSEQ].contains(&errno)
    }
}

impl Conduct {
    /// Flags of a request.
    #[inline]
    pub(super) fn flags(&self, op: Op) -> Flags {
        match op {
            Op::Write if self.durable_writes => Flags::FUA,
            Op::Flush if self.full_flush => Flags::META,
            _ => Flags::empty(),
        }
    }

    /// Whether latencies are looked at one by one.
    pub(super) fn judges(&self) -> bool {
        self.target.is_some() || self.max_latency_ns != [None, None]
    }
}
