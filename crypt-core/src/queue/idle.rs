//! What a queue does when nothing has ended: helps the workers, spins where that is cheaper than a
//! sleep, or waits in the device queue for whatever comes first.

#![forbid(unsafe_code)]

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use super::Queue;
use crate::error::{Error, Result};
use crate::exec::Lane;

/// The way to the workers, and the one eventfd that a device queue waits on beside its own work.
pub(super) enum Workers {
    Lane(Lane),
    /// No workers: nobody else ever wakes the queue.
    None {
        wake: OwnedFd,
    },
}

impl Queue {
    /// Waits for device or workers, or helps the workers while they are behind.
    pub(super) fn idle_turn(&mut self, timeout: Option<Duration>) -> Result<()> {
        if self.polled {
            std::hint::spin_loop();
            return Ok(());
        }
        let (at_device, at_workers) = self.pipeline.outstanding();
        let waited = match &mut self.hands.workers {
            Workers::Lane(lane) => {
                if at_workers > 0 && self.hands.rules.assist && lane.assist() {
                    return Ok(());
                }
                // Only workers can end the wait, and soon: a sleep would cost more than it saves.
                if at_device == 0 && lane.spin() {
                    return Ok(());
                }
                // Announced in any case, so that the workers know that a core is free.
                if !lane.prepare_sleep() {
                    return Ok(());
                }
                let waited = self.hands.device.wait(lane.wake_fd(), timeout);
                lane.end_sleep();
                waited
            }
            Workers::None { wake } => self.hands.device.wait(wake.as_fd(), timeout),
        };
        waited.map_err(|errno| Error::io("wait for the device", errno))
    }
}
