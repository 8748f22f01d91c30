//! Does what the pipeline asks for: runs the cipher here, hands work to the workers, starts operations
//! of the device, and completes requests.
//!
//! All at once and in order, within one round of a [`Queue`]; what ends at once comes back as an event
//! of the next round. Nothing here waits.

#![forbid(unsafe_code)]

use std::num::NonZeroU8;

use std::sync::Arc;

use super::idle::Workers;
use super::{Completion, Ticket};
use crate::buffer::SlotBuffer;
use crate::cipher::SectorCipher;
use crate::clock::Clock;
use crate::device::{DeviceOp, DeviceQueue, Pushed};
use crate::error::{Errno, Result};
use crate::exec::{PoolLoad, Route, Span, Work, run_checked};
use crate::pipeline::{Action, ActionBuffer, Event, Pipeline, Token, Transfer};
use crate::policy::OffloadRules;

/// Most actions of a round that is about one request: its cipher, and what follows.
const ACTIONS_OF_ONE: usize = 2;

/// All of a queue but its state machine.
pub(super) struct Hands {
    /// What has ended since the last round without the device's or the workers' lists: at
    /// `now_ns`.
    pub(super) events: Vec<Event>,
    /// The last time stamp.
    pub(super) now_ns: u64,
    /// Whether `now_ns` still stands for now: neither the caller's code nor a cipher, the device
    /// or the workers took time since.
    pub(super) fresh: bool,
    /// Whether workers could do the writes of this thread, so that what they cost it counts.
    pub(super) weighs_writes: bool,
    /// Operations that the device has not given back.
    pub(super) at_device: usize,
    pub(super) cipher: Option<Arc<dyn SectorCipher>>,
    pub(super) rules: OffloadRules,
    pub(super) clock: Clock,
    // The lane and the device wait for what they hold when they are dropped, so they go before the
    // memory in `buffers`.
    pub(super) workers: Workers,
    pub(super) device: Box<dyn DeviceQueue>,
    pub(super) buffers: Box<[Option<SlotBuffer>]>,
}

impl Hands {
    /// Does the actions, in order, and stamps what they handed over.
    #[inline]
    pub(super) fn execute(
        &mut self,
        pipeline: &mut Pipeline,
        actions: &ActionBuffer,
        done: &mut Vec<Completion>,
    ) {
        // What the state machine did for a batch is time that is not the first one's cipher's.
        self.fresh &= actions.actions().len() <= ACTIONS_OF_ONE;
        let mut turn = Turn::default();
        for action in actions.actions() {
            self.act(action, pipeline, &mut turn, done);
        }
        if turn.handed_over {
            self.device.submit();
        }
        if turn.unstamped {
            let now_ns = self.stamp();
            if turn.handed_over {
                pipeline.record_issued(actions, now_ns);
            }
        }
    }

    #[inline]
    fn act(
        &mut self,
        action: &Action,
        pipeline: &mut Pipeline,
        turn: &mut Turn,
        done: &mut Vec<Completion>,
    ) {
        match *action {
            Action::Crypt { token, ref span } => {
                turn.inline = Some(self.run_inline(token, span, pipeline));
            }
            Action::Offload {
                token,
                ref span,
                parts,
                route,
            } => {
                self.hand_off(token, span, parts, route, pipeline);
                turn.handed_over = true;
                turn.unstamped = true;
            }
            Action::Device {
                token,
                ref transfer,
            } => match turn.inline.take() {
                Some(Err(errno)) => {
                    self.events.push(Event::DeviceDone {
                        token,
                        result: Err(errno),
                    });
                }
                encrypted => {
                    let over = self.push(token, transfer);
                    turn.handed_over |= over.is_none();
                    if self.weighs_writes
                        && encrypted.is_some()
                        && over == Some(Ok(transfer.len_bytes))
                    {
                        let encrypted_ns = self.now_ns;
                        let device_ns = self.stamp().saturating_sub(encrypted_ns);
                        pipeline.record_write(token, device_ns);
                    } else {
                        // The end of its encryption is when a write is queued.
                        turn.unstamped |= over.is_some() || encrypted.is_none();
                    }
                }
            },
            Action::Complete { token, result } => {
                let result = turn.inline.take().unwrap_or(Ok(())).and(result);
                if let Some((request, timing)) = pipeline.finish(token, self.now_ns) {
                    done.push(Completion {
                        ticket: Ticket(token),
                        request,
                        result: result.map(|()| request.len.get()),
                        timing,
                    });
                }
            }
        }
    }

    /// Runs the cipher here, and notes when it ended. It starts with the last stamp where that is
    /// still fresh: reading the clock takes as long as what the state machine did since.
    #[inline]
    fn run_inline(
        &mut self,
        token: Token,
        span: &Span,
        pipeline: &mut Pipeline,
    ) -> Result<(), Errno> {
        let start_ns = match self.fresh {
            true => self.now_ns,
            false => self.clock.now_ns(),
        };
        let result = self.run(token, span);
        self.now_ns = self.clock.now_ns();
        self.fresh = false;
        let cipher_ns = self.now_ns.saturating_sub(start_ns);
        pipeline.record_inline(token, self.now_ns, cipher_ns);
        result
    }

    fn hand_off(
        &mut self,
        token: Token,
        span: &Span,
        parts: NonZeroU8,
        route: Route,
        pipeline: &mut Pipeline,
    ) {
        let Some(buffer) = self.take_buffer(token) else {
            return;
        };
        let work = Work {
            token: token.to_bits(),
            direction: span.direction,
            first: span.first,
            len_bytes: span.len_bytes,
            source: span.source,
            target: span.target,
            buffer,
            parts,
            same_cpu: self.rules.same_cpu,
            wake_each: self.rules.wake_each,
            route,
        };
        let refused = match &mut self.workers {
            Workers::Lane(lane) => lane.hand_off(work).err(),
            Workers::None { .. } => Some(work),
        };
        let Some(Work { buffer, .. }) = refused else {
            return;
        };
        self.put_back(token, Some(buffer));
        self.run_refused(token, span, pipeline);
    }

    /// Full workers never block the queue: the work runs here, and its end is an ordinary event.
    fn run_refused(&mut self, token: Token, span: &Span, pipeline: &mut Pipeline) {
        pipeline.record_refused(token);
        let start_ns = self.clock.now_ns();
        let result = self.run(token, span);
        let cipher_ns = self.clock.now_ns().saturating_sub(start_ns);
        self.events.push(Event::CryptDone {
            token,
            result,
            cipher_ns,
            wait_ns: 0,
        });
    }

    /// Starts a device operation. Where it is over at once, its result, whose event waits.
    #[inline]
    fn push(&mut self, token: Token, transfer: &Transfer) -> Option<Result<u64, Errno>> {
        let op = DeviceOp {
            token: token.to_bits(),
            op: transfer.op,
            flags: transfer.flags,
            offset_bytes: transfer.offset_bytes,
            len_bytes: transfer.len_bytes,
            buffer: self.take_buffer(token),
            area: transfer.area,
            area_offset_bytes: transfer.area_offset_bytes,
        };
        let (result, buffer) = match self.device.push(op) {
            Ok(Pushed::Queued) => {
                self.at_device += 1;
                return None;
            }
            Ok(Pushed::Done(completion)) => (completion.result, completion.buffer),
            // A slot has one operation at a time, so a queue of our depth has room; if it has not,
            // the pipeline's bounded retry deals with it.
            Err(op) => (Err(Errno::EAGAIN), op.buffer),
        };
        self.put_back(token, buffer);
        self.events.push(Event::DeviceDone { token, result });
        Some(result)
    }

    fn run(&mut self, token: Token, span: &Span) -> Result<(), Errno> {
        let buffer = self.buffers.get_mut(token.index()).and_then(Option::as_mut);
        match (&self.cipher, buffer) {
            (Some(cipher), Some(buffer)) => run_checked(cipher.as_ref(), span, buffer),
            _ => Err(Errno::EIO),
        }
    }

    /// How busy the workers are.
    #[inline]
    pub(super) fn load(&mut self) -> PoolLoad {
        match &mut self.workers {
            Workers::Lane(lane) => {
                self.fresh = false;
                lane.load(self.now_ns)
            }
            Workers::None { .. } => PoolLoad::default(),
        }
    }

    /// Tells the workers that something is in flight.
    #[inline]
    pub(super) fn resume(&mut self) {
        if let Workers::Lane(lane) = &mut self.workers {
            lane.resume();
        }
    }

    /// Tells the workers that nothing is in flight.
    #[inline]
    pub(super) fn pause(&mut self) {
        if let Workers::Lane(lane) = &mut self.workers {
            lane.pause(self.now_ns);
        }
    }

    /// Reads the clock.
    #[inline]
    pub(super) fn stamp(&mut self) -> u64 {
        self.now_ns = self.clock.now_ns();
        self.fresh = true;
        self.now_ns
    }

    #[inline]
    fn take_buffer(&mut self, token: Token) -> Option<SlotBuffer> {
        self.buffers.get_mut(token.index()).and_then(Option::take)
    }

    #[inline]
    pub(super) fn put_back(&mut self, token: Token, buffer: Option<SlotBuffer>) {
        if let (Some(place), Some(buffer)) = (self.buffers.get_mut(token.index()), buffer) {
            *place = Some(buffer);
        }
    }
}

/// Where one round of actions has got to.
#[derive(Default)]
struct Turn {
    /// Whether the device or the workers were given something to end later.
    handed_over: bool,
    /// Whether some of that happened at a time that no stamp stands for yet.
    unstamped: bool,
    /// How the inline run just before went: it decides whether the next action, of the same slot,
    /// may happen.
    inline: Option<Result<(), Errno>>,
}
