//! How a thread passes time with nothing in flight.

#![forbid(unsafe_code)]

use std::time::Duration;

use super::{LOOK_NS, SPIN_NS, Worker};
use crate::play::Shared;

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
