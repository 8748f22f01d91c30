//! The request pipeline as a pure state machine: events in, actions out, no thread, file or clock.
//!
//! ```text
//! write:  Submit -> [Crypt | Offload .. CryptDone] -> Device .. DeviceDone -> Complete
//!         Submit -> Offload with a route to the device .. Written -> Complete
//! read:   Submit -> Device .. DeviceDone -> [Crypt | Offload .. CryptDone] -> Complete
//! ```
//!
//! One [`Pipeline`] serves one queue. Its driver owns the memory of the slots and does what the
//! actions say, in order; [`crate::queue::Queue`] is the real driver, a simulator or an embedder's
//! own ring are others. A driver calls, per turn:
//!
//! 1. [`Pipeline::step`] with the events since the last turn, which fills an [`ActionBuffer`];
//! 2. for each [`Action::Crypt`], the cipher, then [`Pipeline::record_inline`] with its time;
//! 3. for each [`Action::Device`] or [`Action::Offload`], the hand-over (and later the event);
//! 4. for each [`Action::Complete`], [`Pipeline::finish`], then [`Pipeline::release`] or a new
//!    [`Event::Submit`] for the same slot once the caller is done with its data.
//!
//! Short transfers are continued, `EAGAIN` and `EINTR` are retried with a bound, a transfer of zero
//! bytes is an error, and a request longer than a slot (`WriteZeroes` on an encrypted volume) is
//! done in slot-sized chunks. Events for a slot that does not expect them are ignored and counted.
//! Nothing here allocates after [`Pipeline::new`] or panics on any event.

#![forbid(unsafe_code)]

mod place;
mod slots;
mod step;
#[cfg(test)]
mod tests;

use std::num::NonZeroU8;

use crate::buffer::Area;
use crate::error::{Errno, Error, ErrorKind, Result};
use crate::exec::{PoolLoad, Route, Span};
use crate::policy::{CostTracker, Costs, Outcome, Placement, Policy};
use crate::request::{Flags, Op, Request};
use crate::units::SECTOR_BYTES;

use place::Jobs;
use slots::Slots;

/// What a pipeline is told once, at start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipelineConfig {
    /// Slots: most requests in flight.
    pub depth: u32,
    /// Longest read or write, and the length of each slot's areas.
    pub slot_bytes: u32,
    /// Capacity of the volume.
    pub volume_bytes: u64,
    /// Where the volume starts on the device.
    pub data_offset_bytes: u64,
    /// Unit of every request: the crypto sector, or the device's block where that is larger.
    pub block_bytes: u32,
    /// The device's own block, to which a short transfer is rounded down before it is continued.
    pub device_block_bytes: u32,
    /// The crypto sector: a request splits into parts at its multiples. 0 where there is no cipher.
    pub crypto_sector_bytes: u32,
    /// Whether `Discard` reaches the device (dm-crypt's `allow_discards`).
    pub allow_discards: bool,
    /// Whether operations that write are refused with `EROFS`.
    pub read_only: bool,
    /// Whether workers can write to the device themselves ([`Route::Worker`]).
    pub worker_writes: bool,
}

/// A slot, and which use of it. Comes back in actions; a stale one is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// The index, and above it the generation: one number, so that it is written and read as one.
    bits: u64,
}

impl Token {
    /// The first use of a slot.
    fn first(index: u32) -> Self {
        Self { bits: index.into() }
    }

    /// Index of the slot, below [`PipelineConfig::depth`].
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.bits as u32 as usize
    }

    /// The token as one number, for a device's or kernel's user data.
    #[inline]
    #[must_use]
    pub fn to_bits(self) -> u64 {
        self.bits
    }

    /// The token that [`Token::to_bits`] made.
    #[inline]
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        Self { bits }
    }

    /// The next use of the same slot.
    #[inline]
    fn next(self) -> Self {
        Self {
            bits: self.bits.wrapping_add(1 << 32),
        }
    }
}

/// Something that happened, for [`Pipeline::step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The caller submits a request with a claimed slot, whose data area holds what is written.
    Submit {
        /// The slot.
        token: Token,
        /// What to do.
        request: Request,
        /// When the caller submitted it.
        submitted_ns: u64,
        /// Whether the plaintext of a write may be overwritten by its ciphertext in the data area.
        in_place: bool,
    },
    /// The device finished what an [`Action::Device`] started.
    DeviceDone {
        /// The slot.
        token: Token,
        /// Bytes transferred.
        result: Result<u64, Errno>,
    },
    /// The workers finished what an [`Action::Offload`] started.
    CryptDone {
        /// The slot.
        token: Token,
        /// Whether it worked.
        result: Result<(), Errno>,
        /// Cipher time summed over the parts.
        cipher_ns: u64,
        /// From hand-off to the start of the first part.
        wait_ns: u64,
    },
    /// The workers or the write thread brought to the device what an [`Action::Offload`] with a route
    /// there started.
    Written {
        /// The slot.
        token: Token,
        /// Bytes transferred.
        result: Result<u64, Errno>,
        /// Cipher time summed over the parts.
        cipher_ns: u64,
        /// From hand-off to the start of the first part.
        wait_ns: u64,
        /// Device time summed over the parts that workers wrote; 0 where they wrote none.
        device_ns: u64,
    },
}

impl Event {
    /// The slot it is about.
    #[inline]
    #[must_use]
    pub fn token(&self) -> Token {
        match *self {
            Self::Submit { token, .. }
            | Self::DeviceDone { token, .. }
            | Self::CryptDone { token, .. }
            | Self::Written { token, .. } => token,
        }
    }
}

/// Something for the driver to do, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Run the cipher on this thread, now, and [`Pipeline::record_inline`]. Where it fails, the
    /// action that follows for the same slot must not be done: a device operation becomes its
    /// failed [`Event::DeviceDone`], a completion gets the error as its result.
    Crypt {
        /// The slot.
        token: Token,
        /// What to encrypt or decrypt.
        span: Span,
    },
    /// Hand cipher work to the workers; [`Event::CryptDone`] follows, or with a route to the device
    /// [`Event::Written`], unless the cipher fails. A driver whose workers are full runs it inline
    /// instead.
    Offload {
        /// The slot.
        token: Token,
        /// What to encrypt or decrypt.
        span: Span,
        /// In how many parts.
        parts: NonZeroU8,
        /// Where the result goes.
        route: Route,
    },
    /// Start a device operation; [`Event::DeviceDone`] follows.
    Device {
        /// The slot.
        token: Token,
        /// The operation.
        transfer: Transfer,
    },
    /// The request is over; [`Pipeline::finish`] gives its timing.
    Complete {
        /// The slot.
        token: Token,
        /// Whether all of it was done, or why not.
        result: Result<(), Errno>,
    },
}

/// One device operation of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// What to do.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// First byte on the device.
    pub offset_bytes: u64,
    /// Length; 0 for a flush.
    pub len_bytes: u64,
    /// Which area of the slot.
    pub area: Area,
    /// Where in the area.
    pub area_offset_bytes: u32,
}

/// Where the time of one request went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// When the caller submitted it.
    pub submitted_ns: u64,
    /// When it was first handed to the device or to a worker; equals `completed_ns` where it never
    /// was. `issued_ns - submitted_ns` is fio's slat.
    pub issued_ns: u64,
    /// When it was over. `completed_ns - submitted_ns` is fio's lat.
    pub completed_ns: u64,
    /// Cipher time, summed over parts and chunks.
    pub cipher_ns: u64,
    /// Time between a hand-off and the start of the work.
    pub wait_ns: u64,
    /// Time at the device as the queue's thread saw it, from when the request was ready for it.
    pub device_ns: u64,
    /// Where the cipher ran, if it ran; of a request in chunks, the last one's.
    pub placement: Option<Placement>,
}

/// Fixed room for the actions of one [`Pipeline::step`]; the caller keeps it and hands it in again.
#[derive(Debug, Default)]
pub struct ActionBuffer {
    actions: Vec<Action>,
}

impl ActionBuffer {
    /// Room for every action that one step of a pipeline of this depth can give.
    #[must_use]
    pub fn for_depth(depth: u32) -> Self {
        Self {
            actions: Vec::with_capacity(2 * depth as usize),
        }
    }

    /// The actions of the last step, in the order to do them.
    #[must_use]
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// Forgets the actions, once they are done.
    pub fn clear(&mut self) {
        self.actions.clear();
    }

    #[inline]
    fn push(&mut self, action: Action) {
        self.actions.push(action);
    }
}

/// How often each placement was used, and events that were not expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Jobs run on the queue's thread.
    pub inline: u64,
    /// Jobs handed to one worker.
    pub offload: u64,
    /// Jobs split over several workers.
    pub split: u64,
    /// Jobs that should have been handed off but were run inline, because the pool was full.
    pub refused: u64,
    /// Device operations repeated after `EAGAIN` or `EINTR`.
    pub retries: u64,
    /// Device operations continued after a short transfer.
    pub short_transfers: u64,
    /// Events ignored because the slot did not expect them.
    pub stale_events: u64,
}

/// The state machine of one queue. See the module documentation for the contract.
#[derive(Debug)]
pub struct Pipeline {
    books: Books,
    slots: Slots,
    policy: Box<dyn Policy>,
    costs: CostTracker,
    jobs: Jobs,
    /// Whether the policy has a choice. Where there are no workers it is not asked, and has
    /// nothing to learn.
    chooses: bool,
    /// The workers when they were last looked at.
    seen: PoolLoad,
    /// Batches that were kept since.
    glances: u32,
}

/// What a pipeline keeps besides its slots, and can change while it looks at one.
#[derive(Debug)]
struct Books {
    config: PipelineConfig,
    counters: Counters,
    in_flight: u32,
    at_device: u32,
    at_workers: u32,
}

impl Pipeline {
    /// A pipeline with all slots free. `costs` are the costs measured at start.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] where the configuration contradicts itself, with the figures.
    pub fn new(config: PipelineConfig, policy: Box<dyn Policy>, costs: Costs) -> Result<Self> {
        config.check()?;
        Ok(Self {
            books: Books {
                config,
                counters: Counters::default(),
                in_flight: 0,
                at_device: 0,
                at_workers: 0,
            },
            slots: Slots::new(config.depth),
            policy,
            costs: CostTracker::new(costs),
            jobs: Jobs::with_capacity(config.depth),
            chooses: false,
            seen: PoolLoad::default(),
            glances: 0,
        })
    }

    /// Takes a free slot; `None` when all are in use.
    #[inline]
    pub fn claim(&mut self) -> Option<Token> {
        self.slots.claim()
    }

    /// Gives a slot back: a claimed one that was not submitted, or one whose request is over.
    ///
    /// Ignored, and counted, for a slot in flight.
    #[inline]
    pub fn release(&mut self, token: Token) {
        if !self.slots.release(token) {
            self.books.counters.stale_events += 1;
        }
    }

    /// Records that an [`Action::Crypt`] took until `now_ns` and `cipher_ns` of work.
    #[inline]
    pub fn record_inline(&mut self, token: Token, now_ns: u64, cipher_ns: u64) {
        let Some(slot) = self.slots.live_mut(token) else {
            return;
        };
        slot.timing.cipher_ns += cipher_ns;
        slot.note_issued(now_ns);
        slot.device_since_ns = now_ns;
        if !self.chooses {
            return;
        }
        let outcome = Outcome {
            job: slot.job,
            placement: Placement::Inline,
            cipher_ns,
            device_ns: 0,
            wait_ns: 0,
            total_ns: now_ns.saturating_sub(slot.placed_ns),
        };
        self.costs.observe(&outcome);
        self.policy.observe(&outcome);
    }

    /// Records that the device took `device_ns` of this thread for all of a write that was encrypted
    /// here, and that a worker could have brought to it.
    #[inline]
    pub fn record_write(&mut self, token: Token, device_ns: u64) {
        if self.chooses
            && let Some(slot) = self.slots.live_mut(token)
        {
            self.costs.observe_write(slot.job.len_bytes, device_ns);
        }
    }

    /// Records that the hand-overs of the last step (its [`Action::Device`] and
    /// [`Action::Offload`]) were done by `now_ns`.
    pub fn record_issued(&mut self, actions: &ActionBuffer, now_ns: u64) {
        for action in actions.actions() {
            if let Action::Device { token, .. } | Action::Offload { token, .. } = *action
                && let Some(slot) = self.slots.live_mut(token)
            {
                slot.note_issued(now_ns);
            }
        }
    }

    /// Records that an [`Action::Offload`] was refused by full workers and is run inline instead.
    ///
    /// The driver runs its span now, then feeds [`Event::CryptDone`].
    pub fn record_refused(&mut self, token: Token) {
        self.books.counters.refused += 1;
        if let Some(slot) = self.slots.live_mut(token) {
            slot.timing.placement = Some(Placement::Inline);
            slot.routed = false;
        }
    }

    /// Ends a request that an [`Action::Complete`] announced; gives it back with its timing.
    ///
    /// The slot's data stays valid until [`Pipeline::release`] or the next [`Event::Submit`].
    /// `None`, and counted, for a stale token.
    #[inline]
    pub fn finish(&mut self, token: Token, now_ns: u64) -> Option<(Request, Timing)> {
        let Some(slot) = self.slots.live_mut(token) else {
            self.books.counters.stale_events += 1;
            return None;
        };
        Some((slot.request, slot.completed(now_ns)))
    }

    /// Requests submitted and not yet complete.
    #[must_use]
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.books.in_flight
    }

    /// Requests at the device, and at the workers or the write thread.
    #[must_use]
    #[inline]
    pub fn outstanding(&self) -> (u32, u32) {
        (self.books.at_device, self.books.at_workers)
    }

    /// How often what was done.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.books.counters
    }

    /// The policy, for its name and rules.
    #[must_use]
    pub fn policy(&self) -> &dyn Policy {
        self.policy.as_ref()
    }

    /// Replaces the policy. Work already placed goes on as it was placed.
    pub fn set_policy(&mut self, policy: Box<dyn Policy>) {
        self.policy = policy;
    }

    /// Costs as measured so far; those at start where there are no workers to choose.
    #[must_use]
    pub fn costs(&self) -> Costs {
        self.costs.costs()
    }

    /// What the pipeline was told at start.
    #[must_use]
    pub fn config(&self) -> &PipelineConfig {
        &self.books.config
    }
}

impl PipelineConfig {
    /// Whether there is a cipher stage.
    #[inline]
    fn encrypts(&self) -> bool {
        self.crypto_sector_bytes != 0
    }

    /// Whether the volume takes the request at all.
    fn admit(&self, request: &Request) -> Result<(), Errno> {
        if request.op == Op::Flush {
            return Ok(());
        }
        if self.read_only && request.op.is_write() {
            return Err(Errno::EROFS);
        }
        if request.op == Op::Discard && !self.allow_discards {
            return Err(Errno::EOPNOTSUPP);
        }
        let start = request.sector.to_bytes().ok_or(Errno::EINVAL)?;
        let len = request.len.get();
        let end = start.checked_add(len).ok_or(Errno::EINVAL)?;
        // Blocks are powers of two, so one test serves start and length.
        let unaligned = (start | len) & u64::from(self.block_bytes - 1) != 0;
        let too_long = matches!(request.op, Op::Read | Op::Write) && len > self.slot_bytes.into();
        if len == 0 || unaligned || end > self.volume_bytes || too_long {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let bad = |what: String| Err(Error::new(ErrorKind::InvalidInput, what));
        if self.depth == 0 || self.depth > MAX_DEPTH {
            return bad(format!(
                "queue depth {} is outside 1..={MAX_DEPTH}",
                self.depth
            ));
        }
        let block = self.block_bytes;
        if !block.is_power_of_two() || u64::from(block) < SECTOR_BYTES {
            return bad(format!(
                "block size {block} is not a power of two from 512 bytes up"
            ));
        }
        if self.slot_bytes == 0 || !self.slot_bytes.is_multiple_of(block) {
            return bad(format!(
                "slot length {} is not a multiple of the block size {block}",
                self.slot_bytes
            ));
        }
        let part = self.crypto_sector_bytes;
        if part != 0 && !(part.is_power_of_two() && part <= block) {
            return bad(format!(
                "crypto sector {part} is no power of two up to block size {block}"
            ));
        }
        let device_block = self.device_block_bytes;
        if device_block == 0 || !block.is_multiple_of(device_block) {
            return bad(format!(
                "block size {block} is not a multiple of the device's {device_block}"
            ));
        }
        if self
            .data_offset_bytes
            .checked_add(self.volume_bytes)
            .is_none()
        {
            return bad(format!(
                "a volume of {} bytes at offset {} ends beyond 64-bit addresses",
                self.volume_bytes, self.data_offset_bytes
            ));
        }
        Ok(())
    }
}

/// Most slots of one queue; io_uring's largest ring is 32768 entries.
pub const MAX_DEPTH: u32 = 16_384;
