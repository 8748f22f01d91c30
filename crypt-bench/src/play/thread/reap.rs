//! The end of requests: what is waited for, what is recorded, and what ends the thread.

#![forbid(unsafe_code)]

use std::time::Duration;

use crypt_core::Completion;
use crypt_core::error::Errno;
use crypt_core::request::{Op, Request};

use super::super::gate::Turn;
use super::{ANY_NS, LOOK_NS, Worker};
use crate::record::Window;

impl Worker {
    /// Waits for completions and accounts for them.
    #[inline(always)]
    pub(super) fn complete(&mut self, wait_ns: u64) -> Result<(), String> {
        // Waiting with a limit costs looks at the clock, polling does not.
        self.turns.handed_over();
        if !self.turns.has_ready() {
            self.gather(wait_ns)?;
        }
        if !self.turns.are_unlimited() {
            self.take_turns();
            return Ok(());
        }
        if self.done.is_empty() {
            self.seen_ns = self.clock.now_ns();
        }
        let mut done = std::mem::take(&mut self.done);
        // Accounted for where they are: moving one takes as long as two histograms.
        for completion in &mut done {
            self.account(completion);
        }
        self.in_flight -= done.len() as u32;
        while let Some(completion) = done.pop() {
            self.idle.push(completion.ticket);
        }
        self.done = done;
        Ok(())
    }

    /// Waits for as many completions as are to come together.
    #[inline(always)]
    fn gather(&mut self, wait_ns: u64) -> Result<(), String> {
        let awaited = self.gate.awaited(self.in_flight);
        if self.done.is_empty() {
            self.queue.poll(&mut self.done);
        }
        while self.done.len() < awaited {
            let before = self.done.len();
            let limit = Duration::from_nanos(wait_ns.min(LOOK_NS));
            self.queue
                .wait(&mut self.done, (wait_ns != ANY_NS).then_some(limit))
                .map_err(|error| error.to_string())?;
            if self.done.len() == before {
                break;
            }
        }
        Ok(())
    }

    /// Accounts for the completions whose turn it is.
    fn take_turns(&mut self) {
        self.seen_ns = self.clock.now_ns();
        self.turns.line_up(&mut self.done);
        let mut turns = std::mem::take(&mut self.turns);
        for completion in turns.take(self.seen_ns) {
            self.finish(completion);
        }
        self.turns = turns;
    }

    fn finish(&mut self, mut completion: Completion) {
        self.in_flight -= 1;
        self.account(&mut completion);
        self.idle.push(completion.ticket);
    }

    #[inline(always)]
    fn account(&mut self, completion: &mut Completion) {
        let bytes = match completion.result {
            Ok(bytes) => bytes,
            Err(errno) => return self.failed(completion.request, errno),
        };
        if self.compares && completion.request.op == Op::Read {
            self.ended |= !self.compare(completion, bytes);
        }
        self.seen_ns = self.seen_ns.max(completion.timing.completed_ns);
        if let Some((ios, all_bytes)) = &mut self.tally {
            (*ios, *all_bytes) = (*ios + 1, *all_bytes + bytes);
        }
        if self.judges && completion.request.op != Op::Flush {
            self.judge(completion);
        }
        self.correct(&mut completion.timing);
        let timing = &mut completion.timing;
        let slot = self.slots.get(completion.ticket.index());
        let Some(slot) = slot.copied().filter(|slot| slot.counted) else {
            return;
        };
        // The end is seen a moment late; what was submitted then belongs to the last slice.
        let last = || self.window.slices().saturating_sub(1);
        let slice = self.window.slice_of(timing.submitted_ns);
        let slice = slice.unwrap_or_else(last);
        self.last_ns = self.last_ns.max(timing.completed_ns);
        let direction = usize::from(completion.request.op == Op::Write);
        let recorder = match completion.request.op {
            Op::Read => &mut self.played.read,
            Op::Write => &mut self.played.write,
            _ => &mut self.played.flush,
        };
        recorder.record(timing, bytes, slice);
        if completion.request.op == Op::Flush {
            return;
        }
        if let Some(log) = &mut self.log {
            log.record(timing, bytes, direction == 1);
        }
        if let Some(lateness) = &mut self.played.lateness {
            lateness.record(timing.submitted_ns.saturating_sub(slot.due_ns));
        }
        if let Some(intended) = &mut self.played.intended {
            timing.submitted_ns = slot.due_ns;
            intended[direction].record(timing, bytes, slice);
        }
    }

    pub(super) fn failed(&mut self, request: Request, errno: Errno) {
        let borne = self.player.conduct.tolerance.bears(request.op, errno);
        self.played.fail(request, errno, borne);
        self.ended |= !borne;
    }

    /// Holds a latency against the limits there are.
    fn judge(&mut self, completion: &Completion) {
        let timing = &completion.timing;
        let latency_ns = timing.completed_ns.saturating_sub(timing.submitted_ns);
        let direction = usize::from(completion.request.op == Op::Write);
        let most_ns = self.player.conduct.max_latency_ns[direction];
        let is_over = most_ns.is_some_and(|most_ns| latency_ns > most_ns);
        if !self.gate.completed(latency_ns) || is_over {
            self.played
                .fail(completion.request, Errno::ETIMEDOUT, false);
            self.ended = true;
        }
    }

    pub(super) fn look_at_gate(&mut self) {
        match self.gate.look(self.seen_ns, self.in_flight) {
            Turn::On => {}
            Turn::End => self.ended = true,
            Turn::Restart => {
                let rest_ns = self.window.end_ns.saturating_sub(self.seen_ns).max(1);
                self.window = Window::new(self.seen_ns, rest_ns);
                self.played.restart(&self.window);
                if let Some(log) = &mut self.log {
                    log.begin(self.window.start_ns);
                }
            }
        }
    }
}
