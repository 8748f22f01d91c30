//! The fixed table of request slots, and how one request goes through its states.
//!
//! A slot is free, claimed (the caller fills it), at the device, at a worker, or done (the caller
//! reads it). Its generation changes with each release, so that a late event finds it stale. A
//! request is done in chunks of at most a slot's length; reads and writes are one chunk.
#![forbid(unsafe_code)]

use super::{Counters, Event, PipelineConfig, Timing, Token, Transfer};
use crate::buffer::Area;
use crate::error::Errno;
use crate::exec::{Source, Span};
use crate::policy::{Direction, Job, Outcome, Placement};
use crate::request::{Flags, Op, Request};
use crate::units::{SECTOR_BYTES, SectorIndex};

/// Most repeats of one device operation without progress.
const MAX_RETRIES: u8 = 64;

/// Most parts of one job.
const MAX_PARTS: u32 = 64;

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

/// What a slot needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Device,
    Crypt(Direction),
    Done,
    Fail(Errno),
}

/// One request on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) state: State,
    /// Of the slot's current use.
    pub(super) token: Token,
    pub(super) request: Request,
    /// Whether a write's plaintext may be overwritten where it is.
    in_place: bool,
    /// Whether workers or the write thread bring the result to the device.
    pub(super) routed: bool,
    /// Whether `timing.issued_ns` is set.
    issued: bool,
    /// Repeats since the last progress.
    retries: u8,
    /// Length of the current chunk; 0 for an operation without payload.
    chunk_bytes: u32,
    /// Bytes of the current chunk that the device has transferred.
    transferred_bytes: u32,
    /// Bytes of the request done before the current chunk.
    chunk_offset_bytes: u64,
    pub(super) job: Job,
    pub(super) placed_ns: u64,
    pub(super) device_since_ns: u64,
    pub(super) timing: Timing,
}

impl Slot {
    fn new(index: u32) -> Self {
        Self {
            state: State::Free,
            token: Token::first(index),
            request: Request::flush(),
            in_place: false,
            routed: false,
            issued: false,
            retries: 0,
            chunk_bytes: 0,
            transferred_bytes: 0,
            chunk_offset_bytes: 0,
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
        }
    }

    /// Whether the event fits the slot's state.
    #[inline]
    pub(super) fn expects(&self, event: &Event) -> bool {
        match (event, self.state) {
            (Event::Submit { .. }, State::Claimed | State::Done)
            | (Event::DeviceDone { .. }, State::Device)
            | (Event::CryptDone { .. }, State::Worker) => true,
            (Event::Written { .. }, State::Worker) => self.routed,
            _ => false,
        }
    }

    /// Starts a request.
    #[inline]
    pub(super) fn submit(
        &mut self,
        request: &Request,
        submitted_ns: u64,
        in_place: bool,
        config: &PipelineConfig,
    ) -> Next {
        self.request = *request;
        self.in_place = in_place;
        self.routed = false;
        self.issued = false;
        self.chunk_bytes = 0;
        self.transferred_bytes = 0;
        self.chunk_offset_bytes = 0;
        self.retries = 0;
        self.timing = Timing {
            submitted_ns,
            ..Timing::default()
        };
        if let Err(errno) = config.admit(request) {
            return Next::Fail(errno);
        }
        match request.op {
            Op::Write | Op::WriteZeroes if config.encrypts() => Next::Crypt(Direction::Encrypt),
            Op::Read | Op::Write => {
                self.chunk_bytes = request.len.get() as u32;
                Next::Device
            }
            Op::Flush | Op::Discard | Op::WriteZeroes | Op::Allocate => Next::Device,
        }
    }

    /// Takes in what the device did.
    #[inline(always)]
    pub(super) fn device_done(
        &mut self,
        now_ns: u64,
        result: Result<u64, Errno>,
        config: &PipelineConfig,
        counters: &mut Counters,
    ) -> Next {
        self.note_issued(now_ns);
        self.timing.device_ns += now_ns.saturating_sub(self.device_since_ns);
        match result {
            Err(Errno::EAGAIN | Errno::EINTR) if self.retries < MAX_RETRIES => {
                self.retries += 1;
                counters.retries += 1;
                Next::Device
            }
            Err(errno) => Next::Fail(errno),
            Ok(_) if self.chunk_bytes == 0 => Next::Done,
            Ok(bytes) => self.transferred(bytes, config, counters),
        }
    }

    /// Counts transferred bytes, in whole device blocks: a direct transfer can only go on from one.
    #[inline]
    fn transferred(
        &mut self,
        bytes: u64,
        config: &PipelineConfig,
        counters: &mut Counters,
    ) -> Next {
        let rest = self.chunk_bytes - self.transferred_bytes;
        if bytes == 0 || bytes > u64::from(rest) {
            return Next::Fail(Errno::EIO);
        }
        if bytes == u64::from(rest) {
            return self.chunk_done(config);
        }
        counters.short_transfers += 1;
        let whole = bytes as u32 / config.device_block_bytes * config.device_block_bytes;
        self.transferred_bytes += whole;
        self.retries = if whole == 0 { self.retries + 1 } else { 0 };
        match self.retries < MAX_RETRIES {
            true => Next::Device,
            false => Next::Fail(Errno::EIO),
        }
    }

    #[inline]
    fn chunk_done(&mut self, config: &PipelineConfig) -> Next {
        match self.request.op {
            Op::Read if config.encrypts() => Next::Crypt(Direction::Decrypt),
            Op::WriteZeroes => {
                self.chunk_offset_bytes += u64::from(self.chunk_bytes);
                match self.chunk_offset_bytes < self.request.len.get() {
                    true => Next::Crypt(Direction::Encrypt),
                    false => Next::Done,
                }
            }
            _ => Next::Done,
        }
    }

    /// Takes in what the workers did; the outcome of the job.
    pub(super) fn crypt_done(&mut self, now_ns: u64, cipher_ns: u64, wait_ns: u64) -> Outcome {
        self.timing.cipher_ns += cipher_ns;
        self.timing.wait_ns += wait_ns;
        Outcome {
            job: self.job,
            placement: self.timing.placement.unwrap_or(Placement::Inline),
            cipher_ns,
            device_ns: 0,
            wait_ns,
            total_ns: now_ns.saturating_sub(self.placed_ns),
        }
    }

    /// Takes in what workers did who brought it to the device, or gave it to the write thread; the
    /// outcome of the job. What was neither waiting nor the cipher was the device.
    pub(super) fn written(
        &mut self,
        now_ns: u64,
        cipher_ns: u64,
        wait_ns: u64,
        device_ns: u64,
    ) -> Outcome {
        let outcome = self.crypt_done(now_ns, cipher_ns, wait_ns);
        let rest_ns = outcome.total_ns.saturating_sub(cipher_ns + wait_ns);
        self.device_since_ns = now_ns.saturating_sub(rest_ns.max(device_ns));
        Outcome {
            device_ns,
            ..outcome
        }
    }

    /// What follows cipher work: the device for a write, the end for a read.
    #[inline]
    pub(super) fn after_crypt(&self) -> Next {
        match self.job.direction {
            Direction::Encrypt => Next::Device,
            Direction::Decrypt => Next::Done,
        }
    }

    /// Sets the next cipher work: a read's one chunk where it arrived, or a write's next chunk.
    #[inline]
    pub(super) fn plan_job(&mut self, direction: Direction, config: &PipelineConfig) {
        if direction == Direction::Encrypt {
            let rest = self.request.len.get() - self.chunk_offset_bytes;
            self.chunk_bytes = rest.min(u64::from(config.slot_bytes)) as u32;
            self.transferred_bytes = 0;
            self.retries = 0;
        }
        let sectors = self.chunk_bytes >> config.crypto_sector_bytes.trailing_zeros().min(31);
        self.job = Job {
            direction,
            flags: self.request.flags,
            sector: SectorIndex::new(
                self.request.sector.get() + self.chunk_offset_bytes / SECTOR_BYTES,
            ),
            len_bytes: self.chunk_bytes,
            max_parts: sectors.clamp(1, MAX_PARTS) as u8,
        };
    }

    /// The cipher work of the current chunk.
    #[inline]
    pub(super) fn span(&self, config: &PipelineConfig) -> Span {
        Span {
            direction: self.job.direction,
            first: self.job.sector,
            area_offset_bytes: 0,
            len_bytes: self.job.len_bytes,
            source: match self.request.op {
                Op::WriteZeroes => Source::Zeroes,
                _ => Source::Area(Area::Data),
            },
            target: self.device_area(config),
        }
    }

    /// The device operation for what is left of the current chunk, or of the whole request where
    /// it has no payload.
    #[inline]
    pub(super) fn transfer(&self, config: &PipelineConfig) -> Transfer {
        let request = &self.request;
        let start = match request.op {
            Op::Flush => 0,
            _ => config.data_offset_bytes + request.sector.get() * SECTOR_BYTES,
        };
        let (op, len_bytes) = match self.chunk_bytes {
            0 => (request.op, request.len.get()),
            chunk if request.op == Op::Read => {
                (Op::Read, u64::from(chunk - self.transferred_bytes))
            }
            chunk => (Op::Write, u64::from(chunk - self.transferred_bytes)),
        };
        Transfer {
            op,
            flags: request.flags,
            offset_bytes: start + self.chunk_offset_bytes + u64::from(self.transferred_bytes),
            len_bytes,
            area: self.device_area(config),
            area_offset_bytes: self.transferred_bytes,
        }
    }

    /// The area that the device transfers from or to.
    #[inline]
    fn device_area(&self, config: &PipelineConfig) -> Area {
        match self.request.op {
            Op::Write | Op::WriteZeroes if config.encrypts() && !self.in_place => Area::Bounce,
            _ => Area::Data,
        }
    }

    /// The timing of a request that is over.
    #[inline]
    pub(super) fn completed(&self, now_ns: u64) -> Timing {
        Timing {
            issued_ns: match self.issued {
                true => self.timing.issued_ns,
                false => now_ns,
            },
            completed_ns: now_ns,
            ..self.timing
        }
    }

    /// Notes when the request first left the queue's thread; later calls change nothing.
    #[inline]
    pub(super) fn note_issued(&mut self, now_ns: u64) {
        if !self.issued {
            self.issued = true;
            self.timing.issued_ns = now_ns;
        }
    }
}

/// All slots of one queue.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Box<[Slot]>,
    free: Vec<u32>,
}

impl Slots {
    pub(super) fn new(depth: u32) -> Self {
        Self {
            slots: (0..depth).map(Slot::new).collect(),
            free: (0..depth).rev().collect(),
        }
    }

    #[inline]
    pub(super) fn claim(&mut self) -> Option<Token> {
        let index = self.free.pop()?;
        let slot = &mut self.slots[index as usize];
        slot.state = State::Claimed;
        Some(slot.token)
    }

    /// Frees a claimed or done slot; false where it is neither.
    #[inline]
    pub(super) fn release(&mut self, token: Token) -> bool {
        let Some(slot) = self.live_mut(token) else {
            return false;
        };
        if !matches!(slot.state, State::Claimed | State::Done) {
            return false;
        }
        slot.state = State::Free;
        slot.token = token.next();
        self.free.push(token.index() as u32);
        true
    }

    /// The slot of a token that is not stale.
    #[inline]
    pub(super) fn live_mut(&mut self, token: Token) -> Option<&mut Slot> {
        self.slots
            .get_mut(token.index())
            .filter(|slot| slot.token == token)
    }

    /// The slot of a token that was live before in the same step.
    #[inline]
    pub(super) fn at(&self, token: Token) -> &Slot {
        &self.slots[token.index()]
    }

    /// As [`Slots::at`], to change it.
    #[inline]
    pub(super) fn at_mut(&mut self, token: Token) -> &mut Slot {
        &mut self.slots[token.index()]
    }
}
