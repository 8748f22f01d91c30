//! Does what the pipeline asks for: runs the cipher here, hands work to the workers, starts operations
//! of the device, and completes requests.
//!
//! All at once and in order, within one round of a [`Queue`]; what ends at once comes back as an event
//! of the next round. Nothing here waits.

#![forbid(unsafe_code)]

use std::num::NonZeroU8;

use super::idle::Workers;
use super::{Completion, Queue, Ticket, put_back};
use crate::buffer::SlotBuffer;
use crate::device::{DeviceOp, Pushed};
use crate::error::{Errno, Result};
use crate::exec::{Route, Span, Work, run_span};
use crate::pipeline::{Action, Event, Token, Transfer};

impl Queue {
    /// Does the actions, in order, and stamps what they handed over.
    pub(super) fn execute(&mut self, done: &mut Vec<Completion>) {
        let mut actions = std::mem::take(&mut self.actions);
        let mut turn = Turn::default();
        for action in actions.actions() {
            self.act(action, &mut turn, done);
        }
        if turn.handed_over {
            self.device.submit();
        }
        if turn.unstamped {
            self.now_ns = self.clock.now_ns();
            if turn.handed_over {
                self.pipeline.record_issued(&actions, self.now_ns);
            }
        }
        actions.clear();
        self.actions = actions;
    }

    fn act(&mut self, action: &Action, turn: &mut Turn, done: &mut Vec<Completion>) {
        match *action {
            Action::Crypt { token, ref span } => self.run_inline(token, span, turn),
            Action::Offload {
                token,
                ref span,
                parts,
                ref write_thread,
            } => {
                self.hand_off(token, span, parts, write_thread.as_ref());
                turn.handed_over = true;
                turn.unstamped = true;
            }
            Action::Device {
                token,
                ref transfer,
            } => match turn.inline_result(token) {
                Some(Err(errno)) => {
                    self.events.push(Event::DeviceDone {
                        token,
                        result: Err(errno),
                    });
                }
                encrypted => {
                    let queued = self.push(token, transfer);
                    turn.handed_over |= queued;
                    // The end of its encryption is when a write is queued.
                    turn.unstamped |= !queued || encrypted.is_none();
                }
            },
            Action::Complete { token, result } => {
                let result = turn
                    .inline_result(token)
                    .map_or(result, |inline| inline.and(result));
                if let Some((request, timing)) = self.pipeline.finish(token, self.now_ns) {
                    done.push(Completion {
                        ticket: Ticket(token),
                        request: *request,
                        result: result.map(|()| request.len.get()),
                        timing: *timing,
                    });
                }
            }
        }
    }

    /// Runs the cipher here, and notes in `turn` when it ended, and how.
    fn run_inline(&mut self, token: Token, span: &Span, turn: &mut Turn) {
        let start_ns = self.clock.now_ns();
        let result = self.run(token, span);
        let end_ns = self.clock.now_ns();
        self.pipeline
            .record_inline(token, end_ns, end_ns.saturating_sub(start_ns));
        self.now_ns = end_ns;
        turn.inline = Some((token, result));
    }

    fn hand_off(
        &mut self,
        token: Token,
        span: &Span,
        parts: NonZeroU8,
        write_thread: Option<&Transfer>,
    ) {
        let Some(buffer) = self.take_buffer(token) else {
            return;
        };
        let route = match write_thread {
            Some(&Transfer {
                offset_bytes,
                flags,
                ..
            }) => Route::WriteThread {
                offset_bytes,
                flags,
            },
            None => Route::Return,
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
        put_back(&mut self.buffers, token, Some(buffer));
        self.run_refused(token, span);
    }

    /// Full workers never block the queue: the work runs here, and its end is an ordinary event.
    fn run_refused(&mut self, token: Token, span: &Span) {
        self.pipeline.record_refused(token);
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

    /// Starts a device operation; false where it is over at once, and its event waits.
    fn push(&mut self, token: Token, transfer: &Transfer) -> bool {
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
                return true;
            }
            Ok(Pushed::Done(completion)) => (completion.result, completion.buffer),
            // A slot has one operation at a time, so a queue of our depth has room; if it has not,
            // the pipeline's bounded retry deals with it.
            Err(op) => (Err(Errno::EAGAIN), op.buffer),
        };
        put_back(&mut self.buffers, token, buffer);
        self.events.push(Event::DeviceDone { token, result });
        false
    }

    fn run(&mut self, token: Token, span: &Span) -> Result<(), Errno> {
        let buffer = self.buffers.get_mut(token.index()).and_then(Option::as_mut);
        match (&self.cipher, buffer) {
            (Some(cipher), Some(buffer)) => run_span(cipher.as_ref(), span, buffer),
            _ => Err(Errno::EIO),
        }
    }

    fn take_buffer(&mut self, token: Token) -> Option<SlotBuffer> {
        self.buffers.get_mut(token.index()).and_then(Option::take)
    }
}

/// Where one round of actions has got to.
#[derive(Default)]
struct Turn {
    /// Whether the device or the workers were given something to end later.
    handed_over: bool,
    /// Whether some of that happened at a time that no stamp stands for yet.
    unstamped: bool,
    /// The last inline run: it decides whether what follows it for its slot may happen.
    inline: Option<(Token, Result<(), Errno>)>,
}

impl Turn {
    /// How the inline run that came just before went, where it was this slot's.
    fn inline_result(&self, token: Token) -> Option<Result<(), Errno>> {
        self.inline
            .filter(|&(of, _)| of == token)
            .map(|(_, result)| result)
    }
}
