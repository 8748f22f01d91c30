//! A device in RAM, shared by any number of queues.
//!
//! The memory is a row of stripes under locks, so that queues on different parts hardly ever meet. Each
//! operation is done when it is pushed: its cost is one copy, a lock per stripe of 16 KiB it touches, and
//! the check. The copy is an ordinary one, as the kernel's RAM disk (`brd`) makes it. An operation over
//! more than 128 KiB is not atomic against another one on the same range, as on a real disk.
//!
//! The memory is zero and unused until first written, and in huge pages where the system has them.
//! Nothing allocates after construction. Discard keeps the old content (a range that was discarded does
//! not count as zero). Drop has nothing to wait for; the memory lives until the device and its queues are
//! gone.

#![forbid(unsafe_code)]

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use crate::device::limits::Limits;
use crate::device::ready::wait_readable;
use crate::device::stripes::Stripes;
use crate::device::{
    Device, DeviceCompletion, DeviceInfo, DeviceOp, DeviceQueue, ImmediateDevice, Pushed,
    QueueConfig, QueueFacts,
};
use crate::error::{Errno, Error, ErrorKind, Result};
use crate::request::{Flags, Op};

/// A RAM disk.
#[derive(Clone)]
pub struct MemoryDevice {
    info: DeviceInfo,
    stripes: Arc<Stripes>,
}

impl MemoryDevice {
    /// A zeroed RAM disk of `size_bytes`, with 512-byte blocks.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`] where that is more than the machine's memory,
    /// [`ErrorKind::InvalidInput`] for a size of zero.
    pub fn new(size_bytes: u64) -> Result<Self> {
        refuse_size(size_bytes)?;
        let stripes = Stripes::zeroed(size_bytes).ok_or_else(|| no_memory(size_bytes))?;
        let stripes = Arc::new(stripes);
        let info = DeviceInfo {
            kind: "memory".to_owned(),
            size_bytes,
            logical_block_bytes: 512,
            can_poll: false,
            can_discard: true,
            read_only: false,
        };
        Ok(Self { info, stripes })
    }

    /// The same memory, refusing writes through this value.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.info.read_only = true;
        self
    }
}

impl fmt::Debug for MemoryDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryDevice")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

impl Device for MemoryDevice {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn open_queue(&self, _config: &QueueConfig<'_>) -> Result<Box<dyn DeviceQueue>> {
        Ok(Box::new(MemoryQueue {
            limits: Limits::new(&self.info),
            stripes: Arc::clone(&self.stripes),
        }))
    }

    fn immediate(&self) -> Option<Arc<dyn ImmediateDevice>> {
        Some(Arc::new(self.clone()))
    }
}

impl ImmediateDevice for MemoryDevice {
    fn write(&self, offset_bytes: u64, data: &[u8], _flags: Flags) -> Result<u64, Errno> {
        let len_bytes = data.len() as u64;
        Limits::new(&self.info).check_write(offset_bytes, len_bytes)?;
        self.stripes.write(offset_bytes, data);
        Ok(len_bytes)
    }
}

/// Data plane of [`MemoryDevice`].
struct MemoryQueue {
    limits: Limits,
    stripes: Arc<Stripes>,
}

impl DeviceQueue for MemoryQueue {
    fn push(&mut self, mut op: DeviceOp) -> Result<Pushed, DeviceOp> {
        let result = self.limits.check(&op).map(|()| self.execute(&mut op));
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

impl MemoryQueue {
    /// Runs a checked operation; the number of bytes it covered.
    fn execute(&self, op: &mut DeviceOp) -> u64 {
        match op.op {
            Op::Read => self.stripes.read(op.offset_bytes, op.memory_mut()),
            Op::Write => self.stripes.write(op.offset_bytes, op.memory()),
            Op::WriteZeroes => self.stripes.write_zeroes(op.offset_bytes, op.len_bytes),
            Op::Flush => return 0,
            Op::Discard | Op::Allocate => {}
        }
        op.len_bytes
    }
}

fn refuse_size(size_bytes: u64) -> Result<()> {
    if size_bytes == 0 {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "a memory device needs a size; give at least one block of 512 bytes",
        ));
    }
    let system = rustix::system::sysinfo();
    let total_bytes = (system.totalram as u64).saturating_mul(u64::from(system.mem_unit));
    if size_bytes > total_bytes {
        return Err(Error::new(
            ErrorKind::LimitExceeded,
            format!(
                "a memory device of {size_bytes} bytes exceeds this machine's memory of \
                 {total_bytes} bytes; use a smaller size or a file"
            ),
        ));
    }
    Ok(())
}

fn no_memory(size_bytes: u64) -> Error {
    Error::new(
        ErrorKind::LimitExceeded,
        format!("no memory for a device of {size_bytes} bytes; use a smaller size or a file"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_cannot_be_had_are_refused_with_the_figures() {
        assert_eq!(
            MemoryDevice::new(0).unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
        let error = MemoryDevice::new(u64::MAX).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert!(
            error.to_string().contains("18446744073709551615"),
            "{error}"
        );
    }
}
