//! The check that each operation passes before a device looks at it: range, block boundary, memory,
//! permission. Overflow-safe on any operation; no panic, no allocation.

#![forbid(unsafe_code)]

use crate::device::{DeviceInfo, DeviceOp};
use crate::error::Errno;
use crate::request::Op;

/// What a queue needs to know of its device to refuse an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    size_bytes: u64,
    block_mask: u64,
    memory_mask: u64,
    can_discard: bool,
    read_only: bool,
}

impl Limits {
    /// The limits of a device that takes memory at any address.
    ///
    /// A block size that is not a power of two is taken as one byte; constructors refuse it earlier.
    pub(crate) fn new(info: &DeviceInfo) -> Self {
        let block_bytes = u64::from(info.logical_block_bytes);
        let block_mask = if block_bytes.is_power_of_two() {
            block_bytes - 1
        } else {
            0
        };
        Self {
            size_bytes: info.size_bytes,
            block_mask,
            memory_mask: 0,
            can_discard: info.can_discard,
            read_only: info.read_only,
        }
    }

    /// The same limits where memory must start at a multiple of `align_bytes`, a power of two of at
    /// most a page.
    pub(crate) fn with_memory_alignment(mut self, align_bytes: u32) -> Self {
        self.memory_mask = u64::from(align_bytes).saturating_sub(1);
        self
    }

    /// Whether the operation may run.
    ///
    /// # Errors
    /// `EINVAL` for an empty, misaligned or out-of-range one or one without the memory it needs,
    /// `EROFS` for a change of a read-only device, `EOPNOTSUPP` for a discard it can't do.
    #[inline]
    pub(crate) fn check(&self, op: &DeviceOp) -> Result<(), Errno> {
        if op.op == Op::Flush {
            return Ok(());
        }
        self.check_range(op.op, op.offset_bytes, op.len_bytes)?;
        match op.op {
            Op::Read | Op::Write => self.check_memory(op),
            Op::Discard if !self.can_discard => Err(Errno::EOPNOTSUPP),
            _ => Ok(()),
        }
    }

    /// Whether `len_bytes` at `offset_bytes` may be written, from memory that the caller has.
    ///
    /// # Errors
    /// As [`Limits::check`].
    #[inline]
    pub(crate) fn check_write(&self, offset_bytes: u64, len_bytes: u64) -> Result<(), Errno> {
        self.check_range(Op::Write, offset_bytes, len_bytes)
    }

    #[inline]
    fn check_range(&self, op: Op, offset_bytes: u64, len_bytes: u64) -> Result<(), Errno> {
        let end_bytes = offset_bytes.checked_add(len_bytes);
        let fits = end_bytes.is_some_and(|end_bytes| end_bytes <= self.size_bytes);
        let misaligned = (offset_bytes | len_bytes) & self.block_mask != 0;
        if !fits || misaligned || len_bytes == 0 {
            return Err(Errno::EINVAL);
        }
        if self.read_only && op.is_write() {
            return Err(Errno::EROFS);
        }
        Ok(())
    }

    #[inline]
    fn check_memory(&self, op: &DeviceOp) -> Result<(), Errno> {
        let area_len = op.buffer.as_ref().map_or(0, |buffer| buffer.area_len()) as u64;
        let start = u64::from(op.area_offset_bytes);
        let fits = start
            .checked_add(op.len_bytes)
            .is_some_and(|end| end <= area_len);
        if fits && start & self.memory_mask == 0 {
            Ok(())
        } else {
            Err(Errno::EINVAL)
        }
    }
}
