//! Finished operations that wait to be reaped, and the wait for a wake-up: what every queue without
//! a kernel ring shares. Never grows after construction.

#![forbid(unsafe_code)]

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::device::{DeviceCompletion, DeviceOp};
use crate::error::Errno;

/// Completions in the order in which they finished, at most the depth of the queue.
#[derive(Debug)]
pub(crate) struct Ready {
    list: Vec<DeviceCompletion>,
}

impl Ready {
    /// Room for `depth` completions.
    pub(crate) fn with_depth(depth: u32) -> Self {
        Self {
            list: Vec::with_capacity(depth as usize),
        }
    }

    /// Completions held.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Ends `op` with `result`. The owner never holds more operations than the depth.
    #[inline]
    pub(crate) fn finish(&mut self, op: DeviceOp, result: Result<u64, Errno>) {
        self.push(op.complete(result));
    }

    /// Adds a completion.
    #[inline]
    pub(crate) fn push(&mut self, completion: DeviceCompletion) {
        debug_assert!(
            self.list.len() < self.list.capacity(),
            "more completions than depth"
        );
        self.list.push(completion);
    }

    /// Moves as many completions to `done` as it has room for, oldest first.
    #[inline]
    pub(crate) fn drain_into(&mut self, done: &mut Vec<DeviceCompletion>) {
        if done.is_empty() && done.capacity() == self.list.capacity() {
            std::mem::swap(done, &mut self.list);
            return;
        }
        let room = done.capacity() - done.len();
        if room >= self.list.len() {
            done.append(&mut self.list);
        } else {
            done.extend(self.list.drain(..room));
        }
    }

    /// Takes one completion out, at a position below [`Ready::len`], without keeping the order.
    pub(crate) fn swap_remove(&mut self, position: usize) -> DeviceCompletion {
        self.list.swap_remove(position)
    }
}

/// Blocks until `wake` is readable or `timeout` has passed; an interrupt ends the wait early.
pub(crate) fn wait_readable(
    wake: BorrowedFd<'_>,
    timeout: Option<Duration>,
) -> Result<bool, Errno> {
    // A timeout beyond the range of the kernel's type is as good as none.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let mut fds = [PollFd::from_borrowed_fd(wake, PollFlags::IN)];
    match poll(&mut fds, timeout.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
