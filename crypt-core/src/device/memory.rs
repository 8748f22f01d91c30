//! A device in RAM, shared by any number of queues.
//!
//! The memory is a row of stripes, each behind its own lock, so that queues on different parts
//! never meet. Each operation is done when it is pushed: its cost is one copy, a lock per stripe it
//! touches, and the check. An operation over several stripes is not atomic against another one on
//! the same range, as on a real disk.
//!
//! The memory is zero and unused until first written, and in huge pages where the system has them.
//! Nothing allocates after construction. Discard
//! keeps the old content (a range that was discarded does not count as zero). Drop has nothing to
//! wait for; the memory lives until the device and its queues are gone.

#![forbid(unsafe_code)]

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::device::limits::Limits;
use crate::device::ready::wait_readable;
use crate::device::{
    Device, DeviceCompletion, DeviceInfo, DeviceOp, DeviceQueue, ImmediateDevice, Pushed,
    QueueConfig, QueueFacts,
};
use crate::error::{Errno, Error, ErrorKind, Result};
use crate::pages::Pages;
use crate::request::{Flags, Op};

/// Bytes behind one lock.
const STRIPE_BYTES: u64 = 16 << 10;

/// A RAM disk.
#[derive(Clone)]
pub struct MemoryDevice {
    info: DeviceInfo,
    stripes: Stripes,
}

impl MemoryDevice {
    /// A zeroed RAM disk of `size_bytes`, with 512-byte blocks.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`] where that is more than the machine's memory,
    /// [`ErrorKind::InvalidInput`] for a size of zero.
    pub fn new(size_bytes: u64) -> Result<Self> {
        refuse_size(size_bytes)?;
        let stripes = size_bytes.div_ceil(STRIPE_BYTES) as usize;
        let stripes = Pages::zeroed(stripes, STRIPE_BYTES as usize)
            .ok_or_else(|| no_memory(size_bytes))?
            .into_iter()
            .map(RwLock::new)
            .collect();
        let info = DeviceInfo {
            kind: "memory".to_owned(),
            size_bytes,
            logical_block_bytes: 512,
            can_poll: false,
            can_discard: true,
            read_only: false,
        };
        let stripes = Stripes(stripes);
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
            stripes: self.stripes.clone(),
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
    stripes: Stripes,
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

/// The memory, shared by the device and its queues. Ranges were checked before.
#[derive(Clone)]
struct Stripes(Arc<[RwLock<Pages>]>);

impl Stripes {
    fn read(&self, mut offset_bytes: u64, mut rest: &mut [u8]) {
        while !rest.is_empty() {
            let (stripe, start, len) = locate(offset_bytes, rest.len() as u64);
            let (now, later) = rest.split_at_mut(len);
            now.copy_from_slice(&self.read_lock(stripe).bytes()[start..][..len]);
            rest = later;
            offset_bytes += len as u64;
        }
    }

    fn write(&self, mut offset_bytes: u64, mut rest: &[u8]) {
        while !rest.is_empty() {
            let (stripe, start, len) = locate(offset_bytes, rest.len() as u64);
            let (now, later) = rest.split_at(len);
            self.write_lock(stripe).bytes_mut()[start..][..len].copy_from_slice(now);
            rest = later;
            offset_bytes += len as u64;
        }
    }

    fn write_zeroes(&self, mut offset_bytes: u64, mut rest_bytes: u64) {
        while rest_bytes > 0 {
            let (stripe, start, len) = locate(offset_bytes, rest_bytes);
            self.write_lock(stripe).bytes_mut()[start..][..len].fill(0);
            rest_bytes -= len as u64;
            offset_bytes += len as u64;
        }
    }

    // A copy can't panic half-way, so a poisoned lock guards memory that is as good as any.
    fn read_lock(&self, stripe: usize) -> impl std::ops::Deref<Target = Pages> {
        self.0[stripe]
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn write_lock(&self, stripe: usize) -> impl std::ops::DerefMut<Target = Pages> {
        self.0[stripe]
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stripe of a byte, the position in it, and how many of `len_bytes` lie in that stripe.
#[inline]
fn locate(offset_bytes: u64, len_bytes: u64) -> (usize, usize, usize) {
    let start = offset_bytes % STRIPE_BYTES;
    let len = len_bytes.min(STRIPE_BYTES - start);
    (
        (offset_bytes / STRIPE_BYTES) as usize,
        start as usize,
        len as usize,
    )
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
