//! Addresses of a slot's two areas, for threads that share the slot by disjoint ranges.
//!
//! A [`SlotBuffer`] is the right to the whole slot, and stays where it is while parts of a task run
//! over its memory; they go by these addresses. Second of the two files with unsafe code of the
//! worker side; the protocol that makes it sound is in `task.rs`.

use std::ptr::NonNull;

use super::span::{Source, Span, run_in_place, run_out_of_place};
use crate::buffer::{Area, SlotBuffer};
use crate::cipher::SectorCipher;
use crate::error::Errno;

/// Where the areas of one slot are. Valid as long as that slot's [`SlotBuffer`] exists.
pub(crate) struct Areas {
    data: NonNull<u8>,
    bounce: NonNull<u8>,
    area_len: usize,
}

// SAFETY: addresses only; using them is `unsafe` and up to the caller.
unsafe impl Send for Areas {}
// SAFETY: as for `Send`.
unsafe impl Sync for Areas {}

impl Areas {
    pub(crate) fn of(buffer: &mut SlotBuffer) -> Self {
        let area_len = buffer.area_len();
        let (data, bounce) = buffer.split_mut();
        Self {
            data: NonNull::from(data).cast(),
            bounce: NonNull::from(bounce).cast(),
            area_len,
        }
    }

    /// Runs the cipher over `span`.
    ///
    /// # Errors
    /// As [`run_span`](super::run_span).
    ///
    /// # Safety
    /// The slot's [`SlotBuffer`] exists and nobody uses it during the call, and no other thread uses
    /// the bytes of the span in either area.
    pub(crate) unsafe fn run(&self, cipher: &dyn SectorCipher, span: &Span) -> Result<(), Errno> {
        span.check(cipher.sector_size(), self.area_len)?;
        // SAFETY: the span lies inside the area (just checked), whose slab the slot's buffer keeps
        // alive; the caller has these bytes alone.
        let target = unsafe { self.bytes(span.target, span).as_mut() };
        match span.source {
            Source::Area(area) if area != span.target => {
                // SAFETY: as for the target; the other area is disjoint from it, and only read.
                let source = unsafe { self.bytes(area, span).as_ref() };
                run_out_of_place(cipher, span.direction, span.first, source, target)
            }
            Source::Area(_) | Source::Zeroes => run_in_place(cipher, span, target),
        }
    }

    /// The bytes of a checked span in one area.
    fn bytes(&self, area: Area, span: &Span) -> NonNull<[u8]> {
        let start = match area {
            Area::Data => self.data,
            Area::Bounce => self.bounce,
        };
        // SAFETY: the caller checked that the span lies inside the area, one allocation.
        let start = unsafe { start.add(span.area_offset_bytes as usize) };
        NonNull::slice_from_raw_parts(start, span.len_bytes as usize)
    }
}
