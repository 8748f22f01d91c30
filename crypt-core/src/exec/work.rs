//! What a queue hands to the workers and what it gets back: plain values, no behaviour.
#![forbid(unsafe_code)]

use std::num::NonZeroU8;

use super::span::{Source, Span};
use crate::buffer::{Area, SlotBuffer};
use crate::error::Errno;
use crate::policy::Direction;
use crate::request::Flags;
use crate::units::SectorIndex;

/// Cipher work to hand off. It owns the slot's memory until it comes back in [`Done`].
#[derive(Debug)]
pub struct Work {
    /// Comes back in [`Done`]; no meaning to the workers.
    pub token: u64,
    /// Encrypt or decrypt.
    pub direction: Direction,
    /// The 512-byte sector of the first byte, counted from the start of the encrypted segment.
    pub first: SectorIndex,
    /// Length from the start of the areas, a multiple of the crypto sector, not zero.
    pub len_bytes: u32,
    /// What is read.
    pub source: Source,
    /// What is written.
    pub target: Area,
    /// The memory.
    pub buffer: SlotBuffer,
    /// How many workers may share the work; at most one crypto sector each.
    pub parts: NonZeroU8,
    /// Whether the work should run on the CPU that hands it off. Honoured where the pool has a
    /// worker pinned to that CPU.
    pub same_cpu: bool,
    /// Whether a sleeping worker is woken for each part, though others may be awake.
    pub wake_each: bool,
    /// Where the result goes.
    pub route: Route,
}

/// Whom a hand-off calls to the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Summons {
    /// As many workers as what is queued is worth.
    Worth,
    /// One worker per part.
    Each,
    /// The worker pinned to this CPU.
    OwnCpu,
}

impl Work {
    pub(crate) fn summons(&self) -> Summons {
        match (self.same_cpu, self.wake_each) {
            (true, _) => Summons::OwnCpu,
            (false, true) => Summons::Each,
            (false, false) => Summons::Worth,
        }
    }

    /// The whole work as one span, to run inline with [`run_span`](super::span::run_span).
    #[must_use]
    pub fn span(&self) -> Span {
        Span {
            direction: self.direction,
            first: self.first,
            area_offset_bytes: 0,
            len_bytes: self.len_bytes,
            source: self.source,
            target: self.target,
        }
    }
}

/// Where handed-off work goes when its last part has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Back to the queue's thread.
    Return,
    /// To the device, by the thread that has encrypted the data: each part writes its own range. Only
    /// the result comes back: the bytes written without a gap from the start, or the first error.
    /// Work whose cipher fails comes back as [`DoneKind::Crypt`]; others of its parts may have been
    /// written then.
    Worker {
        /// First byte on the device.
        offset_bytes: u64,
        /// Flags of the writes.
        flags: Flags,
    },
    /// To the volume's write thread, which writes the target area to the device; only the result
    /// of that write comes back. Work that fails comes back at once.
    WriteThread {
        /// First byte on the device.
        offset_bytes: u64,
        /// Flags of the write.
        flags: Flags,
    },
}

/// The end of one [`Work`].
#[derive(Debug)]
pub struct Done {
    /// The work's token.
    pub token: u64,
    /// The work's memory, given back. `None` only where the write thread's device lost it, which
    /// its contract forbids.
    pub buffer: Option<SlotBuffer>,
    /// What ended, and how.
    pub result: DoneKind,
    /// Cipher time, summed over the parts.
    pub cipher_ns: u64,
    /// From the hand-off to the start of the first part.
    pub wait_ns: u64,
    /// Time of the device with [`Route::Worker`], summed over the parts; 0 with others.
    pub device_ns: u64,
}

/// What a [`Done`] is the end of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoneKind {
    /// The cipher work. The first error of any part wins.
    Crypt(Result<(), Errno>),
    /// The write that followed it: bytes written (may be short), or why not.
    Device(Result<u64, Errno>),
}
