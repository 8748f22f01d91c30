//! File I/O by ordinary system calls, one after the other: for systems that refuse io_uring, and to
//! compare with.
//!
//! Operations run on the caller's thread in [`DeviceQueue::submit`], in the order of pushing, so
//! the queue never has anything in flight: submit blocks for as long as the device takes. Each call
//! may transfer less than asked, which is passed on. Drop has nothing to wait for.

#![forbid(unsafe_code)]

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate, fdatasync, fsync};
use rustix::io::{ReadWriteFlags, pread, pwritev2};

use crate::buffer::{Area, SlotBuffer};
use crate::device::file::Target;
use crate::device::files::{Files, Part};
use crate::device::limits::Limits;
use crate::device::ready::{Ready, wait_readable};
use crate::device::{DeviceCompletion, DeviceOp, DeviceQueue, Pushed, QueueFacts};
use crate::error::{Errno, Result};
use crate::request::{Flags, Op};
use crate::sys;

/// Length of the block of zeros behind `WriteZeroes` where the file system can't zero a range.
pub(super) const ZEROS_BYTES: usize = 64 << 10;

/// Data plane of files through `pread`, `pwritev2`, `fdatasync` and `fallocate`.
pub(super) struct SyncQueue {
    calls: Calls,
    limits: Limits,
    depth: usize,
    staged: Vec<DeviceOp>,
    ready: Ready,
    facts: QueueFacts,
}

/// Operations as system calls.
pub(super) struct Calls {
    files: Arc<Files>,
    zeros: SlotBuffer,
    /// Whether the file systems zero a range by themselves, as far as known.
    zero_range: bool,
}

impl SyncQueue {
    /// A queue of `depth`.
    ///
    /// # Errors
    /// Where there is no memory for its block of zeros.
    pub(super) fn new(target: Target, depth: u32) -> Result<Self> {
        Ok(Self {
            calls: Calls::new(target.files)?,
            limits: target.limits,
            depth: depth as usize,
            staged: Vec::with_capacity(depth as usize),
            ready: Ready::with_depth(depth),
            facts: target.facts,
        })
    }
}

impl Calls {
    /// Calls on these files.
    ///
    /// # Errors
    /// Where there is no memory for a block of zeros.
    pub(super) fn new(files: Arc<Files>) -> Result<Self> {
        Ok(Self {
            files,
            zeros: zeros()?,
            zero_range: true,
        })
    }

    /// Runs a checked operation to its end. Transfers are short where they reach beyond the end of a file.
    pub(super) fn execute(&mut self, op: &mut DeviceOp) -> Result<u64, Errno> {
        match op.op {
            Op::Read => return self.read(op),
            Op::Write => return self.write(op),
            Op::Flush => {
                for part in self.files.parts() {
                    match op.flags.contains(Flags::META) {
                        true => fsync(&part.file)?,
                        false => fdatasync(&part.file)?,
                    }
                }
                return Ok(0);
            }
            Op::Discard | Op::Allocate | Op::WriteZeroes => {}
        }
        let files = Arc::clone(&self.files);
        for piece in files.pieces(op.offset_bytes, op.len_bytes) {
            let part = &files.parts()[piece.index];
            self.change(op.op, part, piece.offset_bytes, piece.len_bytes)?;
            if op.flags.contains(Flags::FUA) {
                fdatasync(&part.file)?;
            }
        }
        Ok(op.len_bytes)
    }

    fn change(
        &mut self,
        op: Op,
        part: &Part,
        offset_bytes: u64,
        len_bytes: u64,
    ) -> Result<(), Errno> {
        match op {
            Op::Discard if part.is_block => {
                sys::discard_blocks(part.file.as_fd(), offset_bytes, len_bytes)
            }
            Op::Discard => Ok(fallocate(&part.file, PUNCH_HOLE, offset_bytes, len_bytes)?),
            Op::Allocate => Ok(fallocate(&part.file, ALLOCATE, offset_bytes, len_bytes)?),
            _ => self.write_zeroes(part, offset_bytes, len_bytes),
        }
    }

    fn read(&self, op: &mut DeviceOp) -> Result<u64, Errno> {
        let place = self.files.place(op.offset_bytes).ok_or(Errno::EINVAL)?;
        op.len_bytes = op.len_bytes.min(place.len_bytes);
        let file = &self.files.parts()[place.index].file;
        Ok(pread(file, op.memory_mut(), place.offset_bytes)? as u64)
    }

    fn write(&self, op: &mut DeviceOp) -> Result<u64, Errno> {
        let place = self.files.place(op.offset_bytes).ok_or(Errno::EINVAL)?;
        op.len_bytes = op.len_bytes.min(place.len_bytes);
        let flags = if op.flags.contains(Flags::FUA) {
            ReadWriteFlags::DSYNC
        } else {
            ReadWriteFlags::empty()
        };
        let memory = [IoSlice::new(op.memory())];
        let file = &self.files.parts()[place.index].file;
        Ok(pwritev2(file, &memory, place.offset_bytes, flags)? as u64)
    }

    fn write_zeroes(
        &mut self,
        part: &Part,
        offset_bytes: u64,
        len_bytes: u64,
    ) -> Result<(), Errno> {
        if self.zero_range {
            match fallocate(&part.file, ZERO_RANGE, offset_bytes, len_bytes) {
                Err(rustix::io::Errno::OPNOTSUPP) => self.zero_range = false,
                result => return result.map_err(Errno::from),
            }
        }
        let mut done_bytes = 0;
        while done_bytes < len_bytes {
            let len = (len_bytes - done_bytes).min(ZEROS_BYTES as u64) as usize;
            let zeros = [IoSlice::new(&self.zeros.area(Area::Data)[..len])];
            let at = offset_bytes + done_bytes;
            match pwritev2(&part.file, &zeros, at, ReadWriteFlags::empty())? {
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
            let result = self.calls.execute(&mut op);
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
