#![forbid(unsafe_code)]
//! The fixed table of request slots: which are free, and the state of those that are not.
//!
//! A slot is free, claimed (the caller fills it), at the device, at a worker, or done (the caller
//! reads it). Its generation changes with each release, so that a late event finds it stale.

use super::{PipelineConfig, Timing, Token};
use crate::buffer::Area;
use crate::policy::{Direction, Job};
use crate::request::{Flags, Op, Request};
use crate::units::SectorIndex;

/// Who holds the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Free,
    Claimed,
    /// Its cipher work waits for the policy; only within one step.
    Placing,
    Device,
    Worker,
    Done,
}

/// One request on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) state: State,
    pub(super) generation: u32,
    pub(super) request: Request,
    /// Whether a write's plaintext may be overwritten where it is.
    pub(super) in_place: bool,
    /// Whether the write thread brings the result to the device.
    pub(super) routed: bool,
    /// Bytes of the request done before the current chunk.
    pub(super) chunk_offset_bytes: u64,
    /// Length of the current chunk.
    pub(super) chunk_bytes: u32,
    /// Bytes of the current chunk that the device has transferred.
    pub(super) transferred_bytes: u32,
    /// Repeats since the last progress.
    pub(super) retries: u8,
    pub(super) job: Job,
    pub(super) placed_ns: u64,
    pub(super) device_since_ns: u64,
    pub(super) timing: Timing,
    issued: bool,
}

impl Slot {
    fn new() -> Self {
        Self {
            state: State::Free,
            generation: 0,
            request: Request::flush(),
            in_place: false,
            routed: false,
            chunk_offset_bytes: 0,
            chunk_bytes: 0,
            transferred_bytes: 0,
            retries: 0,
            job: Job {
                direction: Direction::Encrypt,
                flags: Flags::empty(),
                sector: SectorIndex::new(0),
                len_bytes: 0,
                max_parts: 1,
            },
            placed_ns: 0,
            device_since_ns: 0,
            timing: Timing::default(),
            issued: false,
        }
    }

    /// Starts a new request in the slot.
    pub(super) fn begin(&mut self, request: Request, submitted_ns: u64, in_place: bool) {
        self.request = request;
        self.in_place = in_place;
        self.routed = false;
        self.chunk_offset_bytes = 0;
        self.chunk_bytes = 0;
        self.transferred_bytes = 0;
        self.retries = 0;
        self.timing = Timing {
            submitted_ns,
            ..Timing::default()
        };
        self.issued = false;
    }

    /// Makes the next chunk of at most a slot's length current.
    pub(super) fn begin_chunk(&mut self, config: &PipelineConfig) {
        let rest = self
            .request
            .len
            .get()
            .saturating_sub(self.chunk_offset_bytes);
        self.chunk_bytes = rest.min(u64::from(config.slot_bytes)) as u32;
        self.transferred_bytes = 0;
        self.retries = 0;
    }

    /// Notes when the request first left the queue's thread; later calls change nothing.
    pub(super) fn note_issued(&mut self, now_ns: u64) {
        if !self.issued {
            self.issued = true;
            self.timing.issued_ns = now_ns;
        }
    }

    /// First sector of the current chunk, in the volume.
    pub(super) fn chunk_sector(&self) -> SectorIndex {
        SectorIndex::new(self.request.sector.get() + self.chunk_offset_bytes / 512)
    }

    /// The area that the device transfers from or to.
    pub(super) fn device_area(&self, config: &PipelineConfig) -> Area {
        let bounced = config.crypto_sector_bytes != 0 && !self.in_place;
        match self.request.op {
            Op::Write | Op::WriteZeroes if bounced => Area::Bounce,
            _ => Area::Data,
        }
    }
}

/// All slots of one queue.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Box<[Slot]>,
    free: Vec<u32>,
    in_flight: u32,
}

impl Slots {
    pub(super) fn new(depth: u32) -> Self {
        Self {
            slots: vec![Slot::new(); depth as usize].into_boxed_slice(),
            free: (0..depth).rev().collect(),
            in_flight: 0,
        }
    }

    pub(super) fn claim(&mut self) -> Option<Token> {
        let index = self.free.pop()?;
        let slot = &mut self.slots[index as usize];
        slot.state = State::Claimed;
        Some(Token {
            index,
            generation: slot.generation,
        })
    }

    /// Frees a claimed or done slot; false where it is neither.
    pub(super) fn release(&mut self, token: Token) -> bool {
        let Some(slot) = self.live_mut(token) else {
            return false;
        };
        if !matches!(slot.state, State::Claimed | State::Done) {
            return false;
        }
        slot.state = State::Free;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(token.index);
        true
    }

    /// The slot of a token that is not stale.
    #[inline]
    pub(super) fn live_mut(&mut self, token: Token) -> Option<&mut Slot> {
        self.slots
            .get_mut(token.index())
            .filter(|slot| slot.generation == token.generation)
    }

    /// The slot of a token, if it is in one of these states.
    #[inline]
    pub(super) fn in_state(&mut self, token: Token, states: &[State]) -> Option<&mut Slot> {
        self.live_mut(token)
            .filter(|slot| states.contains(&slot.state))
    }

    pub(super) fn count_begin(&mut self) {
        self.in_flight += 1;
    }

    pub(super) fn count_end(&mut self) {
        self.in_flight -= 1;
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }
}
