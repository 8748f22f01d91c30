//! A device that does nothing: every operation completes at once, a read leaves the buffer as it
//! is. What remains is the cost of everything in front of the device.
//!
//! Operations are checked as on any device, so wrong ones fail here too. Ordering is first pushed,
//! first completed. Drop has nothing to wait for.

#![forbid(unsafe_code)]

use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::device::limits::Limits;
use crate::device::ready::{Ready, wait_readable};
use crate::device::{
    Device, DeviceCompletion, DeviceInfo, DeviceOp, DeviceQueue, QueueConfig, QueueFacts,
};
use crate::error::{Errno, Result};
use crate::request::Op;

/// The null device. Its size is a number only, no memory is behind it.
#[derive(Clone, Debug)]
pub struct NullDevice {
    info: DeviceInfo,
}

impl NullDevice {
    /// A null device of `size_bytes` with 512-byte blocks.
    #[must_use]
    pub fn new(size_bytes: u64) -> Self {
        Self {
            info: DeviceInfo {
                kind: "null".to_owned(),
                size_bytes,
                logical_block_bytes: 512,
                can_poll: false,
                can_discard: true,
                read_only: false,
            },
        }
    }

    /// The same device, refusing writes.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.info.read_only = true;
        self
    }
}

impl Device for NullDevice {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn open_queue(&self, config: &QueueConfig<'_>) -> Result<Box<dyn DeviceQueue>> {
        Ok(Box::new(NullQueue {
            limits: Limits::new(&self.info),
            depth: config.depth as usize,
            ready: Ready::with_depth(config.depth),
        }))
    }
}

/// Data plane of [`NullDevice`].
#[derive(Debug)]
struct NullQueue {
    limits: Limits,
    depth: usize,
    ready: Ready,
}

impl DeviceQueue for NullQueue {
    #[inline]
    fn push(&mut self, op: DeviceOp) -> Result<(), DeviceOp> {
        if self.ready.len() >= self.depth {
            return Err(op);
        }
        let len_bytes = if op.op == Op::Flush { 0 } else { op.len_bytes };
        let result = self.limits.check(&op).map(|()| len_bytes);
        self.ready.finish(op, result);
        Ok(())
    }

    fn submit(&mut self) {}

    #[inline]
    fn reap(&mut self, done: &mut Vec<DeviceCompletion>) {
        self.ready.drain_into(done);
    }

    fn wait(&mut self, wake: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<(), Errno> {
        if self.ready.len() > 0 {
            return Ok(());
        }
        wait_readable(wake, timeout).map(drop)
    }

    fn facts(&self) -> QueueFacts {
        QueueFacts {
            engine: "immediate",
            ..QueueFacts::default()
        }
    }
}
