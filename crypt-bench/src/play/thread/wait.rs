//! What a thread waits for, and how it passes time with nothing in flight.

#![forbid(unsafe_code)]

use std::time::Duration;

use super::{ANY_NS, LOOK_NS, SPIN_NS, Worker};
use crate::play::Shared;

/// What stands in the way of the next request.
pub(super) enum Wait {
    /// A completion, or this much time.
    For(u64),
    /// Everything in flight, and then this much time.
    Think(u64),
    /// The end of what is in flight.
    End,
}

impl Wait {
    /// How long completions may take, where some are to come.
    #[inline]
    pub(super) fn for_completions_ns(&self) -> u64 {
        match *self {
            Self::For(wait_ns) => wait_ns,
            Self::Think(_) | Self::End => ANY_NS,
        }
    }
}

impl Worker {
    /// Passes time with nothing in flight.
    pub(super) fn pause(&self, wait_ns: u64) {
        if wait_ns > SPIN_NS {
            std::thread::sleep(Duration::from_nanos((wait_ns - SPIN_NS).min(LOOK_NS)));
        } else {
            std::hint::spin_loop();
        }
    }

    pub(super) fn wait_until(&self, time_ns: u64, shared: &Shared<'_>) {
        loop {
            let now_ns = self.clock.now_ns();
            if now_ns >= time_ns || shared.stopped() {
                return;
            }
            self.pause(time_ns - now_ns);
        }
    }
}
