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
use crate::units::SectorSize;

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

    /// The right to the bytes of `span` in both areas.
    ///
    /// # Errors
    /// As [`Span::check`].
    ///
    /// # Safety
    /// For as long as the stretch exists, the slot's [`SlotBuffer`] exists and nobody uses it, and no
    /// other thread uses the bytes of the span in either area.
    pub(crate) unsafe fn stretch(
        &self,
        span: Span,
        unit: SectorSize,
    ) -> Result<Stretch<'_>, Errno> {
        span.check(unit, self.area_len)?;
        Ok(Stretch { areas: self, span })
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

/// Exclusive access to the bytes of one span, which lies inside its areas.
pub(crate) struct Stretch<'a> {
    areas: &'a Areas,
    span: Span,
}

impl Stretch<'_> {
    /// Runs the cipher from the span's source to its target.
    ///
    /// # Errors
    /// `EIO` where the cipher panicked.
    pub(crate) fn run(&mut self, cipher: &dyn SectorCipher) -> Result<(), Errno> {
        let span = &self.span;
        // SAFETY: the span lies inside the area, whose slab the slot's buffer keeps alive; these bytes
        // are this value's alone, which is borrowed mutably.
        let target = unsafe { self.areas.bytes(span.target, span).as_mut() };
        match span.source {
            Source::Area(area) if area != span.target => {
                // SAFETY: as for the target; the other area is disjoint from it, and only read.
                let source = unsafe { self.areas.bytes(area, span).as_ref() };
                run_out_of_place(cipher, span.direction, span.first, source, target)
            }
            Source::Area(_) | Source::Zeroes => run_in_place(cipher, span, target),
        }
    }

    /// The bytes of the target.
    pub(crate) fn target(&self) -> &[u8] {
        // SAFETY: as in `run`; only read, and `&self` keeps `run` from being called meanwhile.
        unsafe { self.areas.bytes(self.span.target, &self.span).as_ref() }
    }
}
