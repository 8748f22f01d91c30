//! A disk drive: one head that seeks and waits for the platter, read-ahead for sequential reads, a
//! write cache, and command queueing that lets the drive pick what is near.
//!
//! Figures of the Western Digital Ultrastar DC HC310 (7200 rpm, SATA), from its OEM specification:
//! average seek 7.4 ms, single track 0.23 ms, 8.33 ms for a revolution, 256 MB of cache. Its data
//! sheet has up to 255 MB/s. The seek curve is a square root of the distance through the single
//! track and the average, a simple form of the one in Ruemmler and Wilkes, "An introduction to
//! disk drive modeling", IEEE Computer 27(3), 1994. Estimates of ours: half the speed at the inner
//! edge, and the gain by queueing, such that depth 16 gives about twice the operations of depth 1
//! (data sheets of such drives have 170 or so at depth 16).
//!
//! Reads go before writes from the cache and aren't slowed by them.

#![forbid(unsafe_code)]

use std::collections::VecDeque;

use crate::device::service::cache::WriteCache;
use crate::device::service::{ServiceOp, transfer_ns};
use crate::request::{Flags, Op};

const SINGLE_TRACK_NS: f64 = 230_000.0;
const AVERAGE_SEEK_NS: f64 = 7_400_000.0;
const REVOLUTION_NS: f64 = 8_333_333.0;
const OUTER_BYTES_PER_S: f64 = 255e6;
const INNER_BYTES_PER_S: f64 = 128e6;
/// SATA at 6 Gb/s, into the cache.
const LINK_BYTES_PER_S: f64 = 550e6;
const CACHE_BYTES: u64 = 256 << 20;
/// Handling of a command that needs no medium.
const COMMAND_NS: f64 = 60_000.0;
/// Commands that the drive chooses from (native command queueing).
const QUEUE_LIMIT: usize = 32;
/// How much each doubling of the queue shortens positioning: by 1 / (1 + gain x log2(depth)).
const QUEUEING_GAIN: f64 = 0.27;

/// A disk with its state.
#[derive(Clone, Debug)]
pub(super) struct DiskModel {
    size_bytes: u64,
    head_bytes: u64,
    head_free_ns: u64,
    link_free_ns: u64,
    /// Completions of reads that the drive has in its queue, in order.
    pending_ns: VecDeque<u64>,
    cache: WriteCache,
    last_write_end_bytes: u64,
}

impl DiskModel {
    /// A disk of `size_bytes` with its head at the outer edge.
    pub(super) fn new(size_bytes: u64) -> Self {
        Self {
            size_bytes: size_bytes.max(1),
            head_bytes: 0,
            head_free_ns: 0,
            link_free_ns: 0,
            pending_ns: VecDeque::with_capacity(QUEUE_LIMIT + 1),
            cache: WriteCache::new(CACHE_BYTES),
            last_write_end_bytes: 0,
        }
    }

    /// When the operation completes.
    pub(super) fn admit(&mut self, now_ns: u64, op: ServiceOp, random: &mut fastrand::Rng) -> u64 {
        match op.op {
            Op::Read => self.read(now_ns, op, random),
            Op::Write | Op::WriteZeroes => self.write(now_ns, op),
            Op::Flush => self.link(now_ns, 0).max(self.cache.drained_ns()),
            Op::Discard | Op::Allocate => self.link(now_ns, 0),
        }
    }

    fn read(&mut self, now_ns: u64, op: ServiceOp, random: &mut fastrand::Rng) -> u64 {
        while self
            .pending_ns
            .front()
            .is_some_and(|&end_ns| end_ns <= now_ns)
        {
            self.pending_ns.pop_front();
        }
        let depth = (self.pending_ns.len() + 1).min(QUEUE_LIMIT);
        let mut cost_ns = self.medium_ns(op);
        // What follows the last read comes out of the read-ahead, at the speed of the medium.
        if op.offset_bytes != self.head_bytes {
            let rotation_ns = REVOLUTION_NS * random.f64();
            let distance_bytes = op.offset_bytes.abs_diff(self.head_bytes);
            let positioning_ns = self.seek_ns(distance_bytes) + rotation_ns;
            cost_ns += COMMAND_NS + positioning_ns * queueing(depth);
        }
        let start_ns = self.head_free_ns.max(now_ns);
        self.head_free_ns = start_ns.saturating_add(cost_ns as u64);
        self.head_bytes = op.offset_bytes.saturating_add(op.len_bytes);
        // Beyond what the drive's queue holds, an operation waits outside.
        if self.pending_ns.len() < QUEUE_LIMIT {
            self.pending_ns.push_back(self.head_free_ns);
        }
        self.head_free_ns
    }

    fn write(&mut self, now_ns: u64, op: ServiceOp) -> u64 {
        let distance_bytes = op.offset_bytes.abs_diff(self.last_write_end_bytes);
        self.last_write_end_bytes = op.offset_bytes.saturating_add(op.len_bytes);
        let mut drain_ns = self.medium_ns(op);
        if distance_bytes > 0 {
            // The cache is written in the best order that a full queue allows.
            let positioning_ns = self.seek_ns(distance_bytes) + REVOLUTION_NS / 2.0;
            drain_ns += positioning_ns * queueing(QUEUE_LIMIT);
        }
        let start_ns = self.link(now_ns, op.len_bytes);
        let room_ns = self.cache.add(start_ns, op.len_bytes, drain_ns);
        if op.flags.contains(Flags::FUA) {
            return room_ns.max(self.cache.drained_ns());
        }
        room_ns
    }

    /// Passes the link; the time at which the operation has arrived.
    fn link(&mut self, now_ns: u64, len_bytes: u64) -> u64 {
        let cost_ns = COMMAND_NS + transfer_ns(len_bytes, LINK_BYTES_PER_S);
        let start_ns = self.link_free_ns.max(now_ns);
        self.link_free_ns = start_ns.saturating_add(cost_ns as u64);
        self.link_free_ns
    }

    /// Time under the head: outer tracks are longer, so they are faster.
    fn medium_ns(&self, op: ServiceOp) -> f64 {
        let place = (op.offset_bytes as f64 / self.size_bytes as f64).min(1.0);
        let speed = OUTER_BYTES_PER_S + (INNER_BYTES_PER_S - OUTER_BYTES_PER_S) * place;
        transfer_ns(op.len_bytes, speed)
    }

    fn seek_ns(&self, distance_bytes: u64) -> f64 {
        // The mean of the square root of the distance of two random places is 8/15.
        const SLOPE_NS: f64 = (AVERAGE_SEEK_NS - SINGLE_TRACK_NS) * 15.0 / 8.0;
        let distance = (distance_bytes as f64 / self.size_bytes as f64).min(1.0);
        SINGLE_TRACK_NS + SLOPE_NS * distance.sqrt()
    }
}

/// What remains of the time for positioning when the drive chooses from `depth` commands.
fn queueing(depth: usize) -> f64 {
    1.0 / (1.0 + QUEUEING_GAIN * (depth.max(1) as f64).log2())
}
