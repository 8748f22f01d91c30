//! A device that does nothing: every operation completes at once, a read leaves the buffer as it
//! is. What remains is the cost of everything in front of the device.
//!
//! Operations are checked as on any device, so wrong ones fail here too. Each is over when it is
//! pushed, so the queue is never full, and drop has nothing to wait for.

#![forbid(unsafe_code)]

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use crate::device::limits::Limits;
use crate::device::ready::wait_readable;
use crate::device::{
    Device, DeviceCompletion, DeviceInfo, DeviceOp, DeviceQueue, ImmediateDevice, Pushed,
    QueueConfig, QueueFacts,
};
use crate::error::{Errno, Result};
use crate::request::{Flags, Op};

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

    fn open_queue(&self, _config: &QueueConfig<'_>) -> Result<Box<dyn DeviceQueue>> {
        Ok(Box::new(NullQueue {
            limits: Limits::new(&self.info),
        }))
    }

    fn immediate(&self) -> Option<Arc<dyn ImmediateDevice>> {
        Some(Arc::new(self.clone()))
    }
}

impl ImmediateDevice for NullDevice {
    fn write(&self, offset_bytes: u64, data: &[u8], _flags: Flags) -> Result<u64, Errno> {
        let len_bytes = data.len() as u64;
        let checked = Limits::new(&self.info).check_write(offset_bytes, len_bytes);
        checked.map(|()| len_bytes)
    }
}

/// Data plane of [`NullDevice`].
#[derive(Debug)]
struct NullQueue {
    limits: Limits,
}

impl DeviceQueue for NullQueue {
    fn push(&mut self, op: DeviceOp) -> Result<Pushed, DeviceOp> {
        let len_bytes = if op.op == Op::Flush { 0 } else { op.len_bytes };
        let result = self.limits.check(&op).map(|()| len_bytes);
        Ok(Pushed::Done(op.complete(result)))
    }

    fn submit(&mut self) {}

    fn reap(&mut self, _done: &mut Vec<DeviceCompletion>) {}

    fn wait(&mut self, wake: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<(), Errno> {
        wait_readable(wake, timeout).map(drop)
    }

    fn facts(&self) -> QueueFacts {
        QueueFacts {
            engine: "immediate",
            ..QueueFacts::default()
        }
    }
}
