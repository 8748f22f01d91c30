//! What a thread does at its end, and what it tells others.

#![forbid(unsafe_code)]

use crypt_core::request::Op;

use super::{ANY_NS, Worker};
use crate::generate::Step;
use crate::host::ThreadUse;
use crate::play::Played;
use crate::play::figures::Figures;
use crate::play::watch::Desk;

impl Worker {
    /// A last flush; it counts even where the time is over.
    pub(super) fn flush(&mut self) -> Result<(), String> {
        let Some(ticket) = self.idle.pop() else {
            return Ok(());
        };
        self.ramping = false;
        self.window.end_ns = u64::MAX;
        // fio's `end_fsync` is fsync whatever other flushes are.
        self.player.conduct.full_flush = true;
        let step = Step {
            op: Op::Flush,
            offset_bytes: 0,
            len_bytes: 0,
        };
        self.submit(ticket, &step, self.clock.now_ns());
        while self.in_flight > 0 {
            self.complete(ANY_NS)?;
        }
        Ok(())
    }

    /// Gives what was recorded since the last time to who watches.
    pub(super) fn hand_over(&mut self, desk: &Desk) {
        let window = self.window.ended_at(self.clock.now_ns());
        desk.exchange(|empty| {
            empty.window = window;
            self.played.exchange(empty);
        });
    }

    /// What an exchange begins with.
    pub(super) fn empty(&self, pinned: bool) -> Played {
        let figures = Figures::new(
            &self.window,
            self.played.intended.is_some(),
            self.played.lateness.is_some(),
        );
        let (facts, depth) = (self.queue.facts(), self.player.depth);
        figures.into_played(self.window, facts, pinned, None, depth)
    }

    pub(super) fn into_played(self, pinned: bool, usage: ThreadUse) -> Played {
        let window = self.window.ended_at(self.last_ns);
        let facts = self.queue.facts();
        let depth = self.gate.limit();
        let figures = self.played;
        let mut played = figures.into_played(window, facts, pinned, Some(usage), depth);
        played.storage = self.player.storage;
        played.log = self.log;
        played.verified = self.verifier.map(|verifier| verifier.verified);
        played
    }
}
