//! A thread that compares: blocks as they are read, and everything that was written, after it was written.
//!
//! What was written is not remembered: the stream is made again from its start, as often as requests were
//! submitted, and its writes become reads.

#![forbid(unsafe_code)]

use crypt_core::request::{Op, Request};
use crypt_core::units::{ByteLength, SECTOR_BYTES, SectorIndex};
use crypt_core::{Completion, Ticket};

use super::{NO_LIMIT, Worker, nanos};
use crate::generate::{Step, Stream};
use crate::play::Shared;
use crate::play::readback::When;
use crate::record::{DirectionRecorder, Window};

/// Reads of everything that was written.
struct ReadBack {
    stream: Stream,
    /// Requests of the stream that are left.
    left: u64,
    window: Window,
    recorder: DirectionRecorder,
    last_ns: u64,
}

impl Worker {
    /// Fills what a write takes along.
    pub(super) fn dress(&mut self, ticket: &Ticket, step: &Step) {
        let data = self.queue.data_mut(ticket);
        let len = data.len().min(step.len_bytes as usize);
        let data = &mut data[..len];
        match (&self.verifier, &mut self.player.filler) {
            (Some(verifier), _) => verifier.verification.checks.seal(data, step.offset_bytes),
            (None, Some(filler)) => filler.refresh(data, step.offset_bytes),
            (None, None) => {}
        }
    }

    /// Compares what a read has brought; whether the thread may go on.
    pub(super) fn compare(&mut self, completion: &Completion, bytes: u64) -> bool {
        let Some(verifier) = &mut self.verifier else {
            return true;
        };
        let data = self.queue.data(&completion.ticket);
        let len = data.len().min(bytes as usize);
        verifier.check(&data[..len], completion.request.sector.get() * SECTOR_BYTES)
    }

    /// Whether the thread writes nothing and only compares.
    pub(super) fn only_verifies(&self) -> bool {
        let when = self
            .verifier
            .as_ref()
            .map(|verifier| verifier.verification.when);
        when == Some(When::Only)
    }

    /// Reads what was written and compares it, where that is asked for.
    pub(super) fn read_back(&mut self, shared: &Shared<'_>) -> Result<(), String> {
        let when = self
            .verifier
            .as_ref()
            .map(|verifier| verifier.verification.when);
        let Some(stream) = self.origin.take() else {
            return Ok(());
        };
        let (stream, left) = match when {
            Some(When::After) => (stream.endless(), self.submitted),
            Some(When::Only) => (stream, u64::MAX),
            _ => return Ok(()),
        };
        let window = Window::new(self.clock.now_ns(), nanos(NO_LIMIT));
        let mut pass = ReadBack {
            stream,
            left,
            recorder: DirectionRecorder::new(&window),
            last_ns: window.start_ns,
            window,
        };
        loop {
            if shared.stopped() {
                pass.left = 0;
            }
            self.submit_reads(&mut pass);
            if self.in_flight == 0 {
                break;
            }
            self.complete_reads(&mut pass)?;
        }
        if let Some(verifier) = &mut self.verifier {
            verifier.verified.reads = Some((pass.window.ended_at(pass.last_ns), pass.recorder));
        }
        Ok(())
    }

    fn submit_reads(&mut self, pass: &mut ReadBack) {
        while let Some(ticket) = self.idle.pop() {
            let Some(step) = next_write(pass) else {
                self.idle.push(ticket);
                return;
            };
            let request = Request::new(
                Op::Read,
                SectorIndex::new(step.offset_bytes / SECTOR_BYTES),
                ByteLength::new(step.len_bytes),
            );
            self.in_flight += 1;
            self.queue
                .submit(ticket, request.with_flags(self.flags(Op::Read)));
        }
    }

    fn complete_reads(&mut self, pass: &mut ReadBack) -> Result<(), String> {
        if self.queue.poll(&mut self.done) == 0 {
            let waited = self.queue.wait(&mut self.done, None);
            waited.map_err(|error| error.to_string())?;
        }
        let mut done = std::mem::take(&mut self.done);
        for mut completion in done.drain(..) {
            self.in_flight -= 1;
            match completion.result {
                Ok(bytes) => {
                    self.correct(&mut completion.timing);
                    let timing = &completion.timing;
                    pass.last_ns = pass.last_ns.max(timing.completed_ns);
                    let slice = pass.window.slice_of(timing.submitted_ns).unwrap_or(0);
                    pass.recorder.record(timing, bytes, slice);
                    if !self.compare(&completion, bytes) {
                        pass.left = 0;
                    }
                }
                Err(errno) => {
                    self.failed(completion.request, errno);
                    pass.left = 0;
                }
            }
            self.idle.push(completion.ticket);
        }
        self.done = done;
        Ok(())
    }
}

/// The next write of the stream.
fn next_write(pass: &mut ReadBack) -> Option<Step> {
    while pass.left > 0 {
        pass.left -= 1;
        match pass.stream.next_step() {
            Some(step) if step.op == Op::Write => return Some(step),
            Some(_) => {}
            None => pass.left = 0,
        }
    }
    None
}
