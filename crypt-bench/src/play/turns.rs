//! How many requests and completions a thread handles at once, as fio does it: one, unless told otherwise.
//!
//! io_uring could take and give many with one system call. But neighbours that come together are merged by the
//! kernel, so that a job would measure larger requests than it asks for; and completions that
//! wait while others are handled would look faster than they are.

#![forbid(unsafe_code)]

use std::collections::VecDeque;

use crypt_core::Completion;

/// Progress against the numbers of a player.
#[derive(Default)]
pub(super) struct Turns {
    send: u32,
    reap: u32,
    unsent: u32,
    ready: VecDeque<Completion>,
}

impl Turns {
    /// For a queue of `depth` slots on this engine. What costs no system call needs no turns.
    pub(super) fn new(send: u32, reap: u32, engine: &str, depth: usize) -> Self {
        let limit = |number: u32| match engine {
            "io_uring" => number.max(1),
            _ => u32::MAX,
        };
        Self {
            send: limit(send),
            reap: limit(reap),
            unsent: 0,
            ready: VecDeque::with_capacity(depth),
        }
    }

    /// Whether all completions are handled as they come.
    pub(super) fn are_unlimited(&self) -> bool {
        self.reap == u32::MAX
    }

    /// Whether completions wait for their turn.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Notes a request; whether it is time to hand over to the device.
    #[inline]
    pub(super) fn submitted(&mut self) -> bool {
        self.unsent += 1;
        let now = self.unsent >= self.send;
        if now {
            self.unsent = 0;
        }
        now
    }

    /// Notes that everything was handed over.
    pub(super) fn handed_over(&mut self) {
        self.unsent = 0;
    }

    /// Puts completions in line.
    pub(super) fn line_up(&mut self, done: &mut Vec<Completion>) {
        self.ready.extend(done.drain(..));
    }

    /// The completions whose turn is now, at `now_ns`, which is when they end.
    pub(super) fn take(&mut self, now_ns: u64) -> impl Iterator<Item = Completion> {
        let count = self.ready.len().min(self.reap as usize);
        self.ready.drain(..count).map(move |mut completion| {
            let timing = &mut completion.timing;
            timing.completed_ns = timing.completed_ns.max(now_ns);
            completion
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_sent_in_batches_and_devices_without_calls_have_none() {
        let mut two = Turns::new(2, 1, "io_uring", 4);
        let sent = [(); 4].map(|()| two.submitted());
        assert_eq!(sent, [false, true, false, true]);
        assert!(!two.submitted());
        two.handed_over();
        assert!(!two.submitted());
        assert!(!two.are_unlimited() && !two.has_ready());
        let mut free = Turns::new(1, 1, "immediate", 4);
        assert!(free.are_unlimited() && !free.submitted());
    }
}
