#![forbid(unsafe_code)]
//! The step function: one for reads and writes, for every policy and every driver.
//!
//! Events are handled first, which yields device operations, completions, and a batch of cipher
//! jobs; then the policy places the batch, and each job becomes an inline run followed by what
//! comes after it, or a hand-off.

use std::num::NonZeroU8;

use super::slots::{Slot, State};
use super::{Action, ActionBuffer, Event, Pipeline, PipelineConfig, Token, Transfer};
use crate::buffer::Area;
use crate::error::Errno;
use crate::exec::{PoolLoad, Source, Span};
use crate::policy::{Direction, Job, Load, Outcome, Placement};
use crate::request::{Op, Request};
use crate::units::SECTOR_BYTES;

/// Most repeats of one device operation without progress.
const MAX_RETRIES: u8 = 64;

/// Most parts of one job.
const MAX_PARTS: u32 = 64;

impl Pipeline {
    /// Advances every slot that the events speak of, and fills `out` with what to do.
    ///
    /// `now_ns` must not go back between calls. `workers` says how busy the pool is; all zero where
    /// there is none.
    pub fn step(
        &mut self,
        now_ns: u64,
        events: &[Event],
        workers: &PoolLoad,
        out: &mut ActionBuffer,
    ) {
        out.actions.clear();
        self.jobs.clear();
        for event in events {
            self.handle(now_ns, event, out);
        }
        if self.jobs.len() > 0 {
            self.place_jobs(now_ns, workers, out);
        }
    }

    fn handle(&mut self, now_ns: u64, event: &Event, out: &mut ActionBuffer) {
        match *event {
            Event::Submit {
                token,
                request,
                submitted_ns,
                in_place,
            } => {
                let Some(slot) = self.slots.in_state(token, &[State::Claimed, State::Done]) else {
                    self.counters.stale_events += 1;
                    return;
                };
                slot.begin(request, submitted_ns, in_place);
                self.slots.count_begin();
                self.start(now_ns, token, request, out);
            }
            Event::DeviceDone { token, result } => self.device_done(now_ns, token, result, out),
            Event::CryptDone {
                token,
                result,
                cipher_ns,
                wait_ns,
            } => {
                self.crypt_done(now_ns, token, result, (cipher_ns, wait_ns), out);
            }
        }
    }

    /// First action of a submitted request.
    fn start(&mut self, now_ns: u64, token: Token, request: Request, out: &mut ActionBuffer) {
        if let Err(errno) = self.config.admit(&request) {
            return self.complete(token, Err(errno), out);
        }
        let encrypted = self.config.crypto_sector_bytes != 0;
        match request.op {
            Op::Write | Op::WriteZeroes if encrypted => self.add_job(token, Direction::Encrypt),
            Op::Read | Op::Write => {
                if let Some(slot) = self.slots.live_mut(token) {
                    slot.begin_chunk(&self.config);
                }
                self.start_transfer(now_ns, token, out);
            }
            Op::Flush | Op::Discard | Op::WriteZeroes | Op::Allocate => {
                self.start_transfer(now_ns, token, out);
            }
        }
    }

    fn device_done(
        &mut self,
        now_ns: u64,
        token: Token,
        result: Result<u64, Errno>,
        out: &mut ActionBuffer,
    ) {
        let Some(slot) = self.slots.in_state(token, &[State::Device, State::Worker]) else {
            self.counters.stale_events += 1;
            return;
        };
        let was = slot.state;
        if was == State::Worker && !slot.routed {
            self.counters.stale_events += 1;
            return;
        }
        slot.timing.device_ns += now_ns.saturating_sub(slot.device_since_ns);
        let progress = slot.progress(result, &self.config);
        self.leave(was);
        match progress {
            Progress::Continue => {
                self.counters.short_transfers += 1;
                self.start_transfer(now_ns, token, out);
            }
            Progress::Retry => {
                self.counters.retries += 1;
                self.start_transfer(now_ns, token, out);
            }
            Progress::Failed(errno) => self.complete(token, Err(errno), out),
            Progress::Decrypt => self.add_job(token, Direction::Decrypt),
            Progress::NextChunk => self.add_job(token, Direction::Encrypt),
            Progress::Done(bytes) => self.complete(token, Ok(bytes), out),
        }
    }

    fn crypt_done(
        &mut self,
        now_ns: u64,
        token: Token,
        result: Result<(), Errno>,
        (cipher_ns, wait_ns): (u64, u64),
        out: &mut ActionBuffer,
    ) {
        let Some(slot) = self.slots.in_state(token, &[State::Worker]) else {
            self.counters.stale_events += 1;
            return;
        };
        slot.timing.cipher_ns += cipher_ns;
        slot.timing.wait_ns += wait_ns;
        let outcome = Outcome {
            job: slot.job,
            placement: slot.timing.placement.unwrap_or(Placement::Inline),
            cipher_ns,
            wait_ns,
            total_ns: now_ns.saturating_sub(slot.placed_ns),
        };
        self.leave(State::Worker);
        self.learn(&outcome);
        match result {
            Ok(()) => self.after_crypt(now_ns, token, outcome.job.direction, out),
            Err(errno) => self.complete(token, Err(errno), out),
        }
    }

    /// What follows cipher work: the device for a write, the end for a read.
    fn after_crypt(
        &mut self,
        now_ns: u64,
        token: Token,
        direction: Direction,
        out: &mut ActionBuffer,
    ) {
        match direction {
            Direction::Encrypt => self.start_transfer(now_ns, token, out),
            Direction::Decrypt => {
                let bytes = self
                    .slots
                    .live_mut(token)
                    .map_or(0, |slot| slot.request.len.get());
                self.complete(token, Ok(bytes), out);
            }
        }
    }

    /// Adds a slot's next cipher work to the batch of this step.
    fn add_job(&mut self, token: Token, direction: Direction) {
        let Some(slot) = self.slots.live_mut(token) else {
            return;
        };
        if direction == Direction::Encrypt {
            slot.begin_chunk(&self.config);
        }
        slot.state = State::Placing;
        let sectors = slot.chunk_bytes / self.config.crypto_sector_bytes.max(1);
        slot.job = Job {
            direction,
            flags: slot.request.flags,
            sector: slot.chunk_sector(),
            len_bytes: slot.chunk_bytes,
            max_parts: sectors.clamp(1, MAX_PARTS) as u8,
        };
        self.jobs.push(token, slot.job);
    }

    fn place_jobs(&mut self, now_ns: u64, workers: &PoolLoad, out: &mut ActionBuffer) {
        let load = Load {
            now_ns,
            depth: self.config.depth,
            in_flight: self.slots.in_flight(),
            at_device: self.at_device,
            at_workers: self.at_workers,
            workers: workers.workers,
            idle_workers: workers.idle_workers,
            awake_workers: workers.awake_workers,
            queued_bytes: workers.queued_bytes,
            costs: self.costs.costs(),
        };
        self.jobs.place(self.policy.as_mut(), &load);
        for index in 0..self.jobs.len() {
            let (token, placement) = self.jobs.placed(index);
            let Some(slot) = self.slots.live_mut(token) else {
                continue;
            };
            let span = slot.span(&self.config);
            slot.timing.placement = Some(placement);
            slot.placed_ns = now_ns;
            match placement {
                Placement::Inline => {
                    self.counters.inline += 1;
                    out.push(Action::Crypt { token, span });
                    self.after_crypt(now_ns, token, span.direction, out);
                }
                Placement::Offload => {
                    self.counters.offload += 1;
                    self.hand_off(now_ns, token, span, NonZeroU8::MIN, out);
                }
                Placement::Split(parts) => {
                    self.counters.split += 1;
                    let most = NonZeroU8::new(slot.job.max_parts).unwrap_or(NonZeroU8::MIN);
                    self.hand_off(now_ns, token, span, parts.min(most), out);
                }
            }
        }
    }

    fn hand_off(
        &mut self,
        now_ns: u64,
        token: Token,
        span: Span,
        parts: NonZeroU8,
        out: &mut ActionBuffer,
    ) {
        let routed =
            span.direction == Direction::Encrypt && self.policy.offload_rules().write_thread;
        let Some(slot) = self.slots.live_mut(token) else {
            return;
        };
        slot.state = State::Worker;
        slot.routed = routed;
        slot.device_since_ns = now_ns;
        let write_thread = routed.then(|| slot.transfer(&self.config));
        self.at_workers += 1;
        out.push(Action::Offload {
            token,
            span,
            parts,
            write_thread,
        });
    }

    fn start_transfer(&mut self, now_ns: u64, token: Token, out: &mut ActionBuffer) {
        let Some(slot) = self.slots.live_mut(token) else {
            return;
        };
        slot.state = State::Device;
        slot.device_since_ns = now_ns;
        self.at_device += 1;
        out.push(Action::Device {
            token,
            transfer: slot.transfer(&self.config),
        });
    }

    fn complete(&mut self, token: Token, result: Result<u64, Errno>, out: &mut ActionBuffer) {
        let Some(slot) = self.slots.live_mut(token) else {
            return;
        };
        slot.state = State::Done;
        self.slots.count_end();
        out.push(Action::Complete { token, result });
    }

    fn leave(&mut self, state: State) {
        match state {
            State::Device => self.at_device -= 1,
            State::Worker => self.at_workers -= 1,
            State::Free | State::Claimed | State::Placing | State::Done => {}
        }
    }
}

/// What a device completion means for its slot.
enum Progress {
    Continue,
    Retry,
    Failed(Errno),
    Decrypt,
    NextChunk,
    Done(u64),
}

impl Slot {
    fn progress(&mut self, result: Result<u64, Errno>, config: &PipelineConfig) -> Progress {
        match result {
            Err(Errno::EAGAIN | Errno::EINTR) if self.retries < MAX_RETRIES => {
                self.retries += 1;
                Progress::Retry
            }
            Err(errno) => Progress::Failed(errno),
            Ok(_) if self.chunk_bytes == 0 => Progress::Done(self.request.len.get()),
            Ok(bytes) => self.transferred(bytes, config),
        }
    }

    /// Counts transferred bytes, in whole device blocks: a direct transfer can only go on from one.
    fn transferred(&mut self, bytes: u64, config: &PipelineConfig) -> Progress {
        let rest = self.chunk_bytes - self.transferred_bytes;
        if bytes == 0 || bytes > u64::from(rest) {
            return Progress::Failed(Errno::EIO);
        }
        let bytes = bytes as u32;
        if bytes < rest {
            let whole = bytes - bytes % config.device_block_bytes;
            self.retries = if whole == 0 { self.retries + 1 } else { 0 };
            self.transferred_bytes += whole;
            let stuck = self.retries >= MAX_RETRIES;
            return if stuck {
                Progress::Failed(Errno::EIO)
            } else {
                Progress::Continue
            };
        }
        self.transferred_bytes = self.chunk_bytes;
        self.chunk_offset_bytes += u64::from(self.chunk_bytes);
        let encrypted = config.crypto_sector_bytes != 0;
        match self.request.op {
            Op::Read if encrypted => {
                // The one chunk of a read is decrypted where it arrived.
                self.chunk_offset_bytes = 0;
                Progress::Decrypt
            }
            Op::WriteZeroes if self.chunk_offset_bytes < self.request.len.get() => {
                Progress::NextChunk
            }
            _ => Progress::Done(self.request.len.get()),
        }
    }

    /// The cipher work of the current chunk.
    fn span(&self, config: &PipelineConfig) -> Span {
        let source = match self.request.op {
            Op::WriteZeroes => Source::Zeroes,
            _ => Source::Area(Area::Data),
        };
        Span {
            direction: self.job.direction,
            first: self.job.sector,
            area_offset_bytes: 0,
            len_bytes: self.job.len_bytes,
            source,
            target: self.device_area(config),
        }
    }

    /// The device operation for what is left of the current chunk, or of the whole request where
    /// it has no payload.
    fn transfer(&self, config: &PipelineConfig) -> Transfer {
        let request = &self.request;
        let payload = self.chunk_bytes != 0;
        let op = match request.op {
            Op::WriteZeroes if payload => Op::Write,
            op => op,
        };
        let start = match request.op {
            Op::Flush => 0,
            _ => config.data_offset_bytes + request.sector.get() * SECTOR_BYTES,
        };
        let done = self.chunk_offset_bytes + u64::from(self.transferred_bytes);
        let len_bytes = match payload {
            true => u64::from(self.chunk_bytes - self.transferred_bytes),
            false => request.len.get(),
        };
        Transfer {
            op,
            flags: request.flags,
            offset_bytes: start + done,
            len_bytes,
            area: self.device_area(config),
            area_offset_bytes: self.transferred_bytes,
        }
    }
}

impl PipelineConfig {
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
        let block = u64::from(self.block_bytes);
        if len == 0 || !start.is_multiple_of(block) || !len.is_multiple_of(block) {
            return Err(Errno::EINVAL);
        }
        let fits_slot = len <= u64::from(self.slot_bytes);
        if end > self.volume_bytes || matches!(request.op, Op::Read | Op::Write) && !fits_slot {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }
}
