//! What a ring asks the kernel to do for one operation, as a submission entry.
//!
//! Building an entry touches no memory and runs nothing; its pointers are good for as long as the
//! operation, or the zeros, stay where they are. The ring sees to that.

#![forbid(unsafe_code)]

use io_uring::types::FsyncFlags;
use io_uring::{opcode, squeue, types};
use rustix::fs::FallocateFlags;
use rustix::io::ReadWriteFlags;

use crate::buffer::{Area, SlabGuard, SlotBuffer};
use crate::device::DeviceOp;
use crate::device::files::Piece;
use crate::device::sync::ZEROS_BYTES;
use crate::request::{Flags, Op};

/// Most bytes that Linux moves in one call (`MAX_RW_COUNT` for 4 KiB pages).
const TRANSFER_LIMIT_BYTES: u64 = 0x7fff_f000;
/// `_IO(0x12, 0)` of the kernel's `include/uapi/linux/blkdev.h`: the start travels in the entry's
/// `addr`, the length in `addr3`, where a command's own bytes begin.
const BLOCK_URING_CMD_DISCARD: u32 = 0x1200;

/// What the kernel is asked to do next for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Read into, or write from, the operation's memory.
    Transfer,
    /// `fdatasync` of one of the files, or `fsync` where the operation says so.
    Sync {
        /// Which one.
        file: usize,
    },
    /// `fallocate` with these flags on the operation's range.
    Fallocate(FallocateFlags),
    /// Discard the operation's range of a block device (Linux 6.12).
    DiscardBlocks,
    /// Write zeros to the operation's range, of which the first `done_bytes` are done.
    Zeros {
        /// Bytes written so far.
        done_bytes: u64,
    },
}

/// The slots whose memory is registered: consecutive ones of one slab.
pub(super) struct Registered {
    slab: SlabGuard,
    first_index: u32,
    count: u32,
}

impl Registered {
    /// The slots as a row; `None` where they are not consecutive slots of one slab.
    pub(super) fn new(slots: &[SlotBuffer]) -> Option<Self> {
        let first = slots.first()?;
        let slab = first.slab();
        let consecutive = slots
            .iter()
            .zip(first.index()..)
            .all(|(slot, index)| slab.owns(slot) && slot.index() == index);
        consecutive.then(|| Self {
            slab,
            first_index: first.index(),
            count: slots.len() as u32,
        })
    }

    /// Where the slot stands among the registered buffers.
    fn position(&self, slot: &SlotBuffer) -> Option<u16> {
        let position = slot.index().checked_sub(self.first_index)?;
        let known = self.slab.owns(slot) && position < self.count;
        known.then_some(position as u16)
    }
}

/// The submission entry of an operation, at a place in the ring's files. It points into the operation's buffer or
/// into `zeros`.
pub(super) fn build(
    op: &mut DeviceOp,
    action: Action,
    place: Piece,
    registered: Option<&Registered>,
    zeros: Option<&SlotBuffer>,
) -> squeue::Entry {
    let file = types::Fixed(place.index as u32);
    match action {
        Action::Transfer => transfer(op, file, place.offset_bytes, registered),
        Action::Sync { .. } if op.flags.contains(Flags::META) => opcode::Fsync::new(file).build(),
        Action::Sync { .. } => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
        Action::Fallocate(mode) => opcode::Fallocate::new(file, op.len_bytes)
            .offset(place.offset_bytes)
            .mode(mode.bits() as i32)
            .build(),
        Action::DiscardBlocks => {
            let mut command = [0; 16];
            command[..8].copy_from_slice(&op.len_bytes.to_ne_bytes());
            opcode::UringCmd16::new(file, BLOCK_URING_CMD_DISCARD)
                .addr(Some(place.offset_bytes))
                .cmd(command)
                .build()
        }
        Action::Zeros { done_bytes } => {
            let zeros = zeros.map(|zeros| zeros.area(Area::Data));
            let zeros = zeros.unwrap_or_default();
            let rest_bytes = op.len_bytes.saturating_sub(done_bytes);
            let len = rest_bytes.min(ZEROS_BYTES as u64).min(zeros.len() as u64);
            opcode::Write::new(file, zeros.as_ptr(), len as u32)
                .offset(place.offset_bytes + done_bytes)
                .build()
        }
    }
}

fn transfer(
    op: &mut DeviceOp,
    file: types::Fixed,
    offset_bytes: u64,
    registered: Option<&Registered>,
) -> squeue::Entry {
    let buffer = op.buffer.as_ref();
    let buffer_index = buffer.and_then(|buffer| registered?.position(buffer));
    if op.op == Op::Write {
        let dsync = op.flags.contains(Flags::FUA);
        let rw_flags = if dsync {
            ReadWriteFlags::DSYNC.bits()
        } else {
            0
        } as i32;
        let memory = op.memory();
        let len = (memory.len() as u64).min(TRANSFER_LIMIT_BYTES) as u32;
        let start = memory.as_ptr();
        return match buffer_index {
            Some(index) => opcode::WriteFixed::new(file, start, len, index)
                .offset(offset_bytes)
                .rw_flags(rw_flags)
                .build(),
            None => opcode::Write::new(file, start, len)
                .offset(offset_bytes)
                .rw_flags(rw_flags)
                .build(),
        };
    }
    let memory = op.memory_mut();
    let len = (memory.len() as u64).min(TRANSFER_LIMIT_BYTES) as u32;
    let start = memory.as_mut_ptr();
    match buffer_index {
        Some(index) => opcode::ReadFixed::new(file, start, len, index)
            .offset(offset_bytes)
            .build(),
        None => opcode::Read::new(file, start, len)
            .offset(offset_bytes)
            .build(),
    }
}
