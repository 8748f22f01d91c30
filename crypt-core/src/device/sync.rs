//! File I/O by ordinary system calls, one after the other: for systems that refuse io_uring, and to
//! compare with.
//!
//! Operations run on the caller's thread in [`DeviceQueue::submit`], in the order of pushing, so
//! the queue never has anything in flight: submit blocks for as long as the device takes. Each call
//! may transfer less than asked, which is passed on. Drop has nothing to wait for.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate, fdatasync, fsync};
use rustix::io::{ReadWriteFlags, pread, pwritev2};

use crate::buffer::{Area, SlotBuffer};
use crate::device::file::Target;
use crate::device::limits::Limits;
use crate::device::ready::{Ready, wait_readable};
use crate::device::{DeviceCompletion, DeviceOp, DeviceQueue, Pushed, QueueFacts};
use crate::error::{Errno, Result};
use crate::request::{Flags, Op};
use crate::sys;

/// Length of the block of zeros behind `WriteZeroes` where the file system can't zero a range.
pub(super) const ZEROS_BYTES: usize = 64 << 10;

/// Data plane of a file through `pread`, `pwritev2`, `fdatasync` and `fallocate`.
pub(super) struct SyncQueue {
    file: Arc<File>,
    is_block: bool,
    limits: Limits,
    depth: usize,
    staged: Vec<DeviceOp>,
    ready: Ready,
    zeros: SlotBuffer,
    /// Whether the file system zeroes a range by itself, as far as known.
    zero_range: bool,
    facts: QueueFacts,
}

impl SyncQueue {
    /// A queue of `depth`.
    ///
    /// # Errors
    /// Where there is no memory for its block of zeros.
    pub(super) fn new(target: Target, depth: u32) -> Result<Self> {
        Ok(Self {
            file: target.file,
            is_block: target.is_block,
            limits: target.limits,
            depth: depth as usize,
            staged: Vec::with_capacity(depth as usize),
            ready: Ready::with_depth(depth),
            zeros: zeros()?,
            zero_range: true,
            facts: target.facts,
        })
    }

    /// Runs a checked operation to its end.
    fn execute(&mut self, op: &mut DeviceOp) -> Result<u64, Errno> {
        let (offset_bytes, len_bytes) = (op.offset_bytes, op.len_bytes);
        match op.op {
            Op::Read => return self.read(op),
            Op::Write => return self.write(op),
            Op::Flush => {
                match op.flags.contains(Flags::META) {
                    true => fsync(&self.file)?,
                    false => fdatasync(&self.file)?,
                }
                return Ok(0);
            }
            Op::Discard if self.is_block => {
                sys::discard_blocks(self.file.as_fd(), offset_bytes, len_bytes)?;
            }
            Op::Discard => fallocate(&self.file, PUNCH_HOLE, offset_bytes, len_bytes)?,
            Op::Allocate => fallocate(&self.file, ALLOCATE, offset_bytes, len_bytes)?,
            Op::WriteZeroes => self.write_zeroes(offset_bytes, len_bytes)?,
        }
        if op.flags.contains(Flags::FUA) {
            fdatasync(&self.file)?;
        }
        Ok(len_bytes)
    }

    fn read(&self, op: &mut DeviceOp) -> Result<u64, Errno> {
        let offset_bytes = op.offset_bytes;
        Ok(pread(&self.file, op.memory_mut(), offset_bytes)? as u64)
    }

    fn write(&self, op: &DeviceOp) -> Result<u64, Errno> {
        let flags = if op.flags.contains(Flags::FUA) {
            ReadWriteFlags::DSYNC
        } else {
            ReadWriteFlags::empty()
        };
        let memory = [IoSlice::new(op.memory())];
        Ok(pwritev2(&self.file, &memory, op.offset_bytes, flags)? as u64)
    }

    fn write_zeroes(&mut self, offset_bytes: u64, len_bytes: u64) -> Result<(), Errno> {
        if self.zero_range {
            match fallocate(&self.file, ZERO_RANGE, offset_bytes, len_bytes) {
                Err(rustix::io::Errno::OPNOTSUPP) => self.zero_range = false,
                result => return result.map_err(Errno::from),
            }
        }
        let mut done_bytes = 0;
        while done_bytes < len_bytes {
            let len = (len_bytes - done_bytes).min(ZEROS_BYTES as u64) as usize;
            let zeros = [IoSlice::new(&self.zeros.area(Area::Data)[..len])];
            let at = offset_bytes + done_bytes;
            match pwritev2(&self.file, &zeros, at, ReadWriteFlags::empty())? {
                0 => return Err(Errno::EIO),
                written => done_bytes += written as u64,
            }
        }
        Ok(())
    }
}

/// Gives space back and keeps the size; the range reads as zero on most file systems.
pub(super) const PUNCH_HOLE: FallocateFlags =
    FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);
/// Zeroes a range without writing it, where the file system can.
pub(super) const ZERO_RANGE: FallocateFlags =
    FallocateFlags::ZERO_RANGE.union(FallocateFlags::KEEP_SIZE);
/// Reserves space and keeps data and size.
pub(super) const ALLOCATE: FallocateFlags = FallocateFlags::KEEP_SIZE;

/// Page-aligned zeros, [`ZEROS_BYTES`] of them in the data area.
pub(super) fn zeros() -> Result<SlotBuffer> {
    let mut slots = SlotBuffer::allocate(1, ZEROS_BYTES)?;
    Ok(slots.swap_remove(0))
}

impl DeviceQueue for SyncQueue {
    fn push(&mut self, op: DeviceOp) -> Result<Pushed, DeviceOp> {
        if self.staged.len() + self.ready.len() >= self.depth {
            return Err(op);
        }
        match self.limits.check(&op) {
            Ok(()) => self.staged.push(op),
            Err(errno) => self.ready.finish(op, Err(errno)),
        }
        Ok(Pushed::Queued)
    }

    fn submit(&mut self) {
        // Moved out and back, since the loop needs the rest of `self`.
        let mut staged = std::mem::take(&mut self.staged);
        for mut op in staged.drain(..) {
            let result = self.execute(&mut op);
            self.ready.finish(op, result);
        }
        self.staged = staged;
    }

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
        self.facts.clone()
    }
}
